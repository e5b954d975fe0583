"""Reachable in practice: chance and doubt by hand and by scipy, giving up, coming back, and limits."""

import numpy as np
import pytest
from scipy import stats

from protogoal.goals.practice import (
    DOUBT,
    DOUBT_OF_KIND,
    FEW,
    LEAST_LIMIT,
    LEAST_SUCCESS,
    MORE_OFTEN_EVENTS,
    PROVEN_P,
    Practice,
    chance,
    doubt,
    is_proven,
    limits,
)
from protogoal.goals.table import FADE, TASK, GoalTable

HORIZON = 10**6


def turn_on(table, goal, times, steps):
    """So many of so many transitions turn the goal on."""
    active = np.where(np.arange(steps)[:, None] < times, goal, -1)
    table.observe(active, active >= 0, np.zeros(steps))


def fail(table, goal, times, length=10):
    table.record_pursuits([goal] * times, [False] * times, [length] * times)


def fails_needed():
    """Failures in a row after which a goal that chance never attains is given up."""
    n, faded = 0, 0.0
    while stats.beta.sf(LEAST_SUCCESS, 1, 1 + faded) >= DOUBT * (1 - LEAST_SUCCESS):
        n, faded = n + 1, FADE * faded + 1
        assert n < 100, "no number of failures is enough"
    return n


def test_chance_by_hand():
    table = GoalTable(3)
    turn_on(table, 0, 30, 1000)
    table.record_pursuits([0, 0], [True, False], [4, 100 - 4])
    # 30 times in all, one of them a success; 1,000 steps in all, 100 of them pursuits: λ = 29/900; ℓ fades
    length = (FADE * 4 + 96) / (FADE + 1)
    np.testing.assert_allclose(chance(table), [1 - (1 - 29 / 900) ** length, 0, 0])


def test_chance_of_a_conjunction_counts_from_when_it_was_made():
    table = GoalTable(2)
    turn_on(table, 0, 0, 5000)
    both = table.add(0, 1)
    active = np.tile([[0, 1]], (100, 1))
    table.observe(active, np.repeat([[True, False]], 100, 0), np.zeros(100))
    fail(table, both, 1, length=50)
    # every one of the 100 transitions turned it on, in 50 steps that were not a pursuit of it
    assert chance(table)[both] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_doubt_is_the_tail_of_a_beta_distribution(seed):
    rng = np.random.default_rng(seed)
    pursuits = rng.random(50) * 30
    wins, rate = pursuits * rng.random(50), rng.random(50) ** 3
    levels = np.maximum(rate, LEAST_SUCCESS)
    expected = [stats.beta.sf(x, 1 + s, 1 + n - s) / stats.beta.sf(x, 1, 1) for s, n, x in zip(wins, pursuits, levels, strict=True)]
    np.testing.assert_allclose(doubt(wins, pursuits, rate), expected, rtol=1e-6, atol=1e-12)


def test_what_was_never_pursued_is_in_no_doubt():
    np.testing.assert_allclose(doubt(np.zeros(2), np.zeros(2), np.array([0.0, 1.0])), 1.0)


def test_one_pursuit_is_too_few_however_likely_chance_is():
    table = GoalTable(2)
    table.observe(np.tile([[0]], (900, 1)), np.ones((900, 1), bool), np.zeros(900))
    table.observe(np.full((100, 1), -1), np.zeros((100, 1), bool), np.zeros(100))
    for won in (True, False):
        table.record_pursuits([0], [won], [5])
        assert not Practice(2).judge(table)[0]


def test_a_goal_that_fails_again_and_again_is_given_up():
    table, practice = GoalTable(2), Practice(2)
    turn_on(table, 0, 0, 1000)
    fail(table, 0, fails_needed() - 1)
    assert practice.judge(table).tolist() == [False, False]
    fail(table, 0, 1)
    assert practice.judge(table).tolist() == [True, False]
    assert practice.times(2).tolist() == [1, 0]


def test_success_no_better_than_chance_is_given_up_too():
    table, practice = GoalTable(2), Practice(2)
    for goal in (0, 1):
        turn_on(table, goal, 400 if goal == 0 else 10, 1000)  # the first comes by itself
        outcome = [True, False] * 20
        table.record_pursuits([goal] * 40, outcome, [8] * 40)
    assert chance(table)[0] > 0.8
    assert practice.judge(table).tolist() == [True, False]


