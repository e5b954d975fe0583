import json

import numpy as np
import pytest

from protogoal.goals import TASK, PGESettings, ProtoGoalEvaluator, SeekAvoid
from protogoal.goals.selection import STRATEGIES, make_goal_set, select
from protogoal.goals.strategies import PROGRESS_FLOOR, VALUE_FLOOR
from protogoal.goals.table import GoalTable


def goal_set(strategy, weight, k=4):
    members = np.arange(k, dtype=np.int32)[:, None]
    return make_goal_set(1, np.arange(k), np.ones(k, np.int64), np.linspace(0.1, 0.9, k), members, 2, strategy,
                         np.asarray(weight, float))


def shares(goals, value=(0.0, 0.0, 0.0, 0.0), bits=None, n=40_000):
    value = np.asarray(value)
    states = np.zeros((n, 4), bool) if bits is None else np.tile(bits, (n, 1))
    chosen = select(goals, lambda rows, p: value[p], states, np.random.default_rng(0), p_task=0.0)
    return np.array([(chosen == g).mean() for g in range(-1, 4)])  # the task first


def test_the_papers_rule_draws_the_same_numbers_as_ever():
    rng = np.random.default_rng(5)
    members = np.stack([np.arange(23), np.full(23, -1)], 1).astype(np.int32)
    goals = make_goal_set(1, np.arange(23), rng.integers(1, 500, 23), rng.random(23), members, 5)
    value, bits = rng.random((40, 23)), rng.random((40, 23)) < 0.3
    draws = np.random.default_rng(11)

    def choose(**settings):
        return select(goals, lambda rows, p: np.take_along_axis(value[rows], p, 1), bits, draws, **settings).tolist()

    assert choose()[:12] == [16, 7, 11, -1, 14, 20, -1, 9, -1, 12, 9, 1]
    assert choose(redraws=2, value_floor=0.6)[:12] == [11, -1, -1, 17, 21, 11, 6, 12, 9, 12, 2, 1]
    assert choose(num_candidates=1, p_task=0.0)[:12] == [5, 16, 9, 2, -1, -1, 9, 16, 15, -1, 14, 15]
    assert draws.random() == 0.3328420761268649


def test_uniform_gives_every_goal_the_same_chance():
    np.testing.assert_allclose(shares(goal_set("uniform", np.ones(4)), [0.9, 0.1, 0.5, 0.0])[1:], np.full(4, 0.25), atol=0.01)


def test_product_multiplies_novelty_and_reachability():
    novelty, value = np.array([1.0, 0.5, 0.5, 0.1]), np.array([0.1, 0.2, 0.0, 0.9])
    expected = novelty * (value + VALUE_FLOOR)
    np.testing.assert_allclose(shares(goal_set("product", novelty), value)[1:], expected / expected.sum(), atol=0.01)


def test_progress_follows_its_weights_alone():
    weight = np.array([0.1, 0.1, 0.7, 0.1])
    np.testing.assert_allclose(shares(goal_set("progress", weight), [0.9, 0.9, 0.0, 0.9])[1:], weight, atol=0.01)


@pytest.mark.parametrize("strategy", ["uniform", "product", "progress"])
def test_no_strategy_offers_what_is_attained_here(strategy):
    goals = goal_set(strategy, np.ones(4))
    assert shares(goals, bits=[True, True, True, False])[4] == 1.0
    assert shares(goals, bits=[True] * 4)[0] == 1.0  # nothing left: the task


def test_redraws_leave_strategies_alone_that_do_not_ask_for_values():
    goals = goal_set("uniform", np.ones(4))

    def choose(**settings):
        states, rng = np.zeros((50, 4), bool), np.random.default_rng(3)
        return select(goals, lambda rows, p: np.zeros(p.shape), states, rng, **settings).tolist()

    assert choose() == choose(redraws=3, value_floor=0.5)


def test_learning_progress_compares_the_last_five_pursuits_with_the_five_before():
    table = GoalTable(4)
    table.record_pursuits([0] * 10, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])  # learned between
    table.record_pursuits([1] * 13, [0, 1, 1] + [1] * 10)  # mastered long ago
    table.record_pursuits([2] * 12, [1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1])  # being forgotten; the ring has turned
    table.record_pursuits([3] * 9, [0] * 9)  # not known yet
    np.testing.assert_allclose(table.learning_progress, [1.0, 0.0, 0.4, 1.0])


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_strategy_works_in_the_evaluator_and_survives_a_round_trip(strategy):
    pge = ProtoGoalEvaluator(6, 2, PGESettings(strategy=strategy, p_task=0.0), seed=1)
    pge.observe(np.eye(6, dtype=bool), np.zeros(6))
    pge.record_pursuit([2] * 10, [False] * 5 + [True] * 5)
    pge.record_pursuit([0, 1, 3, 4, 5] * 10, [True] * 50)
    pge.refresh_values(SeekAvoid(np.full(6, 0.9), np.full(6, 0.6), np.full(6, -0.1), np.full(6, 3)))
    assert pge.goal_set.strategy == strategy
    other = ProtoGoalEvaluator(6, 2, PGESettings(strategy=strategy, p_task=0.0), seed=2)
    state = pge.state_dict()
    json.dumps(state, default=lambda x: x.tolist())
    other.load_state_dict(state)
    values = np.random.default_rng(0).random((400, len(pge.goal_set)))
    chosen = pge.select(values, np.random.default_rng(4))
    np.testing.assert_array_equal(chosen, other.select(values, np.random.default_rng(4)))
    assert TASK not in chosen
    if strategy == "progress":
        assert (chosen == 2).mean() == pytest.approx((1 + PROGRESS_FLOOR) / (1 + 6 * PROGRESS_FLOOR), abs=0.1)


def test_an_unknown_strategy_names_the_known_ones():
    with pytest.raises(ValueError, match="paper, uniform, product, progress"):
        PGESettings(strategy="random")
