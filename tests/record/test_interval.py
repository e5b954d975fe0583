"""The Wilson interval: golden values, edges, and coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from protogoal.record.statistics import wilson_interval


def test_golden_values():
    # z = 1.96: 5 of 10 → centre 0.5, half = 0.96·… worked by hand: 0.2366 … 0.7634
    assert wilson_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson_interval(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_nothing_tried_means_nothing_known():
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_it_equals_scipys(trial):
    successes, episodes = trial
    expected = binomtest(successes, episodes).proportion_ci(method="wilson")
    low, high = wilson_interval(successes, episodes)
    np.testing.assert_allclose((low, high), (expected.low, expected.high), atol=1e-12)
    assert 0 <= low <= successes / episodes <= high <= 1


@pytest.mark.parametrize("bad", [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(bad):
    with pytest.raises(ValueError, match="between 0 and episodes"):
        wilson_interval(*bad)
