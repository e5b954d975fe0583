import json

import numpy as np
import pytest
from reference.goal_sets import make_goal_set

from protogoal.goals import TASK, PGESettings, ProtoGoalEvaluator, SeekAvoid
from protogoal.goals.desirability import CRITERIA, PROGRESS_FLOOR
from protogoal.goals.plausibility import Verdict
from protogoal.goals.selection import select
from protogoal.goals.strategies import PRIOR, STRATEGIES, VALUE_FLOOR, competence
from protogoal.goals.table import FADE, GoalTable

LENGTH = 5  # of pursuits, where it does not matter


def shares(goals, value=(0.0, 0.0, 0.0, 0.0), on=(), n=40_000):
    value = np.asarray(value)
    active = np.tile([*on, -1], (n, 1))
    chosen = select(goals, lambda rows, p: value[p], active, np.random.default_rng(0))
    return np.array([(chosen == g).mean() for g in range(-1, 4)])  # the task first


def four(strategy, **fields):
    return make_goal_set(np.arange(4), strategy=strategy, p_task=0.0, **fields)


def test_the_papers_rule_draws_the_same_numbers_as_ever():
    rng = np.random.default_rng(5)
    goals = make_goal_set(np.arange(23), rng.integers(1, 500, 23), rng.random(23), 5, strategy="paper", p_task=0.1)
    value, bits = rng.random((40, 23)), rng.random((40, 23)) < 0.3
    active = np.where(bits, np.arange(23), -1)
    chosen = select(goals, lambda rows, p: np.take_along_axis(value[rows], p, 1), active, np.random.default_rng(11))
    assert chosen[:12].tolist() == [16, 7, 11, -1, 14, 20, -1, 9, -1, 12, 9, 1]


def test_uniform_gives_every_goal_the_same_chance():
    np.testing.assert_allclose(shares(four("uniform"), [0.9, 0.1, 0.5, 0.0])[1:], np.full(4, 0.25), atol=0.01)


def test_product_multiplies_novelty_competence_and_reachability():
    count, value, able = np.array([1, 4, 4, 100]), np.array([0.1, 0.2, 0.0, 0.9]), np.array([1.0, 0.5, 1.0, 0.7])
    expected = count**-0.5 * able * (value + VALUE_FLOOR)
    goals = four("product", count=count, competence=able)
    np.testing.assert_allclose(shares(goals, value)[1:], expected / expected.sum(), atol=0.01)


def test_desirable_follows_desirability_alone():
    wanted = np.array([0.1, 0.1, 0.7, 0.1])
    np.testing.assert_allclose(shares(four("desirable", desirability=wanted), [0.9, 0.9, 0.0, 0.9])[1:], wanted, atol=0.01)


@pytest.mark.parametrize("strategy", ["product", "uniform", "desirable"])
def test_goals_of_each_verdict_have_their_share_of_the_choices_whatever_their_weights(strategy):
    verdict = np.array([Verdict.PLAUSIBLE, Verdict.UNDECIDED, Verdict.UNDECIDED, Verdict.UNREACHED], np.int8)
    share = np.array([0.7, 0.2, 0.2, 0.1])
    goals = four(strategy, verdict=verdict, share=share, desirability=np.array([0.01, 3.0, 1.0, 9.0]), count=[10**6, 1, 1, 1])
    found = shares(goals, [0.0, 1.0, 1.0, 1.0])[1:]
    np.testing.assert_allclose([found[0], found[1:3].sum(), found[3]], [0.7, 0.2, 0.1], atol=0.01)
    # where none of a verdict can be offered, the others have its part
    found = shares(goals, [0.0, 1.0, 1.0, 1.0], on=[0])[1:]
    np.testing.assert_allclose([found[0], found[1:3].sum(), found[3]], [0.0, 2 / 3, 1 / 3], atol=0.01)


