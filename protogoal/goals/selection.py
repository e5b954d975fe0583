"""Which goal to pursue now (paper §5.1, Algorithm 2): the task with probability p_task, else a goal by the set's strategy.

Acting code calls `select` for the environments that need a new goal, with the `GoalSet` that the evaluator published; the
set carries the whole rule. Strategies are in `strategies`, the paper's among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.goal_set import GoalSet, Ints
from protogoal.goals.strategies import STRATEGIES, Values
from protogoal.goals.table import TASK, attained_in


def select(goals: GoalSet, values: Values, active: NDArray[np.integer[Any]], rng: np.random.Generator) -> Ints:
    """The goal to pursue in each of n states → ids [n], TASK where the task is to be followed.

    active [n, L] are ids of the states' own bits, padded with −1: a goal attained where the agent stands is not offered. If
    nothing is left, or the goal set is empty, the task is followed.
    """
    n = len(active)
    chosen = np.full(n, TASK, np.int64)
    if len(goals) == 0:
        return chosen
    rows = np.flatnonzero(rng.random(n) >= goals.p_task)
    if len(rows):
        position, is_found = STRATEGIES[goals.strategy].choose(goals, values, rows, attained_in(active[rows], goals.members), rng)
        chosen[rows] = np.where(is_found, goals.ids[position], TASK)
    return chosen
