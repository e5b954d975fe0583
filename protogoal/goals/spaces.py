"""Proto-goal spaces (paper §3): a transition (s, a, s') in, a bit vector b ∈ {0,1}^B out.

A proto-goal is a binary function b_i(s, a, s'). A space holds B of them, cheaply listed and mostly useless; finding the
few worth pursuing is the evaluator's work. Every bit has a name for people, a kind to group it by, and, where it has
one, a cell on a grid. Spaces take batches: the leading axis of every observation is N.

The bits go to `GoalTable` (counts) and, beside the observation, into replay.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]


class ProtoGoalSpace(ABC):
    """B binary functions of a transition, with their names.

    `key` picks this space's part out of a dictionary observation; None takes the observation whole.
    """

    def __init__(self, size: int, key: str | None = None):
        if size < 1:
            raise ValueError(f"a proto-goal space needs at least 1 bit, got {size}")
        self.size = int(size)
        self.key = key

    def bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        """b(s, a, s') for a batch of transitions → bool [N, B]. `s` and `a` may be None where no bit looks at them."""
        if self.key is not None:
            s = None if s is None else s[self.key]
            s_next = s_next[self.key]
        return self._bits(s, a, s_next)

    @abstractmethod
    def _bits(self, s: Any, a: Any, s_next: Any) -> Bits: ...

    @abstractmethod
    def name(self, i: int) -> str:
        """What bit i says, for people: "taxi at (2,3)", "word: water"."""

    @abstractmethod
    def kind(self, i: int) -> str:
        """The group of bits that i belongs to: "taxi", "word"."""

    def cell(self, i: int) -> tuple[int, int] | None:
        """(row, column) of bit i on its grid, or None."""
        return None

    @property
    def grid(self) -> tuple[int, int] | None:
        """(rows, columns) of the grid that cells lie on, or None."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """What the space has learned (a vocabulary), as JSON-able values; {} where there is nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 (most spaces learn nothing)
        """Take back what `state_dict` gave."""


@dataclass(frozen=True)
class Factor:
    """One discrete variable of the state: its kind, a name for each of its values, and their cells if they have any."""

    kind: str
    names: tuple[str, ...]
    cells: tuple[tuple[int, int] | None, ...] | None = None

    @staticmethod
    def positions(kind: str, rows: int, columns: int) -> Factor:
        """The factor "kind at (row,column)" over a grid, row by row."""
        cells = tuple((r, c) for r in range(rows) for c in range(columns))
        return Factor(kind, tuple(f"{kind} at ({r},{c})" for r, c in cells), cells)


class OneHotFactors(ProtoGoalSpace):
    """A factored discrete state, one bit for each value of each factor; observation int [N, F]."""

    def __init__(self, factors: Sequence[Factor], grid: tuple[int, int] | None = None, key: str | None = None):
        self.factors = tuple(factors)
        self._sizes = np.array([len(f.names) for f in self.factors], np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._sizes)[:-1]]).astype(np.int64)
        super().__init__(int(self._sizes.sum()), key)
        self._grid = grid

    def _bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        values = np.asarray(s_next)  # [N, F]
        if values.ndim != 2 or values.shape[1] != len(self.factors):
            raise ValueError(f"expected one value for each of {len(self.factors)} factors, [N, {len(self.factors)}], "
                             f"got shape {values.shape}")
        if ((values < 0) | (values >= self._sizes)).any():
            raise ValueError(f"a factor's value lies outside its range; allowed are 0…size−1 of sizes {self._sizes.tolist()}")
        bits = np.zeros((len(values), self.size), np.bool_)
        np.put_along_axis(bits, values + self._offsets, True, axis=1)
        return bits

    def _locate(self, i: int) -> tuple[Factor, int]:
        f = int(np.searchsorted(self._offsets, i, side="right")) - 1
        return self.factors[f], i - int(self._offsets[f])

    def name(self, i: int) -> str:
        factor, value = self._locate(i)
        return factor.names[value]

    def kind(self, i: int) -> str:
        return self._locate(i)[0].kind

    def cell(self, i: int) -> tuple[int, int] | None:
        factor, value = self._locate(i)
        return None if factor.cells is None else factor.cells[value]

    @property
    def grid(self) -> tuple[int, int] | None:
        return self._grid


