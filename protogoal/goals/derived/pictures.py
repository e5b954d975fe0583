"""Pictures: the grey level of each cell of a small copy.

Eight by eight cells with eight levels say where something bright or dark is, and little more; goals of their own are better where
there are any. Up to three channels are colours; more are a stack of frames, of which the last is the newest and has the goals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.spaces import ProtoGoalSpace

SIDE = 8
LEVELS = 8


class PictureCells(ProtoGoalSpace):
    """Bit (r, c, l): cell (r, c) of the newest picture has grey level l; bytes or fractions of 1, [N, H, W] or with channels."""

    def __init__(self, word: str, rows: int = SIDE, columns: int = SIDE, key: str | None = None):
        self.word, self.rows, self.columns = word, int(rows), int(columns)
        super().__init__(self.rows * self.columns * LEVELS, key)

    @property
    def usual_active(self) -> int:
        return self.rows * self.columns

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        grey = as_channels(newest(np.asarray(s_next))).mean(1, dtype=np.float32, keepdims=True)
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


COLOURS = 3


def picture_sides(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a picture, with or without channels, or of a stack of coloured ones [T, …]."""
    one = shape[1:] if len(shape) == 4 else shape
    rows, columns = one if len(one) == 2 else np.delete(one, channel_axis(one))
    return int(rows), int(columns)


def newest(array: NDArray[Any]) -> NDArray[Any]:
    """The last of the frames of each stack; what is no stack stays as it is."""
    if array.ndim == 5:
        return array[:, -1]
    axis = 1 + channel_axis(array.shape[1:]) if array.ndim == 4 else 0
    return array.take(-1, axis) if axis and array.shape[axis] > COLOURS else array


def greyed(array: NDArray[Any]) -> NDArray[Any]:
    """Pictures [N, C, H, W] whose three colours are one grey; stacks of frames keep their frames."""
    return array.mean(1, dtype=np.float32, keepdims=True) if array.shape[1] == COLOURS else array


def as_channels(array: NDArray[Any], is_grey: bool = False) -> NDArray[Any]:
    """Pictures [N, H, W], [N, H, W, C] or [N, C, H, W], bytes or fractions of 1, as numbers of 0…255 [N, C, H, W].

    Of stacks [N, T, H, W, C] and [N, T, C, H, W] the channels are those of all frames. `is_grey`: no colours.
    """
    if array.ndim == 5:
        frames = as_channels(array.reshape(-1, *array.shape[2:]), is_grey)
        return frames.reshape(len(array), -1, *frames.shape[2:])
    if is_grey:
        return greyed(as_channels(array))
    picture = array[:, None] if array.ndim == 3 else np.moveaxis(array, 1 + channel_axis(array.shape[1:]), 1)
    return picture if picture.dtype == np.uint8 else picture * np.float32(255)


def shrunk(picture: NDArray[Any], rows: int, columns: int) -> NDArray[np.uint8]:
    """Means over blocks, [N, C, H, W] → uint8 [N, C, rows, columns]; what does not fill a block is cut off."""
    n, c, height, width = picture.shape
    tall, wide = height // rows, width // columns
    blocks = picture[:, :, : tall * rows, : wide * columns].reshape(n, c, rows, tall, columns, wide)
    means = blocks if tall * wide == 1 else blocks.mean((3, 5), dtype=np.float32)
    return means.reshape(n, c, rows, columns).astype(np.uint8)
