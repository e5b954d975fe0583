"""How a state chooses among the goals on offer: strategies, the paper's and ours, and two to compare them with.

    paper      a bucket uniformly, m of it ∝ 1/√N, then argmax C(g)·V(s, g)       (paper §5.1)
    product    P(g | s) ∝ 1/√N(g) · C(g) · (clip(V(s, g), 0, 1) + ε)       novelty × competence × reachability;
               undecided goals, which are to be tried, without the last factor
    uniform    P(g) = 1/k
    desirable  P(g) ∝ u(g), the desirability by which it was drawn

C(g) = min(1, 4 (s + 5 C_κ)/(n + 5)), with s successes among n recent pursuits (old ones fade, n < 34) and C_κ the share of all its
kind's, is what pursuits say of a goal: V overestimates what it has hardly seen, and of two hundred cells nobody should have to fail
ten times in each. What succeeds one time in four is as good as what always does: it is where something can be learned.

`PGESettings.strategy` names one, the goal set carries the name, and `selection.select` calls it. To add one, add a row to
`STRATEGIES` and its name to `StrategyName`. Which goals are on offer at all is another matter: `desirability.CRITERIA`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.goal_set import Floats, GoalSet, Ints
from protogoal.goals.plausibility import Verdict
from protogoal.goals.table import GoalTable

Bools = NDArray[np.bool_]

StrategyName = Literal["paper", "product", "uniform", "desirable"]

Values = Callable[[Ints, Ints], Floats]
"""V(rows [n], positions [n, m]) → [n, m]: values of goals, as positions in the goal set, in the states of those rows."""

Choice = tuple[Ints, Bools]
"""Positions in the goal set [n], and whether anything could be offered, [n]."""

GOOD_SUCCESS = 0.25  # of pursuits; more is no better
PRIOR = 5.0  # pursuits that the kind of a goal counts for
VALUE_FLOOR = 0.01  # a goal whose value is not learned yet keeps this much


def competence(table: GoalTable, kind: NDArray[np.integer[Any]]) -> Floats:
    """C(g) = min(1, 4 (s + 5 C_κ)/(n + 5)) [G], where C_κ = (Σ s + 1)/(Σ n + 1) over g's kind: 1 while none of it was pursued.

    # DEVIATION(D8): the paper's choice knows values only.
    """
    tried = np.flatnonzero(table.recent_pursuits > 0)
    group = np.maximum(kind, -1) + 1
    wins, pursuits = (np.bincount(group[tried], x[tried], group.max() + 1) for x in (table.recent_wins, table.recent_pursuits))
    of_kind = ((wins + 1.0) / (pursuits + 1.0))[group]
    success = (table.recent_wins + PRIOR * of_kind) / (table.recent_pursuits + PRIOR)
    return np.asarray(np.minimum(success / GOOD_SUCCESS, 1.0))


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


def choose_reachable(goals: GoalSet, values: Values, rows: Ints, attained: Bools, rng: np.random.Generator) -> Choice:
    """The paper's rule: of m candidates of one bucket the one with the largest C(g)·V(s, g)."""
    candidates = draw_candidates(goals, len(rows), goals.num_candidates, rng)  # [n, m]
    value = np.clip(values(rows, candidates), 0.0, None) * goals.competence[candidates]
    value = np.where(np.take_along_axis(attained, candidates, 1), -np.inf, value)
    best = value.argmax(1)[:, None]
    return np.take_along_axis(candidates, best, 1)[:, 0], np.take_along_axis(value, best, 1)[:, 0] > -np.inf


def choose_uniform(goals: GoalSet, values: Values, rows: Ints, attained: Bools, rng: np.random.Generator) -> Choice:
    """Any of them, whatever the state."""
    return _draw(np.where(attained, 0.0, 1.0), goals, rng)


def choose_desirable(goals: GoalSet, values: Values, rows: Ints, attained: Bools, rng: np.random.Generator) -> Choice:
    """P(g) ∝ u(g), whatever the state."""
    return _draw(np.where(attained, 0.0, goals.desirability), goals, rng)


def choose_product(goals: GoalSet, values: Values, rows: Ints, attained: Bools, rng: np.random.Generator) -> Choice:
    """P(g | s) ∝ 1/√N(g) · C(g) · (V(s, g) + ε), over all goals on offer.

    # DEVIATION(D21): not the paper's choice, which nearly always takes the nearest goal.
    """
    everything = np.broadcast_to(np.arange(len(goals)), (len(rows), len(goals)))
    reachability = np.clip(values(rows, everything), 0.0, 1.0) + VALUE_FLOOR
    reachability[:, goals.verdict == Verdict.UNDECIDED] = 1.0  # to be tried, whatever is believed of them
    return _draw(np.where(attained, 0.0, goals.novelty * goals.competence * reachability), goals, rng)


def _draw(weight: Floats, goals: GoalSet, rng: np.random.Generator) -> Choice:
    """One position for each row, and whether there is any: a verdict by its share, among those with a weight above 0, then a goal
    of that verdict ∝ weight [n, k]."""
    for verdict in np.unique(goals.verdict):
        group = np.flatnonzero(goals.verdict == verdict)
        weight[:, group] *= goals.share[group[0]] / np.maximum(weight[:, group].sum(1, keepdims=True), 1e-300)
    cumulative = weight.cumsum(1)
    total = cumulative[:, -1]
    points = rng.random(len(weight)) * total
    position = np.minimum((cumulative <= points[:, None]).sum(1), weight.shape[1] - 1)
    return position, total > 0


STRATEGIES: dict[str, Callable[[GoalSet, Values, Ints, Bools, np.random.Generator], Choice]] = {
    "paper": choose_reachable,
    "product": choose_product,
    "uniform": choose_uniform,
    "desirable": choose_desirable,
}
"""(goals, values, rows [n], attained already [n, k], rng) → `Choice`; attained goals are not offered."""
