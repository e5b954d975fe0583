"""The family of policies: how much each of them values novelty, and how far it looks ahead (NGU §2; Agent57, Appendix).

Policy 0 is greedy for the task; the last one is the most curious and the most short-sighted. `split` weighs values with
β_j, the learner discounts with γ_j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def beta_ladder(num_policies: int, beta: float) -> NDArray[np.float32]:
    """β_0 = 0, β_{N−1} = β, and β·σ(10 (2j − (N−2)) / (N−2)) between, [N]; a single policy has β."""
    ladder = np.full(num_policies, beta)
    if num_policies > 1:
        ladder[0] = 0.0
    if num_policies > 2:
        j, middle = np.arange(1, num_policies - 1), num_policies - 2
        ladder[1:-1] = beta / (1.0 + np.exp(-10.0 * (2 * j - middle) / middle))
    return ladder.astype(np.float32)


def discount_ladder(num_policies: int, discount_max: float, discount_min: float) -> NDArray[np.float32]:
    """γ_0 = γ_max … γ_{N−1} = γ_min, with 1 − γ_j geometric between, [N]; a single policy has γ_max.

    1 − γ_j = (1 − γ_max)^((N−1−j)/(N−1)) · (1 − γ_min)^(j/(N−1))
    """
    place = np.arange(num_policies) / max(1, num_policies - 1)
    rest = (1.0 - discount_max) ** (1.0 - place) * (1.0 - discount_min) ** place
    return (1.0 - rest).astype(np.float32)
