"""Levels as small text files: a header, a blank line, and the grid, one character a cell.

    title: Push
    teaches: what is PUSH moves along with whoever walks into it
    solution: rrrr
    legend: x = rock + flag, > = belt right

    BIY..R5
    .b.r.f.

Every header line may be missing; a bare grid is a level too. A character means what the level's own `legend` line
says, else what the given `Legend` says (ours, or `KEKE_LEGEND` for levels of the Keke competition). A lower-case name
is an object, an upper-case one its word; "a + b" stacks things in one cell; a direction after a name is where it faces
(right, if not said).

A `Level` holds the grid as arrays of objects and knows its kinds, one plane each: object types first, then words, in
reading order. Types that are only named by a word get a plane too, since something may become one. `BabaBatch` plays it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from protogoal.envs.baba.rules import MAX_OBJECT_TYPES, OPERATORS, PROPERTIES, RIGHT, TEXT_NOUN
from protogoal.envs.baba.sentences import sentences

MAX_SIDE = 32  # rows and columns
MAX_OBJECTS = 2048
DIRECTIONS = ("up", "down", "left", "right")
TERRAIN = "terrain"
EMPTY = "empty"

NOUNS = (
    "baba", "flag", "rock", "wall", "keke", "skull", "lava", "goop", "love", "floor", "grass", "water", "key", "door",
    "ice", "belt", "box", "tree", "star", "crab", "jelly", "bubble", "ghost", "robot", "me", "leaf", "bug", "bird",
    "moon", "sun", "fire", "brick",
)


@dataclass(frozen=True)
class Thing:
    """One object of a level: its kind's name, upper case for a word, and where it faces."""

    name: str
    face: int = RIGHT

    @staticmethod
    def parse(text: str) -> Thing:
        """"rock", "ROCK", "belt up"."""
        name, _, direction = text.strip().partition(" ")
        direction = direction.strip()
        if direction and direction not in DIRECTIONS:
            raise ValueError(f"{text.strip()!r}: a thing faces {', '.join(DIRECTIONS)}; got {direction!r}")
        known = name in NOUNS or (name.isupper() and (name.lower() in NOUNS or name in (*PROPERTIES, *OPERATORS, TEXT_NOUN)))
        if not known:
            raise ValueError(f"{name!r} is not an object or a word of the game; objects are {', '.join(NOUNS)}; words are "
                             f"their names in upper case, {', '.join((TEXT_NOUN, *OPERATORS, *PROPERTIES))}")
        return Thing(name, DIRECTIONS.index(direction) if direction else RIGHT)


