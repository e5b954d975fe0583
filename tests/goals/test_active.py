"""Lists of ids say what matrices of bits would."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from protogoal.goals.active import ascending, compact, contains, dense_bits, side_by_side, sparse_bits, turned_on, widened


def random_lists(rng, n, num_bits):
    """Bits [n, B], and lists of them in any order with the padding anywhere."""
    bits = rng.random((n, num_bits)) < rng.random()
    return bits, rng.permuted(widened(sparse_bits(bits), int(rng.integers(1, 2 * num_bits))), axis=1)


@given(seed=st.integers(0, 10_000), n=st.integers(0, 6), num_bits=st.integers(1, 20))
@settings(deadline=None)
def test_lists_in_any_order_mean_the_same_bits(seed, n, num_bits):
    rng = np.random.default_rng(seed)
    bits, lists = random_lists(rng, n, num_bits)
    np.testing.assert_array_equal(dense_bits(lists, num_bits), bits)
    np.testing.assert_array_equal(ascending(np.concatenate([lists, lists], 1)), sparse_bits(bits))
    np.testing.assert_array_equal(dense_bits(compact(lists), num_bits), bits)
    before, old = random_lists(rng, n, num_bits)
    on = turned_on(lists, old)
    for row in range(n):
        for place, bit in enumerate(lists[row]):
            assert on[row, place] == (bit >= 0 and not before[row, bit])
    np.testing.assert_array_equal(contains(old, lists), (lists >= 0) & ~on)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None)
def test_lists_side_by_side_are_bits_side_by_side(seed):
    rng = np.random.default_rng(seed)
    one, two = (sparse_bits(rng.random((3, size)) < 0.5) for size in (4, 6))
    joined = side_by_side([(one, 0), (two, 4)])
    np.testing.assert_array_equal(dense_bits(joined, 10), np.concatenate([dense_bits(one, 4), dense_bits(two, 6)], 1))
    np.testing.assert_array_equal(joined, ascending(joined))
