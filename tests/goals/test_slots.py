"""Slots: few rows for many bits, given away only when nobody wants them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protogoal.goals.slots import Slots


def test_where_there_are_enough_each_bit_has_its_own():
    slots = Slots(5, 100)
    slots.assign(np.array([3, 1]))
    assert slots.of(np.array([[3, -1], [0, 4]])).tolist() == [[3, -1], [0, 4]]
    assert slots.has(np.array([[3, -1], [0, 4]])).all()
    assert not slots.generation.any()


def test_a_bit_keeps_its_slot_while_it_is_wanted_and_the_longest_out_of_use_goes_first():
    slots = Slots(100, 3)
    slots.assign(np.array([10, 20, 30]))
    first = slots.of(np.array([10, 20, 30]))
    assert sorted(first.tolist()) == [0, 1, 2]
    slots.assign(np.array([30, 20]))
    slots.assign(np.array([20]))
    slots.assign(np.array([20, 40]))  # 10 was wanted longest ago
    assert slots.of(np.array([20, 30, 40, 10])).tolist() == [first[1], first[2], first[0], -1]
    assert slots.generation[first].tolist() == [2, 1, 1]  # only the row that changed its bit begins anew
    assert slots.has(np.array([[20, 40], [20, 10], [-1, -1]])).tolist() == [True, False, True]


def test_of_too_many_the_first_have_slots():
    slots = Slots(100, 2)
    slots.assign(np.array([5, 6, 7, 8]))
    assert (slots.of(np.array([5, 6, 7, 8])) >= 0).tolist() == [True, True, False, False]


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_no_two_bits_share_a_slot_what_is_wanted_has_one_and_state_survives(seed):
    rng = np.random.default_rng(seed)
    slots, other = Slots(20, 6), Slots(20, 6)
    for _ in range(8):
        wanted = rng.permutation(20)[: rng.integers(0, 9)]
        before, generation = slots.of(np.arange(20)), slots.generation.copy()
        slots.assign(wanted)
        now = slots.of(np.arange(20))
        held = now[now >= 0]
        assert len(np.unique(held)) == len(held)
        assert (now[wanted[:6]] >= 0).all()
        kept = (now == before) & (now >= 0)
        assert (slots.generation[now[kept]] == generation[now[kept]]).all()
        new = (now != before) & (now >= 0)
        assert (slots.generation[now[new]] == generation[now[new]] + 1).all()
    other.load_state_dict(slots.state_dict())
    more = rng.permutation(20)[:6]
    slots.assign(more)
    other.assign(more)
    np.testing.assert_array_equal(slots.of(np.arange(20)), other.of(np.arange(20)))
    np.testing.assert_array_equal(slots.generation, other.generation)


def test_a_stored_state_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="this run's is"):
        Slots(100, 3).load_state_dict(Slots(100, 4).state_dict())
    state = Slots(100, 3).state_dict() | {"bit_of": np.array([0, 100, 2])}
    with pytest.raises(ValueError, match="100"):
        Slots(100, 3).load_state_dict(state)
