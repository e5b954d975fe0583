"""Seek and avoid values of many goals at once, from one batch of transitions (paper §4.1).

A goal g has the cumulant +b_g (seek) or −b_g (avoid) and the continuation γ(1 − b_g); `lspi.py` solves for them. This is the
paper's own evidence, `pruning = values`; `plausibility.judge_values` turns it into verdicts. A tabular agent has them already.

Legend: n transitions, D observation size, K features, A actions, B proto-goals, G goals, W = ⌈n/64⌉ words.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from protogoal.goals.active import AnyIds
from protogoal.goals.features import observation_features
from protogoal.goals.lspi import LSPI
from protogoal.goals.table import popcount, unpack_columns
from protogoal.settings import Settings, ranged

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TransitionBatch:
    """Transitions (s, a, s') as drawn from replay. Truncations need no mark: values bootstrap through them."""

    observation: NDArray[np.generic]  # [n, D], any real dtype
    action: NDArray[np.integer]  # [n]
    next_observation: NDArray[np.generic]  # [n, D]
    terminated: NDArray[np.bool_]  # [n], the environment ended here
    bits: NDArray[np.bool_] | None = None  # [n, B], the proto-goals of each transition; or instead:
    active: AnyIds | None = None  # [n, L], ids of those that are on, padded with −1

    def __post_init__(self) -> None:
        n = len(self.observation)
        if n == 0:
            raise ValueError("the batch is empty, must hold at least one transition")
        if self.observation.ndim != 2 or self.next_observation.shape != self.observation.shape:
            raise ValueError(
                f"observation {self.observation.shape} and next_observation {self.next_observation.shape} "
                "must both be [n, D]"
            )
        for name in ("action", "terminated"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, must be ({n},)")
        if (self.bits is None) == (self.active is None):
            raise ValueError("a batch must have either bits or active")
        for name, size, array in (("bits", "B", self.bits), ("active", "L", self.active)):
            if array is not None and (array.ndim != 2 or len(array) != n):
                raise ValueError(f"{name} has shape {array.shape}, must be [{n}, {size}]")
        for name in ("observation", "next_observation"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} has NaN or infinite entries, must be finite")


@dataclass(frozen=True)
class SeekAvoid:
    """What the batch says about every goal. All NaN where it never attains the goal.

    Where it attains the goal, but cannot tell whether actions matter, only `avoid_mean` is NaN.
    """

    seek_max: NDArray[np.float64]  # [G], max_s V_seek(s, g)
    seek_mean: NDArray[np.float64]  # [G], mean_s V_seek(s, g): the timescale h(g)
    avoid_mean: NDArray[np.float64]  # [G], mean_s V_avoid(s, g); LSPI does not bound it
    hits: NDArray[np.int64]  # [G], transitions of the batch that attain g

    @property
    def controllability(self) -> NDArray[np.float64]:
        """mean_s [V_seek(s, g) + V_avoid(s, g)], [G]."""
        return self.seek_mean + self.avoid_mean

    @staticmethod
    def unknown(size: int) -> "SeekAvoid":
        """No values for any of `size` goals."""
        nan = np.full(size, np.nan)
        return SeekAvoid(nan, nan.copy(), nan.copy(), np.zeros(size, np.int64))

    def scatter(self, goals: NDArray[np.integer], size: int) -> "SeekAvoid":
        """These values as those of the given goals, [G], among `size`; the others are unknown."""
        whole = SeekAvoid.unknown(size)
        for name in ("seek_max", "seek_mean", "avoid_mean", "hits"):
            getattr(whole, name)[goals] = getattr(self, name)
        return whole


@dataclass(frozen=True)
class EstimatorSettings(Settings):
    """How seek and avoid values are estimated. Where the paper gives a number (Table 2), it is the default."""

    projections: int = ranged(32, 1)
    """Random projections of an observation that is larger than whole_up_to."""
    whole_up_to: int = ranged(0, 0)
    """Observations with at most this many changing entries are used as they are; 0 always projects, as the paper does."""
    discount: float = ranged(0.95, 0.0, 0.9999999)
    """γ of the seek and avoid values."""
    ridge: float = ranged(0.01, 1e-12)
    """Ridge of the weights."""
    policy_iterations: int = ranged(2, 1)
    """LSTDQ solves, the first of them for the uniform policy."""
    goals_at_once: int = ranged(128, 1)
    """Goals in one chunk of work; bounds the memory."""


def seek_avoid_values(
    batch: TransitionBatch,
    attained_packed: NDArray[np.uint64],
    num_actions: int,
    settings: EstimatorSettings,
    rng: np.random.Generator | int,
) -> SeekAvoid:
    """Returns seek and avoid values of all goals.

    `attained_packed` is uint64[G, W]: bit t % 64 of word t // 64 says whether transition t attains the goal. Goals
    attained on the same transitions have the same values and are solved once. Goals that the batch never attains get
    NaN. `rng`, a generator or a seed, draws the projections.
    """
    n = len(batch.action)
    words = (n + 63) // 64
    if attained_packed.ndim != 2 or attained_packed.shape[1] != words or attained_packed.dtype != np.uint64:
        raise ValueError(
            f"attained_packed is {attained_packed.dtype}{list(attained_packed.shape)}, "
            f"must be uint64[G, {words}] for {n} transitions"
        )
    if batch.action.min() < 0 or batch.action.max() >= num_actions:
        low, high = batch.action.min(), batch.action.max()
        raise ValueError(f"actions reach from {low} to {high}, must be in [0, {num_actions})")
    distinct, inverse, hits = _distinct_rows(np.ascontiguousarray(attained_packed))
    solved = np.flatnonzero(hits[distinct] > 0)
    columns = np.full((3, len(distinct)), np.nan)
    if len(solved):
        z, z_next = observation_features(
            batch.observation, batch.next_observation, settings.projections, settings.whole_up_to, np.random.default_rng(rng))
        estimator = LSPI((z, z_next), batch.action, batch.terminated, num_actions,
                         settings.discount, settings.policy_iterations, settings.ridge)
        for start in range(0, len(solved), settings.goals_at_once):
            chunk = solved[start : start + settings.goals_at_once]
            columns[:, chunk] = estimator.values(unpack_columns(attained_packed[distinct[chunk]], n))
        # A system without a finite solution says nothing about its goal, which is then judged with optimism.
        columns[:, ~np.isfinite(columns[:2]).all(axis=0)] = np.nan
        columns[~np.isfinite(columns)] = np.nan
    seek_max, seek_mean, avoid_mean = columns[:, inverse]
    return SeekAvoid(seek_max, seek_mean, avoid_mean, hits)


def _distinct_rows(packed: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows that differ, as indices [U]; for every row which of them it equals, [G]; ones in every row, [G]."""
    key, hits = _digest(packed)
    _, distinct, inverse = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(packed[distinct[inverse]], packed):  # two different rows with one hash: compare whole rows
        _, distinct, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return distinct, inverse.reshape(-1), hits


@njit(cache=True)
def _digest(packed):  # type: ignore[no-untyped-def]
    """A 64-bit hash of each row, and the number of ones in it."""
    goals, words = packed.shape
    key = np.empty(goals, np.uint64)
    hits = np.empty(goals, np.int64)
    for g in range(goals):
        h = np.uint64(0x9E3779B97F4A7C15)
        ones = np.int64(0)
        for w in range(words):
            x = packed[g, w]
            h = (h ^ x) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
            ones += popcount(x)
        key[g] = h
        hits[g] = ones
    return key, hits
