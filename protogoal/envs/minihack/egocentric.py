"""The river seen from the player: what lies where, relative to where one stands, as a short list of ids.

Levels are made anew each episode, so what is learned about "a boulder one step east, water behind it" must hold wherever
that is; seen from the player it is the same id everywhere. Floor is left out, and so is what lies far to the sides. The
list is what a fully connected layer on the one-hot view would read, at a small part of the price of convolutions over
embedded characters. `domains.minihack` puts this view around a river batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from protogoal.envs.minihack import glyphs
from protogoal.envs.minihack.game import COLUMNS, ROWS
from protogoal.envs.vector import PAD, ArraySpec, BatchEnv, Observation
from protogoal.envs.views import View
from protogoal.goals.active import compact, widened

KINDS = ("unseen", "water", "lava", "boulder", "stairs down", "stairs up", "monster", "object", "obstacle", "other")
_FLOOR = -1  # and the player, who is always in the middle
_HEALTH_LEVELS = 8


def _kinds_of_classes() -> np.ndarray:
    """Class of `glyphs` → kind, int8 [NUM_CLASSES]."""
    kind = np.full(glyphs.NUM_CLASSES, KINDS.index("other"), np.int8)
    for name, classes in {
        "unseen": [glyphs.UNSEEN], "water": [glyphs.WATER], "lava": [glyphs.LAVA], "boulder": [glyphs.BOULDER],
        "stairs down": [glyphs.STAIRS_DOWN], "stairs up": [glyphs.STAIRS_UP], "obstacle": [glyphs.WALL, glyphs.STATUE],
        "object": [glyphs.CORPSE, *range(glyphs.FIRST_OBJECT, glyphs.FIRST_MONSTER)],
        "monster": [glyphs.UNKNOWN_MONSTER, *range(glyphs.FIRST_MONSTER, glyphs.NUM_CLASSES)],
    }.items():
        kind[classes] = KINDS.index(name)
    kind[[glyphs.FLOOR, glyphs.YOU, glyphs.BEYOND]] = _FLOOR
    return kind


WORDS_TOLD_APART = 256


class EgocentricView(View):
    """A river batch observed as one list of ids, "active": what lies around, the player's place and health, the last words.

    around   (kind, row offset, column offset) of every cell within `reach` columns that is not floor
    place    the player's row, the player's column
    health   hit points in eighths; one id more when blind, stunned, confused or hallucinating
    said     the words of the last message: without them a boulder that does not budge looks like one
             that was not pushed. The first 256 words that were ever read are told apart; later ones share their ids

    The list has room for `length` ids; where that is not enough, unseen cells are left out.
    """

    def __init__(self, env: BatchEnv, reach: int = 12, length: int = 128):
        if not 1 <= reach < COLUMNS:
            raise ValueError(f"reach must be 1…{COLUMNS - 1} columns; got {reach}")
        if not 64 <= length <= 512:
            raise ValueError(f"length must be 64…512 ids; got {length}")
        super().__init__(env)
        self.reach, self.length = int(reach), int(length)
        self._kind = _kinds_of_classes()
        self._width = 2 * self.reach + 1
        self._cells = (2 * ROWS - 1) * self._width
        self._rows, self._columns = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
        self._place = len(KINDS) * self._cells  # the first id of each further group
        self._health = self._place + ROWS + COLUMNS
        self._said = self._health + _HEALTH_LEVELS + 1
        self._told_apart = min(env.num_bits, WORDS_TOLD_APART)
        self.observation_spec = {"active": ArraySpec((self.length,), np.dtype(np.int16), "active", self._said + self._told_apart)}

    def picture(self, env: int = 0) -> Any:
        """What the river draws; see `GymBatchEnv.picture`."""
        return self.env.picture(env)  # type: ignore[attr-defined]  # a river batch has it, not every BatchEnv

    def read(self, observation: Observation, active: np.ndarray) -> Observation:
        """One list of ids for each environment, [N, length], padded with −1."""
        position, status = observation["position"].astype(np.int64), observation["status"]
        health = np.minimum((status[:, 0] * _HEALTH_LEVELS).astype(np.int64), _HEALTH_LEVELS - 1)
        groups = [
            position + self._place,
            health[:, None] + self._health,
            np.where(status[:, 1:] > 0, self._health + _HEALTH_LEVELS, PAD),
            np.where(active >= 0, active % self._told_apart + self._said, PAD),
            self._around(observation["map"], position),
        ]
        ids = compact(np.concatenate(groups, 1))[:, : self.length]  # what may be left out is at the end
        return {"active": widened(ids, self.length).astype(np.int16)}

    def _around(self, cells: np.ndarray, position: np.ndarray) -> np.ndarray:
        """map [N, 7, 25] and position ids [N, 2] → an id or −1 for every cell, [N, 2·175]: what is seen, then what is not."""
        kind = self._kind[cells.reshape(len(cells), -1)].astype(np.int64)  # [N, 175]
        across = self._columns - (position[:, 1:] - ROWS) + self.reach
        down = self._rows - position[:, :1] + ROWS - 1
        ids = kind * self._cells + down * self._width + across
        ids[(kind == _FLOOR) | (across < 0) | (across >= self._width)] = PAD
        is_unseen = kind == 0
        return np.concatenate([np.where(is_unseen, PAD, ids), np.where(is_unseen, ids, PAD)], 1)