def test_product_tries_undecided_goals_whatever_is_believed_of_them():
    verdict = np.array([Verdict.PLAUSIBLE, Verdict.PLAUSIBLE, Verdict.UNDECIDED, Verdict.UNDECIDED], np.int8)
    goals = four("product", verdict=verdict, share=np.full(4, 0.5))
    found = shares(goals, [0.9, 0.0, 0.9, 0.0])[1:]
    np.testing.assert_allclose(found[2:], [0.25, 0.25], atol=0.01)
    assert found[0] > 20 * found[1]


def test_competence_by_hand():
    table = GoalTable(5)
    assert (competence(table, np.zeros(5, int)) == 1).all()  # while nothing was pursued
    table.record_pursuits([1] * 3, [True, False, True], [LENGTH] * 3)
    table.record_pursuits([2] * 20, [False] * 20, [LENGTH] * 20)
    n_1, s_1, n_2 = 1 + FADE + FADE**2, 1 + FADE**2, sum(FADE**age for age in range(20))  # an older pursuit counts for less
    of_kind = (s_1 + 1) / (n_1 + n_2 + 1)
    success = np.array([of_kind, (s_1 + PRIOR * of_kind) / (n_1 + PRIOR), PRIOR * of_kind / (n_2 + PRIOR), 1, 1])
    expected = np.minimum(1, 4 * success)
    assert expected[0] < 1 == expected[1] > expected[2]
    # of the same kind; two that were pursued; of another kind; of a kind that is not known
    np.testing.assert_allclose(competence(table, np.array([4, 4, 4, 0, -1])), expected)


def test_learning_progress_compares_the_last_five_pursuits_with_the_five_before():
    table = GoalTable(4)
    for goal, outcomes in enumerate((
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1],  # learned between
        [0, 1, 1] + [1] * 10,  # mastered long ago
        [1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1],  # being forgotten; the ring has turned
        [0] * 9,  # not known yet
    )):
        table.record_pursuits([goal] * len(outcomes), outcomes, [LENGTH] * len(outcomes))
    np.testing.assert_allclose(table.learning_progress, [1.0, 0.0, 0.4, 1.0])


@pytest.mark.parametrize("utility", list(CRITERIA))
@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_strategy_and_criterion_works_in_the_evaluator_and_survives_a_round_trip(strategy, utility):
    settings = PGESettings(pruning="values", desirability=utility, strategy=strategy, p_task=0.0, p_task_most=0.0)
    pge = ProtoGoalEvaluator(6, 2, settings, seed=1)
    pge.observe(np.zeros((6, 6), bool), np.zeros(6, int), np.eye(6, dtype=bool))
    pge.record_pursuit([2] * 10, [False] * 5 + [True] * 5, [LENGTH] * 10)
    pge.record_pursuit([0, 1, 3, 4, 5] * 10, [True] * 50, [LENGTH] * 50)
    pge.refresh_values(SeekAvoid(np.full(6, 0.9), np.full(6, 0.6), np.full(6, -0.1), np.full(6, 3)))
    assert pge.goal_set.strategy == strategy
    other = ProtoGoalEvaluator(6, 2, settings, seed=2)
    state = pge.state_dict()
    json.dumps(state, default=lambda x: x.tolist())
    other.load_state_dict(state)
    values = np.random.default_rng(0).random((400, len(pge.goal_set)))
    nothing = np.zeros((400, 6), bool)
    chosen = select(pge.goal_set, values, nothing, np.random.default_rng(4))
    np.testing.assert_array_equal(chosen, select(other.goal_set, values, nothing, np.random.default_rng(4)))
    assert TASK not in chosen
    if (strategy, utility) == ("desirable", "progress"):
        assert (chosen == 2).mean() == pytest.approx((1 + PROGRESS_FLOOR) / (1 + 6 * PROGRESS_FLOOR), abs=0.1)


def test_an_unknown_strategy_names_the_known_ones():
    with pytest.raises(ValueError, match="paper, product, uniform, desirable"):
        PGESettings(strategy="random")
    with pytest.raises(ValueError, match="paper, uniform, progress"):
        PGESettings(desirability="random")
