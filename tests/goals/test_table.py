import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.goals import CountingTable, attained, attains, turned_on

from protogoal.goals.active import contains, sparse_bits
from protogoal.goals.table import (
    FADE,
    FADE_ALL,
    RECENT_TASK,
    TASK,
    GoalTable,
    attained_by,
    attained_in,
)


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
    np.testing.assert_array_equal(attained_by(bits, table.member_array), expected)
    table.count[:] = rng.integers(2, size=table.size)
    goals, found = table.attained_among(sparse_bits(bits))
    np.testing.assert_array_equal(found, expected[:, goals])
    assert not (expected & (table.count > 0))[:, np.setdiff1d(np.arange(table.size), goals)].any()


def observe(table, before, after, reward=None):
    table.observe(*turned_on(before, after), np.zeros(len(after)) if reward is None else reward)


@given(seed=st.integers(0, 1000), density=st.sampled_from([0.0, 0.1, 0.5, 0.9]))
@settings(max_examples=30, deadline=None)
def test_attainments_and_rewards_of_all_goals_equal_the_slow_version(seed, density):
    rng = np.random.default_rng(seed)
    table, slow = random_table(rng), CountingTable()
    for _ in range(3):
        bits, reward = rng.random((71, 12)) < density, rng.choice([0.0, 0.0, 1.0, -0.5], 70)
        observe(table, bits[:-1], bits[1:], reward)
        slow.observe(bits[:-1], bits[1:], reward, [table.members(g) for g in range(table.size)])
    assert table.count.tolist() == [slow.count.get(g, 0) for g in range(table.size)]
    expected = [slow.reward.get(g, 0.0) / max(1, slow.count.get(g, 0)) for g in range(table.size)]
    np.testing.assert_allclose(table.reward_mean, expected, atol=1e-12)
    assert table.transitions == 210
    assert (table.observed >= (table.count > 0)).all()


def test_a_bit_that_stays_on_is_attained_once_and_again_when_it_comes_back():
    table = GoalTable(2)
    bit = np.array([0, 1, 1, 1, 0, 1, 0], bool)
    bits = np.stack([bit, ~bit], 1)
    observe(table, bits[:-1], bits[1:], np.arange(6.0))
    assert table.count.tolist() == [2, 2]
    np.testing.assert_allclose(table.reward_mean, [(0 + 4) / 2, (3 + 5) / 2])


def test_an_and_goal_is_attained_when_the_last_of_its_bits_turns_on():
    table = GoalTable(3)
    both = table.add(0, 1)
    bits = np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]], bool)
    observe(table, bits[:-1], bits[1:])
    assert table.count[both] == 3  # by the second bit, by the first, by both at once
    assert not GoalTable(2).observed.any()


def test_what_is_on_without_a_transition_is_observed_and_not_attained():
    table = GoalTable(4)
    table.see(np.array([[2, -1], [-1, -1]]))
    assert table.observed.tolist() == [False, False, True, False]
    assert table.count.sum() == table.transitions == 0
    still = np.array([[0, 1, 0, 0]] * 3, bool)
    observe(table, still, still)
    assert table.observed.tolist() == [False, True, True, False]
    assert table.count.sum() == 0


@given(seed=st.integers(0, 10_000), n=st.integers(0, 12), num_bits=st.integers(1, 20))
@settings(deadline=None)
def test_sparse_bits_name_what_is_on_and_goals_are_on_in_the_states_that_have_all_their_bits(seed, n, num_bits):
    rng = np.random.default_rng(seed)
    bits = rng.random((n, num_bits)) < rng.random()
    active = sparse_bits(bits)
    assert active.shape[0] == n
    assert active.shape[1] >= 1
    assert [sorted(i for i in row if i >= 0) for row in active.tolist()] == [np.flatnonzero(row).tolist() for row in bits]
    shuffled = rng.permuted(active, axis=1)  # in any order
    members = np.full((7, 3), -1)
    for goal in members:
        goal[: rng.integers(1, 4)] = -2  # filled below, with different bits as far as there are
        some = rng.permutation(num_bits)[: (goal == -2).sum()]
        goal[:] = -1
        goal[: len(some)] = some
    wanted = [[i for i in goal if i >= 0] for goal in members.tolist()]
    expected = np.array([[attains(row, goal) for goal in wanted] for row in bits], bool).reshape(n, 7)
    np.testing.assert_array_equal(attained_in(shuffled, members), expected)
    some = rng.integers(-1, num_bits, size=(n, 4))
    on = contains(shuffled, some)
    for t in range(n):
        for k in range(4):
            if some[t, k] >= 0:
                assert on[t, k] == bits[t, some[t, k]]


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
    table.record_pursuits([1] * 10, [False] * 10, [5] * 10)
    table.record_pursuits([1] * 4 + [TASK], [True] * 4 + [True], [5] * 5)
    table.record_pursuits(2, True, 5)
    assert table.pursuits.tolist() == [0, 14, 1]
    assert table.wins.tolist() == [0, 4, 1]
    assert table.pursuit_steps.tolist() == [0, 70, 5]
    np.testing.assert_allclose(table.success_rate, [0.0, 0.4, 1.0])