@dataclass(frozen=True)
class Legend:
    """What each character of a grid means: "empty", "terrain", or things joined by "+"."""

    symbols: Mapping[str, str]
    player_at_start: bool = True
    """Whether a level must have something that is YOU when it begins."""
    things: dict[str, tuple[Thing, ...] | str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        things: dict[str, tuple[Thing, ...] | str] = {}
        for symbol, meaning in self.symbols.items():
            if len(symbol) != 1:
                raise ValueError(f"a legend's symbols are single characters; got {symbol!r}")
            if meaning in (EMPTY, TERRAIN):
                things[symbol] = meaning
            else:
                things[symbol] = tuple(Thing.parse(part) for part in meaning.split("+"))
        object.__setattr__(self, "things", things)

    def extended(self, line: str) -> Legend:
        """This legend with the entries of a level's own legend line, "x = rock + flag, > = belt right"."""
        symbols = dict(self.symbols)
        for entry in line.split(","):
            match = re.fullmatch(r"\s*(\S)\s*=\s*(.+?)\s*", entry)
            if match is None:
                raise ValueError(f"legend entry {entry.strip()!r} is not of the form \"x = rock + flag\"")
            symbols[match[1]] = match[2]
        return Legend(symbols, self.player_at_start)


_DIGITS = {"1": "IS", "2": "YOU", "3": "WIN", "4": "DEFEAT", "5": "PUSH", "6": "STOP", "7": "MOVE", "8": "HOT", "9": "MELT",
           "0": "SINK"}
_LETTERS = {"b": "baba", "f": "flag", "r": "rock", "w": "wall", "k": "keke", "s": "skull", "l": "lava", "g": "goop",
            "v": "love", "o": "floor", "a": "grass", "n": "water", "e": "key", "d": "door", "i": "ice", "t": "tree",
            "x": "box", "m": "me"}

LEGEND = Legend({
    ".": EMPTY, "#": TERRAIN, **_LETTERS, **{c.upper(): name.upper() for c, name in _LETTERS.items()}, **_DIGITS,
    "I": "IS", "Y": "YOU", "W": "WIN", "H": "WALL", "C": "ICE", "T": TEXT_NOUN, "J": "TREE", "&": "AND", "!": "NOT",
    "(": "OPEN", ")": "SHUT", "%": "WEAK", "~": "SHIFT", "^": "FLOAT", ">": "belt right", "<": "belt left", "P": "BELT",
})
"""Ours: `#` terrain, lower case an object, upper case its word, except I, Y, W (IS, YOU, WIN) and H, C, J, P, T (WALL,
ICE, TREE, BELT, TEXT); digits as in the competition's levels; & AND, ! NOT, ( OPEN, ) SHUT, % WEAK, ~ SHIFT, ^ FLOAT."""

_KEKE = {c: name for c, name in _LETTERS.items() if c in "bsfoalrwkgv"}
KEKE_LEGEND = Legend({".": EMPTY, " ": EMPTY, "_": TERRAIN, **_KEKE, **{c.upper(): name.upper() for c, name in _KEKE.items()},
                      **_DIGITS}, player_at_start=False)
"""The Keke competition's: `_` is the frame, 4 its KILL. In some of its levels nothing is YOU until something has moved."""


@dataclass(frozen=True, eq=False)
class Level:
    """A grid of objects, and what is known about it."""

    name: str
    height: int
    width: int
    kinds: tuple[str, ...]
    """Names of the planes: O object types in lower case, then words in upper case."""
    terrain: np.ndarray  # bool [H, W]
    kind: np.ndarray  # uint8 [objects at the start]
    cell: np.ndarray  # int16, beside kind: row · width + column
    face: np.ndarray  # uint8, beside kind
    title: str = ""
    teaches: str = ""
    solution: str = ""

    @property
    def num_object_types(self) -> int:
        return sum(name.islower() for name in self.kinds)

    @property
    def capacity(self) -> int:
        """M, the object slots a game needs. X IS Y and X IS Z make two of one, which takes three nouns to say; then there
        is room for twice as many objects, and whatever would go beyond is not made."""
        nouns = sum(name.lower() in NOUNS or name == TEXT_NOUN for name in self.kinds if name.isupper())
        return len(self.kind) * (2 if nouns >= 3 else 1)

    @staticmethod
    def parse(text: str, legend: Legend | Mapping[str, str] = LEGEND, name: str = "") -> Level:
        """Reads a level, with or without a header. Raises ValueError for anything that cannot be played."""
        label = f"level {name}" if name else "level"
        header, rows = _split(text, label)
        if not isinstance(legend, Legend):
            legend = Legend(dict(legend))
        if "legend" in header:
            legend = legend.extended(header["legend"])
        if not rows:
            raise ValueError(f"{label} is empty: it has no grid")
        height, width = len(rows), len(rows[0])
        for r, row in enumerate(rows):
            if len(row) != width:
                raise ValueError(f"{label} has ragged lines: row {r} has {len(row)} characters, row 0 has {width}")
        if height > MAX_SIDE or width > MAX_SIDE:
            raise ValueError(f"{label} is too large: {height}×{width}, at most {MAX_SIDE}×{MAX_SIDE} is allowed")
        terrain = np.zeros((height, width), np.bool_)
        placed: list[tuple[Thing, int]] = []
        for r, row in enumerate(rows):
            for c, symbol in enumerate(row):
                meaning = legend.things.get(symbol)
                if meaning is None:
                    raise ValueError(f"{label} has an unknown character {symbol!r} in row {r}, column {c}; allowed are "
                                     f"{' '.join(sorted(legend.symbols))}")
                if meaning == TERRAIN:
                    terrain[r, c] = True
                elif meaning != EMPTY:
                    placed += [(thing, r * width + c) for thing in meaning if isinstance(thing, Thing)]
        if len(placed) > MAX_OBJECTS:
            raise ValueError(f"{label} is too large: {len(placed)} objects, at most {MAX_OBJECTS} are allowed")
        kinds = _kinds([thing.name for thing, _ in placed])
        if not any(name.isupper() for name in kinds):
            raise ValueError(f"{label} has no words, so it has no player; it needs at least a noun, IS and YOU")
        words: dict[tuple[int, int], list[str]] = {}
        for thing, cell in placed:
            if thing.name.isupper():
                words.setdefault(divmod(cell, width), []).append(thing.name)
        if legend.player_at_start and not any(s.target == "YOU" and not s.target_negated for s in sentences(words)):
            raise ValueError(f"{label} has no player: nothing is YOU at the start; spell a rule such as BABA IS YOU")
        level = Level(
            name=name or header.get("title", ""), height=height, width=width, kinds=kinds, terrain=terrain,
            kind=np.array([kinds.index(thing.name) for thing, _ in placed], np.uint8),
            cell=np.array([cell for _, cell in placed], np.int16),
            face=np.array([thing.face for thing, _ in placed], np.uint8),
            title=header.get("title", ""), teaches=header.get("teaches", ""), solution=header.get("solution", ""),
        )
        if level.num_object_types > MAX_OBJECT_TYPES:
            raise ValueError(f"{label} has {level.num_object_types} object types, at most {MAX_OBJECT_TYPES} are allowed")
        return level


_HEADER = re.compile(r"(title|teaches|solution|legend):\s*(.*)")


def _split(text: str, label: str) -> tuple[dict[str, str], list[str]]:
    """A level's text as header fields and rows of the grid."""
    if not isinstance(text, str):
        raise ValueError(f"{label} must be text; got {type(text).__name__}")
    lines = [line.rstrip("\r") for line in text.strip("\n\r").split("\n")]
    header: dict[str, str] = {}
    while lines and (match := _HEADER.fullmatch(lines[0].strip())):
        header[match[1]] = match[2].strip()
        lines.pop(0)
    rows = "\n".join(lines).strip("\n").split("\n")
    return header, [row for row in rows if row] if rows != [""] else []


def _kinds(names: list[str]) -> tuple[str, ...]:
    """The planes of a level that holds these things: objects, objects that are only named, words, in reading order."""
    objects = list(dict.fromkeys(name for name in names if name.islower()))
    words = list(dict.fromkeys(name for name in names if name.isupper()))
    objects += [word.lower() for word in words if word.lower() in NOUNS and word.lower() not in objects]
    if TEXT_NOUN in words and "NOT" in words:  # NOT X IS TEXT can make the word of anything
        words += [name.upper() for name in objects if name.upper() not in words]
    return (*objects, *words)


def level_names() -> list[str]:
    """The levels that come with the package."""
    folder = resources.files(__package__) / "levels"
    return sorted(entry.name[:-4] for entry in folder.iterdir() if entry.name.endswith(".txt"))


@cache
def _packaged(name: str) -> Level:
    text = (resources.files(__package__) / "levels" / f"{name}.txt").read_text(encoding="utf-8")
    return Level.parse(text, name=name)


def load_level(level: str | Path | Level) -> Level:
    """A level by name ("umaze-medium", or short "medium"), from a file in our format, or as it is."""
    if isinstance(level, Level):
        return level
    names = level_names()
    wanted = str(level).lower().replace("_", "-").replace("u-maze", "umaze")
    for name in (wanted, f"umaze-{wanted}"):
        if name in names:
            return _packaged(name)
    path = Path(level)
    if path.suffix and path.is_file():
        return Level.parse(path.read_text(encoding="utf-8"), name=path.stem)
    raise ValueError(f"no level {str(level)!r}; there are {', '.join(names)}, or give the path of a level file")
