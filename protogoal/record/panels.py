"""One goal's history as panels of lines, one above the other: what pursuits did, and what decided besides.

The same for the inspector and the report, which draw them each in their own way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.plausibility import LEAST_NATS
from protogoal.record.palette import BLUE, GREY, ORANGE, SKY
from protogoal.record.queries import Curve
from protogoal.record.run_facts import RunFacts

Floats = NDArray[np.float64]
DASHED, DOTTED = "7px,4px", "2px,3px"


@dataclass(frozen=True)
class Line:
    """One number of the goal over time."""

    name: str
    values: Floats  # [T], NaN where it was not known
    colour: str
    dash: str = ""
    level: float | None = None  # what it must exceed


@dataclass(frozen=True)
class Panel:
    """Lines on one axis, from 0 to `top`."""

    lines: tuple[Line, ...]
    top: float = 1.0
    is_share: bool = False  # shown in percent


def panels(history: Curve, facts: RunFacts) -> list[Panel]:
    """Success beside chance, and nats; where the paper's rule judges, V_seek and control in their place."""
    success = Line("success", history["success"], ORANGE)
    if facts.thresholds:
        reach, control = facts.thresholds
        return [Panel((success,), is_share=True), Panel((
            Line("V_seek, largest", history["seek_max"], SKY, level=reach),
            Line("control", history["seek_mean"] + history["avoid_mean"], BLUE, DASHED, level=control)))]
    nats = Line("nats", history["nats"], BLUE, level=LEAST_NATS)
    top = max(0.5, 1.05 * float(np.nanmax(history["nats"], initial=0.0)))
    return [Panel((success, Line("chance", history["chance"], GREY, DOTTED)), is_share=True), Panel((nats,), top)]
