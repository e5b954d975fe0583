"""Rows of a network's tables that are in use: where there are slots for few of the bits, most were never given to any.

    of a table [S + k, d]:  [:used] and [S:],    used = 1 + the last slot that a bit ever had, k rows that are nobody's slot

A row that no bit ever had is read by nobody and begins anew when it is given (`goals.slots`). Without gradient Adam would leave it
as it is, and so would the mean of weights: `deep.optimizer` and `deep.average` pass it over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Rows = Mapping[Tensor, tuple[slice, ...]]
"""Of a table the parts that are in use; of what is not named here all."""


def rows_in_use(tables: Iterable[Tensor], generation: NDArray[np.int32]) -> Rows:
    """Of tables with a row for each slot, by the generation of each, [S]; all where none was given: bits may have their own."""
    given = np.flatnonzero(generation)
    return {table: (slice(int(given[-1]) + 1), slice(len(generation), None)) for table in tables} if len(given) else {}


def pieces(tensors: Iterable[Tensor], parts: Iterable[tuple[slice, ...]]) -> list[Tensor]:
    """The given parts of each tensor; all of it where there are none."""
    return [piece for tensor, some in zip(tensors, parts, strict=True) for piece in ([tensor[rows] for rows in some] or [tensor])]
