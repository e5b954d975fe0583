"""MiniGrid's view: what is ahead, in sight, beside, carried, and where; in words.

The view moves with the agent: `image[x, y]` is seen from it, with the agent in the middle of the last row (y), looking to y = 0.
So a raw value in a raw cell says how one stands and little about the world. What means something in a moving view comes first: a
kind ahead, a kind anywhere in sight, beside, carried; and what has just happened: a door opened, a doorway entered, a thing picked
up. Doors, keys, balls and boxes have their colour, and are also counted without it: what was learned of one colour is then
practised with all. Cells come last, for things alone and without their colours, as a colour in a cell is hardly seen twice;
walls, floor and what is unseen have none.

`MiniGridMap` is the whole grid, as `FullyObsWrapper` shows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import PAD, AnyIds, ascending
from protogoal.goals.derived.grids import present_values
from protogoal.goals.spaces import ProtoGoalSpace

COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
STATES = ("open", "closed", "locked")
DIRECTIONS = ("looking east", "looking south", "looking west", "looking north")
UNSEEN, EMPTY, WALL, FLOOR, DOOR, KEY, BALL, BOX, GOAL, LAVA, AGENT = range(11)
TYPES = 11
LEFT, RIGHT, FORWARD = range(3)  # actions

PORTABLE = {KEY: "key", BALL: "ball", BOX: "box"}


def _kinds() -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Names of kinds of things; table [type, colour, state] → kind or −1; and of each kind the one without its colour, or −1."""
    names: list[str] = []
    plain: list[str] = []
    table = np.full((TYPES, len(COLOURS), 4), PAD, np.int64)
    for colour, word in enumerate(COLOURS):
        for state, how in enumerate(STATES):
            table[DOOR, colour, state] = len(names)
            names.append(f"{word} {how} door")
            plain.append(f"{how} door")
        for type_, thing in PORTABLE.items():
            table[type_, colour] = len(names)
            names.append(f"{word} {thing}")
            plain.append(thing)
    for type_, thing in ((GOAL, "goal"), (LAVA, "lava")):
        table[type_] = len(names)
        names.append(thing)
        plain.append("")
    without = [word for word in dict.fromkeys(plain) if word]
    of = np.array([len(names) + without.index(word) if word else PAD for word in plain])
    return names + without, table, of


KINDS, TABLE, PLAIN = _kinds()
THINGS = len(PLAIN)  # kinds with their colour; those without follow
SHAPES = np.array([*np.flatnonzero(PLAIN == PAD), *range(THINGS, len(KINDS))])  # the kinds that say nothing of a colour
EVENTS = (*(f"{c} door opened" for c in COLOURS), "a door opened", "a door closed", *(f"{c} doorway entered" for c in COLOURS),
          "a doorway entered", *(f"{t} picked up" for t in PORTABLE.values()), *(f"{t} put down" for t in PORTABLE.values()),
          "a door unlocked")
RELATIONS = ("ahead", "in sight", "beside", "carried")


