"""Which goal to pursue now (paper §5.1, Algorithm 2): timescale buckets, novelty, local reachability.

with probability p_task: the task;   else a bucket uniformly, m goals of it ∝ 1/√N, and of these argmax_g V_θ(s_t, g)

Acting code calls `select` for the environments that need a new goal, with the `GoalSet` that the evaluator published. What
comes after "else" is one strategy of several; the others are in `strategies`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.goal_set import GoalSet, Ints, make_goal_set, timescale_buckets
from protogoal.goals.strategies import ALTERNATIVES, Choice, Strategy, Values, wanted
from protogoal.goals.table import TASK, attained_by

__all__ = ["STRATEGIES", "GoalSet", "Values", "draw_candidates", "make_goal_set", "select", "timescale_buckets"]


def draw_candidates(goals: GoalSet, n: int, m: int, rng: np.random.Generator) -> Ints:
    """For each of n states a bucket uniformly and m goals of it with replacement ∝ 1/√N → positions in the set [n, m]."""
    edges = np.flatnonzero(np.diff(goals.bucket, prepend=-1, append=goals.bucket[-1] + 1))  # first position of each bucket, and k
    cumulative = np.concatenate([[0.0], np.cumsum(goals.novelty)])
    b = rng.integers(len(edges) - 1, size=n)
    low, high = cumulative[edges[b]], cumulative[edges[b + 1]]  # [n]
    points = low[:, None] + rng.random((n, m)) * (high - low)[:, None]
    positions = np.searchsorted(cumulative, points, side="right") - 1
    clipped: Ints = np.clip(positions, edges[b][:, None], edges[b + 1][:, None] - 1)
    return clipped


def choose_reachable(
    goals: GoalSet, values: Values, rows: Ints, bits: NDArray[np.bool_], m: int, rng: np.random.Generator
) -> Choice:
    """The paper's rule: of m candidates of one bucket the one with the largest V(s, g)."""
    candidates = draw_candidates(goals, len(rows), m, rng)  # [n, m]
    attained = np.take_along_axis(attained_by(bits, goals.members), candidates, 1)
    value = np.where(attained, -np.inf, values(rows, candidates))
    best = value.argmax(1)[:, None]
    return np.take_along_axis(candidates, best, 1)[:, 0], np.take_along_axis(value, best, 1)[:, 0]


STRATEGIES: dict[str, Strategy] = {"paper": Strategy(choose_reachable, utility=wanted)} | ALTERNATIVES


def select(
    goals: GoalSet,
    values: Values,
    bits: NDArray[np.bool_],
    rng: np.random.Generator,
    *,
    num_candidates: int = 5,
    p_task: float = 0.1,
    value_floor: float = 0.0,
    redraws: int = 0,
) -> Ints:
    """Algorithm 2 for n states at once: goal ids [n], TASK where the task is to be followed.

    bits [n, B] are the states' own: a goal attained where the agent stands is not offered. If all m candidates are
    attained, or the goal set is empty, the task is followed.

    # DEVIATION(D4): where the best candidate's value lies below `value_floor`, another bucket is drawn, up to `redraws`
    # times: fewer pursuits of what cannot be reached from here. 0 redraws is the paper's rule.
    """
    n = len(bits)
    chosen = np.full(n, TASK, np.int64)
    if len(goals) == 0:
        return chosen
    choose = STRATEGIES[goals.strategy].choose
    rows = np.flatnonzero(rng.random(n) >= p_task)
    for attempt in range(redraws + 1):
        if len(rows) == 0:
            break
        position, value = choose(goals, values, rows, bits[rows], num_candidates, rng)
        # a redraw that finds nothing better than nothing keeps the earlier choice
        chosen[rows] = np.where(value > -np.inf, goals.ids[position], chosen[rows])
        rows = rows[value < value_floor] if attempt < redraws else rows[:0]
    return chosen
