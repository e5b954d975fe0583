"""Counters: levels that a number reached, and that it rose. For what an environment keeps in `info`: an inventory, achievements.

    level ℓ of x:  x ≥ ℓ,   ℓ = 1 … 10, 20, 50, 100, …, 1,000,000, if no others are given
    rose:          x' > x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from protogoal.goals.active import PAD, ascending
from protogoal.goals.spaces import ProtoGoalSpace

LEVELS = (*range(1, 11), *(m * 10**k for k in range(1, 6) for m in (2, 5, 10)))

_NOUNS = ("coal", "diamond", "drink", "iron", "sapling", "stone", "wood")
_TOOLS = ("iron pickaxe", "iron sword", "stone pickaxe", "stone sword", "wood pickaxe", "wood sword")

ACHIEVED = {
    **{f"collect {noun}": f"{noun} collected" for noun in _NOUNS},
    **{f"make {tool}": f"{tool} made" for tool in _TOOLS},
    **{f"place {thing}": f"{thing} placed" for thing in ("furnace", "plant", "stone", "table")},
    "defeat skeleton": "skeleton defeated",
    "defeat zombie": "zombie defeated",
    "eat cow": "cow eaten",
    "eat plant": "plant eaten",
    "wake up": "woke up",
}
"""Crafter's achievements in words: what has been done once the counter is 1."""


class CounterLevels(ProtoGoalSpace):
    """Levels and rises of C counters; observation float [N, …], of which `columns` are taken; NaN turns nothing on."""

    def __init__(self, words: Sequence[str], columns: Sequence[int], key: str | None = None,
                 levels: Sequence[int] = LEVELS):
        self.words = tuple(words)
        self.columns = np.asarray(columns, np.int64)
        self.levels = tuple(levels)
        super().__init__(len(self.words) * (len(self.levels) + 1), key)
        self._levels = np.asarray(self.levels, np.float64)

    @property
    def usual_active(self) -> int:
        return 2 * len(self.words)

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        x = np.asarray(s_next, np.float64)[:, self.columns]  # [N, C]
        first = (len(self.levels) + 1) * np.arange(len(self.words))
        before = x if s is None else np.asarray(s, np.float64)[:, self.columns]
        rose = np.where(x > before, first, PAD)
        reached = np.where(x[..., None] >= self._levels, first[:, None] + 1 + np.arange(len(self.levels)), PAD)
        return ascending(np.concatenate([rose, reached.reshape(len(x), -1)], 1))

    def name(self, i: int) -> str:
        counter, place = divmod(i, len(self.levels) + 1)
        word = self.words[counter]
        short = word.rpartition("/")[2].replace("_", " ")
        if place == 0:
            return f"{short} rises"
        level = self.levels[place - 1]
        if short in ACHIEVED and word.startswith("achievements/"):
            return ACHIEVED[short] if level == 1 else f"{ACHIEVED[short]} {level} times"
        return f"{short} ≥ {level}"

    def kind(self, i: int) -> str:
        return self.words[i // (len(self.levels) + 1)]
