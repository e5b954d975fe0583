"""SparseTaxi, two arms: with proto-goals it is solved where ε-greedy exploration has hardly begun."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import protogoal.envs  # noqa: F401
from protogoal.envs.taxi import TaxiSpace
from protogoal.goals.plausibility import Verdict
from protogoal.tabular.agent import ProtoGoalAgent, QLearningAgent
from protogoal.tabular.settings import TABULAR_PGE
from protogoal.tabular.tables import TransitionTables

pytestmark = pytest.mark.learning
SEEDS = range(8)


@pytest.fixture(scope="module")
def tables():
    return TransitionTables.from_gymnasium(gymnasium.make("protogoal/SparseTaxi-v0"))


def trained(agent, steps):
    agent.advance(steps)
    return agent


@pytest.fixture(scope="module")
def with_goals(tables):
    return [trained(ProtoGoalAgent(tables, TaxiSpace(), seed=seed), 100_000) for seed in SEEDS]


def test_proto_goals_solve_what_epsilon_greedy_exploration_does_not(tables, with_goals):
    without = [trained(QLearningAgent(tables, seed=seed), 100_000) for seed in SEEDS]
    assert np.mean([agent.test()["success"] for agent in with_goals]) > 0.9
    assert np.mean([agent.test()["success"] for agent in without]) < 0.6


def test_following_only_the_task_is_the_ablated_arm(tables):
    """p_task = 1: the goals are there and learned, and never pursued."""
    task_only = replace(TABULAR_PGE, p_task=1.0)
    ablated = [trained(ProtoGoalAgent(tables, TaxiSpace(), pge=task_only, seed=seed), 100_000) for seed in SEEDS]
    assert np.mean([agent.test()["success"] for agent in ablated]) < 0.6


def test_both_agents_solve_the_task_in_the_end(tables):
    for seed in SEEDS[:4]:
        assert trained(QLearningAgent(tables, seed=seed), 300_000).test()["success"] == 1.0
        assert trained(ProtoGoalAgent(tables, TaxiSpace(), seed=seed), 300_000).test()["success"] == 1.0


def test_destinations_are_pruned_after_10_000_steps_and_the_rest_is_found(with_goals):
    for agent in with_goals:
        refreshes = agent.take_refreshes()
        plausible = refreshes.verdict == Verdict.PLAUSIBLE
        assert not plausible[refreshes.step >= 10_000, 30:].any()
        assert plausible[refreshes.step >= 80_000, :30].any(0).all()


def test_without_pruning_destinations_stay_among_the_goals(tables):
    agent = trained(ProtoGoalAgent(tables, TaxiSpace(), pge=replace(TABULAR_PGE, pruning="off"), seed=0), 30_000)
    assert set(range(30, 34)) <= set(agent.evaluator.goal_set.ids.tolist())
