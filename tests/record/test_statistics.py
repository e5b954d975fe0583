"""Intervals and comparisons over a few seeds, against cases worked by hand."""

import numpy as np
import pytest
from scipy.stats import binomtest

from protogoal.record.statistics import (
    exact_interval,
    interquartile_mean,
    mean_interval,
    pooled_interquartile_mean,
    probability_of_improvement,
    stratified_bootstrap,
    t_interval,
)


def test_the_t_interval_of_three_seeds_by_hand():
    """Mean 0.5, s = 0.1, t(2, 0.975) = 4.3027: 0.5 ± 4.3027 · 0.1/√3."""
    low, high = t_interval([0.4, 0.5, 0.6])
    assert (low, high) == pytest.approx((0.5 - 0.24841, 0.5 + 0.24841), abs=1e-5)
    assert mean_interval([0.4, 0.5, 0.6]) == pytest.approx((0.5, 0.25159, 0.74841), abs=1e-5)


def test_the_t_interval_takes_a_point_of_a_curve_at_a_time_and_stays_in_the_range():
    low, high = t_interval(np.array([[0.0, 0.4, 1.0], [1.0, 0.5, 1.0], [1.0, 0.6, 1.0]]))
    np.testing.assert_allclose(low, [0.0, 0.25159, 1.0], atol=1e-5)
    np.testing.assert_allclose(high, [1.0, 0.74841, 1.0], atol=1e-5)


def test_seeds_that_all_agree_have_an_interval_all_the_same():
    """Three of three: the exact lower end is 0.025^(1/3) = 0.2924; of 0.5 half of that share lies on either side."""
    assert mean_interval([1.0, 1.0, 1.0]) == pytest.approx((1.0, 0.29240, 1.0), abs=1e-5)
    assert mean_interval([0.0, 0.0, 0.0]) == pytest.approx((0.0, 0.0, 0.70760), abs=1e-5)
    assert mean_interval([0.5] * 3) == pytest.approx((0.5, 0.14620, 0.85380), abs=1e-5)
    assert mean_interval([1.0] * 10)[1] == pytest.approx(exact_interval(10, 10)[0])
    assert mean_interval([1.0] * 10)[1] == pytest.approx(0.69150, abs=1e-5)


def test_a_single_seed_has_no_interval():
    mean, low, high = mean_interval([0.7])
    assert mean == 0.7
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (5, 10), (10, 10), (3, 7), (299, 300)])
def test_the_exact_interval_is_that_of_clopper_and_pearson(successes, trials):
    expected = binomtest(successes, trials).proportion_ci(method="exact")
    assert exact_interval(successes, trials) == pytest.approx((expected.low, expected.high))


def test_the_exact_interval_by_hand_and_without_trials():
    assert exact_interval(0, 10) == pytest.approx((0.0, 1 - 0.025**0.1))
    assert exact_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="between 0 and 3"):
        exact_interval(4, 3)


def test_the_interquartile_mean_by_hand():
    assert interquartile_mean([9.0, 1.0, 2.0, 4.0]) == pytest.approx(3.0)  # the middle two
    assert interquartile_mean([0.0, 3.0, 100.0]) == pytest.approx((0 + 4 * 3 + 100) / 6)  # ends count a sixth each
    assert interquartile_mean([5.0]) == 5.0
    assert interquartile_mean(np.arange(8.0)) == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert pooled_interquartile_mean([[9.0, 1.0], [2.0, 4.0]]) == pytest.approx(3.0)


def test_the_probability_of_improvement_counts_pairs_and_halves_ties():
    """Of the pairs (1, 0), (1, 2), (2, 0), (2, 2): two ahead, one tie; the second task is a tie throughout."""
    assert probability_of_improvement([[1.0, 2.0]], [[0.0, 2.0]]) == pytest.approx(2.5 / 4)
    assert probability_of_improvement([[1.0, 2.0], [1.0]], [[0.0, 2.0], [1.0, 1.0]]) == pytest.approx((2.5 / 4 + 0.5) / 2)
    assert probability_of_improvement([[3.0, 4.0]], [[1.0, 2.0]]) == 1.0


def test_the_bootstrap_redraws_seeds_within_tasks():
    """Two tasks, each with seeds that agree: nothing is left to chance, however far apart the tasks are."""
    assert stratified_bootstrap(pooled_interquartile_mean, [[0.0] * 3, [1.0] * 3]) == pytest.approx((0.5, 0.5))
    low, high = stratified_bootstrap(pooled_interquartile_mean, [[0.0, 1.0, 0.5]] * 4)
    assert low < 0.5 < high
    assert stratified_bootstrap(probability_of_improvement, [[2.0, 3.0]], [[0.0, 1.0]]) == (1.0, 1.0)


def test_the_bootstrap_of_two_seeds_by_hand():
    """Of (0, 1) the four redraws are 0, ½, ½, 1, each a quarter: 2.5 % and 97.5 % of them are the ends."""
    assert stratified_bootstrap(lambda tasks: float(np.mean(tasks[0])), [[0.0, 1.0]]) == (0.0, 1.0)
