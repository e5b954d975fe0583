"""What an environment observes, held against what it declared: its shape and type as it is written, its range for a whole batch.

An array that only nearly fits would be broadcast, cut to its low bits or read as another value, and learned from in silence.
`episodes.EnvGroup` asks `fitting` for what is not of the declared type, `reading.ObservationReader` asks `Limits` at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from protogoal.envs.failure import EnvironmentFailure

MOST_ACTIONS = np.iinfo(np.int16).max  # replay keeps actions as int16


def part_of(observation: Any, name: str, is_dict: bool, who: Callable[[], str]) -> Any:
    """One part of an observation, or the whole where it is no dictionary; a failure where there is none of that name."""
    try:
        return observation[name] if is_dict else observation
    except (LookupError, TypeError):
        raise EnvironmentFailure(f"{who()} observed a {type(observation).__name__} without {name!r}") from None


def started(result: Any, who: Callable[[], str]) -> Any:
    """The observation of what `reset` gave."""
    if isinstance(result, tuple) and len(result) == 2:
        return result[0]
    raise EnvironmentFailure(f"{who()} gave a {type(result).__name__} when it was reset; it must give (observation, info)")


def fitting(value: Any, name: str, shape: tuple[int, ...], dtype: np.dtype, who: Callable[[], str]) -> Any:
    """`value` as an array of the declared shape and type, which must hold what it held before; else a failure."""
    if type(value) in (int, np.int64) and not shape and dtype == np.int64 and abs(value) < 2**63:
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        raise EnvironmentFailure(f"{who()} observed {name!r} as lists of different lengths, declared is shape {shape}") from None
    if array.dtype.kind not in "fiub":
        raise EnvironmentFailure(f"{who()} observed {name!r} as {type(value).__name__}, declared is {dtype} {shape}")
    if not shape and array.size == 1:  # an array of one number is as good
        array = array.reshape(())
    if array.shape != shape:
        raise EnvironmentFailure(f"{who()} observed {name!r} of shape {array.shape}, declared is {shape}")
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # what becomes infinite is refused, or read as that, by who asked
            return array.astype(dtype, copy=False)
    with np.errstate(invalid="ignore"):
        cast = array.astype(dtype)
    if not np.array_equal(cast, array):
        wrong = array[np.asarray(cast != array)].flat[0]
        raise EnvironmentFailure(f"{who()} observed {wrong} in {name!r}, declared is {dtype}")
    return cast


class Limits:
    """The ranges of all parts of whole numbers; real numbers need only be finite (declared bounds are seldom kept)."""

    def __init__(self, named: Mapping[str, spaces.Space]):
        self._parts = [(name, *_bounds(part)) for name, part in named.items() if _is_limited(part)]

    def check(self, arrays: Mapping[str, np.ndarray], who: Callable[[int], str]) -> None:
        """Arrays [N, …] by name; a failure names the first environment that is outside, by `who`."""
        for name, low, span, is_from_0, is_uniform in self._parts:
            array = arrays[name]
            # without a sign, what lies below the least is larger than all: one comparison is enough
            above = (array if is_from_0 else array - low).view(f"u{array.itemsize}")
            if (above.max() <= span) if is_uniform else (above <= span).all():
                continue
            wrong = np.argwhere(above > span)[0]
            place = tuple(wrong[1:])
            least = int(np.broadcast_to(low, array.shape[1:])[place])
            most = least + int(np.broadcast_to(span, array.shape[1:])[place])
            seen = array[tuple(wrong)]
            raise EnvironmentFailure(f"{who(int(wrong[0]))} observed {seen} in {name!r}; its space allows {least}…{most}")


def _bounds(part: Any) -> tuple[np.ndarray, np.ndarray, bool, bool]:
    """Least of each number and how much more it may be; whether all begin at 0, and whether all have the same range."""
    if isinstance(part, spaces.Box):
        low, high = part.low, part.high
    elif isinstance(part, spaces.MultiBinary):
        low, high = np.zeros(part.shape, part.dtype), np.ones(part.shape, part.dtype)  # type: ignore[arg-type]
    else:
        low = np.asarray(part.start, part.dtype)
        high = low + np.asarray(part.n if isinstance(part, spaces.Discrete) else part.nvec, part.dtype) - 1
    span = (high - low).view(f"u{low.itemsize}")
    is_uniform = bool((span == span.flat[0]).all() and (low == low.flat[0]).all())
    return low, span.flat[0] if is_uniform else span, not low.any(), is_uniform


def _is_limited(part: spaces.Space) -> bool:
    if isinstance(part, spaces.Box):
        if not np.issubdtype(part.dtype, np.integer):
            return False
        whole = np.iinfo(part.dtype)
        return bool((part.low > whole.min).any() or (part.high < whole.max).any())
    return isinstance(part, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary))