class MiniGridView(ProtoGoalSpace):
    """Bits: what happened; wall ahead, nothing ahead; each kind ahead, in sight, beside, carried; each thing in each cell.

    Observation: `image` uint8 [N, width, height, 3].
    """

    def __init__(self, width: int, height: int, key: str | None = "image"):
        self.width, self.height = int(width), int(height)
        self._ground = len(EVENTS)
        self._related = self._ground + 2
        self._places = self._related + len(RELATIONS) * len(KINDS)
        super().__init__(self._places + len(SHAPES) * self.width * self.height, key)

    @property
    def usual_active(self) -> int:
        return 16

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        image = np.asarray(s_next).astype(np.int64)
        n, middle, last = len(image), self.width // 2, self.height - 1
        kind = kinds_of(image)  # [N, width, height]
        own, ahead = kind[:, middle, last], kind[:, middle, last - 1]
        ground = np.select([image[:, middle, last - 1, 0] == WALL, image[:, middle, last - 1, 0] == EMPTY],
                           [self._ground, self._ground + 1], PAD)
        seen = kind.copy()
        seen[:, middle, last] = PAD
        beside = kind[:, [x for x in (middle - 1, middle + 1) if 0 <= x < self.width], last]
        carried = np.where(is_portable(own), own, PAD)[:, None]
        related: list[AnyIds] = [ahead[:, None], present_values(seen.reshape(n, -1), len(KINDS)), beside, carried]
        parts = [ground[:, None]]
        for relation, ids in enumerate(related):
            first = self._related + relation * len(KINDS)
            parts += [np.where(ids == PAD, PAD, first + ids), np.where(plain_of(ids) == PAD, PAD, first + plain_of(ids))]
        flat = shapes_of(seen.transpose(0, 2, 1).reshape(n, -1))  # row by row
        parts.append(np.where(flat == PAD, PAD, self._places + len(SHAPES) * np.arange(flat.shape[1]) + flat))
        if s is not None:
            parts.append(self._events(np.asarray(s).astype(np.int64), a, ahead, own))
        return ascending(np.concatenate(parts, 1))

    def _events(self, before: NDArray[np.int64], a: Any, ahead: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
        """What happened between two views, [N, 8]."""
        middle, last = self.width // 2, self.height - 1
        front, held = before[:, middle, last - 1], kinds_of(before[:, middle, last])
        is_door = front[:, 0] == DOOR
        now = np.where(ahead == PAD, "", np.array(KINDS)[ahead])
        colour = np.array([*COLOURS])[np.clip(front[:, 1], 0, len(COLOURS) - 1)]
        opened = is_door & (front[:, 2] > 0) & (now == np.char.add(colour, " open door"))
        closed = is_door & (front[:, 2] == 0) & (now == np.char.add(colour, " closed door"))
        entered = is_door & (front[:, 2] == 0) & (False if a is None else np.asarray(a) == FORWARD)
        c = len(COLOURS)
        index = np.clip(front[:, 1], 0, c - 1)
        events = [np.where(opened, index, PAD), np.where(opened, c, PAD), np.where(closed, c + 1, PAD),
                  np.where(entered, c + 2 + index, PAD), np.where(entered, 2 * c + 2, PAD)]
        for kind, other, first in ((own, held, 2 * c + 3), (held, own, 2 * c + 3 + len(PORTABLE))):
            thing = portable_of(kind)
            events.append(np.where((thing != PAD) & (portable_of(other) == PAD), first + thing, PAD))
        events.append(np.where(opened & (front[:, 2] == STATES.index("locked")), len(EVENTS) - 1, PAD))
        return np.stack(events, 1)

    def name(self, i: int) -> str:
        if i < self._ground:
            return EVENTS[i]
        if i < self._related:
            return ("wall ahead", "nothing ahead")[i - self._ground]
        if i < self._places:
            relation, kind = divmod(i - self._related, len(KINDS))
            return f"{KINDS[kind]} {RELATIONS[relation]}"
        place, shape = divmod(i - self._places, len(SHAPES))
        return f"{KINDS[SHAPES[shape]]} {self._where(place)}"

    def _where(self, place: int) -> str:
        """A cell as seen from the agent: "2 ahead, 1 left"."""
        y, x = divmod(place, self.width)
        ahead, side = self.height - 1 - y, x - self.width // 2
        words = [f"{ahead} ahead"] if ahead else []
        words += [f"{abs(side)} {'right' if side > 0 else 'left'}"] if side else []
        return ", ".join(words) or "here"

    def kind(self, i: int) -> str:
        if i < self._ground:
            return "event"
        if i < self._related:
            return "ground ahead"
        if i < self._places:
            return self.name(i).partition(" ")[2] if (i - self._related) % len(KINDS) < THINGS else self.name(i)
        return f"{KINDS[SHAPES[(i - self._places) % len(SHAPES)]]} in a cell"

    def cell(self, i: int) -> tuple[int, int] | None:
        return None if i < self._places else divmod((i - self._places) // len(SHAPES), self.width)

    @property
    def grid(self) -> tuple[int, int]:
        return self.height, self.width


class MiniGridMap(ProtoGoalSpace):
    """The whole grid: the agent in each cell, each kind anywhere, each thing in each cell; `image` [N, width, height, 3]."""

    def __init__(self, width: int, height: int, key: str | None = "image"):
        self.width, self.height = int(width), int(height)
        self._present = self.width * self.height
        self._places = self._present + len(KINDS)
        super().__init__(self._places + THINGS * self._present, key)

    @property
    def usual_active(self) -> int:
        return 16

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        image = np.asarray(s_next).astype(np.int64).transpose(0, 2, 1, 3)  # [N, height, width, 3]
        n = len(image)
        kind = kinds_of(image).reshape(n, -1)
        agent = np.where((image[..., 0] == AGENT).reshape(n, -1), np.arange(self._present), PAD)
        present = present_values(np.concatenate([kind, plain_of(kind)], 1), len(KINDS))
        places = np.where(kind == PAD, PAD, self._places + THINGS * np.arange(self._present) + kind)
        return ascending(np.concatenate([agent, np.where(present == PAD, PAD, self._present + present), places], 1))

    def name(self, i: int) -> str:
        if self._present <= i < self._places:
            return f"{KINDS[i - self._present]} somewhere"
        row, column = divmod(i if i < self._present else (i - self._places) // THINGS, self.width)
        return f"{'agent' if i < self._present else KINDS[(i - self._places) % THINGS]} at ({row},{column})"

    def kind(self, i: int) -> str:
        if i < self._present:
            return "agent"
        return "somewhere" if i < self._places else KINDS[(i - self._places) % THINGS]

    def cell(self, i: int) -> tuple[int, int] | None:
        if self._present <= i < self._places:
            return None
        return divmod(i if i < self._present else (i - self._places) // THINGS, self.width)

    @property
    def grid(self) -> tuple[int, int]:
        return self.height, self.width


def kinds_of(image: NDArray[np.int64]) -> NDArray[np.int64]:
    """(type, colour, state) [..., 3] → kind [...], −1 where there is no thing, or one that MiniGrid does not know."""
    type_, colour, state = image[..., 0], image[..., 1], image[..., 2]
    is_known = (type_ < TYPES) & (colour < len(COLOURS)) & (state < TABLE.shape[2])
    return np.where(is_known, TABLE[np.where(is_known, type_, 0), np.where(is_known, colour, 0), np.where(is_known, state, 0)], PAD)


def plain_of(kind: AnyIds) -> NDArray[np.int64]:
    """The same kinds without their colours; −1 for what has none."""
    return np.where((kind == PAD) | (kind >= THINGS), PAD, PLAIN[np.clip(kind, 0, THINGS - 1)])


def shapes_of(kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of `SHAPES` a kind is, its colour left out."""
    plain = plain_of(kind)
    return np.where(kind == PAD, PAD, np.searchsorted(SHAPES, np.where(plain == PAD, kind, plain)))


_PORTABLE_KINDS = np.array([next((i for i, thing in enumerate(PORTABLE.values()) if name.endswith(f" {thing}")), PAD)
                            for name in KINDS[:THINGS]])


def portable_of(kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of key, ball and box a kind is; −1 for all else."""
    return np.where(kind == PAD, PAD, _PORTABLE_KINDS[np.clip(kind, 0, THINGS - 1)])


def is_portable(kind: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether it can be carried."""
    carried: NDArray[np.bool_] = portable_of(kind) != PAD
    return carried
