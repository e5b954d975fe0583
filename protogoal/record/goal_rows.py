"""Which goals of a snapshot are worth a row: the evaluator's state of all goals → few changed rows.

A snapshot (goals/evaluator.py) has one array [G] per state column. Most goals hardly change between two refreshes.
A change is *material* where verdict, offered or mastered changed, the count grew by a quarter, or a value moved by
more than 0.05. Because every comparison is with what was last written, a goal that had to wait its turn still
differs at the next refresh, and comes then. Called by record/store.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from protogoal.goals.plausibility import Verdict
from protogoal.record.schema import FUNNEL, STATE

COUNT_FACTOR = 1.25
VALUE_STEP = 0.05

Snapshot = dict[str, npt.NDArray[Any]]
Mask = npt.NDArray[np.bool_]

_VALUES = ("reward_mean", "success", "chance", "events", "nats", "p", "seek_max", "seek_mean", "avoid_mean")
_MATERIAL = ("reward_mean", "success", "chance", "nats", "seek_max", "seek_mean", "avoid_mean")
_SWITCHES = ("verdict", "offered", "mastered")
# What is not known before there is any of what it rests on: told as unknown, so goals nobody has met cost no row.
_RESTS_ON = {("reward_mean",): "count", ("success", "chance"): "pursuits", ("events", "nats", "p"): "events"}


def as_snapshot(arrays: Mapping[str, Any]) -> Snapshot:
    """The arrays of a snapshot, checked: every state column present, one dimension, one length G; unknown is NaN."""
    missing = [name for name in STATE if name not in arrays]
    if missing:
        raise ValueError(f"the snapshot lacks {', '.join(missing)}; it needs {', '.join(STATE)}")
    snapshot: Snapshot = {
        name: np.asarray(arrays[name]).astype(np.float64 if name in _VALUES else np.int64) for name in STATE
    }
    size = snapshot["count"].shape
    for name, array in snapshot.items():
        if array.ndim != 1 or array.shape != size:
            raise ValueError(f"snapshot[{name!r}] has shape {array.shape}, expected one dimension like count {size}")
    for names, evidence in _RESTS_ON.items():
        nothing = ~(snapshot[evidence] > 0)
        for name in names:
            snapshot[name][nothing] = np.nan
    return snapshot


def observed(snapshot: Snapshot) -> Mask:
    """Goals that were ever on; a static one was never turned on, so its count is 0. bool[G]"""
    return np.asarray((snapshot["count"] > 0) | (snapshot["verdict"] == Verdict.STATIC))


def untouched(size: int) -> Snapshot:
    """The state of `size` goals nobody has seen yet: what an absent row means."""
    snapshot: Snapshot = {
        name: np.full(size, np.nan) if name in _VALUES else np.zeros(size, np.int64) for name in STATE
    }
    snapshot["bucket"] -= 1
    return snapshot


def grown(snapshot: Snapshot, size: int) -> Snapshot:
    """A copy of the snapshot with untouched goals appended up to `size` (or cut to it)."""
    rest = untouched(max(0, size - snapshot["count"].size))
    return {name: np.concatenate([array[:size], rest[name]]) for name, array in snapshot.items()}


def _differs(a: npt.NDArray[Any], b: npt.NDArray[Any], by: float = 0.0) -> Mask:
    """|a − b| > by, where NaN equals NaN and nothing else. bool[G]"""
    a_unknown, b_unknown = np.isnan(a), np.isnan(b)
    with np.errstate(invalid="ignore"):
        moved = np.abs(a - b) > by  # False where either is NaN
    return np.asarray((a_unknown != b_unknown) | moved)


def switched(new: Snapshot, old: Snapshot) -> Mask:
    """Goals whose verdict, offered or mastered is another. bool[G]"""
    return np.asarray(np.logical_or.reduce([new[name] != old[name] for name in _SWITCHES]))


def material(new: Snapshot, old: Snapshot) -> Mask:
    """Goals whose change is worth a row of history. bool[G]"""
    count, before = new["count"], old["count"]
    grew = (count != before) & ((count >= COUNT_FACTOR * before) | (count < before))
    moved = [_differs(new[name], old[name], VALUE_STEP) for name in _MATERIAL]
    return np.asarray(np.logical_or.reduce([switched(new, old), grew, *moved]))


def changed(new: Snapshot, old: Snapshot) -> Mask:
    """Goals with any change at all. bool[G]"""
    whole = [new[name] != old[name] for name in STATE if name not in _VALUES]
    return np.asarray(np.logical_or.reduce([*whole, *(_differs(new[name], old[name]) for name in _VALUES)]))


def most_urgent(new: Snapshot, old: Snapshot, waiting: Mask, limit: int, turn: int) -> npt.NDArray[np.int64]:
    """At most `limit` of the `waiting` goals: switched first, then material, then the rest in turns. ids [≤limit]"""
    ids = np.flatnonzero(waiting)
    if ids.size <= limit:
        return ids
    urgency = 2 * switched(new, old)[ids] + material(new, old)[ids]
    # Inside one urgency the start moves from refresh to refresh, so that no goal waits for ever.
    place = (ids - turn * limit) % waiting.size
    order = np.lexsort((place, -urgency))
    return np.sort(ids[order[:limit]])


def rows(snapshot: Snapshot, ids: npt.NDArray[np.int64]) -> Iterator[tuple[Any, ...]]:
    """The state columns of `ids` as tuples of numbers, in the order of STATE; NaN becomes NULL in SQLite."""
    return zip(*(snapshot[name][ids].tolist() for name in STATE), strict=True)


def funnel(snapshot: Snapshot) -> dict[str, int]:
    """How many goals reach each stage: declared → observed → controllable → plausible → offered → mastered.

    `undecided` stands by itself: observed, and nothing is known of them yet. What is not reached counts as controllable
    by our rule; the paper's asks first whether a goal is reached.
    """
    verdict = snapshot["verdict"]
    is_in_vain = (verdict == Verdict.UNREACHED) & np.isnan(snapshot["seek_max"])
    stages = (
        verdict.size,
        int(observed(snapshot).sum()),
        int((verdict == Verdict.UNDECIDED).sum()),
        int(((verdict == Verdict.PLAUSIBLE) | is_in_vain).sum()),
        int((verdict == Verdict.PLAUSIBLE).sum()),
        int(snapshot["offered"].sum()),
        int(snapshot["mastered"].sum()),
    )
    return dict(zip(FUNNEL, stages, strict=True))
