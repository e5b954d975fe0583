"""Which goal to pursue now (paper §5.1, Algorithm 2): the task with probability p_task, else a goal by the set's strategy.

Whoever acts calls `select` where a new goal is needed, with the `GoalSet` that the evaluator published; the set carries the
whole rule. Strategies are in `strategies`, the paper's among them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from protogoal.goals.active import sparse_bits
from protogoal.goals.goal_set import GoalSet, Ints
from protogoal.goals.strategies import STRATEGIES, Values
from protogoal.goals.table import TASK, attained_in


def select(goals: GoalSet, values: Values | ArrayLike, bits: ArrayLike, rng: np.random.Generator) -> Ints:
    """The goal to pursue in each of n states → ids [n], TASK (−1) where the task is to be followed.

    `values` is V(s, g) for every goal on offer, [n, k], or a function that gives it where it is asked, see
    `strategies.Values`. `bits` are the states' own, [n, B], or ids of those that are on, [n, L], padded with −1: a goal attained
    where the agent stands is not offered. If nothing is left, or the goal set is empty, the task is followed.
    """
    active = np.asarray(bits)
    if active.ndim != 2 or active.dtype.kind not in "bi":
        raise ValueError(f"bits must be true or false [n, B], or ids [n, L]; got {active.dtype} of shape {active.shape}")
    active = sparse_bits(active) if active.dtype.kind == "b" else active
    n = len(active)
    chosen = np.full(n, TASK, np.int64)
    if len(goals) == 0:
        return chosen
    rows = np.flatnonzero(rng.random(n) >= goals.p_task)
    if len(rows):
        attained = attained_in(active[rows], goals.members)
        position, is_found = STRATEGIES[goals.strategy](goals, _lookup(values, n, len(goals)), rows, attained, rng)
        chosen[rows] = np.where(is_found, goals.ids[position], TASK)
    return chosen


def _lookup(values: Values | ArrayLike, n: int, k: int) -> Values:
    """Values [n, k] as a function of rows and positions."""
    if callable(values):
        return values
    matrix = np.asarray(values, np.float64)
    if matrix.shape != (n, k):
        raise ValueError(f"values must have a row for each of the {n} states and a column for each of the {k} goals on offer; "
                         f"got shape {matrix.shape}")
    return lambda rows, positions: np.take_along_axis(matrix[rows], positions, 1)
