"""Which goals of a snapshot are worth a row: the evaluator's state of observed goals → few changed rows.

A snapshot (goals/evaluator.py) has the ids of the goals that are told of, and one array [O] per state column beside them; how
many are declared is a number. Most goals hardly change between two refreshes.
A change is *material* where verdict, offered or mastered changed, the count grew by a quarter, or a value moved by
more than 0.05. Because every comparison is with what was last written, a goal that had to wait its turn still
differs at the next refresh, and comes then. Called by record/store.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from protogoal.goals.plausibility import Verdict
from protogoal.record.schema import FUNNEL, STATE

COUNT_FACTOR = 1.25
VALUE_STEP = 0.05

State = dict[str, npt.NDArray[Any]]
Mask = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.int64]

_VALUES = ("reward_mean", "success", "chance", "events", "nats", "p", "seek_max", "seek_mean", "avoid_mean")
_MATERIAL = ("reward_mean", "success", "chance", "nats", "seek_max", "seek_mean", "avoid_mean")
_SWITCHES = ("verdict", "offered", "mastered")
# What is not known before there is any of what it rests on: told as unknown, so goals nobody has met cost no row.
_RESTS_ON = {("reward_mean",): "count", ("success", "chance"): "pursuits", ("events", "nats", "p"): "events"}


@dataclass(frozen=True)
class Snapshot:
    """The goals told of, their state beside them, and how many there are of those that are not."""

    ids: Ids  # [O], ascending
    state: State  # [O] each
    declared: int
    plausible: int  # of all declared
    grid: tuple[int, int] | None = None  # rows and columns that cells lie on

    @staticmethod
    def of(arrays: Mapping[str, Any]) -> Snapshot:
        """The evaluator's snapshot, checked: every state column present, of one length, unknown is NaN; ids ascend."""
        missing = [name for name in ("id", *STATE, "declared") if name not in arrays]
        if missing:
            raise ValueError(f"the snapshot lacks {', '.join(missing)}; it needs id, {', '.join(STATE)}, declared")
        ids, declared = np.asarray(arrays["id"]).astype(np.int64), int(arrays["declared"])
        state = {name: np.asarray(arrays[name]).astype(np.float64 if name in _VALUES else np.int64) for name in STATE}
        for name, array in state.items():
            if array.ndim != 1 or array.shape != ids.shape:
                raise ValueError(f"snapshot[{name!r}] has shape {array.shape}, expected one dimension like id {ids.shape}")
        if (np.diff(ids) <= 0).any() or (ids.size and not 0 <= ids[0] <= ids[-1] < declared):
            raise ValueError(f"snapshot['id'] must ascend and lie in 0…{declared - 1}, the goals declared")
        for names, evidence in _RESTS_ON.items():
            nothing = ~(state[evidence] > 0)
            for name in names:
                state[name][nothing] = np.nan
        plausible = int((state["verdict"] == Verdict.PLAUSIBLE).sum())
        return Snapshot(ids, state, declared, int(arrays.get("plausible", plausible)), arrays.get("grid"))

    @property
    def observed(self) -> Mask:
        """Goals that were ever on; a static one was never turned on, so its count is 0. bool[O]"""
        return np.asarray((self.state["count"] > 0) | (self.state["verdict"] == Verdict.STATIC))

    def of_goals(self, ids: Ids) -> State:
        """The state of other ids, ascending: as told here, or untouched. [n]"""
        return moved(self.state, self.ids, ids)

    def funnel(self) -> dict[str, int]:
        """How many goals reach each stage: declared → observed → controllable → plausible → offered → mastered.

        `undecided` stands by itself: observed, and nothing is known of them yet. What is not reached counts as controllable
        by our rule; the paper's asks first whether a goal is reached.
        """
        verdict = self.state["verdict"]
        is_in_vain = (verdict == Verdict.UNREACHED) & np.isnan(self.state["seek_max"])
        stages = (
            self.declared,
            int(self.observed.sum()),
            int((verdict == Verdict.UNDECIDED).sum()),
            self.plausible + int(is_in_vain.sum()),
            self.plausible,
            int(self.state["offered"].sum()),
            int(self.state["mastered"].sum()),
        )
        return dict(zip(FUNNEL, stages, strict=True))


def untouched(size: int) -> State:
    """The state of `size` goals nobody has seen yet: what an absent row means."""
    state: State = {name: np.full(size, np.nan) if name in _VALUES else np.zeros(size, np.int64) for name in STATE}
    state["bucket"] -= 1
    return state


def moved(state: State, ids: Ids, to: Ids) -> State:
    """The state of the goals `to`, given that of `ids`; both ascend, and what is not among `ids` is untouched. [n]"""
    place = np.searchsorted(ids, to)
    known = place < ids.size
    known[known] = ids[place[known]] == to[known]
    result = untouched(to.size)
    for name, array in state.items():
        result[name][known] = array[place[known]]
    return result


def _differs(a: npt.NDArray[Any], b: npt.NDArray[Any], by: float = 0.0) -> Mask:
    """|a − b| > by, where NaN equals NaN and nothing else. bool[O]"""
    a_unknown, b_unknown = np.isnan(a), np.isnan(b)
    with np.errstate(invalid="ignore"):
        is_far = np.abs(a - b) > by  # False where either is NaN
    return np.asarray((a_unknown != b_unknown) | is_far)


def switched(new: State, old: State) -> Mask:
    """Goals whose verdict, offered or mastered is another. bool[O]"""
    return np.asarray(np.logical_or.reduce([new[name] != old[name] for name in _SWITCHES]))


def material(new: State, old: State) -> Mask:
    """Goals whose change is worth a row of history. bool[O]"""
    count, before = new["count"], old["count"]
    grew = (count != before) & ((count >= COUNT_FACTOR * before) | (count < before))
    far = [_differs(new[name], old[name], VALUE_STEP) for name in _MATERIAL]
    return np.asarray(np.logical_or.reduce([switched(new, old), grew, *far]))


def changed(new: State, old: State) -> Mask:
    """Goals with any change at all. bool[O]"""
    whole = [new[name] != old[name] for name in STATE if name not in _VALUES]
    return np.asarray(np.logical_or.reduce([*whole, *(_differs(new[name], old[name]) for name in _VALUES)]))


def most_urgent(new: State, old: State, waiting: Mask, limit: int, turn: int) -> npt.NDArray[np.int64]:
    """At most `limit` of the `waiting` goals: switched first, then material, then the rest in turns. places [≤limit]"""
    places = np.flatnonzero(waiting)
    if places.size <= limit:
        return places
    urgency = 2 * switched(new, old)[places] + material(new, old)[places]
    # Inside one urgency the start moves from refresh to refresh, so that no goal waits for ever.
    shifted = (places - turn * limit) % waiting.size
    order = np.lexsort((shifted, -urgency))
    return np.sort(places[order[:limit]])


def rows(state: State, places: npt.NDArray[np.int64]) -> Iterator[tuple[Any, ...]]:
    """The state columns at `places` as tuples of numbers, in the order of STATE; NaN becomes NULL in SQLite."""
    return zip(*(state[name][places].tolist() for name in STATE), strict=True)
