"""What the evaluator publishes: an immutable set of goals, in timescale buckets (paper §5.1).

It has a version, so that actors on other machines can hold it. `ProtoGoalEvaluator.refresh` makes one; `selection.select`
chooses from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.desirability import novelty

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GoalSet:
    """The goals on offer, ordered by bucket; arrays are read-only. An empty set means: nothing to pursue yet."""

    version: int
    ids: Ints  # [k] of the goal table, each once
    novelty: Floats  # [k] 1/√N(g)
    timescale: Floats  # [k] h(g)
    bucket: Ints  # [k] 0 (slow or far) … k−1 (quick), ascending
    members: NDArray[np.int32]  # [k, L] bits of each goal, padded with −1
    strategy: str = "paper"  # how to choose from it, a name of `selection.STRATEGIES`
    weight: Floats = field(default_factory=lambda: np.empty(0))  # [k] of that strategy; the paper's rule has none

    def __post_init__(self) -> None:
        for array in (self.ids, self.novelty, self.timescale, self.bucket, self.members, self.weight):
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
    version: int,
    ids: Ints,
    count: Ints,
    timescale: Floats,
    members: NDArray[np.int32],
    num_buckets: int,
    strategy: str = "paper",
    weight: Floats | None = None,
) -> GoalSet:
    """A goal set of the given goals; `count`, `timescale`, `members` and the strategy's `weight` are theirs, [k]."""
    bucket = timescale_buckets(timescale, num_buckets)
    order = np.argsort(bucket, kind="stable")
    longest = max(1, int((members >= 0).sum(1).max(initial=1)))
    return GoalSet(version, ids[order], novelty(count[order]), timescale[order], bucket[order], members[order][:, :longest].copy(),
                   strategy, np.empty(0) if weight is None else weight[order])
