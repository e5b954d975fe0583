"""The parts of an agent that compute, each made from the configuration alone: they may live in one process or in many.

Agent57's do what the others do, and stand in their place. `agents.r2d2` and the roles of `run.ray` call this.
"""

from __future__ import annotations

import numpy as np

from protogoal.agents.agent57.act import Agent57Actor
from protogoal.agents.agent57.split import SplitLearner, SplitNetwork, make_split_network
from protogoal.agents.parts import Seeds, Spaces
from protogoal.config import DeepConfig
from protogoal.deep.act import Actor
from protogoal.deep.learn import Learner
from protogoal.deep.network import QNetwork, make_network
from protogoal.envs.vector import BatchEnv

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
