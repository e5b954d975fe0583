import numpy as np

from protogoal.goals.recombination import is_mastered, recombine
from protogoal.goals.table import GoalTable


def test_mastery_needs_ten_pursuits_and_more_than_kappa():
    pursuits = np.array([9, 10, 10, 50])
    success = np.array([1.0, 0.6, 0.7, 0.9])
    assert is_mastered(pursuits, success, 0.6, 10).tolist() == [False, False, True, True]


def test_pairs_are_drawn_in_proportion_to_success():
    success = np.array([1.0, 1.0, 0.1, 0.0])
    made = []
    for seed in range(2000):
        table = GoalTable(4, 10)
        made.append(table.members(recombine(table, np.arange(4), success, np.random.default_rng(seed))))
    share = made.count((0, 1)) / len(made)
    # first ∝ S, second ∝ S among the rest: P{0,1} = 2 · (1/2.1) · (1/1.1)
    assert abs(share - 2 / 2.1 / 1.1) < 0.03
    assert all(3 not in members for members in made)  # S = 0 is never drawn


def test_nothing_is_added_twice_or_from_a_single_goal():
    rng = np.random.default_rng(0)
    table = GoalTable(3, 10)
    assert recombine(table, np.array([1]), np.ones(3), rng) is None
    assert recombine(table, np.array([0, 1]), np.ones(3), rng) == 3
    assert recombine(table, np.array([0, 1]), np.ones(4), rng) is None
    assert table.size == 4