def test_tallies_of_pursuits_fade_by_hand():
    table = GoalTable(2)
    table.record_pursuits([0, TASK, 0, 0], [True, False, False, True], [4, 50, 10, 6])
    np.testing.assert_allclose(table.recent_pursuits, [1 + FADE + FADE**2, 0])
    np.testing.assert_allclose(table.recent_wins, [1 + FADE**2, 0])
    np.testing.assert_allclose(table.mean_length_of(np.array([0]))[0], (6 + 10 * FADE + 4 * FADE**2) / (1 + FADE + FADE**2))
    goals, task = table.mean_lengths
    assert goals == pytest.approx((6 + 10 * FADE_ALL + 4 * FADE_ALL**2) / (1 + FADE_ALL + FADE_ALL**2))
    assert task == 50
    assert table.successful_lengths(0).tolist() == table.all_successful_lengths.tolist() == [4, 6]
    table.forget_pursuits(np.array([0]))
    assert table.recent_pursuits[0] == table.mean_length_of(np.array([0]))[0] == 0
    assert table.pursuits[0] == 3


def test_success_at_the_task_is_that_of_its_last_pursuits():
    table = GoalTable(1)
    assert table.task_success == 0
    table.record_pursuits([TASK] * 4, [True, False, False, False], [9] * 4)
    assert table.task_success == 0.25
    table.record_pursuits([TASK] * RECENT_TASK, [True] * RECENT_TASK, [9] * RECENT_TASK)
    assert table.task_success == 1
    assert table.pursuits.sum() == 0  # the task is no goal of the table


def test_a_very_long_pursuit_is_told_as_the_longest_there_is_room_for():
    table = GoalTable(1)
    table.record_pursuits(0, True, 10**6)
    assert table.successful_lengths(0).tolist() == [32767]
    assert table.pursuit_steps[0] == 10**6


def test_an_and_goal_counts_from_its_creation_on():
    table = GoalTable(2)
    off, both = np.zeros((3, 2), bool), np.ones((3, 2), bool)
    observe(table, off, both)
    goal = table.add(0, 1)
    assert (table.count[goal], table.born[goal]) == (0, 3)
    observe(table, off, both)
    assert table.count[goal] == 3


def filled_table(rng):
    table = random_table(rng)
    bits = rng.random((51, 12)) < 0.5
    observe(table, bits[:-1], bits[1:], rng.random(50))
    table.record_pursuits([3, 3, 13, TASK], [True, False, True, True], [4, 5, 6, 7])
    return table


def assert_same(one, other):
    for name, value in one.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], value)


def test_state_survives_a_round_trip():
    table = filled_table(np.random.default_rng(0))
    other = GoalTable(12, 200)
    other.load_state_dict(table.state_dict())
    assert_same(table, other)
    assert other.add(0, 1) == table.add(0, 1)
    bits = np.random.default_rng(1).random((51, 12)) < 0.5
    for each in (table, other):
        observe(each, bits[:-1], bits[1:])
    assert_same(table, other)


def test_an_earlier_state_leaves_nothing_of_what_came_later():
    early = GoalTable(12, 200)
    table = filled_table(np.random.default_rng(0))
    table.load_state_dict(early.state_dict())
    for each in (table, early):
        each.add(each.add(0, 1), 2)
        each.add(3, 4)
    assert_same(table, early)


@pytest.mark.parametrize(("active", "on", "reward", "words"), [
    (np.zeros(2, int), np.zeros(2, bool), np.zeros(2), r"must both be \[n, L\]"),
    (np.zeros((2, 1), int), np.zeros((2, 2), bool), np.zeros(2), r"must both be \[n, L\]"),
    (np.full((2, 1), 4), np.zeros((2, 1), bool), np.zeros(2), "bit 4 is on, allowed are 0…3"),
    (np.array([[0], [-2]]), np.zeros((2, 1), bool), np.zeros(2), "bit -2 is on, allowed are 0…3"),
    (np.zeros((2, 1), int), np.ones((2, 1), bool), np.zeros(3), "one for each transition"),
    (np.zeros((2, 1), int), np.ones((2, 1), bool), np.array([0.0, np.nan]), "finite"),
])
def test_bad_bits_and_rewards_are_refused_in_words_and_change_nothing(active, on, reward, words):
    table = GoalTable(4)
    with pytest.raises(ValueError, match=words):
        table.observe(active, on, reward)
    assert table.transitions == 0
    assert table.count.sum() == 0


@pytest.mark.parametrize(("bits", "words"), [
    (np.zeros((2, 3)), "shape"), (np.zeros(4), "shape"), (np.full((2, 4), 2), "0 or 1"), (np.full((2, 4), np.nan), "0 or 1")])
def test_bits_that_are_none_are_refused_in_words(bits, words):
    with pytest.raises(ValueError, match=words):
        GoalTable(4).check_bits(bits)


def test_unknown_ids_and_foreign_state_are_refused():
    table = GoalTable(4)
    with pytest.raises(ValueError, match="unknown goal id 9"):
        table.members(9)
    with pytest.raises(ValueError, match="this one holds 6"):
        GoalTable(6).load_state_dict(table.state_dict())
