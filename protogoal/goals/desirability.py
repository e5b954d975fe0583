"""Desirability (paper §4.2, Algorithm 4): how much a plausible goal is wanted, and the draw of the K that are offered.

P(g) = u(g) / Σ_g' u(g'), where u(g) is one of

    paper     R(g) + 1/√N(g),   R in units of the size of returns (`scale`)
    uniform   1
    progress  LP(g) + ε,   LP = |S over the last 5 pursuits − S over the 5 before|

Novelty prefers what is rare, and what is rare is mostly what nothing is known of; so those that are undecided share a bounded
part of the draws, and so do those that pursuits do not reach. `ProtoGoalEvaluator.refresh` calls it after `plausibility`;
`PGESettings.desirability` names u. How a state chooses among those drawn is another matter: `strategies.STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.plausibility import Verdict
from protogoal.goals.table import GoalTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CriterionName = Literal["paper", "uniform", "progress"]

PROGRESS_FLOOR = 0.1  # what stands still now may move later
SELDOM = 0.5  # an undecided goal is tried again this much more seldom each time it is given up


def novelty(count: Ints) -> Floats:
    """1/√N(g) [G]; a goal that was never attained counts as attained once, so that novelty stays ≤ 1."""
    return 1.0 / np.sqrt(np.maximum(count, 1))


def desirability(count: Ints, reward_mean: Floats) -> Floats:
    """u(g) = R(g) + 1/√N(g) [G].

    # DEVIATION(D3): a negative mean reward would make a negative probability; R(g) is clipped at 0, so a punished goal
    # is wanted for its novelty alone. The paper's domains have rewards in {0, 1}, where the clip does nothing.
    """
    return np.maximum(reward_mean, 0.0) + novelty(count)


CRITERIA: dict[str, Callable[[GoalTable], Floats]] = {
    "paper": lambda table: desirability(table.count, table.reward_mean / table.scale.value),
    "uniform": lambda table: np.ones(table.size),
    "progress": lambda table: table.learning_progress + PROGRESS_FLOOR,
}
"""u(g) of every goal of the table, [G]."""


def draw_goals(utility: Floats, is_plausible: NDArray[np.bool_], size: int, rng: np.random.Generator) -> Ints:
    """K goals with replacement, P(g) ∝ u(g) over the plausible ones → ids [K]; none if nothing is plausible."""
    plausible = np.flatnonzero(is_plausible)
    if len(plausible) == 0 or size == 0:
        return np.empty(0, np.int64)
    u = utility[plausible]
    return plausible[rng.choice(len(plausible), size, p=u / u.sum())]


def shares(verdict: NDArray[np.int8], optimism: float, retry: float) -> dict[Verdict, float]:
    """What part of draws and of choices goals of each verdict have; while nothing is plausible, undecided ones have its part.

    # DEVIATION(D7): in the paper what is undecided is plausible, and has no bound.
    """
    left = 1.0 - optimism - retry
    if not (verdict == Verdict.PLAUSIBLE).any():
        optimism, left = optimism + left, 0.0
    return {Verdict.PLAUSIBLE: left, Verdict.UNDECIDED: optimism, Verdict.UNREACHED: retry}


def draw_rationed(
    utility: Floats, verdict: NDArray[np.int8], given_up: NDArray[np.integer], size: int, share: dict[Verdict, float],
    rng: np.random.Generator,
) -> Ints:
    """K draws, of each verdict its share of them → ids.

    `given_up` [G] is how often pursuits of an undecided goal were given up: each time it is tried half as often (0 where
    trials show control: such a goal stays at its low rate for ever). Plausible goals take what others leave.
    """
    weight, often = utility.copy(), np.flatnonzero(given_up)
    weight[often] *= SELDOM ** np.asarray(given_up[often], np.float64)
    groups = {v: verdict == v for v in share}
    draws, left = dict.fromkeys(share, 0), size
    for v in (Verdict.UNDECIDED, Verdict.UNREACHED):
        draws[v] = min(_round(size * share[v], rng), left) if groups[v].any() else 0
        left -= draws[v]
    if groups[Verdict.PLAUSIBLE].any() and share[Verdict.PLAUSIBLE] > 0:
        draws[Verdict.PLAUSIBLE] = left
    return np.concatenate([draw_goals(weight, groups[v], n, rng) for v, n in draws.items()])


def _round(x: float, rng: np.random.Generator) -> int:
    """Up or down, x in the mean, so that a small share of few draws is not always none."""
    whole, part = divmod(x + 1e-9, 1.0)
    return int(whole) + (part > 1e-6 and rng.random() < part)