def test_successes_bring_a_goal_back():
    table, practice = GoalTable(2), Practice(2)
    fail(table, 0, 40)
    assert practice.judge(table)[0]
    table.record_pursuits([0] * 10, [True] * 10, [3] * 10)
    assert not practice.judge(table)[0]


def test_a_goal_that_chance_attains_more_often_than_before_comes_back_at_once_with_its_failures_forgotten():
    table, practice = GoalTable(2), Practice(2)
    turn_on(table, 0, 2, 10_000)
    fail(table, 0, 40)
    assert practice.judge(table)[0]
    turn_on(table, 0, 0, 10_000)
    turn_on(table, 0, MORE_OFTEN_EVENTS - 1, 100)
    assert practice.judge(table)[0]  # too few to tell
    turn_on(table, 0, 11, 100)
    assert not practice.judge(table)[0]
    assert table.recent_pursuits[0] == 0
    assert practice.times(2)[0] == 0  # so an undecided goal is tried as often as a new one
    fail(table, 0, 3)
    assert not practice.judge(table)[0]  # it begins anew


def test_a_goal_comes_back_though_chance_hardly_attained_it_for_long():
    table, practice = GoalTable(1), Practice(1)
    turn_on(table, 0, 20, 10_000)
    fail(table, 0, 40)
    assert practice.judge(table)[0]
    for _ in range(100):  # a million steps without it
        turn_on(table, 0, 0, 10_000)
        assert practice.judge(table)[0]
    looks = 0
    while practice.judge(table)[0]:
        turn_on(table, 0, 5, 1000)
        looks += 1
    assert looks <= 10


def test_what_pursuits_prove_by_hand():
    table = GoalTable(3)
    for goal, comes in enumerate((10, 10, 200)):
        turn_on(table, goal, comes, 1000)
        table.record_pursuits([goal] * 8, [True] * 8, [10] * 8)
    # 8 wins in 80 steps, 2 in 2,920 besides: P(Binomial(10, 160/3080) ≥ 8); the last: 8 and 192
    for goal, others, proven in ((0, 2, True), (1, 2, True), (2, 192, False)):
        p = stats.binom.sf(7, 8 + others, 160 / (160 + 2920))
        assert (p < PROVEN_P) == proven
        assert is_proven(table)[goal] == proven
    few = GoalTable(1)
    turn_on(few, 0, 3, 10_000)
    few.record_pursuits([0] * 3, [True] * 3, [1] * 3)
    assert not is_proven(few)[0]


def test_a_goal_that_chance_attains_as_often_as_before_stays_given_up():
    table, practice = GoalTable(2), Practice(2)
    rng = np.random.default_rng(0)
    turn_on(table, 0, 20, 1000)
    fail(table, 0, 60, length=2)
    assert practice.judge(table)[0]
    for _ in range(20):
        turn_on(table, 0, int(rng.binomial(100, 0.02)), 100)
        assert practice.judge(table)[0]


def test_chance_that_stays_as_it_is_hardly_ever_brings_a_goal_back_however_often_one_looks():
    goals, looks, rng = 400, 40, np.random.default_rng(1)
    table, practice = GoalTable(goals), Practice(goals)

    def wait(steps):  # each goal three times in 5,000 steps
        active = np.where(rng.random((steps, goals)) < 3 / 5000, np.arange(goals), -1)
        table.observe(active, active >= 0, np.zeros(steps))

    wait(5000)
    for goal in range(goals):
        fail(table, goal, 40)
    has_failed = practice.judge(table)
    assert has_failed.all()
    came_back = np.zeros(goals, np.bool_)
    for _ in range(looks):
        wait(2500)
        came_back |= ~practice.judge(table)
    assert came_back.mean() < 0.05  # with the rate before taken for exact it is a third


def test_each_time_a_goal_is_given_up_is_counted():
    table, practice = GoalTable(2), Practice(2)
    for times in (1, 2, 3):
        fail(table, 0, 150)
        assert practice.judge(table)[0]
        assert practice.judge(table)[0]  # judged again, it is still the same time
        assert practice.times(2)[0] == times
        table.record_pursuits([0] * 10, [True] * 10, [3] * 10)
        assert not practice.judge(table)[0]


