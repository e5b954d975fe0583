"""Seek and avoid values of many goals at once, from one batch of transitions (paper §4.1).

A goal g has the cumulant +b_g (seek) or −b_g (avoid) and the continuation γ(1 − b_g); `lspi.py` solves for them. This is the
paper's own evidence, `pruning = values`; `plausibility.judge_values` turns it into verdicts. A tabular agent has them already.

Legend: n transitions, D observation size, K features, A actions, B proto-goals, G goals.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import AnyIds
from protogoal.goals.features import observation_features
from protogoal.goals.lspi import LSPI
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
    batch: TransitionBatch, attained: NDArray[np.bool_], num_actions: int, settings: EstimatorSettings,
    rng: np.random.Generator | int,
) -> SeekAvoid:
    """Returns seek and avoid values of all goals, from which transition attains which, bool [n, G].

    Goals attained on the same transitions have the same values and are solved once. Goals that the batch never attains get
    NaN. `rng`, a generator or a seed, draws the projections.
    """
    n = len(batch.action)
    if attained.ndim != 2 or len(attained) != n or attained.dtype != np.bool_:
        raise ValueError(f"attained is {attained.dtype}{list(attained.shape)}, must be bool[{n}, G] for {n} transitions")
    if batch.action.min() < 0 or batch.action.max() >= num_actions:
        low, high = batch.action.min(), batch.action.max()
        raise ValueError(f"actions reach from {low} to {high}, must be in [0, {num_actions})")
    packed = np.ascontiguousarray(np.packbits(attained, axis=0).T)  # [G, ⌈n/8⌉]
    as_one = packed.view(f"V{packed.shape[1]}")[:, 0]  # compared as a whole
    _, distinct, inverse = np.unique(as_one, return_index=True, return_inverse=True)
    hits = attained.sum(0)
    solved = np.flatnonzero(hits[distinct] > 0)
    columns = np.full((3, len(distinct)), np.nan)
    if len(solved):
        z, z_next = observation_features(
            batch.observation, batch.next_observation, settings.projections, settings.whole_up_to, np.random.default_rng(rng))
        estimator = LSPI((z, z_next), batch.action, batch.terminated, num_actions,
                         settings.discount, settings.policy_iterations, settings.ridge)
        for start in range(0, len(solved), settings.goals_at_once):
            chunk = solved[start : start + settings.goals_at_once]
            columns[:, chunk] = estimator.values(attained[:, distinct[chunk]])
        # A system without a finite solution says nothing about its goal, which is then judged with optimism.
        columns[:, ~np.isfinite(columns[:2]).all(axis=0)] = np.nan
        columns[~np.isfinite(columns)] = np.nan
    seek_max, seek_mean, avoid_mean = columns[:, inverse]
    return SeekAvoid(seek_max, seek_mean, avoid_mean, hits)
