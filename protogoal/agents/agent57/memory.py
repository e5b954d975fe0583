"""Episodic novelty: how unlike a state is to those of the last episodes, in the controllable embedding (NGU, Algorithm 1).

With d² the squared distances to the k nearest states in memory and d²_m their running mean:

    d_n = max(d² / d²_m − ξ, 0)      K = ε / (d_n + ε)      s = √ΣK + c      r = 0 if s > s_max else 1/s

# DEVIATION(D20): a memory with fewer than k states counts those it has k/n-fold; an empty one gives 0, as there is nothing
# to compare with; d²_m is an exponential mean.

`curiosity` asks for each step's reward and empties the memory every `meta_episode_length` episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.agents.agent57.neighbours import Neighbours
from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.goals.stored import stored_array, stored_like

Floats = NDArray[np.float32]

LARGEST = 1e15
"""What a number of an embedding is cut to; sums of squares stay finite."""
MEAN_HORIZON = 1000
"""Steps over which the mean distance is taken; it follows the embedding as that is learned."""


class EpisodicMemory:
    """One memory for each of n environments, and the running mean of its distances."""

    def __init__(self, num_envs: int, settings: Agent57Settings):
        self.settings = settings
        self._states = Neighbours(num_envs, settings.memory_capacity, settings.embedding_size)
        self.added = np.zeros(num_envs, np.int64)  # since it was emptied; the oldest make room
        self._mean = np.zeros(num_envs)  # d²_m
        self._measured = np.zeros(num_envs, np.int64)  # steps that went into it

    def reward(self, embedding: Floats) -> Floats:
        """The episodic reward [n] of states [n, d], which are then remembered."""
        s = self.settings
        state = np.clip(embedding, -LARGEST, LARGEST)
        distance = self._states.nearest(state, s.neighbours)  # [n, k]
        found = np.minimum(self._states.held, s.neighbours)
        present = np.arange(s.neighbours) < found[:, None]
        distance = np.where(present, distance, 0.0).astype(np.float64)
        self._measure(distance.sum(1) / np.maximum(found, 1), found > 0)
        relative = distance / np.maximum(self._mean, 1e-12)[:, None]
        kernel = s.kernel_epsilon / (np.maximum(relative - s.cluster_distance, 0.0) + s.kernel_epsilon)
        similarity = np.where(present, kernel, 0.0).sum(1) * s.neighbours / np.maximum(found, 1)
        root = np.sqrt(similarity) + s.pseudo_count
        reward = np.where((root > s.max_similarity) | (found == 0), 0.0, 1.0 / root)
        self._states.put(self.added % s.memory_capacity, state)
        self.added += 1
        return reward.astype(np.float32)

    def _measure(self, distance: NDArray[np.float64], measured: NDArray[np.bool_]) -> None:
        self._measured += measured
        rate = measured / np.clip(self._measured, 1, MEAN_HORIZON)
        self._mean += rate * (distance - self._mean)

    def forget(self, rows: NDArray[np.int64]) -> None:
        """Empties the memory of these environments."""
        self.added[rows] = 0
        self._states.clear(rows)

    def distances(self) -> dict[str, Any]:
        """The mean distance of each environment, which outlives what is remembered, and the steps that went into it."""
        return {"mean": self._mean.copy(), "measured": self._measured.copy()}

    def load_distances(self, state: Mapping[str, Any]) -> None:
        """Take back what `distances` gave."""
        self._mean[:] = stored_like(state["mean"], "mean", self._mean, 0)
        self._measured[:] = stored_like(state["measured"], "measured", self._measured, 0)

    def state_dict(self) -> dict[str, Any]:
        """What is held, without the empty places."""
        return {"states": self._states.rows(), "added": self.added.copy()} | self.distances()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.load_distances(state)
        self.added[:] = stored_like(state["added"], "added", self.added, 0)
        held = np.minimum(self.added, self.settings.memory_capacity)
        shape = (len(held), int(held.max(initial=0)), self.settings.embedding_size)
        self._states.load_rows(stored_array(state["states"], "states", shape, "f").astype(np.float32), held)
