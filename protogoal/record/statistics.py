"""What a few seeds say: intervals of a mean, the interquartile mean over tasks, and how likely one agent is ahead of another.

    t interval            x̄ ± t(n−1, 0.975) · s/√n, cut to the values' range
    Wilson's interval     of k successes in n trials: inside [0, 1], and it says something at 0 of n and n of n
    exact interval        of k successes in n trials (Clopper and Pearson): all p under which k is not in a tail of 2.5 %
    interquartile mean    mean of the middle half of all runs of all tasks
    improvement           P(X > Y) + ½ P(X = Y), X and Y runs of two agents on one task; mean over tasks

A bootstrap of three seeds resamples three numbers: where they agree it says 1.00–1.00, which is no interval. So a mean has the t
interval, and where all seeds agree, and s = 0 says nothing, the exact one: with n alike, another value could still occur in a share
q = 1 − 0.025^(1/n) of seeds, anywhere in the range. Over tasks the bootstrap is stratified: seeds are redrawn within each task
(Agarwal et al., 2021). Called by the experiments' READMEs and figures, by the report and the page, by `eval`, and by
the store for each evaluation (Wilson's).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

Floats = NDArray[np.float64]

TAIL = 0.025  # of a two-sided 95 % interval
Z95 = 1.959963984540054  # the 97.5 % quantile of the standard normal
DRAWS = 2_000


def t_interval(values: ArrayLike, low: float = 0.0, high: float = 1.0) -> tuple[Floats, Floats]:
    """The 95 % t interval of the mean over seeds, [seeds, …] → (low, high), within the range of the values.

    Without width where all seeds agree, unknown (NaN) for a single one: good for a band around a curve.
    """
    x = np.asarray(values, np.float64)
    if len(x) < 2:
        unknown = np.full(x.shape[1:], np.nan)
        return unknown, unknown
    half = stdtrit(len(x) - 1, 1 - TAIL) * x.std(0, ddof=1) / np.sqrt(len(x))
    return np.maximum(x.mean(0) - half, low), np.minimum(x.mean(0) + half, high)


def mean_interval(values: ArrayLike, low: float = 0.0, high: float = 1.0) -> tuple[float, float, float]:
    """The mean over seeds [n] and its 95 % interval: by t where they differ, exact where they all agree; NaN for a single one."""
    x = np.asarray(values, np.float64)
    mean = float(x.mean())
    if len(x) > 1 and np.ptp(x) == 0:
        q = 1 - TAIL ** (1 / len(x))  # Clopper and Pearson, 0 of n
        return mean, mean - q * (mean - low), mean + q * (high - mean)
    ends = t_interval(x, low, high)
    return mean, float(ends[0]), float(ends[1])


def exact_interval(successes: int, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a probability; (0, 1) without trials."""
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must be between 0 and {trials}, the trials; got {successes}")
    low = betaincinv(successes, trials - successes + 1, TAIL) if successes else 0.0
    high = betaincinv(successes + 1, trials - successes, 1 - TAIL) if successes < trials else 1.0
    return float(low), float(high)


def wilson_interval(successes: int, episodes: int, z: float = Z95) -> tuple[float, float]:
    """(low, high) of the success probability after `successes` in `episodes` trials.

        p = k/n,  centre = (p + z²/2n) / (1 + z²/n),  half = z·√(p(1−p)/n + z²/4n²) / (1 + z²/n)

    No trial at all gives (0, 1): nothing is known.
    """
    if not 0 <= successes <= episodes:
        raise ValueError(f"successes must be between 0 and episodes; got {successes} of {episodes}")
    if episodes == 0:
        return 0.0, 1.0
    n = float(episodes)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends centre ∓ half is 0 or 1 in exact arithmetic, and a rounding error beside it in floating point.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == episodes else min(1.0, centre + half)
    return low, high


def interquartile_mean(values: ArrayLike) -> float:
    """The mean of the middle half of all values; a value on its edge counts as far as it lies inside."""
    x = np.sort(np.asarray(values, np.float64), axis=None)
    edge = np.arange(len(x) + 1) / len(x)
    inside = np.minimum(edge[1:], 0.75) - np.maximum(edge[:-1], 0.25)
    return float(np.maximum(inside, 0) @ x / 0.5)


def probability_of_improvement(first: Sequence[ArrayLike], other: Sequence[ArrayLike]) -> float:
    """How likely a run of the first is better than one of the other, ties half, mean over tasks: each a list of tasks, [seeds]."""
    ahead = []
    for x, y in zip(first, other, strict=True):
        difference = np.asarray(x, np.float64)[:, None] - np.asarray(y, np.float64)[None, :]
        ahead.append(np.mean(np.where(difference == 0, 0.5, difference > 0)))
    return float(np.mean(ahead))


def stratified_bootstrap(
    statistic: Callable[..., float], *agents: Sequence[ArrayLike], draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile interval of a statistic of agents' runs, each a list of tasks [seeds]: seeds are redrawn within tasks."""
    rng = np.random.default_rng(seed)
    runs: list[list[Any]] = [[np.asarray(task, np.float64) for task in agent] for agent in agents]
    drawn = [statistic(*([task[rng.integers(len(task), size=len(task))] for task in agent] for agent in runs))
             for _ in range(draws)]
    low, high = np.percentile(drawn, [100 * TAIL, 100 * (1 - TAIL)])
    return float(low), float(high)


def pooled_interquartile_mean(tasks: Sequence[ArrayLike]) -> float:
    """The interquartile mean over all runs of all tasks."""
    return interquartile_mean(np.concatenate([np.ravel(task) for task in tasks]))
