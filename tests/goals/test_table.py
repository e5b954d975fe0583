import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.goals import CountingTable, attained

from protogoal.goals.table import TASK, GoalTable, pack_columns, unpack_columns


def random_table(rng, num_bits=12, ands=20, capacity=200):
    table = GoalTable(num_bits, capacity)
    for _ in range(ands):
        table.add(*rng.integers(table.size, size=2))
    return table


@given(seed=st.integers(0, 1000), n=st.integers(1, 200))
@settings(max_examples=30, deadline=None)
def test_attainment_of_all_goals_equals_the_slow_version(seed, n):
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    bits = rng.random((n, 12)) < 0.5
    expected = attained(bits, [table.members(g) for g in range(table.size)])
    np.testing.assert_array_equal(table.attained(bits), expected)
    np.testing.assert_array_equal(unpack_columns(table.attained_packed(bits), n), expected)
    some = rng.integers(table.size, size=5)
    np.testing.assert_array_equal(table.attained(bits, some), expected[:, some])


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_counts_and_rewards_equal_the_slow_version(seed):
    rng = np.random.default_rng(seed)
    table, slow = random_table(rng), CountingTable()
    for _ in range(3):
        bits, reward = rng.random((70, 12)) < 0.4, rng.choice([0.0, 0.0, 1.0, -0.5], 70)
        table.observe(bits, reward)
        slow.observe(bits, reward, [table.members(g) for g in range(table.size)])
    assert table.count.tolist() == [slow.count.get(g, 0) for g in range(table.size)]
    expected = [slow.reward.get(g, 0.0) / max(1, slow.count.get(g, 0)) for g in range(table.size)]
    np.testing.assert_allclose(table.reward_mean, expected, atol=1e-12)
    assert table.transitions == 210


@given(st.integers(1, 300))
@settings(deadline=None)
def test_packing_and_unpacking_are_inverse(n):
    bits = np.random.default_rng(n).random((n, 5)) < 0.5
    np.testing.assert_array_equal(unpack_columns(pack_columns(bits), n), bits)


def test_an_and_of_ands_is_the_union_of_the_bits_and_is_kept_once():
    table = GoalTable(5, 20)
    ab, bc = table.add(0, 1), table.add(1, 2)
    abc = table.add(ab, bc)
    assert table.members(abc) == (0, 1, 2)
    assert table.parents(abc) == (ab, bc)
    assert table.add(bc, ab) == abc
    assert table.add(ab, 2) == abc
    assert table.size == 8


def test_a_goal_and_itself_or_its_part_is_no_new_goal():
    table = GoalTable(5, 20)
    ab = table.add(0, 1)
    assert table.add(3, 3) is None
    assert table.add(ab, 0) is None
    assert table.size == 6


def test_a_full_table_and_too_many_bits_add_nothing():
    table = GoalTable(4, 5, max_members=2)
    ab = table.add(0, 1)
    assert table.add(ab, 2) is None  # three bits
    assert table.is_full
    assert table.add(2, 3) is None


def test_success_rate_looks_at_the_last_ten_pursuits():
    table = GoalTable(3)
    table.record_pursuits([1] * 10, [False] * 10)
    table.record_pursuits([1] * 4 + [TASK], [True] * 4 + [True])
    table.record_pursuits(2, True)
    assert table.pursuits.tolist() == [0, 14, 1]
    np.testing.assert_allclose(table.success_rate, [0.0, 0.4, 1.0])


def test_an_and_goal_counts_from_its_creation_on():
    table = GoalTable(2)
    both = np.ones((3, 2), bool)
    table.observe(both, np.zeros(3))
    goal = table.add(0, 1)
    assert table.count[goal] == 0
    table.observe(both, np.zeros(3))
    assert table.count[goal] == 3


def test_state_survives_a_round_trip():
    rng = np.random.default_rng(0)
    table = random_table(rng)
    table.observe(rng.random((50, 12)) < 0.5, rng.random(50))
    table.record_pursuits([3, 3, 13], [True, False, True])
    other = GoalTable(12, 200)
    other.load_state_dict(table.state_dict())
    for name, value in table.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], value)
    assert other.add(0, 1) == table.add(0, 1)


@pytest.mark.parametrize(("bits", "reward", "words"), [
    (np.zeros((2, 3)), np.zeros(2), "shape"),
    (np.zeros(4), np.zeros(2), "shape"),
    (np.full((2, 4), 2), np.zeros(2), "0 or 1"),
    (np.full((2, 4), np.nan), np.zeros(2), "0 or 1"),
    (np.zeros((2, 4)), np.zeros(3), "one for each transition"),
    (np.zeros((2, 4)), np.array([0.0, np.nan]), "finite"),
])
def test_bad_bits_and_rewards_are_refused_in_words_and_change_nothing(bits, reward, words):
    table = GoalTable(4)
    with pytest.raises(ValueError, match=words):
        table.observe(bits, reward)
    assert table.transitions == 0
    assert table.count.sum() == 0


def test_unknown_ids_and_foreign_state_are_refused():
    table = GoalTable(4)
    with pytest.raises(ValueError, match="unknown goal id 9"):
        table.members(9)
    with pytest.raises(ValueError, match=r"another size|holds"):
        GoalTable(6).load_state_dict(table.state_dict())
