"""The size of the task's returns, found from data: rewards of any size are learned as those of 0 and 1 are.

    R_t = γ R_{t−1} + r_t  within an episode,   scale = max(1, max |R_t| so far)

Values of goals lie in [0, 1]; the task's rewards are divided by the scale where they are learned (`learn.Learner.paid`) and where
goals are weighed by them (`goals.desirability`), so its values have the same size. Where returns stay within ±1 the scale is 1, and
nothing changes. An actor finds it and writes it into its segments; the learner takes the largest that it has met.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

DISCOUNT = 0.99
"""γ of the returns that are measured: how far values look ahead, and a bound of 100 rewards."""


class ReturnScale:
    """Discounted returns of N environments, and the largest so far."""

    def __init__(self, num_envs: int):
        self.running = np.zeros(num_envs)
        self.largest = 1.0

    def add(self, reward: NDArray[Any], is_over: NDArray[np.bool_]) -> None:
        """One step of each environment, [N]; `is_over` where its episode ended with it."""
        self.running = DISCOUNT * self.running + reward
        self.largest = max(self.largest, float(np.abs(self.running).max()))
        self.running[is_over] = 0.0


def largest(reward: NDArray[Any], scale: NDArray[Any]) -> float:
    """The scale that segments tell: of their actors [N], and at least the size of any of their rewards [T, N]."""
    return max(1.0, float(scale.max(initial=1.0)), float(np.abs(reward).max(initial=0.0)))


def legible(reward: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rewards as a network reads them: those within ±1 as they are, the size of others as 1 + log |r|."""
    size = np.abs(reward)
    if not (size > 1.0).any():
        return reward
    squashed: NDArray[np.float32] = np.where(size > 1.0, np.sign(reward) * (1.0 + np.log(np.maximum(size, 1.0))), reward)
    return squashed.astype(np.float32)