class ObjectGrid(ProtoGoalSpace):
    """Every object in every cell: observation is binary planes [N, P, rows, columns]; bit = (plane·rows + r)·columns + c."""

    def __init__(self, planes: Sequence[str], rows: int, columns: int, key: str | None = None):
        self.planes = tuple(planes)
        self.rows, self.columns = int(rows), int(columns)
        super().__init__(len(self.planes) * self.rows * self.columns, key)

    def _bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        planes = np.asarray(s_next)
        expected = (len(self.planes), self.rows, self.columns)
        if planes.shape[1:] != expected:
            raise ValueError(f"expected planes of shape [N, {', '.join(map(str, expected))}], got {planes.shape}")
        return planes.reshape(len(planes), self.size).astype(np.bool_)

    def name(self, i: int) -> str:
        r, c = self.cell(i)
        return f"{self.kind(i)} at ({r},{c})"

    def kind(self, i: int) -> str:
        return self.planes[i // (self.rows * self.columns)]

    def cell(self, i: int) -> tuple[int, int]:
        return divmod(i % (self.rows * self.columns), self.columns)

    @property
    def grid(self) -> tuple[int, int]:
        return self.rows, self.columns


class BagOfWords(ProtoGoalSpace):
    """One bit a word of a text; the vocabulary is discovered as it is read, in reading order, up to `capacity` words.

    Observation: a sequence of N strings or bytes. Words beyond the capacity are ignored and counted in `overflow`.
    """

    WORD = re.compile(r"[a-z']+")

    def __init__(self, capacity: int = 256, key: str | None = None):
        super().__init__(capacity, key)
        self.vocabulary: dict[str, int] = {}
        self.overflow = 0
        self.agree: Callable[[list[str]], Sequence[str]] | None = None
        """Where several processes read: takes new words and returns the vocabulary that all of them share, in order."""

    def _bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        return self.bits_from_text(s_next)

    def bits_from_text(self, texts: Iterable[str | bytes]) -> Bits:
        """Which known words each text holds → bool [N, B]; new words enter the vocabulary first."""
        texts = list(texts)
        bits = np.zeros((len(texts), self.size), np.bool_)
        for row, text in enumerate(texts):
            if text:
                bits[row, self.read(text)] = True
        return bits

    def read(self, text: str | bytes) -> list[int]:
        """The bit indices of a text's words."""
        if isinstance(text, bytes):
            text = text.split(b"\0", 1)[0].decode("latin-1")
        indices = []
        words = self.WORD.findall(text.lower())
        if self.agree is not None and len(self.vocabulary) < self.size:
            new = [word for word in words if word not in self.vocabulary]
            if new:
                self.vocabulary = {word: i for i, word in enumerate(self.agree(new))}
        for word in words:
            i = self.vocabulary.get(word)
            if i is None:
                if len(self.vocabulary) >= self.size:
                    self.overflow += 1
                    continue
                i = self.vocabulary[word] = len(self.vocabulary)
            indices.append(i)
        return indices

    def name(self, i: int) -> str:
        for word, j in self.vocabulary.items():
            if j == i:
                return f"word: {word}"
        return f"word #{i} (not seen yet)"

    def kind(self, i: int) -> str:
        return "word"

    def state_dict(self) -> dict[str, Any]:
        return {"vocabulary": list(self.vocabulary), "overflow": self.overflow}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        words = list(state["vocabulary"])
        if not all(isinstance(word, str) for word in words):
            raise ValueError("the stored vocabulary holds something that is no word")
        if len(words) > self.size:
            raise ValueError(f"the stored vocabulary has {len(words)} words, this space holds at most {self.size}")
        self.vocabulary = {word: i for i, word in enumerate(words)}
        self.overflow = int(state["overflow"])


class CounterThresholds(ProtoGoalSpace):
    """Counters (health, gold, depth) that have reached a threshold: bit = counter ≥ threshold; observation [N, C]."""

    def __init__(self, thresholds: Mapping[str, Sequence[float]], key: str | None = None):
        self.thresholds = {counter: tuple(float(x) for x in values) for counter, values in thresholds.items()}
        self._index = np.array([c for c, values in enumerate(self.thresholds.values()) for _ in values], np.int64)
        self._threshold = np.array([x for values in self.thresholds.values() for x in values])
        super().__init__(len(self._threshold), key)
        if not np.isfinite(self._threshold).all():
            raise ValueError("counter thresholds must be finite numbers")

    def _bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        counters = np.asarray(s_next, np.float64)  # [N, C]
        if counters.ndim != 2 or counters.shape[1] != len(self.thresholds):
            raise ValueError(f"expected {len(self.thresholds)} counters, [N, {len(self.thresholds)}], got shape {counters.shape}")
        if np.isnan(counters).any():
            raise ValueError("a counter is NaN; counters must be numbers")
        return counters[:, self._index] >= self._threshold

    def name(self, i: int) -> str:
        return f"{self.kind(i)} ≥ {self._threshold[i]:g}"

    def kind(self, i: int) -> str:
        return list(self.thresholds)[int(self._index[i])]


class NamedCallables(ProtoGoalSpace):
    """One bit a function f(s, a, s') → bool of a single transition; the most general space, and the slowest."""

    def __init__(self, functions: Mapping[str, Callable[[Any, Any, Any], bool]], kind: str = "event", key: str | None = None):
        self.functions = dict(functions)
        self._names = list(self.functions)
        self._kind = kind
        super().__init__(len(self.functions), key)

    def _bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        bits = np.zeros((len(s_next), self.size), np.bool_)
        for n in range(len(s_next)):
            transition = (None if s is None else s[n], None if a is None else a[n], s_next[n])
            for i, function in enumerate(self.functions.values()):
                bits[n, i] = bool(function(*transition))
        return bits

    def name(self, i: int) -> str:
        return self._names[i]

    def kind(self, i: int) -> str:
        return self._kind


class Union(ProtoGoalSpace):
    """Several spaces side by side; their bits are concatenated in the given order."""

    def __init__(self, spaces: Sequence[ProtoGoalSpace]):
        self.spaces = tuple(spaces)
        self._offsets = np.concatenate([[0], np.cumsum([space.size for space in self.spaces])]).astype(np.int64)
        super().__init__(int(self._offsets[-1]))

    def _bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        return np.concatenate([space.bits(s, a, s_next) for space in self.spaces], axis=1)

    def _locate(self, i: int) -> tuple[ProtoGoalSpace, int]:
        k = int(np.searchsorted(self._offsets, i, side="right")) - 1
        return self.spaces[k], i - int(self._offsets[k])

    def name(self, i: int) -> str:
        space, j = self._locate(i)
        return space.name(j)

    def kind(self, i: int) -> str:
        space, j = self._locate(i)
        return space.kind(j)

    def cell(self, i: int) -> tuple[int, int] | None:
        space, j = self._locate(i)
        return space.cell(j)

    @property
    def grid(self) -> tuple[int, int] | None:
        return next((space.grid for space in self.spaces if space.grid is not None), None)

    def state_dict(self) -> dict[str, Any]:
        return {"spaces": [space.state_dict() for space in self.spaces]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for space, part in zip(self.spaces, state["spaces"], strict=True):
            space.load_state_dict(part)
