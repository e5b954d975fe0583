"""Two-armed learning tests of the deep agent on a corridor: with the mechanism it learns, without it does not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from grids import Corridor

from protogoal.agents.proto_r2d2 import ProtoR2D2
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import evaluate
from protogoal.deep.settings import ActorSettings, LearnerSettings, NetworkSettings, ReplaySettings
from protogoal.goals.evaluator import PGESettings
from protogoal.goals.spaces import Factor, OneHotFactors

pytestmark = pytest.mark.learning

CONFIG = DeepConfig(
    network=NetworkSettings(hidden=64, rank=32, goal_hidden=32),
    actor=ActorSettings(num_envs=16, epsilon_exponent=1.0, max_pursuit_steps=40),
    replay=ReplaySettings(capacity=20_000, novelty_share=0.5),
    learner=LearnerSettings(
        learning_rate=1e-3, adam_epsilon=1e-8, weight_decay=0.0, batch_size=16, min_replay=500, target_period=50, replay_ratio=4.0,
        relabel="all", goal_discount=0.95, task_discount=0.98, clip_goal_values=True,
    ),
    pge=PGESettings(value_floor=0.05, redraws=2, controllability_threshold=0.0, reachability_threshold=0.1),
)


def train(config, env, steps, refresh_every=1000):
    """The local engine's loop, without a store; returns the agent."""
    torch.set_num_threads(1)
    space = OneHotFactors([Factor("cell", tuple(map(str, range(env.length))))])
    agent = (ProtoR2D2 if config.agent == "protogoal" else R2D2)(config, env, space)
    next_refresh = 0
    while agent.steps < steps:
        randomly = agent.learner.updates == 0
        for _ in range(agent.updates_due()):
            agent.learn()
        agent.remember(agent.act(randomly))
        agent.publish()
        if isinstance(agent, ProtoR2D2) and agent.can_learn and agent.steps >= next_refresh:
            agent.refresh()
            next_refresh = agent.steps + refresh_every
    return agent


def success(agent, env, members=None):
    return evaluate(agent.network, env, 16, 0.0, np.random.default_rng(0), members).success_rate


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_goals_find_the_far_end_of_a_corridor_that_noise_does_not(seed):
    env = Corridor(length=30, num_envs=16, limit=45)
    found = {}
    for agent in ("protogoal", "r2d2"):
        trained = train(replace(CONFIG, agent=agent, seed=seed), Corridor(length=30, num_envs=16, limit=45), 40_000)
        found[agent] = success(trained, env)
    assert found["protogoal"] == 1.0
    assert found["r2d2"] == 0.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_goals_that_were_not_attained_must_be_learned_too(seed):
    """Hindsight alone sees only successes: every value creeps up and the policy loses its way."""
    errors = {}
    for name, change in (("all", {}), ("hindsight", {"relabel": "novelty", "hindsight_goals": 15})):
        learner = replace(CONFIG.learner, **change)
        agent = train(replace(CONFIG, seed=seed, learner=learner), Corridor(length=12, num_envs=16, limit=30, start=6), 15_000)
        with torch.no_grad():
            cells = torch.arange(11).to(torch.int16)[None, :, None]
            none = torch.zeros(1, 11)
            z, _ = agent.network.unroll({"cell": cells}, none, none, none.bool(), agent.network.initial_core(11))
            value = agent.network.q_all(z[0], torch.arange(11)[:, None]).amax(1).numpy()  # [cell, goal]
        distance = np.abs(np.arange(11)[:, None] - np.arange(11)[None])
        off = distance > 0
        errors[name] = float(np.abs(value - 0.95 ** (distance - 1.0))[off].mean())
    assert errors["all"] < 0.1
    assert errors["hindsight"] > 1.5 * errors["all"]