def test_state_survives_a_round_trip_and_an_earlier_one_leaves_nothing_behind():
    table, practice, other = GoalTable(2), Practice(4), Practice(4)
    early = practice.state_dict(2)
    turn_on(table, 0, 3, 500)
    fail(table, 0, 60)
    practice.judge(table)
    other.load_state_dict(practice.state_dict(2))
    for name, array in practice.state_dict(4).items():
        np.testing.assert_array_equal(other.state_dict(4)[name], array)
    other.load_state_dict(early)
    assert not any(array.any() for array in other.state_dict(4).values())
    with pytest.raises(ValueError, match="at most 1"):
        Practice(1).load_state_dict(early)


def test_limits_by_hand():
    table = GoalTable(3)
    assert limits(table, np.array([0, 1]), 3.0, 60).tolist() == [60, 60]  # nothing has succeeded yet: the most there is
    table.record_pursuits([0] * 10, [True] * 10, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    table.record_pursuits([1] * (FEW - 1), [True] * (FEW - 1), [1000] * (FEW - 1))  # too few of its own
    table.record_pursuits([2] * FEW, [True] * FEW, [1] * FEW)
    fail(table, 0, 5, length=9999)  # failures tell nothing
    table.record_pursuits([TASK], [True], [9999])
    everything = np.percentile([*range(10, 101, 10), *[1000] * (FEW - 1), *[1] * FEW], 90)
    goals = np.array([0, 1, 2])
    assert limits(table, goals, 3.0, HORIZON).tolist() == [np.ceil(3 * 91), np.ceil(3 * everything), LEAST_LIMIT]
    assert limits(table, goals, 3.0, 200).tolist() == [200, 200, LEAST_LIMIT]
    assert limits(table, goals, 3.0, 4).tolist() == [4, 4, 4]
    assert limits(table, goals, 0.0, 60).tolist() == [0, 0, 0]


def test_limits_follow_the_last_ten_successes():
    table = GoalTable(1)
    for length in (100, 20):
        table.record_pursuits([0] * 10, [True] * 10, [length] * 10)
        assert limits(table, np.array([0]), 3.0, HORIZON).tolist() == [3 * length]


def failures_of_a_kind_needed():
    """Failures in a row, over all rare goals of a kind, after which those of it are given up."""
    return next(n for n in range(1, 200) if stats.beta.sf(LEAST_SUCCESS, 1, 1 + n) < DOUBT_OF_KIND * (1 - LEAST_SUCCESS))


def look(table, practice, rare=True):
    """Goals 0…19 are of one kind, the last of another."""
    is_rare = np.full(table.size, rare)
    return practice.judge_kinds(table, is_rare, np.where(np.arange(table.size) < 20, 0, 1))


def test_rare_goals_are_given_up_together_where_pursuits_of_their_kind_fail():
    table, practice = GoalTable(21), Practice(21)
    look(table, practice)
    needed = failures_of_a_kind_needed()
    for i in range(needed - 1):
        fail(table, i % 10, 1)
    assert not look(table, practice).any()
    fail(table, 0, 1)
    assert look(table, practice).tolist() == [True] * 20 + [False]  # also those that nobody pursued, but not the other kind


def test_a_rare_goal_that_succeeded_is_judged_for_itself_and_successes_bring_its_kind_back():
    table, practice = GoalTable(21), Practice(21)
    look(table, practice)
    for i in range(80):
        fail(table, i % 10, 1)
    table.record_pursuits([3], [True], [5])
    given_up = look(table, practice)
    assert not given_up[3]
    assert given_up[:3].all()
    table.record_pursuits([5] * 15, [True] * 15, [5] * 15)
    assert not look(table, practice).any()


def test_pursuits_of_what_is_not_rare_say_nothing_of_its_kind():
    table, practice = GoalTable(21), Practice(21)
    look(table, practice, rare=False)
    fail(table, 0, 100)
    assert not look(table, practice).any()


def test_a_kind_remembers_its_last_hundred_pursuits():
    table, practice = GoalTable(21), Practice(21)
    look(table, practice)
    table.record_pursuits([0] * 1000, [True] * 1000, [5] * 1000)
    look(table, practice)
    for _ in range(30):
        fail(table, 1, 20)
        look(table, practice)
    assert look(table, practice)[2]
