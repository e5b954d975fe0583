"""What the parts of an agent share, so that they may live in one process or in many: streams of randomness, shapes, pace.

`agents.r2d2` makes the parts that compute and puts them together in one process, `run.ray` each in a process of its own.
Every stream of random numbers follows from the run's seed, so both make the same parts. No torch here:
replay and the proto-goal evaluator do without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from protogoal.config import DeepConfig
from protogoal.envs.vector import ArraySpec
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.spaces import ProtoGoalSpace

INTRINSIC = "intrinsic_reward"
"""The part of an observation that says what the last step was worth beyond the task (`agents.bonus`)."""
INTRINSIC_SPEC = ArraySpec((1,), np.dtype(np.float32), "vector")


class Spaces(Protocol):
    """What the parts must know of the environments; every `BatchEnv` says it."""

    @property
    def observation_spec(self) -> dict[str, ArraySpec]: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def num_bits(self) -> int: ...
    @property
    def max_active(self) -> int: ...


@dataclass(frozen=True)
class EnvSpaces:
    """The same without the environments, to be sent to processes that have none."""

    observation_spec: dict[str, ArraySpec]
    num_actions: int
    num_bits: int
    max_active: int

    @staticmethod
    def of(env: Spaces) -> EnvSpaces:
        return EnvSpaces(dict(env.observation_spec), env.num_actions, env.num_bits, env.max_active)


class Seeds(NamedTuple):
    """Independent streams of one run's randomness."""

    weights: np.random.SeedSequence
    acting: np.random.SeedSequence
    learning: np.random.SeedSequence
    sampling: np.random.SeedSequence
    proto_goals: np.random.SeedSequence
    refreshing: np.random.SeedSequence
    evaluating: np.random.SeedSequence

    @staticmethod
    def of(seed: int) -> Seeds:
        weights, acting, learning, sampling, goals = np.random.SeedSequence(seed).spawn(5)
        proto_goals, refreshing = goals.spawn(2)
        return Seeds(weights, acting, learning, sampling, proto_goals, refreshing, np.random.SeedSequence(seed, spawn_key=(99,)))


def make_evaluator(config: DeepConfig, space: ProtoGoalSpace, num_actions: int) -> ProtoGoalEvaluator:
    """The proto-goal evaluator of a run."""
    seed = int(Seeds.of(config.seed).proto_goals.generate_state(1)[0])
    return ProtoGoalEvaluator(space, num_actions, config.pge, seed, config.network.goal_slots)


def updates_due(config: DeepConfig, steps: int, updates: int) -> int:
    """Updates by which a learner that has made `updates` is behind `replay_ratio` after `steps` of acting."""
    settings = config.learner
    learned = settings.batch_size * config.replay.trace_length
    return int((steps - settings.min_replay) * settings.replay_ratio / learned) - updates


def shard_segments(config: DeepConfig, shards: int) -> int:
    """Segments that one of so many parts of replay holds."""
    return max(1, config.replay.capacity // config.replay.trace_length // shards)


def can_learn(config: DeepConfig, transitions: int, shards: int = 1) -> bool:
    """Whether enough is in replay, which may be divided; a full one is enough."""
    full = shard_segments(config, shards) * shards * config.replay.trace_length
    return transitions >= min(config.learner.min_replay, full)
