"""Episodic novelty: how unlike a state is to those of the last episodes, in the controllable embedding (NGU, Algorithm 1).

With d² the squared distances to the k nearest states in memory and d²_m their running mean:

    d_n = max(d² / d²_m − ξ, 0)      K = ε / (d_n + ε)      s = √ΣK + c      r = 0 if s > s_max else 1/s

# DEVIATION(D20): a memory with fewer than k states counts those it has k/n-fold; an empty one gives 0, as there is nothing
# to compare with; d²_m is an exponential mean; states are held in half precision, 32 numbers to a cache line, so
# that the search has half as much to read.

`curiosity` asks for each step's reward and empties the memory every `meta_episode_length` episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from protogoal.deep.settings_agent57 import Agent57Settings

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]

LARGEST = float(np.finfo(np.float16).max)
MEAN_HORIZON = 1000
"""Steps over which the mean distance is taken; it follows the embedding as that is learned."""


class EpisodicMemory:
    """One memory for each of n environments, and the running mean of its distances."""

    def __init__(self, num_envs: int, settings: Agent57Settings):
        self.settings = settings
        self._states = np.zeros((num_envs, settings.memory_capacity, settings.embedding_size), np.float16)
        self.added = np.zeros(num_envs, np.int64)  # since it was emptied; the oldest make room
        self._mean = np.zeros(num_envs)  # d²_m
        self._measured = np.zeros(num_envs, np.int64)  # steps that went into it

    def reward(self, embedding: Floats) -> Floats:
        """The episodic reward [n] of states [n, d], which are then remembered."""
        s = self.settings
        held = np.minimum(self.added, s.memory_capacity)
        state = np.clip(embedding, -LARGEST, LARGEST).astype(np.float16)
        distance = nearest_distances(self._states, held, state, s.neighbours)  # [n, k]
        found = np.minimum(held, s.neighbours)
        present = np.arange(s.neighbours) < found[:, None]
        distance = np.where(present, distance, 0.0).astype(np.float64)
        self._measure(distance.sum(1) / np.maximum(found, 1), found > 0)
        relative = distance / np.maximum(self._mean, 1e-12)[:, None]
        kernel = s.kernel_epsilon / (np.maximum(relative - s.cluster_distance, 0.0) + s.kernel_epsilon)
        similarity = np.where(present, kernel, 0.0).sum(1) * s.neighbours / np.maximum(found, 1)
        root = np.sqrt(similarity) + s.pseudo_count
        reward = np.where((root > s.max_similarity) | (found == 0), 0.0, 1.0 / root)
        self._states[np.arange(len(held)), self.added % s.memory_capacity] = state
        self.added += 1
        return reward.astype(np.float32)

    def _measure(self, distance: NDArray[np.float64], measured: NDArray[np.bool_]) -> None:
        self._measured += measured
        rate = measured / np.clip(self._measured, 1, MEAN_HORIZON)
        self._mean += rate * (distance - self._mean)

    def forget(self, rows: NDArray[np.int64]) -> None:
        """Empties the memory of these environments."""
        self.added[rows] = 0

    def state_dict(self) -> dict[str, Any]:
        """What is held, without the empty places."""
        longest = int(np.minimum(self.added, self.settings.memory_capacity).max())
        return {"states": self._states[:, :longest].copy(), "added": self.added.copy(), "mean": self._mean.copy(),
                "measured": self._measured.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        states = np.asarray(state["states"])
        self._states[:, : states.shape[1]] = states
        self.added[:], self._mean[:], self._measured[:] = state["added"], state["mean"], state["measured"]


def nearest_distances(states: Halves, held: NDArray[np.int64], query: Halves, k: int) -> Floats:
    """Squared distances [n, k], ascending, of query [n, d] to the k nearest of the first held[i] states [n, M, d]; else ∞."""
    found: Floats = _nearest(states.view(np.uint16), held, query.astype(np.float32), k)
    return found


@intrinsic  # type: ignore[untyped-decorator]
def _from_half(typing_context: Any, bits: Any) -> Any:  # numba has no float16, most processors have
    """The number whose half-precision bits these are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single, word = ir.FloatType(), ir.IntType(32)
        if "+f16c" in context.codegen().magic_tuple()[2].split(","):
            return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), single)
        # else by hand: exponent and fraction move to their places, 2^112 makes up for the other bias, the sign goes on top
        half = builder.zext(arguments[0], word)
        size = builder.bitcast(builder.shl(builder.and_(half, word(0x7FFF)), word(13)), single)
        scaled = builder.bitcast(builder.fmul(size, single(2.0**112)), word)
        return builder.bitcast(builder.or_(scaled, builder.shl(builder.and_(half, word(0x8000)), word(16))), single)

    return types.float32(types.uint16), generate


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _nearest(states: NDArray[np.uint16], held: NDArray[np.int64], query: Floats, k: int) -> Floats:
    """No sorting: a row of k best is kept, and almost every state is farther than its last."""
    n, size = query.shape
    best = np.full((n, k), np.float32(np.inf), np.float32)
    for i in range(n):
        row, q = best[i], query[i]
        worst = row[k - 1]
        for m in range(held[i]):
            total = np.float32(0.0)
            for d in range(size):
                difference = _from_half(states[i, m, d]) - q[d]  # type: ignore[call-arg]
                total += difference * difference
            if total < worst:
                place = k - 1
                while place > 0 and row[place - 1] > total:
                    row[place] = row[place - 1]
                    place -= 1
                row[place] = total
                worst = row[k - 1]
    return best
