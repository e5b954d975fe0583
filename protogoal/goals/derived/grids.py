"""Grids of small whole numbers: each value present anywhere, and each value in each cell.

What fills a large grid (walls, floor) is its ground; there a cell is a goal only for values of which there are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import PAD, Ids, ascending, dense_bits, sparse_bits
from protogoal.goals.spaces import ProtoGoalSpace

WHOLE_UP_TO = 160
"""Cells (times channels) of a grid whose every value has a goal in every cell."""

FEW = 4
"""In a larger grid, values that are in no more cells than this have them."""

MOST_PLACES = 2_000_000


class GridValues(ProtoGoalSpace):
    """Bits "value v of channel c is present" and "… in cell (r, c)"; observation [N, C, H, W], or [N, H, W] for one channel.

    lows, sizes   of each channel the least value and how many there are
    axis          where the channels are in [N, …]; None without
    called        names of the values of a grid without channels; else they are told by their numbers
    """

    def __init__(self, word: str, rows: int, columns: int, lows: Sequence[int], sizes: Sequence[int], axis: int | None = None,
                 key: str | None = None, called: Sequence[str] = ()):
        self.called = tuple(called)
        self.word, self.rows, self.columns, self.axis = word, int(rows), int(columns), axis
        self._lows, self._sizes = np.asarray(lows, np.int64), np.asarray(sizes, np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._sizes)])
        self._values = int(self._offsets[-1])
        self.has_places = self._values * self.rows * self.columns <= MOST_PLACES
        super().__init__(self._values * (1 + (self.rows * self.columns if self.has_places else 0)), key)
        self._cells = len(self._lows) * self.rows * self.columns
        self.is_whole = self._cells <= WHOLE_UP_TO

    @property
    def usual_active(self) -> int:
        return min(self.size, (self._cells if self.is_whole else 0) + min(self._values, 16))

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        grid = np.asarray(s_next).astype(np.int64)
        grid = grid[:, None] if self.axis is None else np.moveaxis(grid, self.axis, 1)  # [N, C, H, W]
        value = grid.reshape(*grid.shape[:2], -1) - self._lows[:, None]
        is_known = (value >= 0) & (value < self._sizes[:, None])
        value = np.where(is_known, value + self._offsets[:-1, None], PAD).reshape(len(grid), -1)  # [N, C·H·W]
        present = present_values(value, self._values)
        if not self.has_places:
            return ascending(present)
        cells = np.tile(np.arange(self.rows * self.columns), len(self._lows))
        places = np.where(value == PAD, PAD, self._values * (1 + cells) + value)
        if not self.is_whole:
            places = np.where(how_many(value, self._values) <= FEW, places, PAD)
        return ascending(np.concatenate([present, places], 1))

    def _locate(self, i: int) -> tuple[int, int, int]:
        """Place (−1: anywhere), channel and value."""
        place, value = divmod(i, self._values)
        channel = int(np.searchsorted(self._offsets, value, side="right")) - 1
        return place - 1, channel, value - int(self._offsets[channel]) + int(self._lows[channel])

    def name(self, i: int) -> str:
        place, channel, value = self._locate(i)
        what = self.value_name(channel, value)
        return f"{what} present" if place < 0 else "{} at ({},{})".format(what, *divmod(place, self.columns))

    def value_name(self, channel: int, value: int) -> str:
        """A value in words."""
        if self.called:
            return f"{self.word}: {self.called[value - int(self._lows[0])]}"
        return f"{self.word} {channel} = {value}" if len(self._lows) > 1 else f"{self.word} {value}"

    def kind(self, i: int) -> str:
        place, channel, value = self._locate(i)
        return f"{self.word} present" if place < 0 else self.value_name(channel, value)

    def cell(self, i: int) -> tuple[int, int] | None:
        place = self._locate(i)[0]
        return None if place < 0 else divmod(place, self.columns)

    @property
    def grid(self) -> tuple[int, int]:
        return self.rows, self.columns


def present_values(value: NDArray[np.int64], num_values: int) -> Ids:
    """Lists [N, M] of values, padded with −1 → the different ones of each row, padded with −1."""
    return sparse_bits(dense_bits(value, num_values))


def how_many(value: NDArray[np.int64], num_values: int) -> NDArray[np.int64]:
    """How often the value at each place of a row is in that row, [N, M]."""
    rows = np.arange(len(value))[:, None]
    counts = np.bincount((value + rows * (num_values + 1) + 1).ravel(), minlength=len(value) * (num_values + 1))
    return counts.reshape(len(value), -1)[rows, value + 1]
