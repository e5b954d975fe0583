"""Any Gymnasium environment and any proto-goal space as a batch for the deep agent.

Observations are sorted by their spaces: whole numbers on a grid become characters, 0/1 pictures planes, Discrete and
MultiDiscrete ids, the rest a vector. Text is not shown to the network; it is for the proto-goal space. Bits are made
here and never in a worker, from whole batches in order: a vocabulary that grows while it reads then grows the same
way however many workers there are. `protogoal.deep.act` steps it; MiniHack is the first user.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from protogoal.envs.episodes import WHOLE, EnvFactory
from protogoal.envs.failure import EnvironmentFailure, failure
from protogoal.envs.observed import Limits
from protogoal.envs.raw import as_batch, check_kind
from protogoal.envs.vector import PAD, ArraySpec, BatchStep, Observation
from protogoal.envs.workers import WorkerPool
from protogoal.goals.active import WrongIds, widened
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.stored import stored_number

MOST_CHARACTERS = 1024
"""A grid of whole numbers with more values than this is taken as a picture, not as characters."""

LONGEST_VECTOR = 16_384

GROWTH = 8  # lists of ids become wider by an eighth at least


class GymBatchEnv:
    """N copies of an environment as a `protogoal.envs.vector.BatchEnv`.

    factory     makes one environment; for workers it must be importable or picklable
    space       turns transitions into bits; it gets observations as the environment gives them, with a batch axis in
                front, and texts as a list of bytes
    Lists of ids are as wide as the space's `usual_active`; the first transition with more bits on makes them wider, for good.
    """

    def __init__(self, factory: EnvFactory, space: ProtoGoalSpace, num_envs: int, num_workers: int = 0,
                 on_event: Callable[[str], None] | None = None, timeout: float = 120.0):
        self.space = space
        self.num_bits = space.size
        self.max_active = space.usual_active
        self.pool = WorkerPool(factory, num_envs, num_workers, timeout=timeout, on_event=on_event)
        try:
            self.num_envs = self.pool.num_envs
            self.num_actions = self.pool.num_actions
            whole = self.pool.observation_space
            named = dict(whole.spaces) if isinstance(whole, spaces.Dict) else {WHOLE: whole}
            self._readers = {name: _reader(name, part) for name, part in named.items() if not isinstance(part, spaces.Text)}
            if not self._readers:
                raise ValueError("the observation is text alone; a network needs a Box, Discrete or MultiDiscrete part")
            self.observation_spec = {name: spec for name, (spec, _) in self._readers.items()}
            self._limits = Limits(named)
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
        self._check_rewards()
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
    def first_action(self) -> int:
        """The number that the environment gives its first action."""
        return self.pool.layout.first_action

    def read_raw(self, raw: Any) -> tuple[Observation, np.ndarray, bool]:
        """One observation of the environment's, or a batch: as the network reads it, its bits, and whether it was one alone."""
        whole = self.pool.observation_space
        named = dict(whole.spaces) if isinstance(whole, spaces.Dict) else {WHOLE: whole}
        given = raw if isinstance(whole, spaces.Dict) else {WHOLE: raw}
        if isinstance(raw, Mapping) != isinstance(whole, spaces.Dict):
            wanted = f"the parts {sorted(named)}" if isinstance(whole, spaces.Dict) else "one array"
            raise ValueError(f"the environment observes {wanted}; got a {type(raw).__name__}")
        seen = {name: part for name, part in named.items() if name in self._readers}
        arrays, is_single = as_batch({name: given[name] for name in given if name in seen or name not in named},
                                     {name: tuple(part.shape or ()) for name, part in seen.items()})
        for name, part in seen.items():
            check_kind(name, arrays[name], part.dtype)
            if not all(part.contains(state.astype(part.dtype)) for state in arrays[name]):
                raise ValueError(f"observation {name!r} is not in the environment's space {part}")
            arrays[name] = arrays[name].astype(part.dtype)
        texts = {name: [_encoded(text) for text in ([given[name]] if is_single else given[name])]
                 for name in named if name not in seen}
        state: Any = arrays | texts if isinstance(whole, spaces.Dict) else arrays[WHOLE]
        return self._observe(arrays), self._active(len(next(iter(arrays.values()))), state, None, state), is_single

    def _check_rewards(self) -> None:
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

    def _observe(self, arrays: Mapping[str, np.ndarray]) -> Observation:
        self._limits.check(arrays, self.pool.who)
        return {name: read(arrays[name]) for name, (_, read) in self._readers.items()}

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
        except Exception as error:
            raise failure(error, "the proto-goal space") from error
        if self.space.size != self.num_bits:
            raise EnvironmentFailure(f"the proto-goal space has {self.space.size:,} bits now, it had {self.num_bits:,}; "
                                     "their number must stay the same")
        if len(active) != n:
            raise EnvironmentFailure(f"the proto-goal space gave {len(active)} rows for {n} transitions; it must give one each")
        if active.shape[1] > self.max_active:
            self.max_active = max(active.shape[1], self.max_active + self.max_active // GROWTH)
        return widened(active, self.max_active)


def _encoded(text: str | bytes) -> bytes:
    """Text as the proto-goal space gets it."""
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")


Reader = Callable[[np.ndarray], np.ndarray]


def _reader(name: str, space: spaces.Space) -> tuple[ArraySpec, Reader]:
    """How the network sees one part of an observation: its spec, and the function from arrays [N, …] to it."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).astype(np.int64).ravel()
        starts = np.atleast_1d(space.start).astype(np.int64).ravel()
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - starts
        dtype = np.dtype(np.int16 if sizes.sum() < 2**15 else np.int32)
        spec = ArraySpec((len(sizes),), dtype, "active", int(sizes.sum()))
        return spec, lambda array: (array.reshape(len(array), -1) + offsets).astype(dtype)
    if isinstance(space, spaces.MultiBinary):
        if len(space.shape) in (2, 3):
            planes = space.shape if len(space.shape) == 3 else (1, *space.shape)
            return ArraySpec(planes, np.dtype(np.uint8), "planes"), lambda array: array.reshape(-1, *planes).astype(np.uint8)
        return _vector(name, int(np.prod(space.shape)), 0.0, 1.0)
    if isinstance(space, spaces.Box):
        low, high = float(space.low.min()), float(space.high.max())
        if np.issubdtype(space.dtype, np.integer) and low >= 0:
            if len(space.shape) == 3 and high <= 1:
                return ArraySpec(space.shape, np.dtype(np.uint8), "planes"), lambda array: array.astype(np.uint8)
            if len(space.shape) == 2 and high < MOST_CHARACTERS and not (high == 255 and min(space.shape) > 64):
                dtype = np.dtype(np.uint8 if high < 256 else np.int16)
                return ArraySpec(space.shape, dtype, "characters", int(high) + 1), lambda array: array.astype(dtype)
        if np.issubdtype(space.dtype, np.integer) and np.isfinite([low, high]).all() and high > low:
            return _vector(name, int(np.prod(space.shape)), low, high)
        return _vector(name, int(np.prod(space.shape)), 0.0, 1.0)
    raise ValueError(f"observation part {name!r} is {type(space).__name__}; allowed are Box, Discrete, MultiDiscrete, "
                     "MultiBinary and Text")


def _vector(name: str, size: int, low: float, high: float) -> tuple[ArraySpec, Reader]:
    """A flat float32 vector, (x − low) / (high − low)."""
    if size > LONGEST_VECTOR:
        raise ValueError(f"observation part {name!r} has {size} numbers; a vector may have at most {LONGEST_VECTOR}. "
                         "Smaller pictures, 0/1 planes [C, H, W] or a grid of whole numbers [H, W] are allowed")

    def read(array: np.ndarray) -> np.ndarray:
        values = ((array.reshape(len(array), -1) - low) / (high - low)).astype(np.float32)
        if not np.isfinite(values).all():
            env = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise ValueError(f"environment {env} gave a number in {name!r} that is not finite; NaN and infinity are not allowed")
        return values

    return ArraySpec((size,), np.dtype(np.float32), "vector"), read


def load(reference: str) -> Any:
    """The object that "module:name" names."""
    module, colon, name = reference.partition(":")
    if not (module and colon and name):
        raise ValueError(f"expected module:name, not {reference!r}")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"cannot import {module!r}: {error}") from error
    except Exception as error:  # whatever a user's module does when it is imported
        raise ValueError(f"cannot import {module!r}: {type(error).__name__}: {error}") from error
    if not hasattr(found, name):
        raise ValueError(f"module {module!r} has no {name!r}")
    return getattr(found, name)
