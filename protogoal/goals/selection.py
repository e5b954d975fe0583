"""Which goal to pursue now (paper §5.1, Algorithm 2): timescale buckets, novelty, local reachability.

with probability p_task: the task;   else a bucket uniformly, m goals of it ∝ 1/√N, and of these argmax_g V_θ(s_t, g)

A `GoalSet` is what the evaluator publishes: immutable, with a version, so that actors on other machines can hold it.
Acting code calls `select` for the environments that need a new goal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.table import TASK, attained_by

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Values = Callable[[Ints, Ints], Floats]
"""V(rows [n], positions [n, m]) → [n, m]: values of goals, as positions in the goal set, in the states of those rows."""


@dataclass(frozen=True)
class GoalSet:
    """The goals on offer, ordered by bucket; arrays are read-only. An empty set means: nothing to pursue yet."""

    version: int
    ids: Ints  # [k] of the goal table, each once
    novelty: Floats  # [k] 1/√N(g)
    timescale: Floats  # [k] h(g)
    bucket: Ints  # [k] 0 (slow or far) … k−1 (quick), ascending
    members: NDArray[np.int32]  # [k, L] bits of each goal, padded with −1

    def __post_init__(self) -> None:
        for array in (self.ids, self.novelty, self.timescale, self.bucket, self.members):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.ids)

    @staticmethod
    def empty(version: int = 0, max_members: int = 1) -> GoalSet:
        nothing = np.empty(0, np.int64)
        return GoalSet(version, nothing, np.empty(0), np.empty(0), nothing.copy(), np.empty((0, max_members), np.int32))


def timescale_buckets(timescale: Floats, num_buckets: int) -> Ints:
    """Quantile buckets of h(g) → bucket of each goal, [k]; sizes differ by at most one.

    A goal without an estimate (NaN: not attained in the batch) counts as the slowest. Fewer goals than buckets: one each.
    """
    h = np.where(np.isnan(timescale), -np.inf, timescale)
    bucket = np.empty(len(h), np.int64)
    for b, part in enumerate(np.array_split(np.argsort(h, kind="stable"), max(1, min(num_buckets, len(h))))):
        bucket[part] = b
    return bucket


def make_goal_set(
    version: int, ids: Ints, count: Ints, timescale: Floats, members: NDArray[np.int32], num_buckets: int
) -> GoalSet:
    """A goal set of the given goals; `count`, `timescale`, `members` are theirs, [k]."""
    bucket = timescale_buckets(timescale, num_buckets)
    order = np.argsort(bucket, kind="stable")
    longest = max(1, int((members >= 0).sum(1).max(initial=1)))
    novelty = 1.0 / np.sqrt(np.maximum(count, 1))
    return GoalSet(version, ids[order], novelty[order], timescale[order], bucket[order], members[order][:, :longest].copy())


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
    rows = np.flatnonzero(rng.random(n) >= p_task)
    for attempt in range(redraws + 1):
        if len(rows) == 0:
            break
        candidates = draw_candidates(goals, len(rows), num_candidates, rng)  # [n', m]
        attained = np.take_along_axis(attained_by(bits[rows], goals.members), candidates, 1)
        value = np.where(attained, -np.inf, values(rows, candidates))
        best = value.argmax(1)[:, None]
        best_value = np.take_along_axis(value, best, 1)[:, 0]
        offered = best_value > -np.inf
        ids = goals.ids[np.take_along_axis(candidates, best, 1)[:, 0]]
        # a redraw that finds nothing better than nothing keeps the earlier choice
        chosen[rows] = np.where(offered, ids, chosen[rows])
        rows = rows[best_value < value_floor] if attempt < redraws else rows[:0]
    return chosen
