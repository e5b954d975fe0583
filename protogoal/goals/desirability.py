"""Desirability (paper §4.2, Algorithm 4): how much a plausible goal is wanted, and the draw of the K that are offered.

u(g) = R(g) + 1/√N(g),   P(g) = u(g) / Σ_g' u(g')

Called by `ProtoGoalEvaluator.refresh` after `plausibility` has pruned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def novelty(count: NDArray[np.int64]) -> Floats:
    """1/√N(g) [G]; a goal that was never attained counts as attained once, so that novelty stays ≤ 1."""
    return 1.0 / np.sqrt(np.maximum(count, 1))


def desirability(count: NDArray[np.int64], reward_mean: Floats) -> Floats:
    """u(g) = R(g) + 1/√N(g) [G].

    # DEVIATION(D3): a negative mean reward would make a negative probability; R(g) is clipped at 0, so a punished goal
    # is wanted for its novelty alone. The paper's domains have rewards in {0, 1}, where the clip does nothing.
    """
    return np.maximum(reward_mean, 0.0) + novelty(count)


def draw_goals(utility: Floats, is_plausible: NDArray[np.bool_], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """K goals with replacement, P(g) ∝ u(g) over the plausible ones → ids [K]; none if nothing is plausible."""
    plausible = np.flatnonzero(is_plausible)
    if len(plausible) == 0:
        return np.empty(0, np.int64)
    u = utility[plausible]
    return plausible[rng.choice(len(plausible), size, p=u / u.sum())]
