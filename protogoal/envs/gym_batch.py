"""Any Gymnasium environment and any proto-goal space as a batch for the deep agent.

Observations are sorted by their spaces (`reading`). Parts that are `hidden` are not shown to the network; they are for the
proto-goal space. Bits are made here and never in a worker, from whole batches in order: a vocabulary that grows while it reads
then grows the same way however many workers there are. `protogoal.deep.act` steps it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from protogoal.envs.episodes import WHOLE, EnvFactory
from protogoal.envs.failure import EnvironmentFailure, failure
from protogoal.envs.readable import hidden_in
from protogoal.envs.readers import Moments
from protogoal.envs.reading import ObservationReader
from protogoal.envs.vector import PAD, BatchStep, Observation
from protogoal.envs.workers import WorkerPool
from protogoal.goals.active import WrongIds, widened
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.stored import stored_number

GROWTH = 8  # lists of ids become wider by an eighth at least


class GymBatchEnv:
    """N copies of an environment as a `protogoal.envs.vector.BatchEnv`.

    factory     makes one environment; for workers it must be importable or picklable
    space       turns transitions into bits; it gets observations as the environment gives them, with a batch axis in
                front, and texts as a list of bytes
    hidden      parts of the observation that the network does not see; unless given, those that are for proto-goals alone

    Lists of ids are as wide as the space's `usual_active`; the first transition with more bits on makes them wider, for good.
    """

    def __init__(self, factory: EnvFactory, space: ProtoGoalSpace, num_envs: int, num_workers: int = 0,
                 on_event: Callable[[str], None] | None = None, timeout: float = 120.0, hidden: Collection[str] | None = None):
        self.space = space
        self.num_bits = space.size
        self.max_active = space.usual_active
        self.pool = WorkerPool(factory, num_envs, num_workers, timeout=timeout, on_event=on_event)
        try:
            self.num_envs = self.pool.num_envs
            self.num_actions = self.pool.num_actions
            seen = self.pool.observation_space
            self.reader = ObservationReader(seen, self.pool.paths, hidden_in(seen) if hidden is None else hidden, self._moments)
            self.observation_spec = self.reader.spec
        except BaseException:
            self.pool.close()
            raise

    def reset(self, seed: int | None = None) -> tuple[Observation, np.ndarray]:
        """Starts all episodes anew; see `BatchEnv.reset`."""
        self.pool.reset(seed)
        return self._start()

    def step(self, actions: np.ndarray) -> BatchStep:
        """One transition of every environment; see `BatchEnv.step`."""
        pool = self.pool
        pool.step(actions)
        self.check_rewards()
        final_observation = self._observe(pool.final)
        final_active = self._active(self.num_envs, self._given(pool.previous), np.asarray(actions), self._given(pool.final))
        final_active[pool.crashed] = PAD  # nothing happened there
        observation, active = final_observation, final_active
        ended = pool.terminated | pool.truncated
        if ended.any():
            observation = self._observe(pool.observation)
            starting = self._starting_active(np.flatnonzero(ended))
            final_active = widened(final_active, self.max_active)
            active = final_active.copy()
            active[ended] = starting
        return BatchStep(observation, active, final_observation, final_active,
                         pool.reward.copy(), pool.terminated.copy(), pool.truncated.copy(), pool.success.copy())

    @property
    def own_actions(self) -> np.ndarray:
        """The actions as the environment takes them, [A]; or [A, …] where they are combinations of several."""
        combinations = self.pool.combinations
        return self.pool.layout.first_action + np.arange(self.num_actions) if combinations is None else combinations

    def read_raw(self, raw: Any) -> tuple[Observation, np.ndarray, bool]:
        """One observation of the environment's, or a batch: as the network reads it, its bits, and whether it was one alone."""
        arrays, is_single = self.reader.arrays(raw)
        given = self._given(arrays)
        return self._observe(arrays), self._active(len(next(iter(arrays.values()))), given, None, given), is_single

    def check_rewards(self) -> None:
        """Refuses those that are no numbers."""
        wrong = np.flatnonzero(~np.isfinite(self.pool.reward))
        if len(wrong):
            who, reward = self.pool.who(int(wrong[0])), self.pool.reward[wrong[0]]
            raise EnvironmentFailure(f"{who} gave the reward {reward}; rewards must be finite numbers")

    def get_state(self) -> dict[str, Any] | None:
        """The episodes under way and what the space has learned; None when an episode is too long to be repeated."""
        state = self.pool.get_state()
        return None if state is None else {**state, "space": self.space.state_dict(), "max_active": self.max_active}

    def set_state(self, state: Mapping[str, Any]) -> tuple[Observation, np.ndarray]:
        """Repeats the episodes up to where they were; returns (observation, active) of the states reached."""
        self.space.load_state_dict(state["space"])
        self.pool.set_state(state)
        self.max_active = stored_number(state["max_active"], "max_active", 1, self.num_bits)
        return self._start()

    def picture(self, env: int = 0) -> Any:
        """What an environment draws of the state its last transition led to; only without workers (see `render_mode`)."""
        return self.pool.picture(env)

    def close(self) -> None:
        """Ends the workers. Safe to call twice."""
        self.pool.close()

    def _start(self) -> tuple[Observation, np.ndarray]:
        return self._observe(self.pool.observation), self._starting_active(np.arange(self.num_envs))

    def _moments(self) -> Moments:
        """Means and deviations of the first steps, where the space knows them."""
        return getattr(self.space, "moments", {})

    def _observe(self, arrays: Mapping[str, np.ndarray]) -> Observation:
        return self.reader.read(arrays, self.pool.who)

    def _given(self, arrays: Mapping[str, np.ndarray], rows: np.ndarray | None = None) -> Any:
        """Observations as the space gets them."""
        layout = self.pool.layout
        given: dict[str, Any] = {}
        for name in layout.parts:
            array = arrays[name] if rows is None else arrays[name][rows]
            given[name] = array.view(f"S{array.shape[1]}")[:, 0].tolist() if name in layout.texts else array
        return given if layout.is_dict else given[WHOLE]

    def _starting_active(self, rows: np.ndarray) -> np.ndarray:
        """Bits of states that no transition led to: b(s, none, s)."""
        start = self._given(self.pool.observation, rows)
        return self._active(len(rows), start, None, start)

    def _active(self, n: int, s: Any, a: Any, s_next: Any) -> np.ndarray:
        """Which bits are on in n transitions: lists of ids as wide as `max_active`, which grows where it must."""
        try:
            active = np.asarray(self.space.active(s, a, s_next))
        except WrongIds as error:
            raise EnvironmentFailure(str(error)) from None
        except BaseException as error:
            raise failure(error, "the proto-goal space") from error
        if self.space.size != self.num_bits:
            raise EnvironmentFailure(f"the proto-goal space has {self.space.size:,} bits now, it had {self.num_bits:,}; "
                                     "their number must stay the same")
        if len(active) != n:
            raise EnvironmentFailure(f"the proto-goal space gave {len(active)} rows for {n} transitions; it must give one each")
        if active.shape[1] > self.max_active:
            self.max_active = max(active.shape[1], self.max_active + self.max_active // GROWTH)
        return widened(active, self.max_active)
