"""The size of the task's returns, found from data: rewards of any size are learned as those of 0 and 1 are.

    R_t = γ R_{t−1} + r_t  within an episode
    scale = max(1, max |r_t|, |max R_t|)        max R_t over ends of episodes, and over steps that have γ's horizon behind them

Values of goals lie in [0, 1]; the task's rewards are divided by the scale where they are learned (`deep.learn.Learner.paid`) and
where goals are weighed by them (`desirability`). What counts is how good it gets: a policy that falls off a cliff at each step
says little about the values of one that does not. Where returns stay within ±1 the scale is 1, and nothing changes. An actor
measures returns and writes the best into its segments; learner and goal table take in what they hear of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.stored import stored_array

DISCOUNT = 0.99
HORIZON = 100  # 1/(1 − γ) steps
UNKNOWN = -np.inf


class TaskScale:
    """The largest reward and the best return so far, and the scale that follows."""

    def __init__(self) -> None:
        self.reward, self.best = 1.0, UNKNOWN

    @property
    def value(self) -> float:
        """At least 1."""
        return max(self.reward, abs(self.best)) if np.isfinite(self.best) else self.reward

    def see(self, reward: NDArray[Any], best: NDArray[Any] | float = UNKNOWN) -> None:
        """Rewards, and best returns that others have measured."""
        self.reward = max(self.reward, float(np.abs(reward).max(initial=0.0)))
        self.best = max(self.best, float(np.max(best, initial=UNKNOWN)))

    def state(self) -> NDArray[np.float64]:
        """Its two numbers."""
        return np.array([self.reward, self.best])

    def load(self, state: Any) -> None:
        """Take back what `state` gave."""
        reward, best = stored_array(state, "scale of the task", (2,), "f").tolist()
        self.reward, self.best = max(1.0, reward), best


class Returns:
    """Discounted returns of N environments under way."""

    def __init__(self, num_envs: int):
        self.running, self.steps = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self.best = UNKNOWN

    def add(self, reward: NDArray[Any], is_over: NDArray[np.bool_]) -> None:
        """One step of each environment, [N]; `is_over` where its episode ended with it."""
        self.running = DISCOUNT * self.running + reward
        self.steps += 1
        counts = is_over | (self.steps >= HORIZON)
        self.best = max(self.best, float(self.running[counts].max(initial=UNKNOWN)))
        self.restart(is_over)

    def restart(self, rows: NDArray[np.bool_] | slice = slice(None)) -> None:
        """New episodes begin there."""
        self.running[rows], self.steps[rows] = 0.0, 0


def legible(reward: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rewards as a network reads them: those within ±1 as they are, the size of others as 1 + log |r|."""
    size = np.abs(reward)
    if not (size > 1.0).any():
        return reward
    squashed: NDArray[np.float32] = np.where(size > 1.0, np.sign(reward) * (1.0 + np.log(np.maximum(size, 1.0))), reward)
    return squashed.astype(np.float32)
