"""Every value of a few whole numbers: Discrete, MultiDiscrete, the bytes of a machine's memory; and every bit of MultiBinary.

The numbers of one component are one kind, so its trials pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import PAD, ascending, sparse_bits
from protogoal.goals.spaces import ProtoGoalSpace


class EveryValue(ProtoGoalSpace):
    """Bit (i, v): component i has the value start_i + v; observation [N, …], flattened to [N, F].

    `words` names the components, `names` the values of a component, where they have names. With `columns`, the one component is a
    place on a grid of that width, row by row.
    """

    def __init__(self, words: Sequence[str], sizes: Sequence[int], starts: Sequence[int] | None = None,
                 names: Sequence[str] = (), columns: int = 0, key: str | None = None):
        self.words, self.names, self.columns = tuple(words), tuple(names), int(columns)
        self._sizes = np.asarray(sizes, np.int64)
        self._starts = np.zeros_like(self._sizes) if starts is None else np.asarray(starts, np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._sizes)[:-1]]).astype(np.int64)
        super().__init__(int(self._sizes.sum()), key)

    @property
    def usual_active(self) -> int:
        return len(self._sizes)

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        values = np.asarray(s_next).reshape(len(s_next), -1).astype(np.int64) - self._starts  # [N, F]
        is_known = (values >= 0) & (values < self._sizes)
        return ascending(np.where(is_known, values + self._offsets, PAD))

    def _locate(self, i: int) -> tuple[int, int]:
        component = int(np.searchsorted(self._offsets, i, side="right")) - 1
        return component, i - int(self._offsets[component])

    def name(self, i: int) -> str:
        component, value = self._locate(i)
        if self.columns:
            return "at ({},{})".format(*divmod(value, self.columns))
        if self.names:
            return self.names[value]
        return f"{self.words[component]} = {value + int(self._starts[component])}"

    def kind(self, i: int) -> str:
        return self.words[self._locate(i)[0]]

    def cell(self, i: int) -> tuple[int, int] | None:
        return divmod(i, self.columns) if self.columns else None

    @property
    def grid(self) -> tuple[int, int] | None:
        return (-(-self.size // self.columns), self.columns) if self.columns else None


class EveryBit(ProtoGoalSpace):
    """Bit i: number i of an observation of zeros and ones is 1; [N, F], [N, rows, columns] or [N, planes, rows, columns].

    `axis` of the shape has the planes, which may have `names`; after all places come bits "anything on plane p".
    """

    def __init__(self, word: str, shape: Sequence[int], key: str | None = None, axis: int = 0, names: Sequence[str] = ()):
        self.word, self.shape, self._places = word, tuple(int(n) for n in shape), int(np.prod(shape))
        self._axis = axis if len(self.shape) == 3 else None
        planes = 0 if self._axis is None else self.shape[self._axis]
        self._names = list(names) if len(names) == planes else [f"{word} {p}" if planes > 1 else word for p in range(planes)]
        super().__init__(self._places + planes, key)
        self._sides = self.shape if self._axis is None else tuple(np.delete(self.shape, self._axis).tolist())

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        flat: NDArray[np.bool_] = np.asarray(s_next).reshape(len(s_next), -1) != 0
        if self._axis is None:
            return sparse_bits(flat)
        planes = np.moveaxis(flat.reshape(-1, *self.shape), 1 + self._axis, 1).reshape(len(flat), len(self._names), -1)
        return sparse_bits(np.concatenate([flat, planes.any(2)], 1))

    def _locate(self, i: int) -> tuple[int, tuple[int, ...]]:
        """The plane, and the place in it."""
        if i >= self._places:
            return i - self._places, ()
        place = [int(n) for n in np.unravel_index(i, self.shape)]
        return (0 if self._axis is None else place.pop(self._axis)), tuple(place)

    def name(self, i: int) -> str:
        cell = self.cell(i)
        if i >= self._places:
            return f"{self._names[i - self._places]} present"
        return f"{self.word} {i} is on" if cell is None else f"{self.kind(i)} at ({cell[0]},{cell[1]})"

    def kind(self, i: int) -> str:
        if i >= self._places:
            return f"{self.word} present"
        return self.word if self._axis is None else self._names[self._locate(i)[0]]

    def cell(self, i: int) -> tuple[int, int] | None:
        place = self._locate(i)[1]
        return (place[0], place[1]) if len(place) == 2 else None

    @property
    def grid(self) -> tuple[int, int] | None:
        return (self._sides[0], self._sides[1]) if len(self._sides) == 2 else None
