"""Acting: one batched forward pass a step for all environments, goals by Algorithm 2 (paper §5.1, Algorithm 6).

Each environment pursues one goal until it is attained, the episode ends, or the pursuit has taken too long; the next one
is chosen where it stands, without a reset. Environment i explores with its own ε_i, and each action that it draws at random is a
trial for the evaluator (`goals.trials`). `Actor.collect` makes one window of steps; what it returns goes to replay and to the
proto-goal evaluator. `evaluate` plays for the task, or one goal, alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protogoal.deep.network import QNetwork
from protogoal.deep.segments import SegmentBuilder, Segments, Sizes
from protogoal.deep.settings import ActorSettings, ReplaySettings
from protogoal.deep.stored import check_actor
from protogoal.envs.success import ABOVE_0, SuccessRule
from protogoal.envs.vector import PAD, BatchEnv, Observation, check_start
from protogoal.goals.active import contains, turned_on
from protogoal.goals.goal_set import GoalSet
from protogoal.goals.scale import Returns, legible
from protogoal.goals.selection import select
from protogoal.goals.stored import stored_array, stored_like
from protogoal.goals.table import TASK, Pursuits
from protogoal.goals.trials import LAGS, TrialEvents, taken_before

Array = NDArray[Any]

VALUE_STATES = 16
"""States over which the values of goals on offer are averaged."""


@dataclass(frozen=True)
class Experience:
    """One window of acting: the segments, and what happened in the steps that are new."""

    segments: Segments
    pursuits: Pursuits
    episode_return: NDArray[np.float64]  # [finished episodes]
    episode_success: NDArray[np.int8]  # 1, 0 or -1 (nothing is called success)
    trials: TrialEvents
    offered: NDArray[np.int64]  # [k] goals on offer
    value: NDArray[np.float64]  # [k] mean_s V(s, g) where the environments stand


def epsilon_ladder(settings: ActorSettings) -> NDArray[np.float64]:
    """ε_i = base^(1 + exponent·i/(N−1)) [N]; a single environment has ε = base."""
    place = np.arange(settings.num_envs) / max(1, settings.num_envs - 1)
    ladder: NDArray[np.float64] = settings.epsilon_base ** (1.0 + settings.epsilon_exponent * place)
    return ladder


class Actor:
    """N environments, what each of them is after, and the window of steps being filled."""

    def __init__(
        self,
        env: BatchEnv,
        network: QNetwork,
        settings: ActorSettings,
        replay: ReplaySettings,
        seed: np.random.SeedSequence,
        max_members: int = 1,
        keeps_trials: bool = False,
    ):
        self.env, self.network, self.settings, self.keeps_trials = env, network, settings, keeps_trials
        acting, environment = seed.spawn(2)
        self.rng = np.random.default_rng(acting)
        n = env.num_envs
        self.epsilon = epsilon_ladder(settings)
        sizes = Sizes(env.observation_spec, env.num_bits, env.max_active, network.core_shape)
        self.builder = SegmentBuilder(sizes, n, replay.trace_length, replay.burn_in)
        self.observation, self.active = _own(env.reset(seed=int(environment.generate_state(1)[0])))
        check_start(env, self.observation, self.active)
        self.core = network.initial_core(n)
        self.builder.start(self.observation, self.core.numpy())
        self.goal = np.full(n, TASK, np.int64)
        self.members = np.full((n, max_members), PAD, np.int32)  # bits of the goal
        self.slots = np.full((n, max_members), PAD, np.int32)  # the network's rows for them
        self.offered = torch.empty(0)  # goals on offer as the network reads them, [k, d]
        self.needs_goal = np.ones(n, bool)
        self.pursuit_steps = np.zeros(n, np.int64)
        self.limit = np.zeros(n, np.int64)  # steps of the pursuit at most; 0: to the end of the episode
        self.is_paid = np.zeros(n, bool)  # a reward above 0 was met in this pursuit
        self.success = ABOVE_0  # what counts as success at the task; a session sets it
        self.past = np.full((n, LAGS), -1, np.int16)  # the last actions, newest first; -1 where none was drawn at random
        self.episode_return = np.zeros(n)
        self.returns = Returns(n)
        self.is_first = np.ones(n, bool)
        self.was_restored = True  # False when loading had to begin the episodes afresh
        self.previous_action = np.zeros(n, np.int16)
        self.previous_reward = np.zeros(n, np.float32)

    @torch.inference_mode()
    def collect(self, goals: GoalSet, act_randomly: bool = False) -> Experience:
        """Steps until a window is full. `act_randomly`: uniform actions, as before anything is learned."""
        ended: list[tuple[Array, Array, Array]] = []
        returns: list[tuple[Array, Array]] = []
        trials: list[TrialEvents] = []
        segments = None
        # What the network reads of a goal is computed once a window, or when the goal is chosen, and not in every state.
        self.offered = self.network.encode(torch.from_numpy(np.array(goals.slots)))
        pursued = self.network.encode(torch.from_numpy(self.slots))  # [N, d]
        while segments is None:
            z, core_next = self._read()
            new = np.flatnonzero(self.needs_goal)
            self._choose_goals(z, goals)
            if len(new):
                pursued[new] = self.network.encode(torch.from_numpy(self.slots[new]))
            action = self._choose_actions(z, pursued, act_randomly)
            step = self.env.step(action)
            came_on = turned_on(step.final_active, self.active)
            if self.keeps_trials:
                trials.append(self._trials(step.final_active, came_on))
            self.pursuit_steps += 1
            self.episode_return += step.reward
            self.is_paid |= step.reward > 0
            is_over = step.terminated | step.truncated
            self.returns.add(step.reward, is_over)
            attained = self._attained(step.final_active)
            # DEVIATION(D10): a pursuit has a limit, from its goal's successful ones; in the paper it lasts to the episode's end.
            is_done = attained | is_over | ((self.limit > 0) & (self.pursuit_steps >= self.limit))
            if is_done.any():
                who = np.flatnonzero(is_done)
                task_won = self.success.of_pursuit(self.is_paid, self.episode_return, step.success, step.terminated)
                won = np.where(self.goal == TASK, task_won, attained)
                ended.append((self.goal[who], won[who], self.pursuit_steps[who]))
                self.needs_goal |= is_done
            if is_over.any():
                success = self.success.of(self.episode_return, step.success)
                returns.append((self.episode_return[is_over], success[is_over]))
                self._episodes_ended(np.flatnonzero(is_over))
                self.episode_return[is_over] = 0.0
                self.past[is_over] = -1
            segments = self.builder.append(action, self.goal, came_on, step, core_next.numpy(), self.returns.best)
            self.core, self.is_first = core_next, is_over
            self.observation, self.active = _own((step.observation, step.active))
            self.previous_action, self.previous_reward = action.astype(np.int16), step.reward.astype(np.float32)
        finished = zip(*returns, strict=True) if returns else ([np.empty(0)], [np.empty(0, np.int8)])
        episode_return, episode_success = (np.concatenate(column) for column in finished)
        return Experience(segments, Pursuits.join(ended), episode_return, episode_success, TrialEvents.join(trials), goals.ids,
                          self._mean_values(z, goals))

    def _trials(self, active: Array, came_on: NDArray[np.bool_]) -> TrialEvents:
        """Where something turned on in the reach of a random action: the actions, the state before, what turned on."""
        rows = np.flatnonzero(came_on.any(1) & (self.past >= 0).any(1))
        row, place = np.nonzero(came_on[rows])
        return TrialEvents(self.active[rows].astype(np.int32), self.past[rows], row.astype(np.int32),
                           active[rows][row, place].astype(np.int32), taken=taken_before(self.past, None, self.network.num_actions))

    def _mean_values(self, z: Tensor, goals: GoalSet) -> NDArray[np.float64]:
        """mean_s V(s, g) of the goals on offer over some of the environments, [k]: their timescales."""
        if not len(goals):
            return np.empty(0)
        q = self.network.q_all(z[:VALUE_STATES], torch.from_numpy(np.array(goals.slots)))  # [M, A, k]
        return q.amax(1).mean(0).double().numpy()

    def _episodes_ended(self, rows: NDArray[np.int64]) -> None:
        """Told of the environments whose episode ended, while `episode_return` still has its return."""

    def shared(self) -> NDArray[Any] | None:
        """What this actor knows that others must know too; what several share is added up. None: nothing."""
        return None

    def take(self, others: NDArray[Any]) -> None:
        """Told of the sum of what the other actors share."""

    def _read(self) -> tuple[Tensor, Tensor]:
        """Features z [N, H] of where the environments stand, and the core's state after reading them."""
        return read_states(
            self.network, self.observation, self.previous_action, self.previous_reward, self.is_first, self.core
        )

    def _choose_goals(self, z: Tensor, goals: GoalSet) -> None:
        rows = np.flatnonzero(self.needs_goal)
        if len(rows) == 0:
            return

        def values(some: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
            q = self.network.q_of(z[rows[some]], self.offered[torch.from_numpy(np.array(positions))])  # [n, m, A]
            return q.amax(-1).double().numpy()

        self.goal[rows] = chosen = select(goals, values, self.active[rows], self.rng)
        self.members[rows] = self.slots[rows] = PAD
        self.limit[rows] = 0
        pursued = chosen != TASK
        if pursued.any():
            order = np.argsort(goals.ids)
            place = order[np.searchsorted(goals.ids, chosen[pursued], sorter=order)]
            self.members[rows[pursued], : goals.members.shape[1]] = goals.members[place]
            self.slots[rows[pursued], : goals.slots.shape[1]] = goals.slots[place]
            self.limit[rows[pursued]] = goals.limit[place]
        self.pursuit_steps[rows] = 0
        self.is_paid[rows] = False
        self.needs_goal[rows] = False

    def _choose_actions(self, z: Tensor, pursued: Tensor, act_randomly: bool) -> NDArray[np.int64]:
        n = len(self.goal)
        explore = (self.rng.random(n) < self.epsilon) | act_randomly  # DEVIATION(D18): before the first update
        action = self.rng.integers(self.network.num_actions, size=n)
        self.past = np.concatenate([np.where(explore, action, -1).astype(np.int16)[:, None], self.past[:, :-1]], 1)
        if act_randomly:  # an untrained network stands still
            return action
        q = self.network.q_of(z, pursued.unsqueeze(1))[:, 0]  # [N, A]
        return np.where(explore, action, q.argmax(-1).numpy())

    def _attained(self, active: Array) -> NDArray[np.bool_]:
        """Whether each environment's transition attained its goal: all of the goal's bits are on."""
        is_on = contains(active, self.members) | (self.members == PAD)
        attained: NDArray[np.bool_] = is_on.all(1) & (self.goal != TASK)
        return attained

    _ARRAYS = (
        "active",
        "goal",
        "members",
        "slots",
        "needs_goal",
        "pursuit_steps",
        "limit",
        "is_paid",
        "past",
        "episode_return",
        "is_first",
        "previous_action",
        "previous_reward",
    )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the network; `env` is None where the environments cannot be saved."""
        return {
            "rng": self.rng.bit_generator.state,
            "builder": self.builder.state_dict(),
            "env": self.env.get_state(),
            "core": self.core.numpy().copy(),
            "running_return": self.returns.running.copy(),
            "episode_steps": self.returns.steps.copy(),
            "best_return": np.array(self.returns.best),
        } | {name: getattr(self, name).copy() for name in self._ARRAYS}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave; where the environments cannot go on from there, all episodes start afresh."""
        self.rng.bit_generator.state = state["rng"]
        self.was_restored = state["env"] is not None
        if self.was_restored:
            self.builder.load_state_dict(state["builder"])
            self.observation, self.active = _own(self.env.set_state(state["env"]))
            self.was_restored = self.builder.stands_at(self.observation)
        if not self.was_restored:
            self._restart()
            return
        own = {name: getattr(self, name) for name in self._ARRAYS}
        check_actor(state, own | {"core": self.core.numpy()}, self.env.num_bits, self.env.num_actions)
        self.returns.best = float(stored_array(state["best_return"], "best_return", (), "f"))
        self.returns.steps = np.array(stored_like(state["episode_steps"], "episode_steps", self.returns.steps, 0))
        self.returns.running = np.array(stored_like(state["running_return"], "running_return", self.returns.running))
        self.core = torch.from_numpy(np.array(state["core"], self.core.numpy().dtype))
        for name, mine in own.items():
            setattr(self, name, np.array(state[name], mine.dtype))

    def _restart(self) -> None:
        self.observation, self.active = _own(self.env.reset(seed=int(self.rng.integers(2**31))))
        self.core = self.network.initial_core(self.env.num_envs)
        self.builder.start(self.observation, self.core.numpy())
        self.needs_goal[:] = True
        self.past[:] = -1
        self.is_first[:] = True
        self.episode_return[:] = 0.0
        self.returns.restart()


def read_states(
    network: QNetwork,
    observation: Observation,
    previous_action: Array,
    previous_reward: Array,
    is_first: Array,
    core: Tensor,
) -> tuple[Tensor, Tensor]:
    """Features z [N, H] of N states, and the core's state after reading them."""
    z, core = network.unroll(
        {name: torch.from_numpy(array).unsqueeze(0) for name, array in observation.items()},
        torch.from_numpy(previous_action).unsqueeze(0),
        torch.from_numpy(legible(previous_reward)).unsqueeze(0),
        torch.from_numpy(is_first).unsqueeze(0),
        core,
    )
    return z[0], core


class WantedGoal(NamedTuple):
    """A goal to be pursued: its bits, and the slots by which the network knows them."""

    members: NDArray[Any]  # [m]
    slots: NDArray[np.int32]  # [m]

    def attained(self, active: Array) -> NDArray[np.bool_]:
        """Whether all its bits are on, [N], from active [N, L]."""
        on: NDArray[np.bool_] = (self.members[None, :, None] == active[:, None, :]).any(-1).all(1)
        return on


@dataclass(frozen=True)
class Evaluation:
    """Episodes played for the task; or for a goal, where a success is one in which it is attained."""

    episodes: int
    successes: int | None  # None: nothing is called success
    mean_return: float
    mean_length: float
    cut: int = 0  # episodes that did not end in time, counted with their return so far
    max_steps: int = field(default=0, compare=False)  # that time
    limit: str = field(default="evaluation.max_steps", compare=False)  # what sets it

    @property
    def cut_words(self) -> str:
        return (f"{self.cut} of {self.episodes} episodes of an evaluation did not end within {self.max_steps:,} steps "
                f"({self.limit}) and were cut there")

    @property
    def success_rate(self) -> float:
        """NaN where nothing is called success."""
        return np.nan if self.successes is None else self.successes / self.episodes

    @property
    def metrics(self) -> dict[str, float]:
        """As points of curves: return, length, and success where something is called that."""
        known = {} if self.successes is None else {"success": self.success_rate}
        return known | {"return": self.mean_return, "episode_length": self.mean_length}


@torch.inference_mode()
def evaluate(
    network: QNetwork, env: BatchEnv, episodes: int, epsilon: float, rng: np.random.Generator, max_steps: int = 10_000,
    rule: SuccessRule = ABOVE_0, wanted: WantedGoal | None = None,
) -> Evaluation:
    """Plays `episodes` for the task (goal **0**), or for the goal `wanted` and nothing else, from fresh episodes.

    How many each environment plays is settled before, and all of them count, however long they take: counting the first
    to end would favour short episodes, which are those that succeed. One that has not ended after `max_steps` is cut; its
    environment waits until the others are done or cut as well, and all start afresh together.
    """
    n = env.num_envs
    quota = episodes // n + (np.arange(n) < episodes % n)  # [N]
    observation, _ = env.reset(seed=int(rng.integers(2**31)))
    core = network.initial_core(n)
    goal = torch.full((n, 1, 1), PAD) if wanted is None else torch.from_numpy(wanted.slots).expand(n, 1, -1)
    is_first, action, reward = np.ones(n, bool), np.zeros(n, np.int16), np.zeros(n, np.float32)
    total, played, length = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
    returns: list[float] = []
    successes: list[int] = []
    lengths: list[int] = []
    waiting, cut = np.zeros(n, bool), 0
    while (played < quota).any():
        z, core = read_states(network, observation, action, reward, is_first, core)
        q = network.q_each(z, goal)[:, 0]
        random = rng.integers(network.num_actions, size=n)
        chosen = np.where(rng.random(n) < epsilon, random, q.argmax(-1).numpy())
        step = env.step(chosen)
        total = total + step.reward if wanted is None else np.maximum(total, wanted.attained(step.final_active))
        length += 1
        is_first = step.terminated | step.truncated
        too_long = (length >= max_steps) & ~is_first & ~waiting & (played < quota)
        success = rule.of(total, step.success) if wanted is None else total > 0.0
        for i in np.flatnonzero((is_first & ~waiting | too_long) & (played < quota)):
            returns.append(float(total[i]))
            successes.append(int(success[i]))
            lengths.append(int(length[i]))
        played += is_first & ~waiting | too_long
        waiting = waiting & ~is_first | too_long
        cut += int(too_long.sum())
        total[is_first] = 0.0
        length[is_first] = 0
        observation = step.observation
        action, reward = chosen.astype(np.int16), step.reward.astype(np.float32)
        if waiting.any() and (waiting | (played >= quota)).all() and (played < quota).any():
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
            core = network.initial_core(n)
            is_first, action, reward = np.ones(n, bool), np.zeros(n, np.int16), np.zeros(n, np.float32)
            total[:], length[:], waiting[:] = 0.0, 0, False
    won = sum(value == 1 for value in successes) if max(successes) >= 0 else None
    return Evaluation(episodes, won, float(np.mean(returns)), float(np.mean(lengths)), cut, max_steps)


def _own(seen: tuple[Observation, Array]) -> tuple[Observation, Array]:
    """Copies: environments may write over what they gave."""
    observation, active = seen
    return {name: array.copy() for name, array in observation.items()}, active.copy()
