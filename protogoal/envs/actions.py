"""Actions as one Discrete space: the agents choose one of A.

MultiDiscrete and MultiBinary actions, and whole numbers of a Box, become their combinations where there are few enough; continuous
ones are refused.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

MOST_COMBINATIONS = 1_024


class FlatActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """Combination i of several choices as action i; the last choice changes fastest."""

    def __init__(self, env: gymnasium.Env[Any, Any], sizes: np.ndarray, starts: np.ndarray, shape: tuple[int, ...], dtype: Any):
        super().__init__(env)
        self.action_space = spaces.Discrete(int(np.prod(sizes)))
        grid = np.stack(np.unravel_index(np.arange(self.action_space.n), sizes), 1) + starts
        self.combinations = grid.reshape(-1, *shape).astype(dtype)  # [A, …]

    def action(self, action: int) -> Any:
        return self.combinations[int(action)].copy()


def flat_actions(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment with Discrete actions; a ValueError where it cannot have them."""
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return env
    if isinstance(space, spaces.Box) and not np.issubdtype(space.dtype, np.integer):
        raise ValueError(f"the action space must be Discrete; got {_short(space)}; these agents choose one of some actions")
    if isinstance(space, spaces.MultiDiscrete):
        sizes, starts = np.asarray(space.nvec).ravel(), np.asarray(space.start).ravel()
    elif isinstance(space, spaces.Box):
        starts = space.low.ravel()
        sizes = np.minimum(space.high.ravel() - starts.astype(float) + 1, 2**31).astype(np.int64)  # no overflow
    elif isinstance(space, spaces.MultiBinary):
        sizes, starts = np.full(int(np.prod(space.shape)), 2), np.zeros(int(np.prod(space.shape)), np.int64)
    else:
        raise ValueError(f"the action space must be Discrete; got {_short(space)}; several agents at once are not possible, and "
                         "actions of several parts need a wrapper that makes one choice of them")
    combinations = float(np.prod(sizes.astype(float)))
    if combinations > MOST_COMBINATIONS:
        raise ValueError(f"the action space must be Discrete; {_short(space)} has {combinations:,.0f} combinations, "
                         f"at most {MOST_COMBINATIONS:,} are possible")
    return FlatActions(env, sizes, starts, tuple(space.shape or ()), space.dtype)


def _short(space: Any) -> str:
    words = " ".join(str(space).split())
    return words if len(words) <= 80 else f"{type(space).__name__} of shape {space.shape}"
