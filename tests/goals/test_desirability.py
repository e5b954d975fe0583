import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import goals as reference

from protogoal.goals.desirability import SELDOM, desirability, draw_goals, draw_rationed, novelty, shares
from protogoal.goals.plausibility import Verdict

PRUNED = (Verdict.UNOBSERVED, Verdict.STATIC, Verdict.UNCONTROLLABLE, Verdict.UNCONTROLLABLE_KIND)


def test_golden_case_worked_by_hand():
    # N = 1, 4, 100; R = 0, 0.5, 1  →  u = 0 + 1, 0.5 + 0.5, 1 + 0.1
    np.testing.assert_allclose(desirability(np.array([1, 4, 100]), np.array([0.0, 0.5, 1.0])), [1.0, 1.0, 1.1])


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(-5, 5)), min_size=1, max_size=20))
def test_equals_the_slow_version_and_is_positive(rows):
    count, reward = np.array([n for n, _ in rows]), np.array([r for _, r in rows])
    u = desirability(count, reward)
    np.testing.assert_allclose(u, reference.desirability(count, reward))
    assert (u > 0).all()  # so that every plausible goal can be drawn, and no probability is negative


def test_novelty_of_the_unseen_is_one():
    assert novelty(np.array([0]))[0] == 1.0


@given(seed=st.integers(0, 100))
@settings(deadline=None)
def test_draws_vanish_off_the_plausible_set(seed):
    rng = np.random.default_rng(seed)
    plausible = rng.random(30) < 0.3
    drawn = draw_goals(rng.random(30) + 0.01, plausible, 50, rng)
    assert plausible[drawn].all()
    assert len(drawn) == (50 if plausible.any() else 0)


def test_draws_are_proportional_to_desirability():
    u = np.array([1.0, 2.0, 5.0, 4.0])
    drawn = draw_goals(u, np.array([True, True, False, True]), 70_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 70_000, [1 / 7, 2 / 7, 0, 4 / 7], atol=0.01)


def rationed(verdict, size=1000, optimism=0.2, retry=0.1, utility=None, given_up=None, seed=0):
    verdict = np.array(verdict, np.int8)
    utility = np.ones(len(verdict)) if utility is None else np.asarray(utility, float)
    given_up = np.zeros(len(verdict), int) if given_up is None else np.asarray(given_up)
    return draw_rationed(utility, verdict, given_up, size, shares(verdict, optimism, retry), np.random.default_rng(seed))


def test_undecided_and_unreached_goals_have_their_share_of_the_draws_and_no_more():
    verdict = np.repeat([Verdict.PLAUSIBLE, Verdict.UNDECIDED, Verdict.UNREACHED], [2, 5000, 50])
    drawn = verdict[rationed(verdict, utility=np.where(verdict == Verdict.PLAUSIBLE, 0.001, 1.0))]
    assert [(drawn == v).sum() for v in (Verdict.PLAUSIBLE, Verdict.UNDECIDED, Verdict.UNREACHED)] == [700, 200, 100]


def test_a_small_share_of_few_draws_is_not_always_none():
    verdict = np.array([Verdict.PLAUSIBLE, Verdict.UNDECIDED, Verdict.UNREACHED], np.int8)
    rng, none = np.random.default_rng(0), np.zeros(3, np.int64)
    drawn = np.concatenate([draw_rationed(np.ones(3), verdict, none, 3, shares(verdict, 0.2, 0.1), rng) for _ in range(2000)])
    np.testing.assert_allclose(np.bincount(drawn) / 6000, [0.7, 0.2, 0.1], atol=0.02)


def test_plausible_goals_take_what_others_leave():
    assert len(rationed([Verdict.PLAUSIBLE] * 3)) == 1000
    verdict = np.array([Verdict.PLAUSIBLE, Verdict.UNREACHED])
    assert (verdict[rationed(verdict)] == Verdict.PLAUSIBLE).sum() == 900


def test_while_nothing_is_plausible_undecided_goals_have_its_part():
    verdict = np.array([Verdict.UNDECIDED] * 3 + [Verdict.UNREACHED, Verdict.STATIC])
    drawn = verdict[rationed(verdict)]
    assert ((drawn == Verdict.UNDECIDED).sum(), (drawn == Verdict.UNREACHED).sum()) == (900, 100)
    assert (verdict[rationed(verdict, optimism=0.0)] == Verdict.UNDECIDED).sum() == 900


@given(seed=st.integers(0, 1000), size=st.integers(1, 200))
@settings(deadline=None)
def test_nothing_pruned_is_ever_drawn_and_shares_are_kept(seed, size):
    rng = np.random.default_rng(seed)
    verdict = rng.choice(np.array(Verdict), size=rng.integers(1, 30))
    optimism = float(rng.random() * 0.6)
    retry = float(rng.random() * 0.4)
    n = len(verdict)
    drawn = verdict[rationed(verdict, size, optimism, retry, rng.random(n) + 0.01, rng.integers(0, 4, n), seed)]
    assert len(drawn) <= size
    assert not np.isin(drawn, PRUNED).any()
    if (verdict == Verdict.PLAUSIBLE).any():
        assert (drawn == Verdict.UNDECIDED).sum() <= math.ceil(optimism * size)
        assert (drawn == Verdict.UNREACHED).sum() <= math.ceil(retry * size)
        assert len(drawn) == size


def test_what_was_given_up_is_tried_more_seldom_each_time():
    verdict = np.array([Verdict.UNREACHED] * 3 + [Verdict.PLAUSIBLE])
    drawn = rationed(verdict, 100_000, retry=0.5, given_up=[0, 1, 3, 0])
    found = np.bincount(drawn[drawn < 3], minlength=3) / (drawn < 3).sum()
    weight = SELDOM ** np.array([0, 1, 3])
    np.testing.assert_allclose(found, weight / weight.sum(), atol=0.01)
    assert len(rationed(verdict, given_up=[1000] * 4)) == 1000  # and never not at all


@pytest.mark.parametrize(("optimism", "retry"), [(0.2, 0.1), (0.0, 0.0), (0.6, 0.4)])
def test_shares_are_a_whole(optimism, retry):
    for verdict in ([Verdict.PLAUSIBLE, Verdict.UNDECIDED], [Verdict.UNDECIDED]):
        assert sum(shares(np.array(verdict), optimism, retry).values()) == pytest.approx(1.0)
