"""How the network sees the parts of an observation: each space has a kind of array (`vector.ArraySpec`) and a function to it.

    Discrete, MultiDiscrete          ids                       "active"
    MultiBinary, 0/1 Box [C, H, W]   planes                    "planes"; a bool Box too, and [H, H, C]
    grids of small whole numbers     a value a cell            "characters"; with channels "grid"
    bytes [D]                        bits and numbers          "bytes"
    pictures, stacks of them         at most 64 × 64           "picture"
    Text                             hashed words              "active"
    all other numbers                asinh((x − mean) / std)   "vector"

Mean and deviation are those of the first steps (`first_steps`), if the proto-goal space knows them; else numbers are taken as they
are. `gym_batch` reads whole batches with these functions; `derive` asks `kind_of` which proto-goals a part may have.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from protogoal.envs.vector import PAD, ArraySpec
from protogoal.goals.derived.pictures import as_channels, channel_axis, picture_sides, plane_axis, shrunk

MOST_CHARACTERS = 8_192
"""A grid of whole numbers with more values than this is taken as a vector, not as characters."""

LARGE_GRID = 512
"""Cells from which on a grid is read with strides."""

LONGEST_VECTOR = 16_384

MOST_IDS = 65_536
"""Of a Discrete space with more values, several share an id."""

SMALLEST_PICTURE = 32
"""Rows and columns from which on bytes are a picture and not a grid of values."""

LARGEST_SIDE = 64
"""Pictures that are larger are made smaller; those that are also coloured become grey, each of a stack by itself."""

MOST_COLOURS = 4
"""Channels of one frame in a stack of coloured ones."""

MOST_WORDS = 48
"""Words of a text that are read."""

WORD_IDS = 2_048
"""Words are told apart by a hash below this."""

Kind = Literal["values", "binary", "planes", "grid", "bytes", "picture", "text", "numbers"]
Reader = Callable[[np.ndarray], np.ndarray]
Moments = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Name of a part → mean and deviation of each of its numbers."""

WORD = re.compile(rb"[a-z0-9'\x80-\xff]+")


