"""Rewards of any size are learned as those of 0 and 1 are; where returns stay within ±1, nothing changes."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import protogoal
from protogoal.deep import act, learn
from protogoal.deep.learn import Learner
from protogoal.goals.desirability import CRITERIA
from protogoal.goals.scale import Returns, TaskScale, legible
from protogoal.goals.table import GoalTable
from protogoal.run.playing import load_session
from protogoal.run.trust import EVERYTHING

sys.path.insert(0, str(Path(__file__).parents[1] / "envs"))
import own_corridor

TINY = {"actor__num_envs": 4, "learner__min_replay": 200, "learner__batch_size": 8, "network__hidden": 16, "network__rank": 8,
        "network__goal_hidden": 8, "evaluation__final_episodes": 4, "evaluation__every": 5000, "refresh_every": 400,
        "replay__capacity": 5000, "record": ()}


def test_the_best_return_counts_at_ends_and_after_a_horizon():
    returns, scale, never = Returns(2), TaskScale(), np.zeros(2, bool)
    for _ in range(99):
        returns.add(np.array([0.5, -2.0]), never)
    assert returns.best == -np.inf
    assert scale.value == 1.0
    returns.add(np.array([0.5, -2.0]), never)  # the hundredth step
    assert returns.best == pytest.approx(0.5 * (1 - 0.99**100) / 0.01)
    returns.add(np.array([0.0, 80.0]), np.array([False, True]))
    assert returns.best == pytest.approx(0.99 * 0.5 * (1 - 0.99**100) / 0.01 / 0.99)  # the other one fell too deep to be better
    assert (returns.running[1], returns.steps[1]) == (0.0, 0)  # of the next episode


def test_the_scale_is_the_best_return_and_at_least_any_reward():
    scale = TaskScale()
    scale.see(np.full((4, 3), -7.0), np.full(3, -np.inf))
    assert scale.value == 7.0
    scale.see(np.zeros((4, 3)), np.array([-90.0, -50.0, -np.inf]))
    assert scale.value == 50.0
    scale.see(np.zeros((4, 3)), np.array([-13.0]))
    assert scale.value == 13.0
    scale.see(np.zeros((4, 3)), np.array([-2.0, 3.0]))
    assert scale.value == 7.0
    again = TaskScale()
    again.load(scale.state())
    assert (again.reward, again.best) == (7.0, 3.0)


def test_returns_within_one_have_the_scale_one():
    returns, scale = Returns(3), TaskScale()
    for reward in ([0, 0, 0], [1, -1, 0.25]):
        returns.add(np.array(reward, np.float32), np.ones(3, bool))
        scale.see(np.array(reward), returns.best)
    assert returns.best == scale.value == 1.0


def test_a_network_reads_small_rewards_as_they_are_and_large_ones_by_their_logarithm():
    small = np.array([0.0, 1.0, -0.3], np.float32)
    assert legible(small) is small
    read = legible(np.array([1e4, -1e4, 0.5], np.float32))
    np.testing.assert_allclose(read, [1 + np.log(1e4), -1 - np.log(1e4), 0.5], rtol=1e-6)
    assert read.dtype == np.float32


def test_goals_are_weighed_by_their_share_of_the_largest_reward():
    weights = []
    for size in (1.0, 1e9):
        table = GoalTable(3)
        table.observe(np.array([[0], [1], [2]], np.int32), np.ones((3, 1), bool), size * np.array([1.0, 0.5, 0.0]))
        weights.append(CRITERIA["paper"](table))
    np.testing.assert_allclose(weights[0], weights[1])
    table.scale.see(np.zeros(1), 4e9)
    assert CRITERIA["paper"](table)[0] == pytest.approx(1.25)
    again = GoalTable(3)
    again.load_state_dict(table.state_dict())
    assert again.scale.value == 4e9


def trained(make, steps=2400, **more):
    return protogoal.train(make, own_corridor.cells, steps=steps, **TINY | more)


def session_of(path, make, steps=2400, **more):
    """The session that a run ended with."""
    trained(make, steps, run=path, **more)
    return load_session(path, EVERYTHING)


@pytest.mark.parametrize(("make", "steps"), [(own_corridor.make, 2400), (own_corridor.rich, 2400), (own_corridor.costly, 6000)])
def test_a_corridor_is_learned_whatever_its_rewards_are(make, steps):
    agent = trained(make, steps)
    agent.reset()
    assert agent.predict(np.array([[0], [1], [2], [3], [4]])).tolist() == [1] * 5


def test_episodes_of_ten_thousand_steps_are_learned(tmp_path):
    session = session_of(tmp_path / "run", own_corridor.long, 5000, evaluation__final_episodes=1, evaluation__max_steps=200)
    assert protogoal.load(tmp_path / "run", trust=True).predict(np.array([[0], [1], [2], [3]])).tolist() == [1] * 4
    learner = session.agent.learner
    assert 20 < learner.scale.value <= 100
    batch = session.agent.replay.sample(8, np.random.default_rng(0))
    assert np.abs(learner.paid(replace(batch, reward=np.ones_like(batch.reward))).reward).max() < 0.05


def goal_actions_right(agent):
    """Share of cells and goals of the corridor where the greedy action leads there."""
    cells, best = np.arange(5), []
    for goal in cells.tolist():
        agent.reset()
        best.append(agent.predict(cells[:, None], goal=goal))
    elsewhere = cells[:, None] != cells
    return float((np.stack(best, 1) == (cells > cells[:, None]))[elsewhere].mean())  # [5 cells, 5 goals]


@pytest.mark.learning
def test_beside_rewards_of_ten_thousand_goals_are_learned_only_where_these_are_scaled(monkeypatch):
    scaled = [goal_actions_right(trained(own_corridor.rich, seed=seed)) for seed in range(3)]
    monkeypatch.setattr(Learner, "paid", lambda self, batch: batch)
    for module in (act, learn):
        monkeypatch.setattr(module, "legible", lambda reward: reward)
    raw = [goal_actions_right(trained(own_corridor.rich, seed=seed)) for seed in range(3)]
    assert np.mean(scaled) >= 0.9
    assert np.mean(raw) <= 0.7
