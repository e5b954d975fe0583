"""Pictures: the grey level of each cell of a small copy.

Eight by eight cells with eight levels say where something bright or dark is, and little more; goals of their own are better where
there are any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.spaces import ProtoGoalSpace

SIDE = 8
LEVELS = 8


class PictureCells(ProtoGoalSpace):
    """Bit (r, c, l): cell (r, c) of the picture has grey level l; bytes or fractions of 1, [N, H, W] or with channels."""

    def __init__(self, word: str, rows: int = SIDE, columns: int = SIDE, key: str | None = None):
        self.word, self.rows, self.columns = word, int(rows), int(columns)
        super().__init__(self.rows * self.columns * LEVELS, key)

    @property
    def usual_active(self) -> int:
        return self.rows * self.columns

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        grey = as_channels(np.asarray(s_next)).mean(1, dtype=np.float32, keepdims=True)
        level = shrunk(grey, self.rows, self.columns).reshape(len(grey), -1).astype(np.int64) * LEVELS // 256
        return level + LEVELS * np.arange(level.shape[1])

    def name(self, i: int) -> str:
        row, column = self.cell(i)
        return f"{self.word} ({row},{column}) brightness {i % LEVELS} of {LEVELS - 1}"

    def kind(self, i: int) -> str:
        row, column = self.cell(i)
        return f"{self.word} ({row},{column})"

    def cell(self, i: int) -> tuple[int, int]:
        return divmod(i // LEVELS, self.columns)

    @property
    def grid(self) -> tuple[int, int]:
        return self.rows, self.columns


def channel_axis(shape: tuple[int, ...]) -> int:
    """Which axis of [H, W, C] or [C, H, W] has the channels: the one beside a square, else the last unless the first is shorter."""
    if len(shape) == 3 and shape[0] == shape[1]:
        return 2
    return 0 if shape[0] < shape[-1] or shape[-2] == shape[-1] else len(shape) - 1


def plane_axis(shape: tuple[int, ...]) -> int:
    """Which axis of [C, H, W] has the planes, of which there may be many: the first, unless a square comes before the last."""
    return 2 if len(shape) == 3 and shape[0] == shape[1] != shape[2] else 0


def as_channels(array: NDArray[Any]) -> NDArray[Any]:
    """Pictures [N, H, W], [N, H, W, C] or [N, C, H, W], bytes or fractions of 1, as numbers of 0…255 [N, C, H, W]."""
    picture = array[:, None] if array.ndim == 3 else np.moveaxis(array, 1 + channel_axis(array.shape[1:]), 1)
    return picture if picture.dtype == np.uint8 else picture * np.float32(255)


def shrunk(picture: NDArray[Any], rows: int, columns: int) -> NDArray[np.uint8]:
    """Means over blocks, [N, C, H, W] → uint8 [N, C, rows, columns]; what does not fill a block is cut off."""
    n, c, height, width = picture.shape
    tall, wide = height // rows, width // columns
    blocks = picture[:, :, : tall * rows, : wide * columns].reshape(n, c, rows, tall, columns, wide)
    means = blocks if tall * wide == 1 else blocks.mean((3, 5), dtype=np.float32)
    return means.reshape(n, c, rows, columns).astype(np.uint8)
