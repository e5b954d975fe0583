"""Numbers: bins by quantiles of the first steps, and records, levels beyond all that was seen then.

    bin k of x:  e_k ≤ x < e_{k+1}    e: the quantiles 1/8 … 7/8 of the first steps
    records:     x ≥ ℓ                 ℓ: the quantiles 15/16, 31/32 and max, then max + (max − min)·(1/8, 1/4, 1/2, 1, 2), and
                                       x ≤ ℓ on the other side, within the declared bounds

So the levels of a side are a ladder, from what is seldom seen to what never was. All are found once and then stay, so that a bit
means the same for ever. A number that did not change in the first steps has no bins; whole numbers then have records one by one
("depth ≥ 2").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import PAD, ascending
from protogoal.goals.spaces import ProtoGoalSpace

BINS = 8
TAIL = (15 / 16, 31 / 32, 1.0)
BEYOND = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
RECORDS = len(TAIL) + len(BEYOND)  # on each side
Floats = NDArray[np.float64]


class Numbers(ProtoGoalSpace):
    """Bins and records of D numbers; observation [N, …], of which `columns` are taken after flattening (default: all)."""

    def __init__(self, words: Sequence[str], edges: Sequence[Sequence[float]], above: Sequence[Sequence[float]],
                 below: Sequence[Sequence[float]], columns: Sequence[int] | None = None, key: str | None = None):
        self.words = tuple(words)
        super().__init__(len(self.words) * (BINS + 2 * RECORDS), key)
        self.columns = np.arange(len(self.words)) if columns is None else np.asarray(columns, np.int64)
        self._set(edges, above, below)

    @property
    def usual_active(self) -> int:
        return len(self.words) + 2

    @staticmethod
    def fit(words: Sequence[str], samples: Floats, low: Floats, high: Floats, are_whole: bool,
            columns: Sequence[int] | None = None, key: str | None = None) -> Numbers:
        """Bins and records of what was seen first, [n, D], within the bounds [D]."""
        edges, above, below = [], [], []
        for x, least, most in zip(samples.T, low, high, strict=True):
            x = x[np.isfinite(x)]
            x = x if len(x) else np.zeros(1)
            cuts = np.unique(np.quantile(x, np.arange(1, BINS) / BINS, method="higher"))
            edges.append(cuts[cuts > x.min()])
            above.append(_ladder(x, most, most - least, are_whole).tolist())
            below.append((-_ladder(-x, -least, most - least, are_whole)).tolist())
        return Numbers(words, edges, above, below, columns, key)

    def _set(self, edges: Sequence[Sequence[float]], above: Sequence[Sequence[float]], below: Sequence[Sequence[float]]) -> None:
        self._edges = _padded(edges, BINS - 1, np.inf, len(self.words))
        self._above = _padded(above, RECORDS, np.inf, len(self.words))
        self._below = _padded(below, RECORDS, -np.inf, len(self.words))

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        x = np.asarray(s_next, np.float64).reshape(len(s_next), -1)[:, self.columns, None]  # [N, D, 1]
        place = np.arange(len(self.words))
        has_bins = np.isfinite(self._edges[:, 0]) & ~np.isnan(x[..., 0])
        bins = np.where(has_bins, (x >= self._edges).sum(-1) + BINS * place, PAD)  # [N, D]
        first = BINS * len(place) + 2 * RECORDS * place[:, None] + np.arange(RECORDS)  # [D, R]
        above = np.where(x >= self._above, first, PAD)
        below = np.where(x <= self._below, first + RECORDS, PAD)
        return ascending(np.concatenate([part.reshape(len(x), -1) for part in (bins, above, below)], 1))

    def _locate(self, i: int) -> tuple[int, int, int]:
        """The number, its side (0 bins, 1 above, 2 below) and the place there."""
        if i < BINS * len(self.words):
            return i // BINS, 0, i % BINS
        number, rest = divmod(i - BINS * len(self.words), 2 * RECORDS)
        return number, 1 + rest // RECORDS, rest % RECORDS

    def name(self, i: int) -> str:
        number, side, k = self._locate(i)
        word = self.words[number]
        if side:
            level = (self._above if side == 1 else self._below)[number, k] + 0.0  # no −0
            sign = "≥" if side == 1 else "≤"
            return f"{word} {sign} {level:.4g}" if np.isfinite(level) else f"{word}, record {k + 1} {sign} (not possible)"
        edges = [-np.inf, *self._edges[number], np.inf]
        low, high = edges[k], edges[k + 1]
        if np.inf in (low, edges[1]):  # none so high, or no bins at all
            return f"{word}, bin {k + 1} (not possible)"
        if np.isinf(low):
            return f"{word} < {high:.4g}"
        return f"{word} ≥ {low:.4g}" if np.isinf(high) else f"{word} {low:.4g} … {high:.4g}"

    def kind(self, i: int) -> str:
        number, side, _ = self._locate(i)
        return f"{self.words[number]}{' record' if side else ''}"

    def state_dict(self) -> dict[str, Any]:
        sides = {"edges": self._edges, "above": self._above, "below": self._below}
        levels = {name: [row[np.isfinite(row)].tolist() for row in rows] for name, rows in sides.items()}
        return {**levels, "words": list(self.words), "columns": self.columns.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        words, columns = state.get("words", self.words), np.asarray(state.get("columns", self.columns))
        if not len(words) == len(columns) == len(self.words) or columns.dtype.kind not in "iu" or columns.min() < 0:
            raise ValueError(f"stored numbers are {len(words)}, this space has {len(self.words)}")
        self._set(state["edges"], state["above"], state["below"])
        self.words, self.columns = tuple(map(str, words)), columns.astype(np.int64)


def _ladder(x: Floats, most: float, width: float, are_whole: bool) -> Floats:
    """Ascending levels for records of what was seen first, [n]: in its upper tail and beyond, none above `most`."""
    span = x.max() - x.min()
    if span > 0:
        levels = np.concatenate([np.quantile(x, TAIL, method="higher"), x.max() + span * np.asarray(BEYOND)])
        levels = np.ceil(levels) if are_whole else levels
    else:
        step = 1.0 if are_whole else width / RECORDS if np.isfinite(width) else 0.0
        levels = x.max() + step * np.arange(1, RECORDS + 1)
    last_bin = np.quantile(x, 1 - 1 / BINS, method="higher")
    return np.unique(levels[(levels > last_bin) & (levels <= most)])


def _padded(rows: Sequence[Sequence[float]], width: int, fill: float, count: int) -> Floats:
    """Rows of different lengths as one array [count, width]."""
    padded = np.full((count, width), fill)
    if len(rows) != count:
        raise ValueError(f"levels of {len(rows)} numbers, this space has {count}")
    for mine, row in zip(padded, rows, strict=True):
        values = np.asarray(row, np.float64)
        if values.ndim != 1 or len(values) > width or not np.isfinite(values).all():
            raise ValueError(f"levels of a number must be up to {width} finite numbers")
        mine[: len(values)] = values
    return padded
