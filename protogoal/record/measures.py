"""What a picture of goals can show of each: how often it was attained, how well it is pursued, what is thought of it.

A measure turns the state of goals (queries.goals_at) into one number a goal, NaN where there is none to show, with a
range and the words for it. Used by the inspector's and the report's pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protogoal.record import words
from protogoal.record.queries import Curve

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """One number a goal."""

    key: str
    label: str  # on a button
    title: str  # in a sentence
    of: Callable[[Curve], Floats]
    show: Callable[[float | None], str]
    low: float | None = None  # fixed range, or None: that of the data
    high: float | None = None
    logarithmic: bool = False


def _where(value: Floats, known: NDArray[np.bool_]) -> Floats:
    return np.where(known, value, np.nan)


MEASURES: dict[str, Measure] = {measure.key: measure for measure in (
    Measure("verdict", "verdict", "the evaluator's verdict",
            lambda g: g["verdict"], lambda v: words.verdict_words(int(v or 0)), 0, 4),
    Measure("count", "count", "how often it was attained",
            lambda g: _where(g["count"], g["count"] > 0), words.whole, logarithmic=True),
    Measure("success", "success", "success of its last pursuits",
            lambda g: _where(g["success"], g["pursuits"] > 0), words.percent, 0, 1),
    Measure("seek", "V_seek", "largest V_seek", lambda g: g["seek_max"], words.decimal, 0, 1),
    Measure("control", "control", "mean V_seek + V_avoid",
            lambda g: g["seek_mean"] + g["avoid_mean"], words.decimal, 0, 1),
)}
