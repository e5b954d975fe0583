import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import goals as reference

from protogoal.goals.desirability import desirability, draw_goals, novelty


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
