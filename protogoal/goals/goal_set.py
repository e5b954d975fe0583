"""What the evaluator publishes: an immutable set of goals, in timescale buckets (paper §5.1), with the whole rule of choosing.

It has a version, so that actors on other machines can hold it. `ProtoGoalEvaluator.refresh` makes one; `selection.select`
chooses from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.stored import stored_array, stored_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GoalSet:
    """The goals on offer, ordered by bucket; arrays are read-only. An empty set means: nothing to pursue yet."""

    version: int
    ids: Ints  # [k] of the goal table, each once
    members: NDArray[np.int32]  # [k, L] bits of each goal, padded with −1
    slots: NDArray[np.int32]  # [k, L] the network's rows for them
    novelty: Floats  # [k] 1/√N(g)
    competence: Floats  # [k] what pursuits say of its success, in (0, 1]
    desirability: Floats  # [k] u(g) by which it was drawn
    timescale: Floats  # [k] h(g)
    bucket: Ints  # [k] 0 (slow or far) … k−1 (quick), ascending
    verdict: NDArray[np.int8]  # [k]
    share: Floats  # [k] of the choices that goals of its verdict have together, where any of them can be chosen
    limit: Ints  # [k] steps after which a pursuit is given up; 0: only with the episode
    strategy: str = "product"  # how to choose from it, a name of `strategies.STRATEGIES`
    p_task: float = 0.1  # probability of following the task instead
    num_candidates: int = 5  # of the paper's strategy

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.ids)

    @staticmethod
    def empty(version: int = 0, p_task: float = 0.1) -> GoalSet:
        nothing, none = np.empty(0), np.empty(0, np.int64)
        no_bits = np.empty((0, 1), np.int32)
        return GoalSet(version, none, no_bits, no_bits.copy(), nothing, nothing, nothing, nothing, none, none.astype(np.int8),
                       nothing, none, p_task=p_task)

    def in_buckets(self, num_buckets: int) -> GoalSet:
        """The same goals, put into buckets by their timescale and ordered by them."""
        bucket = timescale_buckets(self.timescale, num_buckets)
        order = np.argsort(bucket, kind="stable")
        arrays: dict[str, Any] = {name: value[order] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays | {"bucket": bucket[order]})

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @staticmethod
    def from_state(state: Mapping[str, Any], num_goals: int, num_bits: int, num_slots: int) -> GoalSet:
        """The inverse of `state_dict`; a ValueError where an id, a bit, a slot or a bucket is none."""
        k = len(state["ids"])
        most = {"ids": num_goals - 1, "bucket": max(0, k - 1), "members": num_bits - 1, "slots": num_slots - 1}
        least = {"members": -1, "slots": -1, "timescale": None}
        parts: dict[str, Any] = {}
        for name, own in vars(GoalSet.empty()).items():
            value = state[name]
            if isinstance(own, np.ndarray):
                shape = (k, None) if own.ndim == 2 else (k,)
                array = stored_array(value, f"goal {name}", shape, own.dtype.kind, least.get(name, 0), most.get(name))
                parts[name] = array.astype(own.dtype)
            elif isinstance(own, int):
                parts[name] = stored_number(value, f"goal {name}")
            elif isinstance(value, type(own)):
                parts[name] = value
            else:
                raise ValueError(f"stored goal {name} is {str(value)[:40]}; it must be {type(own).__name__}")
        if (np.diff(parts["bucket"]) < 0).any() or parts["slots"].shape != parts["members"].shape:
            raise ValueError("stored goal buckets are not in order, or its slots are not those of its members")
        return GoalSet(**parts)


def timescale_buckets(timescale: Floats, num_buckets: int) -> Ints:
    """Quantile buckets of h(g) → bucket of each goal, [k]; sizes differ by at most one.

    A goal without an estimate (NaN) counts as the slowest. Fewer goals than buckets: one each.
    """
    h = np.where(np.isnan(timescale), -np.inf, timescale)
    bucket = np.empty(len(h), np.int64)
    for b, part in enumerate(np.array_split(np.argsort(h, kind="stable"), max(1, min(num_buckets, len(h))))):
        bucket[part] = b
    return bucket
