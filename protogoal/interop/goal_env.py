"""Any Gymnasium environment and a proto-goal space as a goal environment, for other libraries' hindsight replay.

The convention is that of HER implementations: a dictionary observation with `observation`, `achieved_goal` and
`desired_goal`, and a vectorised `compute_reward(achieved, desired, info)`. The wrapper owns a `ProtoGoalEvaluator`: it
counts what each transition attains, chooses the desired goal (paper §5.1) and reports how each pursuit ended. How the agent chooses
its actions is not known here, so the wrapper makes the randomised trials itself: on some steps it takes a random action
instead, and says so in `info["action"]`. An outer episode is one pursuit: after attainment `reset` goes on from
where the agent stands (paper §5), and resets the inner environment only when that one is over.

HER relabels with the `achieved_goal` of a later step, which has to say two things: what that step attains, so that any
goal can be checked against it, and which one goal to learn in its place. Both lie in one float vector [B + 2]:

    bit i:     0 off, ON = 2⁻¹⁰ on, 1 on and part of the goal for hindsight     (a desired goal has 0 and 1 only)
    task:      1 if the goal is the task, plus ON · reward of the transition
    end:       ON if the environment terminated here

A network sees the goal as multi-hot with a disturbance of a thousandth; `compute_reward` loses nothing. Hindsight goals
are drawn ∝ 1/√N from the plausible ones that the transition attained (paper §5.2), or are the task.

`protogoal.interop.sb3` and examples/cleanrl_style.py are the callers.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from protogoal.envs.actions import flat_actions
from protogoal.envs.derive import derive
from protogoal.envs.readable import Path, as_text, follow, named_leaves, readable
from protogoal.envs.way import Way, forgets
from protogoal.goals.evaluator import PGESettings, ProtoGoalEvaluator
from protogoal.goals.selection import select
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.table import TASK, attained_by
from protogoal.goals.values import TransitionBatch
from protogoal.settings import Settings, ranged

ON = 2.0**-10
"""An attained bit that is not part of the goal for hindsight; a power of two, so that sums with 1 stay exact."""
MOST_REWARD = 256.0
"""Rewards of the task must stay below this in size, so that ON · reward is told apart from the 1 of a goal."""
OBSERVED = 256  # transitions counted at once
FLAT = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
"""Parts of an observation that an agent sees, flattened into one vector; others (text) reach the proto-goals alone."""

GoalValues = Callable[[dict[str, NDArray[Any]]], NDArray[Any]]
"""V(observations) → [n]: a batch in the wrapper's own format, each row with its desired goal, to the values of the rows."""


@dataclass(frozen=True)
class GoalEnvSettings(Settings):
    """How the wrapper pursues goals and feeds the evaluator."""

    pursuit_limit: int = ranged(50, 1)
    """Most steps of a pursuit, which is then given up (truncated), sooner where the goal has a limit of its own; pursuits of the
    task last to the end of the episode."""
    refresh_every: int = ranged(1_000, 1)
    """Steps between two refreshes of the goal set."""
    trials: float = ranged(0.1, 0.0, 1.0)
    """Share of the steps on which a random action is taken instead; the evaluator judges by them (pruning = trials)."""
    replay_size: int = ranged(10_000, 1)
    """Transitions kept to refresh from (pruning = values)."""
    task_hindsight: float = ranged(0.2, 0.0, 1.0)
    """Share of the steps whose goal for hindsight is the task."""
    attainment: Literal["terminated", "truncated"] = "terminated"
    """How the end of an attained pursuit is reported. terminated: the paper's continuation γ(1 − b)."""


