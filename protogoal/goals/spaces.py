"""Proto-goal spaces (paper §3): a transition (s, a, s') in, the ids of the bits of b ∈ {0,1}^B that are on out.

A proto-goal is a binary function b_i(s, a, s'). A space holds B of them, cheaply listed and mostly useless; finding the
few worth pursuing is the evaluator's work. Every bit has a name for people, a kind to group it by, and, where it has
one, a cell on a grid. Spaces take batches: the leading axis of every observation is N.

What is on comes as lists of ids (`active.py`), so a bit that is merely declared costs nothing. They go to `GoalTable` (counts) and,
beside the observation, into replay.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from protogoal.goals.active import PAD, AnyIds, Bits, Ids, WrongIds, check_ids, compact, dense_bits, side_by_side, sparse_bits

MOST_BITS = 10_000_000
"""A space may declare so many: a counter each, about 1 GB."""


USUALLY_ON = 64


class ProtoGoalSpace(ABC):
    """B binary functions of a transition, with their names.

    A class of its own says which are on, in one of two ways: `_active`, lists of ids, for spaces of any size; or `_bits`, a matrix
    [N, B], simple and good for some thousands of bits. `key` picks this space's part out of a dictionary observation; None takes
    the observation whole.
    """

    def __init__(self, size: int, key: str | None = None):
        if not (1 <= size <= MOST_BITS and size == int(size)):
            raise ValueError(f"a proto-goal space has {size:,} bits; allowed are 1…{MOST_BITS:,}")
        if type(self)._active is ProtoGoalSpace._active and type(self)._bits is ProtoGoalSpace._bits:
            raise ValueError(f"{type(self).__name__} says of no bit whether it is on; write _active (ids) or _bits (a matrix)")
        if type(self).bits is not ProtoGoalSpace.bits or type(self).active is not ProtoGoalSpace.active:
            raise ValueError(f"{type(self).__name__} has bits or active of its own; write _bits or _active, which they ask")
        self.size = int(size)
        self.key = key

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A class that has a matrix of its own does not inherit the ids of another."""
        super().__init_subclass__(**kwargs)
        if "_bits" in vars(cls) and "_active" not in vars(cls):
            cls._active = ProtoGoalSpace._active  # type: ignore[method-assign]

    def active(self, s: Any, a: Any, s_next: Any) -> Ids:
        """Which bits of b(s, a, s') are on, for a batch of transitions: lists of ids, int32 [N, L].

        Each row ascends, names an id once, and is padded with −1; L is what the batch needs, and another the next time. `s` and `a`
        may be None where no bit looks at them.
        """
        if self.key is not None:
            s = None if s is None else s[self.key]
            s_next = s_next[self.key]
        return check_ids(self._active(s, a, s_next), self.size)

    def bits(self, s: Any, a: Any, s_next: Any) -> Bits:
        """The same as a matrix, bool [N, B]: for small spaces and for looking at them."""
        return dense_bits(self.active(s, a, s_next), self.size)

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        """Lists of ids [N, L], ascending, padded with −1; from `_bits` where a class has that instead."""
        bits = np.asarray(self._bits(s, a, s_next))
        if bits.ndim != 2 or bits.shape[1] != self.size or bits.dtype != np.bool_:
            raise WrongIds(f"the proto-goal space gave {bits.dtype} bits of shape {bits.shape}; it must give bool [N, {self.size}]")
        return sparse_bits(bits)

    def _bits(self, s: Any, a: Any, s_next: Any) -> Any:
        """A matrix, bool [N, B]; asked for only where a class has no `_active`."""
        raise NotImplementedError

    @property
    def usual_active(self) -> int:
        """About how many bits are on at once: room is made for these at first, and for more when more are on."""
        return min(self.size, USUALLY_ON)

    @abstractmethod
    def name(self, i: int) -> str:
        """What bit i says, for people: "taxi at (2,3)", "word: water"."""

    @abstractmethod
    def kind(self, i: int) -> str:
        """The group of bits that i belongs to: "taxi", "word"."""

    def kinds_of(self, bits: AnyIds) -> Sequence[str]:
        """The kinds of several bits, ascending; asked once of each bit that is ever on, so a vast space may want to be quick."""
        return [self.kind(int(i)) for i in bits]

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

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        values = np.asarray(s_next)  # [N, F]
        if values.ndim != 2 or values.shape[1] != len(self.factors):
            raise ValueError(f"expected one value for each of {len(self.factors)} factors, [N, {len(self.factors)}], "
                             f"got shape {values.shape}")
        if ((values < 0) | (values >= self._sizes)).any():
            raise ValueError(f"a factor's value lies outside its range; allowed are 0…size−1 of sizes {self._sizes.tolist()}")
        return values + self._offsets

    @property
    def usual_active(self) -> int:
        return len(self.factors)

    def _locate(self, i: int) -> tuple[Factor, int]:
        f = int(np.searchsorted(self._offsets, i, side="right")) - 1
        return self.factors[f], i - int(self._offsets[f])

    def name(self, i: int) -> str:
        factor, value = self._locate(i)
        return factor.names[value]

    def kind(self, i: int) -> str:
        return self._locate(i)[0].kind

    def kinds_of(self, bits: AnyIds) -> Sequence[str]:
        return [self.factors[f].kind for f in (np.searchsorted(self._offsets, bits, side="right") - 1).tolist()]

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

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        planes = np.asarray(s_next)
        expected = (len(self.planes), self.rows, self.columns)
        if planes.shape[1:] != expected:
            raise ValueError(f"expected planes of shape [N, {', '.join(map(str, expected))}]; got {planes.shape}")
        return sparse_bits(planes.reshape(len(planes), self.size).astype(np.bool_))  # the observation itself is dense

    def name(self, i: int) -> str:
        r, c = self.cell(i)
        return f"{self.kind(i)} at ({r},{c})"

    def kind(self, i: int) -> str:
        return self.planes[i // (self.rows * self.columns)]

    def kinds_of(self, bits: AnyIds) -> Sequence[str]:
        return [self.planes[p] for p in (bits // (self.rows * self.columns)).tolist()]

    def cell(self, i: int) -> tuple[int, int]:
        return divmod(i % (self.rows * self.columns), self.columns)

    @property
    def grid(self) -> tuple[int, int]:
        return self.rows, self.columns


WORDS_OF_A_LINE = 32
MOST_WORDS = 65_536  # what is declared and never read costs next to nothing


class BagOfWords(ProtoGoalSpace):
    """One bit a word of a text; the vocabulary is discovered as it is read, in reading order, up to `capacity` words.

    Observation: a sequence of N strings or bytes. Words beyond the capacity are ignored and counted in `overflow`. `title` stands
    before each word in its name, and is its kind: where several texts are read, it tells them apart.
    """

    WORD = re.compile(r"[a-z']+")

    def __init__(self, capacity: int = MOST_WORDS, key: str | None = None, title: str = "word"):
        super().__init__(capacity, key)
        self.title = title
        self.vocabulary: dict[str, int] = {}
        self._words: list[str] = []  # of the vocabulary, as `name` last needed them
        self.overflow = 0
        self.agree: Callable[[list[str], int], Sequence[str]] | None = None
        """Where several processes read: takes new words and how many are known; returns the shared ones after these, in order."""

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        return self.read_all(s_next)

    def read_all(self, texts: Iterable[str | bytes]) -> Ids:
        """The known words of each text, lists of ids [N, L]; new words enter the vocabulary first."""
        read = [sorted(set(self.read(text))) if text else [] for text in texts]
        active = np.full((len(read), max(1, max(map(len, read), default=0))), PAD, np.int32)
        for row, ids in zip(active, read, strict=True):
            row[: len(ids)] = ids
        return active

    def read(self, text: str | bytes) -> list[int]:
        """The bit indices of a text's words."""
        if isinstance(text, bytes):
            text = text.split(b"\0", 1)[0].decode("latin-1")
        indices = []
        words = self.WORD.findall(text.lower())
        if self.agree is not None and len(self.vocabulary) < self.size:
            new = [word for word in words if word not in self.vocabulary]
            if new:
                for word in self.agree(new, len(self.vocabulary)):
                    self.vocabulary[word] = len(self.vocabulary)
        for word in words:
            i = self.vocabulary.get(word)
            if i is None:
                if len(self.vocabulary) >= self.size:
                    self.overflow += 1
                    continue
                i = self.vocabulary[word] = len(self.vocabulary)
            indices.append(i)
        return indices

    @property
    def usual_active(self) -> int:
        return min(self.size, WORDS_OF_A_LINE)

    def name(self, i: int) -> str:
        if len(self._words) != len(self.vocabulary):
            self._words = list(self.vocabulary)
        return f"{self.title}: {self._words[i]}" if i < len(self._words) else f"{self.title} #{i} (not seen yet)"

    def kind(self, i: int) -> str:
        return self.title

    def kinds_of(self, bits: AnyIds) -> Sequence[str]:
        return [self.title] * len(bits)

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
        self._counters = list(self.thresholds)
        self._index = np.array([c for c, values in enumerate(self.thresholds.values()) for _ in values], np.int64)
        self._threshold = np.array([x for values in self.thresholds.values() for x in values])
        super().__init__(len(self._threshold), key)
        if not np.isfinite(self._threshold).all():
            raise ValueError("counter thresholds must be finite numbers")

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        counters = np.asarray(s_next, np.float64)  # [N, C]
        if counters.ndim != 2 or counters.shape[1] != len(self.thresholds):
            raise ValueError(f"expected {len(self.thresholds)} counters, [N, {len(self.thresholds)}]; got shape {counters.shape}")
        if np.isnan(counters).any():
            raise ValueError("a counter is NaN; counters must be numbers")
        return sparse_bits(counters[:, self._index] >= self._threshold)

    def name(self, i: int) -> str:
        return f"{self.kind(i)} ≥ {self._threshold[i]:g}"

    def kind(self, i: int) -> str:
        return self._counters[int(self._index[i])]


class NamedCallables(ProtoGoalSpace):
    """One bit a function f(s, a, s') → bool of a single transition; the most general space, and the slowest."""

    def __init__(self, functions: Mapping[str, Callable[[Any, Any, Any], bool]], kind: str = "event", key: str | None = None):
        self.functions = dict(functions)
        self._names = list(self.functions)
        self._kind = kind
        super().__init__(len(self.functions), key)

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        active = np.full((len(s_next), self.size), PAD, np.int32)
        for n in range(len(s_next)):
            transition = (None if s is None else s[n], None if a is None else a[n], s_next[n])
            on = [i for i, function in enumerate(self.functions.values()) if function(*transition)]
            active[n, : len(on)] = on
        return compact(active)

    def name(self, i: int) -> str:
        return self._names[i]

    def kind(self, i: int) -> str:
        return self._kind


class Union(ProtoGoalSpace):
    """Several spaces side by side; their bits are concatenated in the given order."""

    def __init__(self, spaces: Sequence[ProtoGoalSpace]):
        self.spaces = tuple(spaces)
        self._offsets = np.concatenate([[0], np.cumsum([space.size for space in self.spaces])]).astype(np.int64)
        self._firsts: list[int] = self._offsets.tolist()
        super().__init__(self._firsts[-1])

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        return side_by_side([(space.active(s, a, s_next), int(first))
                             for space, first in zip(self.spaces, self._offsets[:-1], strict=True)])

    @property
    def usual_active(self) -> int:
        return sum(space.usual_active for space in self.spaces)

    def _locate(self, i: int) -> tuple[ProtoGoalSpace, int]:
        k = bisect_right(self._firsts, i) - 1
        return self.spaces[k], i - self._firsts[k]

    def name(self, i: int) -> str:
        space, j = self._locate(i)
        return space.name(j)

    def kind(self, i: int) -> str:
        space, j = self._locate(i)
        return space.kind(j)

    def kinds_of(self, bits: AnyIds) -> Sequence[str]:
        cuts = np.searchsorted(bits, self._offsets)
        return [kind for k, space in enumerate(self.spaces) if cuts[k] < cuts[k + 1]
                for kind in space.kinds_of(bits[cuts[k] : cuts[k + 1]] - self._offsets[k])]

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
