"""The tabular agents: equal to plain numpy, the same for the same seed, and resumed to the bit."""

import json
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from reference import tabular as reference

import protogoal.envs  # noqa: F401
from protogoal.envs.taxi import TaxiSpace
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict
from protogoal.goals.table import TASK
from protogoal.tabular import kernels
from protogoal.tabular.agent import ProtoGoalAgent, QLearningAgent, train
from protogoal.tabular.settings import TABULAR_PGE, TabularSettings
from protogoal.tabular.tables import TransitionTables

SETTINGS = TabularSettings(eval_every=2_000, eval_episodes=30)


@pytest.fixture(scope="module")
def tables():
    return TransitionTables.from_gymnasium(gymnasium.make("protogoal/SparseTaxi-v0"))


def make(kind, tables, seed=0, settings=SETTINGS, **extra):
    if kind == "qlearning":
        return QLearningAgent(tables, settings, seed)
    return ProtoGoalAgent(tables, TaxiSpace(), settings, seed=seed, **extra)


def acting_rng(seed):
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[0])


def assert_same(one, other):
    """Equal to the bit, through nested dictionaries."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    else:
        np.testing.assert_array_equal(one, other)


def stored(state):
    """Through what a checkpoint can hold: arrays and JSON."""
    if isinstance(state, dict):
        return {key: stored(value) for key, value in state.items()}
    return state.copy() if isinstance(state, np.ndarray) else json.loads(json.dumps(state))


def test_q_learning_reaches_the_tables_of_plain_numpy(tables):
    agent = make("qlearning", tables, seed=3)
    agent.advance(12_000)
    expected = reference.q_learning(tables, SETTINGS, acting_rng(3), 12_000)
    np.testing.assert_allclose(agent.q, expected, rtol=0, atol=1e-9)
    assert expected.any()


@pytest.mark.parametrize("settings", [SETTINGS, TabularSettings(refresh_every=1, max_pursuit=15, epsilon=0.3)])
def test_the_proto_goal_agent_reaches_the_tables_of_plain_numpy(tables, settings):
    agent = make("protogoal", tables, seed=5, settings=settings)
    agent.advance(12_000)
    evaluator = ProtoGoalEvaluator(TaxiSpace(), 6, agent.evaluator.settings, agent.evaluator.state_dict()["seed"])
    q, seek, avoid = reference.proto_goal(tables, agent.bits, settings, evaluator, acting_rng(5), 12_000)
    np.testing.assert_allclose(agent.q, q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(agent.seek, seek, rtol=0, atol=1e-9)
    np.testing.assert_allclose(agent.avoid, avoid, rtol=0, atol=1e-9)
    assert_same(agent.evaluator.table.state_dict(), evaluator.table.state_dict())
    np.testing.assert_array_equal(agent.evaluator.goal_set.ids, evaluator.goal_set.ids)
    assert len(agent.evaluator.goal_set) > 20


@pytest.mark.parametrize("change", [{}, {"competence": True}, {"p_task_of": "steps"}])
def test_goals_chosen_in_python_and_in_the_kernel_give_the_same_run(tables, change):
    pge = replace(TABULAR_PGE, **change)
    compiled, plain = (make("protogoal", tables, seed=1, pge=pge, compiled_selection=c) for c in (True, False))
    for agent in (compiled, plain):
        agent.advance(5_000)
        agent.advance(1)
        agent.advance(4_999)
    assert_same(compiled.state_dict(), plain.state_dict())


@pytest.mark.parametrize("kind", ["qlearning", "protogoal"])
def test_the_same_seed_gives_the_same_metrics_and_another_does_not(kind, tables):
    runs = [list(train(make(kind, tables, seed), 6_000)) for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert [step for step, _ in runs[0]] == [0, 2_000, 4_000, 6_000]


@pytest.mark.parametrize("kind", ["qlearning", "protogoal"])
def test_a_resumed_run_equals_the_uninterrupted_one(kind, tables):
    whole, first, second = (make(kind, tables, seed) for seed in (4, 4, 99))
    expected = list(train(whole, 12_000))
    begun = []
    for point in train(first, 12_000):  # stopped where tests happen…
        begun.append(point)
        if point[0] == 4_000:
            break
    first.advance(777)  # …or anywhere between, in the middle of an episode
    second.load_state_dict(stored(first.state_dict()))
    assert begun + list(train(second, 12_000)) == expected
    assert_same(second.state_dict(), whole.state_dict())


@pytest.mark.parametrize("kind", ["qlearning", "protogoal"])
def test_how_often_the_agent_is_tested_changes_nothing_of_what_it_learns(kind, tables):
    seldom, often = make(kind, tables), make(kind, tables, settings=TabularSettings(eval_every=333))
    list(train(seldom, 5_000))
    list(train(often, 5_000))
    np.testing.assert_array_equal(seldom.q, often.q)


def test_a_table_of_another_environment_is_refused(tables):
    agent = make("qlearning", tables)
    with pytest.raises(ValueError, match=r"stored q has shape \(3, 2\)"):
        agent.load_state_dict(agent.state_dict() | {"q": np.zeros((3, 2))})


def test_every_step_belongs_to_exactly_one_pursuit(tables):
    agent = make("protogoal", tables)
    agent.advance(10_000)
    ended = agent.take_pursuits()
    carry = agent.state_dict()["carry"]
    running = int(carry[kernels.PURSUIT_TIME]) if carry[kernels.GOAL] != kernels.NO_GOAL else 0
    assert ended.length.sum() + running == 10_000
    assert not ended.success[ended.goal == TASK].any()
    assert ended.success[ended.goal != TASK].mean() > 0.5
    assert len(agent.take_pursuits().goal) == 0


def test_a_limit_on_pursuits_is_kept(tables):
    agent = make("protogoal", tables, settings=TabularSettings(max_pursuit=20))
    agent.advance(5_000)
    ended = agent.take_pursuits()
    assert ended.length.max() == 20


def test_only_plausible_goals_are_pursued(tables):
    agent = make("protogoal", tables)
    agent.advance(10_000)
    refreshes, ended = agent.take_refreshes(), agent.take_pursuits()
    ever = (refreshes.verdict == Verdict.PLAUSIBLE).any(0)
    assert refreshes.step[0] >= SETTINGS.refresh_every
    assert (np.diff(refreshes.step) >= SETTINGS.refresh_every).all()
    assert ever[np.unique(ended.goal[ended.goal != TASK])].all()


def test_without_the_chance_of_the_task_it_is_followed_only_while_there_are_no_goals(tables):
    agent = ProtoGoalAgent(tables, TaxiSpace(), SETTINGS, replace(TABULAR_PGE, p_task=0.0, p_task_most=0.0))
    agent.advance(5_000)
    assert (agent.take_pursuits().goal == TASK).mean() < 0.05


def test_actions_are_greedy_for_the_task_and_for_goals(tables):
    agent = make("protogoal", tables)
    agent.q[7] = [0, 0, 0, 0.5, 0, 0]
    agent.seek[7, :, 12] = [0, 0.2, 0.9, 0, 0, 0]
    assert agent.action(7) == 3
    assert agent.action(7, goal=12) == 2
    with pytest.raises(ValueError, match="unknown goal 34"):
        agent.action(7, goal=34)
    with pytest.raises(ValueError, match="no goals"):
        make("qlearning", tables).action(7, goal=12)


@pytest.mark.parametrize(("field", "value"), [
    ("learning_rate", 0.0), ("learning_rate", float("nan")), ("discount", 1.5), ("epsilon", -0.1), ("refresh_every", 0),
    ("eval_every", 0), ("eval_episodes", 0), ("max_pursuit", -1)])
def test_a_setting_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=field):
        TabularSettings(**{field: value})
