"""Other ways to choose goals than the paper's, behind one small interface, for comparison.

A strategy says three things: how much a plausible goal is wanted in the draw of the K that are offered (`utility`), the
weight that is published with each of them (`weight`), and how a state chooses among them (`choose`).

    paper     u = R + 1/√N;   a bucket uniformly, m of it ∝ 1/√N, then argmax V(s, g)     (paper §4.2, §5.1: selection.py)
    uniform   u = 1;          P(g) = 1/k
    product   u = R + 1/√N;   P(g | s) ∝ 1/√N(g) · (clip(V(s, g), 0, 1) + ε)               novelty × reachability
    progress  u = LP + ε;     P(g) ∝ LP(g) + ε,   LP = |S over the last 5 pursuits − S over the 5 before|

`PGESettings.strategy` names one. To add one, add a row to `ALTERNATIVES` and its name to `StrategyName`.
`selection.select` calls `choose`; the evaluator calls the other two at each refresh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.desirability import desirability, novelty
from protogoal.goals.goal_set import Floats, GoalSet, Ints
from protogoal.goals.table import GoalTable, attained_by

Bools = NDArray[np.bool_]

StrategyName = Literal["paper", "uniform", "product", "progress"]

Values = Callable[[Ints, Ints], Floats]
"""V(rows [n], positions [n, m]) → [n, m]: values of goals, as positions in the goal set, in the states of those rows."""

Choice = tuple[Ints, Floats]
"""Positions in the goal set [n], and how good each choice is [n]: −∞ where nothing can be offered."""

PROGRESS_FLOOR = 0.1  # what stands still now may move later
VALUE_FLOOR = 0.01  # a goal whose value is not learned yet keeps this much


@dataclass(frozen=True)
class Strategy:
    """One way to choose goals."""

    choose: Callable[[GoalSet, Values, Ints, Bools, int, np.random.Generator], Choice]
    """(goals, values, rows [n], bits [n, B] of their states, m, rng) → `Choice`; attained goals are not offered."""
    utility: Callable[[GoalTable], Floats]
    """The weight of every goal of the table in the draw of K, [G]."""
    weight: Callable[[GoalTable], Floats] | None = None
    """What is published with each goal on offer, [G]; None where `choose` needs nothing."""


def wanted(table: GoalTable) -> Floats:
    """u(g) = R(g) + 1/√N(g), [G]."""
    return desirability(table.count, table.reward_mean)


def choose_weighted(goals: GoalSet, values: Values, rows: Ints, bits: Bools, m: int, rng: np.random.Generator) -> Choice:
    """P(g) ∝ the published weight, whatever the state."""
    return _draw(np.where(attained_by(bits, goals.members), 0.0, goals.weight), rng)


def choose_product(goals: GoalSet, values: Values, rows: Ints, bits: Bools, m: int, rng: np.random.Generator) -> Choice:
    """P(g | s) ∝ weight(g) · (V(s, g) + ε), over all goals on offer."""
    everything = np.broadcast_to(np.arange(len(goals)), (len(rows), len(goals)))
    reachability = np.clip(values(rows, everything), 0.0, 1.0) + VALUE_FLOOR
    return _draw(np.where(attained_by(bits, goals.members), 0.0, goals.weight * reachability), rng)


def _draw(weight: Floats, rng: np.random.Generator) -> Choice:
    """One position for each row, ∝ weight [n, k]; a choice is as good as any other, or −∞ where all weights are 0."""
    cumulative = weight.cumsum(1)
    total = cumulative[:, -1]
    points = rng.random(len(weight)) * total
    position = np.minimum((cumulative <= points[:, None]).sum(1), weight.shape[1] - 1)
    return position, np.where(total > 0, np.inf, -np.inf)


def _ones(table: GoalTable) -> Floats:
    return np.ones(table.size)


def _novelty(table: GoalTable) -> Floats:
    return novelty(table.count)


def _progress(table: GoalTable) -> Floats:
    return table.learning_progress + PROGRESS_FLOOR


ALTERNATIVES: dict[str, Strategy] = {
    "uniform": Strategy(choose_weighted, utility=_ones, weight=_ones),
    "product": Strategy(choose_product, utility=wanted, weight=_novelty),
    "progress": Strategy(choose_weighted, utility=_progress, weight=_progress),
}