class ProtoGoalEnv(gymnasium.Env[dict[str, Any], Any]):
    """`env` with goals of its own; see the module for the format of achieved and desired goals.

    `space` turns transitions of `env` into bits. A dictionary observation reaches it whole; the agent sees it as one vector, nested
    parts too, as libraries take no dictionary within a dictionary. Several actions at once become their combinations, as
    `protogoal train` has them. `evaluator` may be shared by several wrappers of one process (a
    `DummyVecEnv`); by default each makes its own from `pge`. `values`, settable later, is V(s, g) for the choice of goals by
    local reachability; without it the first of the candidates is taken, which is novelty alone.

    `info` of each step has: action (the one taken), goal (id, TASK = −1), attained, is_success, task_reward, task_over (the inner
    episode ended), task_terminated.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        space: ProtoGoalSpace,
        pge: PGESettings | None = None,
        settings: GoalEnvSettings | None = None,
        *,
        evaluator: ProtoGoalEvaluator | None = None,
        values: GoalValues | None = None,
        seed: int = 0,
    ):
        env = flat_actions(env)
        assert isinstance(env.action_space, spaces.Discrete)
        if evaluator is not None and (evaluator.num_bits != space.size or pge is not None):
            raise ValueError(f"a shared evaluator brings its own settings and must have this space's {space.size} bits")
        self.env = env
        self.space = space
        self.evaluator = evaluator or ProtoGoalEvaluator(space, int(env.action_space.n), pge, seed)
        self.settings = settings or GoalEnvSettings()
        self.values = values
        self.action_space = env.action_space
        self._first_action = int(env.action_space.start)
        self.metadata, self.render_mode, self.spec = env.metadata, env.render_mode, None
        vector = spaces.Box(-0.25, 1.25, (space.size + 2,), np.float32)
        self._whole = env.observation_space
        self._paths, self._shown = _shown(self._whole)
        seen = self._whole if self._shown is None else spaces.flatten_space(self._shown)
        self.observation_space = spaces.Dict({"observation": seen, "achieved_goal": vector, "desired_goal": vector})
        self.goal = TASK
        self.np_random = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        self._by_values = self.evaluator.settings.pruning == "values"
        if self._shown is None and not isinstance(spaces.flatten_space(self._whole), spaces.Box):
            raise ValueError(f"the observation space must flatten into a vector; got {type(self._whole).__name__}")
        self._replay: deque[tuple[Any, ...]] = deque(maxlen=self.settings.replay_size)  # the fields of a `TransitionBatch`
        self._seen: list[tuple[Any, ...]] = []  # bits before, action, bits, reward, is a trial, is the first of an episode
        self._steps = self._episode_steps = 0
        self._is_paid = False
        self._over = True  # the inner episode
        self._pursuing = False
        self._pursuit_length = 0
        self._limit = self.settings.pursuit_limit
        self._observation: Any = None
        self._bits = np.zeros(space.size, np.bool_)
        self._achieved = np.zeros(space.size + 2, np.float32)

    # --- the environment ------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins a pursuit: where the agent stands if the last one ended there, else in a new inner episode.

        options: {"goal": id} pursues this goal (TASK for the task); {"fresh": True} begins a new inner episode.
        """
        options = dict(options or {})
        goal, fresh = options.pop("goal", None), options.pop("fresh", False)
        super().reset(seed=seed)
        info: dict[str, Any] = {}
        if self._over or self._pursuing or fresh or seed is not None:
            self._observation, info = self.env.reset(seed=seed, options=options or None)
            # Nothing led here: the bits are those of a transition that stays where it is.
            self._bits = self._bits_of(self._observation, None, self._observation)
            self._over, self._episode_steps = False, 0
            self._achieved = self._encode(TASK, self._bits, 0.0, False)
        if goal is not None and goal != TASK:
            self.evaluator.table.members(goal)  # raises for an unknown id
        self.goal = self._choose() if goal is None else int(goal)
        self._limit = self._limit_of(self.goal)
        self._pursuing, self._pursuit_length, self._is_paid = True, 0, False
        return self._state(), info | {"goal": self.goal}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """One step of the inner environment; reward 1 where the goal is attained, or the task's own reward."""
        if not self._pursuing:
            raise RuntimeError("the pursuit is over; call reset() first")
        before, bits_before = self._observation, self._bits
        is_trial = not self._by_values and bool(self.np_random.random() < self.settings.trials)
        if is_trial:
            action = self._first_action + int(self.np_random.integers(self.evaluator.num_actions))
        self._observation, task_reward, terminated, truncated, info = self.env.step(action)
        reward = float(task_reward)
        if not abs(reward) < MOST_REWARD:
            raise ValueError(f"rewards must be smaller than {MOST_REWARD:g} in size; got {reward}")
        truncated = truncated and not terminated
        self._bits = self._bits_of(before, action, self._observation)
        self._remember(before, bits_before, int(action) - self._first_action, reward, terminated, is_trial)
        self._is_paid |= reward > 0
        self._achieved = self._encode(self._hindsight(bits_before), self._bits, reward, terminated)
        self._pursuit_length += 1
        self._over = bool(terminated or truncated)

        attained = self._attained()
        given_up = self.goal != TASK and self._pursuit_length >= self._limit
        state = self._state()  # the goal of this pursuit: what is chosen next must not be bootstrapped from
        info = {**info, "action": action, "goal": self.goal, "attained": attained,
                "is_success": attained or (self.goal == TASK and reward > 0), "task_reward": reward,
                "task_over": self._over, "task_terminated": bool(terminated)}
        outer_terminated = bool(terminated or (attained and self.settings.attainment == "terminated"))
        outer_truncated = bool(truncated or attained or given_up) and not outer_terminated
        if attained or given_up or self._over:
            won = self._is_paid if self.goal == TASK else attained
            self.evaluator.record_pursuit(self.goal, won, self._pursuit_length)
            self._pursuing = False
        if self._steps % self.settings.refresh_every == 0:
            self.refresh()
        return state, (reward if self.goal == TASK else float(attained)), outer_terminated, outer_truncated, info

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()

    # --- goals, vectorised ----------------------------------------------------------------------------------------

    def compute_reward(self, achieved: NDArray[Any], desired: NDArray[Any], info: Any = None) -> NDArray[np.float32] | float:
        """1 where all bits of the desired goal are on, the transition's own reward where it is the task; [n, B + 2] → [n]."""
        attained, for_task, reward, _ = _compare(achieved, desired)
        result = np.where(for_task, reward, attained).astype(np.float32)
        return result if result.ndim else float(result)

    def compute_terminated(self, achieved: NDArray[Any], desired: NDArray[Any], info: Any = None) -> NDArray[np.bool_] | bool:
        """Where the value of the desired goal ends: attained, or the environment terminated; [n, B + 2] → bool [n]."""
        attained, for_task, _, ended = _compare(achieved, desired)
        result = ended | (attained & ~for_task)
        return result if result.ndim else bool(result)

    def compute_truncated(self, achieved: NDArray[Any], desired: NDArray[Any], info: Any = None) -> NDArray[np.bool_] | bool:
        """No goal truncates by itself; time limits are the environment's."""
        result = np.zeros(np.shape(achieved)[:-1], np.bool_)
        return result if result.ndim else False

    def desired(self, goal: int) -> NDArray[np.float32]:
        """The desired-goal vector of a goal id, [B + 2]."""
        vector = np.zeros(self.space.size + 2, np.float32)
        vector[self._places(goal)] = 1.0
        return vector

    # --- evaluator ------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Count what was seen and publish a new goal set; by the paper's rule, from a random batch of the last transitions."""
        self._count()
        if not self._by_values:
            self.evaluator.refresh()
        elif len(self._replay) > 1:
            kept, most = list(self._replay), self.evaluator.settings.batch_size
            rows = self.np_random.choice(len(kept), min(most, len(kept)), replace=False)
            self.evaluator.refresh(TransitionBatch(*(np.array(column) for column in zip(*(kept[i] for i in rows), strict=True))))

    def _choose(self) -> int:
        goals = self.evaluator.goal_set
        if len(goals) == 0:
            return TASK

        def values(rows: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
            if self.values is None:
                return np.zeros(positions.shape)
            wanted = [self._state(int(goal)) for goal in goals.ids[positions[0]]]
            batch = {key: _stack([state[key] for state in wanted]) for key in wanted[0]}
            return np.asarray(self.values(batch), np.float64).reshape(positions.shape)

        return int(select(goals, values, self._bits[None], self.np_random)[0])

    def _limit_of(self, goal: int) -> int:
        """Steps of a pursuit: the goal's own limit, which follows from its successes, and no more than the settings allow."""
        goals, most = self.evaluator.goal_set, self.settings.pursuit_limit
        own = goals.limit[goals.ids == goal]
        return min(int(own[0]), most) if len(own) and own[0] > 0 else most

    def _hindsight(self, bits_before: NDArray[np.bool_]) -> int:
        """The goal to learn from this step in hindsight: plausible, attained, if possible just now; ∝ 1/√N."""
        if self.np_random.random() < self.settings.task_hindsight:
            return TASK
        table, offered = self.evaluator.table, self.evaluator.goal_set
        single = np.flatnonzero(self._bits)
        if offered.version:
            single = single[self.evaluator.plausible[single]]
        joint = (offered.members >= 0).sum(1) > 1
        joint[joint] = attained_by(self._bits[None], offered.members[joint])[0]
        goals = np.concatenate([single, offered.ids[joint]])
        new = ~attained_by(bits_before[None], table.member_array[goals])[0]
        goals = goals[new] if new.any() else goals
        if len(goals) == 0:
            return TASK
        weight = 1.0 / np.sqrt(np.maximum(table.count[goals], 1))
        return int(self.np_random.choice(goals, p=weight / weight.sum()))

    def _remember(
        self, before: Any, bits_before: NDArray[np.bool_], action: int, reward: float, terminated: bool, is_trial: bool
    ) -> None:
        self._steps += 1
        if self._by_values:
            self._replay.append((self._vector(before), action, self._vector(self._observation), terminated, self._bits))
        self._seen.append((bits_before, action, self._bits, reward, is_trial, self._episode_steps == 0))
        self._episode_steps += 1
        if len(self._seen) >= OBSERVED:
            self._count()

    def _count(self) -> None:
        if self._seen:
            before, action, bits, reward, is_trial, first = (np.array(column) for column in zip(*self._seen, strict=True))
            certain = np.eye(self.evaluator.num_actions)[action]  # drawn by the agent, for reasons of its own: no trial
            mu = np.where(is_trial[:, None], 1.0 / self.evaluator.num_actions, certain)
            self.evaluator.observe(before, action, bits, reward, mu, first)
            self._seen.clear()

    # --- format ---------------------------------------------------------------------------------------------------

    def _bits_of(self, s: Any, a: Any, s_next: Any) -> NDArray[np.bool_]:
        s, s_next = (_batch(self._whole, observation) for observation in (s, s_next))
        return self.space.bits(s, None if a is None else np.array([a]), s_next)[0]

    def _vector(self, observation: Any) -> NDArray[Any]:
        """An observation as one vector, of what is shown."""
        shown: spaces.Space[Any] = self._whole
        if self._shown is not None:
            shown, observation = self._shown, follow(self._paths, observation, self._shown.spaces)
        return np.asarray(spaces.flatten(shown, observation))

    def _attained(self) -> bool:
        return self.goal != TASK and bool(self._bits[list(self.evaluator.table.members(self.goal))].all())

    def _places(self, goal: int) -> list[int]:
        return [self.space.size] if goal == TASK else list(self.evaluator.table.members(goal))

    def _encode(self, goal: int, bits: NDArray[np.bool_], reward: float, terminated: bool) -> NDArray[np.float32]:
        vector = np.zeros(self.space.size + 2, np.float32)
        vector[:-2] = bits * ON
        vector[-2], vector[-1] = reward * ON, terminated * ON
        places = self._places(goal)
        vector[places] = 1.0 + (vector[places] if goal == TASK else 0.0)
        return vector

    def _state(self, goal: int | None = None) -> dict[str, Any]:
        seen = self._observation if self._shown is None else self._vector(self._observation)
        return {"observation": seen, "achieved_goal": self._achieved.copy(),
                "desired_goal": self.desired(self.goal if goal is None else goal)}


def _shown(space: spaces.Space[Any]) -> tuple[dict[str, Path], spaces.Dict | None]:
    """What an agent sees of an observation of several parts, and what leads to it; None where there is one part alone.

    Text is for the proto-goals; a warning names what else is not shown.
    """
    if not isinstance(space, (spaces.Dict, spaces.Tuple)):
        return {}, None
    found = {name: (path, as_text(part)) for name, (path, part) in named_leaves(space).items()}
    shown: dict[str, spaces.Space[Any]] = {name: part for name, (_, part) in found.items() if isinstance(part, FLAT)}
    if not shown:
        raise ValueError(f"the observation has no part that can be seen: {', '.join(found)}; allowed are "
                         f"{', '.join(kind.__name__ for kind in FLAT)}")
    unseen = [f"{name} ({type(part).__name__})" for name, (_, part) in found.items()
              if name not in shown and not isinstance(part, spaces.Text)]
    if unseen:
        allowed = ", ".join(kind.__name__ for kind in FLAT)
        warnings.warn(f"the agent does not see {', '.join(unseen)}; it sees {allowed}", stacklevel=4)
    return {name: found[name][0] for name in shown}, spaces.Dict(shown)


def make_goal_env(env: gymnasium.Env[Any, Any], space: ProtoGoalSpace | None = None, pge: PGESettings | None = None,
                  settings: GoalEnvSettings | None = None, **more: Any) -> ProtoGoalEnv:
    """A goal environment of `env` with the proto-goals of `space`, or with those that follow from what it observes."""
    if space is None:
        env = flat_actions(env)
        env = readable(Way(env) if forgets(env) else env)
        space = derive(env).space
    return ProtoGoalEnv(env, space, pge, settings, **more)


def _batch(space: spaces.Space[Any], observation: Any) -> Any:
    """One observation with a batch axis in front of every array; texts are a list."""
    if isinstance(space, spaces.Dict):
        return {key: _batch(space[key], part) if key in space.spaces else _stack([part]) for key, part in observation.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_batch(one, part) for one, part in zip(space.spaces, observation, strict=True))
    is_known = isinstance(space, (*FLAT, spaces.Text))
    return _stack([observation]) if is_known or isinstance(observation, (str, bytes)) else [observation]


def _compare(
    achieved: NDArray[Any], desired: NDArray[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[Any], NDArray[np.bool_]]:
    """(attained, the desired goal is the task, reward, environment terminated), each [n] or a scalar."""
    achieved, desired = np.asarray(achieved), np.asarray(desired)
    wanted = desired[..., :-2] > 0.5
    attained = np.asarray(((achieved[..., :-2] > 0) | ~wanted).all(-1))
    task = achieved[..., -2]
    reward = (task - (task > 0.5)) / ON  # exact: ON is a power of two
    return attained, desired[..., -2] > 0.5, reward, achieved[..., -1] > 0


def _stack(observations: list[Any]) -> Any:
    """Observations with a batch axis in front; texts stay a list."""
    first = observations[0]
    if isinstance(first, Mapping):
        return {key: _stack([observation[key] for observation in observations]) for key in first}
    return observations if isinstance(first, (str, bytes)) else np.stack([np.asarray(o) for o in observations])
