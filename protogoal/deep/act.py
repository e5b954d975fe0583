"""Acting: one batched forward pass a step for all environments, goals by Algorithm 2 (paper §5.1, Algorithm 6).

Each environment pursues one goal until it is attained, the episode ends, or the pursuit has taken too long; the next one
is chosen where it stands, without a reset. Environment i explores with its own ε_i. `Actor.collect` makes one
window of steps; what it returns goes to replay and to the proto-goal evaluator. `evaluate` plays for the task alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protogoal.deep.network import QNetwork
from protogoal.deep.segments import SegmentBuilder, Segments
from protogoal.deep.settings import ActorSettings, ReplaySettings
from protogoal.envs.vector import PAD, BatchEnv, Observation, check_start, dense_bits
from protogoal.goals.evaluator import PGESettings
from protogoal.goals.selection import GoalSet, select
from protogoal.goals.table import TASK

Array = NDArray[Any]


@dataclass(frozen=True)
class Pursuits:
    """Pursuits that ended: of which goal, whether it was attained, and after how many steps; [n] each."""

    goal: NDArray[np.int64]
    success: NDArray[np.bool_]
    length: NDArray[np.int64]


@dataclass(frozen=True)
class Experience:
    """One window of acting: the segments, and what happened in the steps that are new."""

    segments: Segments
    pursuits: Pursuits
    episode_return: NDArray[np.float64]  # [finished episodes]


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
        selection: PGESettings,
        replay: ReplaySettings,
        seed: np.random.SeedSequence,
    ):
        self.env, self.network, self.settings, self.selection = env, network, settings, selection
        acting, environment = seed.spawn(2)
        self.rng = np.random.default_rng(acting)
        n = env.num_envs
        self.epsilon = epsilon_ladder(settings)
        self.builder = SegmentBuilder(
            env.observation_spec,
            n,
            env.num_bits,
            env.max_active,
            network.core_shape,
            replay.trace_length,
            replay.burn_in,
        )
        self.observation, self.active = _own(env.reset(seed=int(environment.generate_state(1)[0])))
        check_start(env, self.observation, self.active)
        self.core = network.initial_core(n)
        self.builder.start(self.observation, self.core.numpy())
        self.goal = np.full(n, TASK, np.int64)
        self.members = np.full((n, selection.max_members), PAD, np.int32)
        self.needs_goal = np.ones(n, bool)
        self.pursuit_steps = np.zeros(n, np.int64)
        self.episode_return = np.zeros(n)
        self.is_first = np.ones(n, bool)
        self.was_restored = True  # False when loading had to begin the episodes afresh
        self.previous_action = np.zeros(n, np.int16)
        self.previous_reward = np.zeros(n, np.float32)

    @torch.inference_mode()
    def collect(self, goals: GoalSet, act_randomly: bool = False) -> Experience:
        """Steps until a window is full. `act_randomly`: uniform actions, as before anything is learned."""
        ended: list[tuple[Array, Array, Array]] = []
        returns: list[Array] = []
        segments = None
        while segments is None:
            z, core_next = self._read()
            self._choose_goals(z, goals)
            action = self._choose_actions(z, act_randomly)
            step = self.env.step(action)
            self.pursuit_steps += 1
            self.episode_return += step.reward
            is_over = step.terminated | step.truncated
            attained = self._attained(step.final_active)
            is_done = attained | is_over
            if self.settings.max_pursuit_steps:
                # DEVIATION(D10): a pursuit is given up after max_pursuit_steps; in the paper it lasts to the episode's end.
                is_done |= self.pursuit_steps >= self.settings.max_pursuit_steps
            if is_done.any():
                who = np.flatnonzero(is_done & (self.goal != TASK))
                ended.append((self.goal[who], attained[who], self.pursuit_steps[who]))
                self.needs_goal |= is_done
            if is_over.any():
                returns.append(self.episode_return[is_over])
                self._episodes_ended(np.flatnonzero(is_over))
                self.episode_return[is_over] = 0.0
            segments = self.builder.append(action, self.goal, self.active, step, core_next.numpy())
            self.core, self.is_first = core_next, is_over
            self.observation, self.active = _own((step.observation, step.active))
            self.previous_action, self.previous_reward = action.astype(np.int16), step.reward.astype(np.float32)
        goal, success, length = (np.concatenate(column) for column in zip(*ended, strict=True)) if ended else _nothing()
        finished = np.concatenate(returns) if returns else np.empty(0)
        return Experience(segments, Pursuits(goal, success, length), finished)

    def _episodes_ended(self, rows: NDArray[np.int64]) -> None:
        """Told of the environments whose episode ended, while `episode_return` still has its return."""

    def _read(self) -> tuple[Tensor, Tensor]:
        """Features z [N, H] of where the environments stand, and the core's state after reading them."""
        return read_states(
            self.network, self.observation, self.previous_action, self.previous_reward, self.is_first, self.core
        )

    def _choose_goals(self, z: Tensor, goals: GoalSet) -> None:
        rows = np.flatnonzero(self.needs_goal)
        if len(rows) == 0:
            return
        s = self.selection
        members = torch.from_numpy(np.asarray(goals.members).copy())

        def values(some: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
            q = self.network.q_each(z[rows[some]], members[torch.from_numpy(np.array(positions))])  # [n, m, A]
            return q.amax(-1).double().numpy()

        bits = dense_bits(self.active[rows], self.env.num_bits)
        self.goal[rows] = chosen = select(
            goals,
            values,
            bits,
            self.rng,
            num_candidates=s.num_candidates,
            p_task=s.p_task,
            value_floor=s.value_floor,
            redraws=s.redraws,
        )
        self.members[rows] = PAD
        pursued = chosen != TASK
        if pursued.any():
            order = np.argsort(goals.ids)
            place = order[np.searchsorted(goals.ids, chosen[pursued], sorter=order)]
            self.members[rows[pursued], : goals.members.shape[1]] = goals.members[place]
        self.pursuit_steps[rows] = 0
        self.needs_goal[rows] = False

    def _choose_actions(self, z: Tensor, act_randomly: bool) -> NDArray[np.int64]:
        n = len(self.goal)
        explore = self.rng.random(n) < self.epsilon
        action = self.rng.integers(self.network.num_actions, size=n)
        if act_randomly:  # DEVIATION(D18): before the first update; an untrained network stands still
            return action
        q = self.network.q_each(z, torch.from_numpy(self.members).unsqueeze(1))[:, 0]  # [N, A]
        return np.where(explore, action, q.argmax(-1).numpy())

    def _attained(self, active: Array) -> NDArray[np.bool_]:
        """Whether each environment's transition attained its goal: all of the goal's bits are on."""
        is_on = (self.members[:, :, None] == active[:, None, :]).any(-1) | (self.members == PAD)
        attained: NDArray[np.bool_] = is_on.all(1) & (self.goal != TASK)
        return attained

    _ARRAYS = (
        "active",
        "goal",
        "members",
        "needs_goal",
        "pursuit_steps",
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
        self.core = torch.from_numpy(np.array(state["core"]))
        for name in self._ARRAYS:
            setattr(self, name, np.array(state[name]))

    def _restart(self) -> None:
        self.observation, self.active = _own(self.env.reset(seed=int(self.rng.integers(2**31))))
        self.core = self.network.initial_core(self.env.num_envs)
        self.builder.start(self.observation, self.core.numpy())
        self.needs_goal[:] = True
        self.is_first[:] = True
        self.episode_return[:] = 0.0


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
        torch.from_numpy(previous_reward).unsqueeze(0),
        torch.from_numpy(is_first).unsqueeze(0),
        core,
    )
    return z[0], core


@dataclass(frozen=True)
class Evaluation:
    """Episodes played for the task; a success is an episode with a return above 0."""

    episodes: int
    successes: int
    mean_return: float
    mean_length: float

    @property
    def success_rate(self) -> float:
        return self.successes / self.episodes


@torch.inference_mode()
def evaluate(network: QNetwork, env: BatchEnv, episodes: int, epsilon: float, rng: np.random.Generator) -> Evaluation:
    """Plays `episodes` for the task (goal **0**), from fresh episodes.

    How many each environment plays is settled before, and all of them count, however long they take: counting the first
    to end would favour short episodes, which are those that succeed.
    """
    n = env.num_envs
    quota = episodes // n + (np.arange(n) < episodes % n)  # [N]
    observation, _ = env.reset(seed=int(rng.integers(2**31)))
    core = network.initial_core(n)
    goal = torch.full((n, 1, 1), PAD)
    is_first, action, reward = np.ones(n, bool), np.zeros(n, np.int16), np.zeros(n, np.float32)
    total, played, length = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
    returns: list[float] = []
    lengths: list[int] = []
    while (played < quota).any():
        z, core = read_states(network, observation, action, reward, is_first, core)
        q = network.q_each(z, goal)[:, 0]
        random = rng.integers(network.num_actions, size=n)
        chosen = np.where(rng.random(n) < epsilon, random, q.argmax(-1).numpy())
        step = env.step(chosen)
        total += step.reward
        length += 1
        is_first = step.terminated | step.truncated
        for i in np.flatnonzero(is_first & (played < quota)):
            returns.append(float(total[i]))
            lengths.append(int(length[i]))
        played += is_first
        total[is_first] = 0.0
        length[is_first] = 0
        observation = step.observation
        action, reward = chosen.astype(np.int16), step.reward.astype(np.float32)
    return Evaluation(episodes, sum(value > 0 for value in returns), float(np.mean(returns)), float(np.mean(lengths)))


def _own(seen: tuple[Observation, Array]) -> tuple[Observation, Array]:
    """Copies: environments may write over what they gave."""
    observation, active = seen
    return {name: array.copy() for name, array in observation.items()}, active.copy()


def _nothing() -> tuple[Array, Array, Array]:
    return np.empty(0, np.int64), np.empty(0, bool), np.empty(0, np.int64)
