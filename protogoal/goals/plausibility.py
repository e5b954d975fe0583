"""Which goals are worth pursuing at all: observed ∧ reachable ∧ controllable (paper §4.1, Algorithm 3).

    observed      N(g) > 0
    reachable     max_s V_seek(s, g)                > reachability_threshold
    controllable  mean_s [V_seek(s, g) + V_avoid(s, g)] > controllability_threshold

The values come from `values.py`; the evaluator hands the plausible goals on to `desirability.py`. The paper's
Algorithm 3 prints the last comparison the other way round; the text and Eq. 2 say what stands here.
"""

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.values import SeekAvoid

REACHABILITY_THRESHOLD = 0.5
CONTROLLABILITY_THRESHOLD = 0.1


class Verdict(IntEnum):
    """What the evaluator thinks of a goal; the first test that fails names the verdict."""

    UNOBSERVED = 0
    UNREACHABLE = 1
    UNCONTROLLABLE = 2
    UNSAMPLED = 3  # observed, but the batch says too little to judge it: optimism, so plausible
    PLAUSIBLE = 4


def judge(
    count: NDArray[np.int64],
    values: SeekAvoid,
    reachability_threshold: float = REACHABILITY_THRESHOLD,
    controllability_threshold: float = CONTROLLABILITY_THRESHOLD,
    min_hits: int = 1,
) -> NDArray[np.int8]:
    """Returns the verdict of every goal, int8[G].

    `count` is N(g), int[G]. A goal without values (NaN: the batch says nothing about its control), or attained by fewer than
    `min_hits` transitions of the batch (it says too little), is UNSAMPLED if it was ever observed.
    """
    _check_threshold("reachability_threshold", reachability_threshold)
    _check_threshold("controllability_threshold", controllability_threshold)
    count = np.asarray(count)
    if count.shape != values.seek_max.shape:
        raise ValueError(f"count has shape {count.shape}, must be {values.seek_max.shape}: one number a goal")
    # DEVIATION(D24): too little evidence counts as none
    sampled = np.isfinite(values.controllability) & (values.hits >= min_hits)
    with np.errstate(invalid="ignore"):
        reachable = values.seek_max > reachability_threshold
        controllable = values.controllability > controllability_threshold
    verdict = np.full(count.shape, Verdict.PLAUSIBLE, dtype=np.int8)
    verdict[~controllable] = Verdict.UNCONTROLLABLE
    verdict[~reachable] = Verdict.UNREACHABLE
    verdict[~sampled] = Verdict.UNSAMPLED
    verdict[count <= 0] = Verdict.UNOBSERVED
    return verdict


def is_plausible(verdict: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Returns bool[G]: True where a goal may be offered, that is PLAUSIBLE, or UNSAMPLED by optimism."""
    return np.asarray(verdict) >= Verdict.UNSAMPLED


def reason(
    verdict: int,
    seek_max: float,
    seek_mean: float,
    avoid_mean: float,
    count: int,
    reachability_threshold: float = REACHABILITY_THRESHOLD,
    controllability_threshold: float = CONTROLLABILITY_THRESHOLD,
) -> str:
    """Returns one sentence for people: the verdict on one goal and its margin to the threshold that decided."""
    times = "once" if count == 1 else f"{count:,} times"
    if verdict == Verdict.UNOBSERVED:
        return "pruned: never observed."
    if verdict == Verdict.UNSAMPLED:
        if np.isnan(seek_mean):
            return f"plausible by optimism: observed {times}, but not in the last batch, so nothing speaks against it."
        return f"plausible by optimism: observed {times}, too rarely in the last batch to tell whether actions matter."
    control = seek_mean + avoid_mean
    reach_margin = _amount(abs(seek_max - reachability_threshold), reachability_threshold)
    control_margin = _amount(abs(control - controllability_threshold), controllability_threshold)
    if verdict == Verdict.UNREACHABLE:
        return (
            f"pruned, not reachable: the largest V_seek is {seek_max:.2f}, "
            f"{reach_margin} short of {reachability_threshold:g} (observed {times})."
        )
    if verdict == Verdict.UNCONTROLLABLE:
        return (
            f"pruned, not controllable: seeking it attains {seek_mean:.2f}, avoiding it still {-avoid_mean:.2f}; the "
            f"difference {_amount(control, controllability_threshold)} is {control_margin} short of "
            f"{controllability_threshold:g} (observed {times})."
        )
    if verdict == Verdict.PLAUSIBLE:
        return (
            f"plausible: the largest V_seek is {seek_max:.2f} "
            f"({reach_margin} above {reachability_threshold:g}), "
            f"and seeking attains {control:.2f} more than avoiding "
            f"({control_margin} above {controllability_threshold:g}; observed {times})."
        )
    raise ValueError(f"verdict is {verdict}, must be one of {[int(v) for v in Verdict]}")


def _amount(number: float, threshold: float) -> str:
    """A number beside a threshold: two decimals, more where the threshold is so small that they would not tell."""
    digits = 2 if threshold <= 0.0 else max(2, 1 - math.floor(math.log10(threshold)))
    return f"{round(number, digits) + 0.0:.{digits}f}"


def _check_threshold(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is {value}, must lie between 0 and 1")
