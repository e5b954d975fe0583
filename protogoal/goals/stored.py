"""Arrays of a saved state, checked before anything computes with them.

A checkpoint may be damaged, crafted, or of another run; a compiled kernel that reads with a wild index reads other memory.
Every `load_state_dict` passes what it takes through here: shape, kind of number, range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {"i": "whole numbers", "f": "real numbers", "b": "true or false"}


def stored_array(
    value: Any, name: str, shape: tuple[int | None, ...], kind: str, low: int | None = None, high: int | None = None
) -> NDArray[Any]:
    """`value` as an array, or a ValueError in one line. `shape`: None allows any length; `kind`: i, f or b."""
    array = np.asarray(value)
    found = "i" if array.dtype.kind == "u" else array.dtype.kind
    if found != kind:
        raise ValueError(f"stored {name} holds {array.dtype}; it must hold {KINDS[kind]}")
    if len(shape) != array.ndim or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"stored {name} has shape {array.shape}, this run's is ({wanted})")
    if array.size:
        for bound, extreme, wrong in ((low, array.min, "below"), (high, array.max, "above")):
            if bound is not None and (extreme() < bound if wrong == "below" else extreme() > bound):
                raise ValueError(f"stored {name} holds {extreme()}, {wrong} the {bound} that is allowed")
    return array


def stored_like(value: Any, name: str, own: NDArray[Any], low: int | None = None, high: int | None = None) -> NDArray[Any]:
    """The same for an array that must have the shape and kind of this run's own."""
    return stored_array(value, name, own.shape, "i" if own.dtype.kind == "u" else own.dtype.kind, low, high)


def stored_number(value: Any, name: str, low: int = 0, high: int | None = None) -> int:
    """A whole number of a saved state."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low or (high is not None and value > high):
        raise ValueError(f"stored {name} is {str(value)[:40]}; it must be a whole number of at least {low}"
                         + ("" if high is None else f", at most {high}"))
    return int(value)
