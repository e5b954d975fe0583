"""The meta-controller: a sliding-window UCB bandit for each environment chooses the policy of the next episode (Agent57 §3.2).

In its first N episodes a bandit tries every arm once. After that, with probability ε an arm drawn uniformly, else

    argmax_j  μ_j + b·√(1/n_j)

with μ_j and n_j the mean undiscounted extrinsic return and the count of arm j among the last `window` episodes.
`act` calls it; the player takes the arm with the best mean over all environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.stored import stored_like

Rows = NDArray[np.int64]


class SlidingWindowUCB:
    """n bandits with the same N arms, each with its own window."""

    def __init__(self, num_bandits: int, num_arms: int, window: int, epsilon: float, bonus: float, rng: np.random.Generator):
        self.num_arms, self.window, self.epsilon, self.bonus, self.rng = num_arms, window, epsilon, bonus, rng
        self._arm = np.zeros((num_bandits, window), np.int16)
        self._reward = np.zeros((num_bandits, window), np.float64)
        self.pulls = np.zeros(num_bandits, np.int64)

    def choose(self, rows: Rows) -> Rows:
        """The arm that each of these bandits pulls next."""
        count, total = self._sums(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(count > 0, total / count + self.bonus * np.sqrt(1.0 / count), np.inf)  # [n, N]
        best = score == score.max(1, keepdims=True)
        arm = np.where(best, self.rng.random(score.shape), -1.0).argmax(1)  # ties at random
        at_random = self.rng.random(len(rows)) < self.epsilon
        arm = np.where(at_random, self.rng.integers(self.num_arms, size=len(rows)), arm)
        # The bandits begin at different arms, so that all policies make experience from the start.
        return np.where(self.pulls[rows] < self.num_arms, (self.pulls[rows] + rows) % self.num_arms, arm)

    def update(self, rows: Rows, arm: NDArray[np.integer[Any]], reward: NDArray[np.floating[Any]]) -> None:
        """What the arm [n] that each of these bandits pulled was worth [n]."""
        place = self.pulls[rows] % self.window
        self._arm[rows, place] = arm
        self._reward[rows, place] = reward
        self.pulls[rows] += 1

    def arm_sums(self) -> NDArray[np.float64]:
        """Count and summed reward of each arm over all windows, [2, N]; those of several processes can be added up."""
        return np.stack([sums.sum(0) for sums in self._sums(np.arange(len(self.pulls)))])

    def _sums(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Count and summed reward of each arm within each window, [n, N]."""
        filled = np.arange(self.window) < self.pulls[rows, None]
        flat = (np.arange(len(rows))[:, None] * self.num_arms + self._arm[rows])[filled]
        size = len(rows) * self.num_arms
        count = np.bincount(flat, minlength=size)
        total = np.bincount(flat, weights=self._reward[rows][filled], minlength=size).astype(np.float64)
        return count.reshape(-1, self.num_arms).astype(np.float64), total.reshape(-1, self.num_arms)

    def state_dict(self) -> dict[str, Any]:
        """The windows and the generator."""
        return {"arm": self._arm.copy(), "reward": self._reward.copy(), "pulls": self.pulls.copy(),
                "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self._arm[:] = stored_like(state["arm"], "arm", self._arm, 0, self.num_arms - 1)
        self._reward[:] = stored_like(state["reward"], "reward", self._reward)
        self.pulls[:] = stored_like(state["pulls"], "pulls", self.pulls, 0)
        self.rng.bit_generator.state = state["rng"]


def best_arm(count: NDArray[np.float64], total: NDArray[np.float64]) -> int:
    """The arm with the best mean, from counts and summed rewards [N]; of equals the first."""
    return int(np.where(count > 0, total / np.maximum(count, 1), -np.inf).argmax())
