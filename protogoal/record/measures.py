"""What a picture of goals can show of each: how often it was attained, how well it is pursued, what is thought of it.

A measure turns the state of goals (queries.goals_at) into one number a goal, NaN where there is none to show, with a
range and the words for it. Used by the inspector's and the report's pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protogoal.record import terms
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
    low: float = 0.0
    high: float | None = None  # None: the largest of the data, at least 1
    logarithmic: bool = False


@dataclass(frozen=True)
class CellMap:
    """The observed goals of one kind on their grid; cells without one were never observed."""

    kind: str
    rows: int
    cols: int
    goals: Curve

    def cells(self, measure: Measure) -> Floats:
        """The measure of each cell, [rows, cols]; NaN, or verdict 0, where no goal was observed."""
        grid = np.full((self.rows, self.cols), 0.0 if measure.key == "verdict" else np.nan)
        grid[self.goals["row"].astype(int), self.goals["col"].astype(int)] = measure.of(self.goals)
        return grid


MEASURES: dict[str, Measure] = {measure.key: measure for measure in (
    Measure("verdict", "verdict", "the evaluator's verdict",
            lambda g: g["verdict"], lambda v: terms.verdict_words(int(v or 0)), 0, 6),
    Measure("count", "count", "how often it was attained",
            lambda g: np.where(g["count"] > 0, g["count"], np.nan), terms.whole, logarithmic=True),
    Measure("success", "success", "success of its last pursuits", lambda g: g["success"], terms.percent, 0, 1),
    Measure("control", "control", "what the action before it tells about it, in nats (by the paper's rule: mean V_seek + V_avoid)",
            lambda g: np.where(g["events"] > 0, g["nats"], g["seek_mean"] + g["avoid_mean"]), terms.decimal, 0),
)}
