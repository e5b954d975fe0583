"""Mastery and recombination (paper §5.3, Algorithm 5): what is mastered is joined by AND into new proto-goals.

mastered(g) = pursued at least 10 times ∧ S(g) > κ;   two different mastered goals are drawn ∝ S(g).

Called by `ProtoGoalEvaluator.refresh`; the new goals face the plausibility test like any other from the next refresh on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.table import GoalTable


def is_mastered(
    pursuits: NDArray[np.int64], success_rate: NDArray[np.float64], threshold: float, min_pursuits: int
) -> NDArray[np.bool_]:
    """pursuits ≥ min_pursuits ∧ S > κ, [G].

    # DEVIATION(D2): Algorithm 5 writes N(g) ≥ 10 with N the attainment count; a success ratio over 10 pursuits needs 10
    # pursuits, so pursuits are counted.
    """
    return (pursuits >= min_pursuits) & (success_rate > threshold)


def recombine(
    table: GoalTable, candidates: NDArray[np.int64], success_rate: NDArray[np.float64], rng: np.random.Generator
) -> int | None:
    """Draw two different goals of `candidates` ∝ S and add their AND: the id of the goal if it is new, else None."""
    weights = success_rate[candidates]
    if len(candidates) < 2 or np.count_nonzero(weights) < 2:
        return None
    first, second = rng.choice(candidates, 2, replace=False, p=weights / weights.sum())
    size = table.size
    goal = table.add(int(first), int(second))
    return goal if goal is not None and goal >= size else None