def kind_of(space: spaces.Space) -> Kind:
    """What sort of thing a part of an observation is; a ValueError where it is nothing that can be read."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        return "values"
    if isinstance(space, spaces.Text):
        return "text"
    if isinstance(space, spaces.MultiBinary):
        return "planes" if len(space.shape) in (2, 3) else "binary"
    if not isinstance(space, spaces.Box):
        raise ValueError(f"{type(space).__name__} is none of Box, Discrete, MultiDiscrete, MultiBinary and Text")
    if is_picture(space):
        return "picture"
    if space.dtype == np.bool_:
        return "planes" if len(space.shape) in (2, 3) else "binary"
    if np.issubdtype(space.dtype, np.integer):
        low, high = int(space.low.min()), int(space.high.max())
        if len(space.shape) == 3 and low >= 0 and high <= 1:
            return "planes"
        if len(space.shape) == 1 and space.dtype == np.uint8 and (low, high) == (0, 255):
            return "bytes"
        if len(space.shape) in (2, 3) and high - low < MOST_CHARACTERS:
            return "grid"
    return "numbers"


def is_picture(space: spaces.Box) -> bool:
    """Bytes, or fractions of 1, too large for a grid of values: [H, W], [H, W, C], [C, H, W], or frames of colours [T, …].

    Fractions with more than four channels are numbers while there are few enough of them.
    """
    if len(space.shape) not in (2, 3, 4) or min(picture_sides(space.shape)) < SMALLEST_PICTURE:
        return False
    if len(space.shape) == 4 and space.shape[1 + channel_axis(space.shape[1:])] > MOST_COLOURS:
        return False
    is_bytes = space.dtype == np.uint8 and space.high.max() == 255
    is_shares = np.issubdtype(space.dtype, np.floating) and space.low.min() >= 0 and space.high.max() <= 1
    channels = int(np.prod(space.shape)) // int(np.prod(picture_sides(space.shape)))
    is_vector = channels > MOST_COLOURS and np.prod(space.shape) <= LONGEST_VECTOR
    return bool(is_bytes or (is_shares and not is_vector))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def reader(name: str, space: spaces.Space, moments: Callable[[], Moments] = dict) -> tuple[ArraySpec, Reader]:
    """How the network sees one part of an observation: its spec, and the function from arrays [N, …] to it."""
    try:
        kind = kind_of(space)
    except ValueError as error:
        raise ValueError(f"observation part {name!r}: {error}") from None
    part: Any = space
    if kind == "values":
        return _values(part)
    if kind == "text":
        return ArraySpec((MOST_WORDS,), np.dtype(np.int16), "active", WORD_IDS), _words
    if kind == "binary":
        return _numbers(name, part, dict)
    if kind == "planes":
        return _planes(part)
    if kind == "grid":
        return _grid(part)
    if kind == "bytes":
        return ArraySpec(part.shape, np.dtype(np.uint8), "bytes"), np.array
    return _picture(part) if kind == "picture" else _numbers(name, part, moments)


def _values(space: Any) -> tuple[ArraySpec, Reader]:
    sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).astype(np.int64).ravel()
    starts = np.atleast_1d(space.start).astype(np.int64).ravel()
    total = int(sizes.sum())
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - starts
    ids = min(total, MOST_IDS)
    dtype = np.dtype(np.int16 if ids < 2**15 else np.int32)

    def read(array: np.ndarray) -> np.ndarray:
        flat = array.reshape(len(array), -1) + offsets
        return (flat if ids == total else flat % ids).astype(dtype)

    return ArraySpec((len(sizes),), dtype, "active", ids), read


def _planes(space: Any) -> tuple[ArraySpec, Reader]:
    shape = space.shape if len(space.shape) == 3 else (1, *space.shape)
    axis = plane_axis(shape)
    planes = (shape[axis], *_without(shape, axis))
    return (ArraySpec(planes, np.dtype(np.uint8), "planes"),
            lambda array: np.moveaxis(array.reshape(-1, *shape), 1 + axis, 1).astype(np.uint8))


def _grid(space: spaces.Box) -> tuple[ArraySpec, Reader]:
    """Each channel has ids of its own: value − least + (values of the channels before it)."""
    low, high = int(space.low.min()), int(space.high.max())
    if len(space.shape) == 2:
        dtype = np.dtype(np.uint8 if high - low < 256 else np.int16)
        is_large = int(np.prod(space.shape)) > LARGE_GRID
        cells: tuple[int, ...] = (1, *space.shape) if is_large else space.shape
        spec = ArraySpec(cells, dtype, "grid" if is_large else "characters", high - low + 1)
        return spec, lambda array: (array if low == 0 else array.astype(np.int64) - low).astype(dtype).reshape(-1, *cells)
    axis = channel_axis(space.shape)
    lows, sizes = channel_ranges(space)
    offsets = (np.concatenate([[0], np.cumsum(sizes)[:-1]]) - lows).reshape(-1, 1, 1)
    total = int(sizes.sum())
    dtype = np.dtype(np.uint8 if total <= 256 else np.int16 if total < 2**15 else np.int32)
    shape = (space.shape[axis], *_without(space.shape, axis))
    return ArraySpec(shape, dtype, "grid", total), lambda array: (np.moveaxis(array, 1 + axis, 1) + offsets).astype(dtype)


def channel_ranges(space: spaces.Box) -> tuple[np.ndarray, np.ndarray]:
    """Of each channel of a grid: its least value, and how many there are."""
    axis = channel_axis(space.shape)
    others = tuple(i for i in range(3) if i != axis)
    lows = space.low.min(others).astype(np.int64)
    return lows, space.high.max(others).astype(np.int64) - lows + 1


def _picture(space: spaces.Box) -> tuple[ArraySpec, Reader]:
    height, width = picture_sides(space.shape)
    factor = -(-max(height, width) // LARGEST_SIDE)
    rows, columns = height // factor, width // factor
    is_grey = factor > 1
    channels = as_channels(np.zeros((1, *space.shape), space.dtype), is_grey).shape[1]

    def read(array: np.ndarray) -> np.ndarray:
        return shrunk(as_channels(array, is_grey), rows, columns)

    return ArraySpec((channels, rows, columns), np.dtype(np.uint8), "picture"), read


def _words(array: np.ndarray) -> np.ndarray:
    """Texts as bytes [N, length] padded with zeros → the ids of their words, ascending, each once."""
    ids = np.full((len(array), MOST_WORDS), PAD, np.int16)
    for row, text in zip(ids, array.view(f"S{array.shape[1]}")[:, 0].tolist(), strict=True):
        found = sorted({zlib.crc32(word) % WORD_IDS for word in WORD.findall(text.lower())})[:MOST_WORDS]
        row[: len(found)] = found
    return ids


def _numbers(name: str, space: Any, moments: Callable[[], Moments]) -> tuple[ArraySpec, Reader]:
    """A flat float32 vector: whole numbers of a known range as shares of it, others by the moments of the first steps."""
    size = int(np.prod(space.shape))
    if size > LONGEST_VECTOR:
        raise ValueError(f"observation part {name!r} has {size} numbers; a vector may have at most {LONGEST_VECTOR}. "
                         "Smaller pictures, 0/1 planes [C, H, W] or a grid of whole numbers [H, W] are allowed")
    shift, scale = _range(space)

    def read(array: np.ndarray) -> np.ndarray:
        known = moments().get(name)
        if known is None:
            return ((array.reshape(len(array), -1) - shift) / scale).astype(np.float32)
        return np.arcsinh((array.reshape(len(array), -1) - known[0]) / known[1]).astype(np.float32)

    return ArraySpec((size,), np.dtype(np.float32), "vector"), read


def _range(space: Any) -> tuple[float, float]:
    """What is subtracted from whole numbers of a finite range, and what the rest is divided by; (0, 1) for all others."""
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer):
        low, high = float(space.low.min()), float(space.high.max())
        if np.isfinite([low, high]).all() and high > low:
            return low, high - low
    return 0.0, 1.0
