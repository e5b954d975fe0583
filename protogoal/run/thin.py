"""Arrays that are mostly one row repeated, written as the other rows: a vast goal table is, for most of it, rows of nothing.

    array [n, …]  ↔  blank […], at [k], rows [k, …], n        row i is rows[j] where at[j] = i, else blank

`run.checkpoint` writes large arrays so where that saves half of them or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from protogoal.goals.spaces import MOST_BITS
from protogoal.goals.stored import stored_array, stored_number

LARGE = 10_000  # rows; smaller arrays are written as they are
MOST_ROWS = 4 * MOST_BITS
MOST_BYTES = 8 * 10**9  # of an array that a few written ones stand for
THIN = "$thin"


def thin(array: np.ndarray) -> dict[str, np.ndarray] | None:
    """The parts of an array that is mostly one row, or None where it is not, or small. The row in the middle is tried."""
    if array.ndim == 0 or len(array) < LARGE:
        return None
    blank = array[len(array) // 2]
    differs = array != blank
    if array.dtype.kind == "f":
        differs &= ~(np.isnan(array) & np.isnan(blank))
    at = np.flatnonzero(differs if array.ndim == 1 else differs.reshape(len(array), -1).any(1))
    if len(at) > len(array) // 2:
        return None
    return {"blank": np.asarray(blank), "at": at.astype(np.int32), "rows": array[at]}


def thick(size: Any, parts: Mapping[str, np.ndarray]) -> np.ndarray:
    """The whole array again; a ValueError in one line where the parts do not fit each other."""
    n, blank, rows = stored_number(size, "number of rows", 0, MOST_ROWS), np.asarray(parts["blank"]), np.asarray(parts["rows"])
    at = stored_array(parts["at"], "places of rows", (len(rows),), "i", 0, n - 1)
    if rows.shape[1:] != blank.shape or rows.dtype != blank.dtype:
        raise ValueError(f"stored rows are {rows.dtype} {rows.shape[1:]}, the blank one is {blank.dtype} {blank.shape}")
    if n * blank.nbytes > MOST_BYTES:
        raise ValueError(f"stored rows are {n:,} of {blank.nbytes:,} bytes; at most {MOST_BYTES:,} bytes are made of a few")
    array = np.zeros((n, *blank.shape), blank.dtype)
    if blank.any():  # NaN is
        array[:] = blank
    array[at] = rows
    return array
