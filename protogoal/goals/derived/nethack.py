"""NetHack's map: each kind of thing in sight, each beside the hero, each carried, and where the hero stands; in words.

A glyph is a monster, an object or a part of the dungeon; those of one kind (a monster, its pet, its picture in one's mind) are
one here. The names come from the game itself, so `envs.derive` hands them in.

Where the map is not observed but what lies around the hero, the hero is in the middle of it. Without the hero's place there are
no goals of places; without the hero in the middle either, none of what is beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import PAD, ascending
from protogoal.goals.derived.grids import present_values
from protogoal.goals.spaces import ProtoGoalSpace

STATUS = (
    "column", "row", "strength percentage", "strength", "dexterity", "constitution", "intelligence", "wisdom", "charisma", "score",
    "hit points", "most hit points", "depth", "gold", "energy", "most energy", "armour class", "monster level", "experience level",
    "experience", "time", "hunger", "burden", "dungeon", "dungeon level", "condition", "alignment",
)
"""The numbers of `blstats`."""

UNTOLD = ("column", "row", "score", "time", "strength percentage", "condition")
"""Those that have no goals of their own: time passes by itself, the place has goals already."""

RELATIONS = ("in sight", "beside", "carried")


class NetHackMap(ProtoGoalSpace):
    """Observation: a dictionary with `glyphs` [N, rows, columns], `blstats` [N, ≥ 2] and perhaps `inv_glyphs` [N, 55].

    kinds           names of kinds
    table           glyph → kind or −1
    rows, columns   of the whole map
    part            "glyphs", or "glyphs_crop", which has the hero in the middle
    has_status      whether there is `blstats`
    """

    def __init__(self, kinds: Sequence[str], table: NDArray[np.int64], rows: int, columns: int, part: str = "glyphs",
                 has_status: bool = True):
        self.kinds, self.table, self.rows, self.columns = tuple(kinds), np.asarray(table), int(rows), int(columns)
        self.part, self.has_status = part, bool(has_status)
        self._places = len(RELATIONS) * len(self.kinds)
        super().__init__(self._places + (self.rows * self.columns if self.has_status else 0))

    @property
    def usual_active(self) -> int:
        return 32

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        glyphs = np.asarray(s_next[self.part])
        n, count = len(glyphs), len(self.kinds)
        kind = self._kind(glyphs)
        place = self._place(s_next["blstats"]) if self.has_status else None
        hero = place
        if self.part != "glyphs":
            kind[_beyond(glyphs)] = PAD
            hero = np.full(n, kind.shape[1] // 2), np.full(n, kind.shape[2] // 2)
        beside = np.full((n, 0), PAD)
        if hero is not None:
            kind[np.arange(n), hero[0], hero[1]] = PAD
            beside = _around(kind, *hero)
        carried = self._kind(np.asarray(s_next["inv_glyphs"])) if "inv_glyphs" in s_next else beside[:, :0]
        parts = []
        for relation, ids in enumerate((kind.reshape(n, -1), beside, carried)):
            found = present_values(ids, count) if ids.shape[1] else ids
            parts.append(np.where(found == PAD, PAD, relation * count + found))
        if place is not None:
            parts.append((self._places + place[0] * self.columns + place[1])[:, None])
        return ascending(np.concatenate(parts, 1))

    def _place(self, status: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The hero's row and column."""
        status = np.asarray(status)
        column = np.clip(status[:, 0], 0, self.columns - 1).astype(np.int64)
        return np.clip(status[:, 1], 0, self.rows - 1).astype(np.int64), column

    def _kind(self, glyphs: NDArray[Any]) -> NDArray[np.int64]:
        kind: NDArray[np.int64] = self.table[np.clip(glyphs, 0, len(self.table) - 1)]
        return kind

    def name(self, i: int) -> str:
        if i >= self._places:
            return "at ({},{})".format(*divmod(i - self._places, self.columns))
        relation, kind = divmod(i, len(self.kinds))
        return f"{self.kinds[kind]} {RELATIONS[relation]}"

    def kind(self, i: int) -> str:
        return "place" if i >= self._places else RELATIONS[i // len(self.kinds)]

    def cell(self, i: int) -> tuple[int, int] | None:
        return divmod(i - self._places, self.columns) if i >= self._places else None

    @property
    def grid(self) -> tuple[int, int]:
        return self.rows, self.columns


def _around(kind: NDArray[np.int64], row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """The kinds beside one cell of each map, [N, 8]."""
    n, rows, columns = kind.shape
    framed = np.full((n, rows + 2, columns + 2), PAD)
    framed[:, 1:-1, 1:-1] = kind
    steps = [(dr, dc) for dr in (0, 1, 2) for dc in (0, 1, 2) if (dr, dc) != (1, 1)]
    return np.stack([framed[np.arange(n), row + dr, column + dc] for dr, dc in steps], 1)


def _beyond(crop: NDArray[Any]) -> NDArray[np.bool_]:
    """Cells off the map, which MiniHack fills with zeros in whole rows and columns; a zero alone is a giant ant."""
    is_zero = crop == 0
    beyond: NDArray[np.bool_] = is_zero.all(1, keepdims=True) | is_zero.all(2, keepdims=True)
    return np.broadcast_to(beyond, crop.shape)
