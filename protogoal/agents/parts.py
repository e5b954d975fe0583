"""The parts of the agent, each made from the configuration alone: they may live in one process or in many.

`agents.r2d2` puts them together in one process; `run.ray` makes each in a process of its own. Every stream of random
numbers follows from the run's seed, so both make the same parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from protogoal.agents.agent57.act import Agent57Actor
from protogoal.agents.agent57.curiosity import INTRINSIC, INTRINSIC_SPEC
from protogoal.agents.agent57.split import SplitLearner, SplitNetwork, make_split_network
from protogoal.config import DeepConfig
from protogoal.deep.act import Actor
from protogoal.deep.learn import Learner
from protogoal.deep.network import QNetwork, make_network
from protogoal.envs.vector import ArraySpec, BatchEnv
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.spaces import ProtoGoalSpace


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
    judging: np.random.SeedSequence
    refreshing: np.random.SeedSequence
    evaluating: np.random.SeedSequence

    @staticmethod
    def of(seed: int) -> Seeds:
        weights, acting, learning, sampling, goals = np.random.SeedSequence(seed).spawn(5)
        judging, refreshing = goals.spawn(2)
        return Seeds(weights, acting, learning, sampling, judging, refreshing, np.random.SeedSequence(seed, spawn_key=(99,)))


def make_evaluator(config: DeepConfig, space: ProtoGoalSpace, num_actions: int) -> ProtoGoalEvaluator:
    """The proto-goal evaluator of a run."""
    return ProtoGoalEvaluator(space, num_actions, config.pge, int(Seeds.of(config.seed).judging.generate_state(1)[0]))


# --- the parts that differ between the agents; Agent57's do what the others do, and stand in their place ---

Network = QNetwork | SplitNetwork
AnyLearner = Learner | SplitLearner


def make_agent_network(config: DeepConfig, spaces: Spaces) -> Network:
    """The network of a run, with its first weights."""
    weights = Seeds.of(config.seed).weights
    if config.agent == "agent57":
        return make_split_network(spaces.observation_spec, spaces.num_actions, config, weights)
    return make_network(spaces.observation_spec, spaces.num_actions, spaces.num_bits, config.network, weights)


def make_agent_learner(config: DeepConfig, network: Network, target: Network) -> AnyLearner:
    """What learns the network."""
    seed = Seeds.of(config.seed).learning
    if isinstance(network, SplitNetwork):
        assert isinstance(target, SplitNetwork)
        return SplitLearner(network, target, config, seed)
    assert isinstance(target, QNetwork)
    return Learner(network, target, config.learner, seed, config.replay.burn_in)


def make_agent_actor(config: DeepConfig, env: BatchEnv, network: Network, seed: np.random.SeedSequence) -> Actor:
    """What acts with it."""
    if isinstance(network, SplitNetwork):
        return Agent57Actor(env, network, config, seed)
    return Actor(env, network, config.actor, config.pge, config.replay, seed)


def stored_spec(config: DeepConfig, spaces: Spaces) -> dict[str, ArraySpec]:
    """The parts of an observation as they are stored; Agent57's have its intrinsic reward beside them."""
    return spaces.observation_spec | ({INTRINSIC: INTRINSIC_SPEC} if config.agent == "agent57" else {})


def core_shape(config: DeepConfig) -> tuple[int, int]:
    """Shape of the recurrent core's state, as it is stored with a segment; Agent57 has two cores."""
    rows = 4 if config.agent == "agent57" else 2
    return (rows, config.network.hidden) if config.network.core == "lstm" else (0, 0)


def updates_due(config: DeepConfig, steps: int, updates: int) -> int:
    """Updates by which a learner that has made `updates` is behind `replay_ratio` after `steps` of acting."""
    settings = config.learner
    learned = settings.batch_size * config.replay.trace_length
    return int((steps - settings.min_replay) * settings.replay_ratio / learned) - updates


def can_learn(config: DeepConfig, transitions: int) -> bool:
    """Whether enough is in replay."""
    return transitions >= min(config.learner.min_replay, config.replay.capacity)
