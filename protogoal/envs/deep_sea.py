"""Deep Sea (bsuite; Osband et al.): a probe of exploration that random actions cannot pass.

A diver falls through a square of N×N cells, one row a step, from the top left. In each cell one of the two actions moves it
left and the other right, which of them differs from cell to cell. Each move to the right costs 0.01/N; only the path that goes
right in every row reaches the treasure, worth 1. A random policy finds it once in 2^N episodes, and what little reward there
is on the way leads away from it. Baselines for exploration are verified on it (`experiments.comparisons`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from protogoal.envs.vector import ArraySpec, BatchStep, Observation
from protogoal.goals.spaces import ObjectGrid
from protogoal.goals.stored import stored_like

MOVE_COST = 0.01


class DeepSea:
    """N games on a square of `size`² cells, as a `BatchEnv`; which action is right in a cell follows from `layout`."""

    num_actions = 2
    max_active = 1

    def __init__(self, size: int, num_envs: int, layout: int = 0):
        if size < 2:
            raise ValueError(f"size must be at least 2; got {size}")
        self.size, self.num_envs, self.num_bits = size, num_envs, size * size
        self.space = ObjectGrid(("diver",), size, size)
        dtype = np.dtype(np.int16 if size * size <= np.iinfo(np.int16).max else np.int32)
        self.observation_spec = {"active": ArraySpec((1,), dtype, "active", size * size)}
        self.right = np.random.default_rng(layout).integers(2, size=(size, size))
        self.row = np.zeros(num_envs, np.int64)
        self.column = np.zeros(num_envs, np.int64)

    def reset(self, seed: int | None = None) -> tuple[Observation, np.ndarray]:
        """All divers at the top left; nothing here is random."""
        self.row[:] = 0
        self.column[:] = 0
        return self._observe()

    def step(self, actions: np.ndarray) -> BatchStep:
        """One row down; at the bottom the episode ends."""
        goes_right = np.asarray(actions) == self.right[self.row, self.column]
        is_last = self.row == self.size - 1
        found = goes_right & is_last & (self.column == self.size - 1)
        reward = (found - MOVE_COST / self.size * goes_right).astype(np.float32)
        self.column = np.clip(self.column + np.where(goes_right, 1, -1), 0, self.size - 1)
        self.row = np.minimum(self.row + 1, self.size - 1)
        final_observation, final_active = self._observe()
        self.row[is_last] = 0
        self.column[is_last] = 0
        observation, active = self._observe() if is_last.any() else (final_observation, final_active)
        return BatchStep(observation, active, final_observation, final_active, reward, is_last, np.zeros(self.num_envs, bool))

    def _observe(self) -> tuple[Observation, np.ndarray]:
        active = (self.row * self.size + self.column)[:, None].astype(self.observation_spec["active"].dtype)
        return {"active": active}, active

    def get_state(self) -> dict[str, Any]:
        """Where the divers are."""
        return {"row": self.row.copy(), "column": self.column.copy()}

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, np.ndarray]:
        """Goes back to what `get_state` gave."""
        self.row, self.column = (
            stored_like(state[name], name, getattr(self, name), 0, self.size - 1).astype(np.int64) for name in ("row", "column"))
        return self._observe()

    def close(self) -> None:
        """Nothing to free."""
