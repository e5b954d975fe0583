"""Pictures of a game: frames as RGB arrays, and text for terminals.

A frame is made of tiles (`sprites`); words that are no part of a rule in force are dimmed and crossed out. Used by the
environments' `render` and by `play`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from protogoal.envs.baba.game import Thing, spelled
from protogoal.envs.baba.levels import Level
from protogoal.envs.baba.rules import RIGHT
from protogoal.envs.baba.sentences import in_force
from protogoal.envs.baba.sprites import (
    BACKGROUND,
    COLOURS,
    FIELD,
    TERRAIN_COLOUR,
    TILE,
    object_tile,
    terrain_tile,
    word_colour,
    word_tile,
)

FLAT = ("floor", "grass", "belt", "water", "goop", "lava", "ice")  # lie under everything else
ALIVE = ("baba", "keke", "me", "robot", "ghost", "crab", "jelly", "bug", "bird")  # stand on everything else


def things_in(level: Level, planes: np.ndarray) -> list[Thing]:
    """The things that planes, uint8 or bool [P, H, W], show; all facing right, since planes do not say."""
    return [Thing(level.kinds[k], int(r), int(c), RIGHT) for k, r, c in np.argwhere(planes[: len(level.kinds)])]


def active_words(on_board: Sequence[Thing]) -> set[tuple[tuple[int, int], str]]:
    """The word blocks, as (cell, word), that take part in a rule in force."""
    return {block for sentence in in_force(spelled(list(on_board))) for block in sentence.blocks}


def _order(thing: Thing) -> int:
    return 0 if thing.name in FLAT else 1 if thing.name.isupper() else 3 if thing.name in ALIVE else 2


def _blend(canvas: np.ndarray, tile: np.ndarray, row: int, column: int) -> None:
    area = canvas[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]
    opaque = tile[..., 3] > 0
    area[opaque] = tile[opaque, :3]


def frame(level: Level, on_board: Sequence[Thing], scale: int = 2, border: bool = True) -> np.ndarray:
    """One picture, uint8 [rows, columns, 3]; a tile is 24 · scale pixels wide."""
    if scale < 1:
        raise ValueError(f"scale must be at least 1; got {scale}")
    canvas = np.empty((level.height * TILE, level.width * TILE, 3), np.uint8)
    canvas[...] = FIELD
    canvas[::TILE] = BACKGROUND  # hairlines between the cells
    canvas[:, ::TILE] = BACKGROUND
    for row, column in np.argwhere(level.terrain):
        _blend(canvas, terrain_tile(), row, column)
    active = active_words(on_board)
    for thing in sorted(on_board, key=_order):
        if thing.name.isupper():
            tile = word_tile(thing.name, ((thing.row, thing.column), thing.name) in active)
        else:
            tile = object_tile(thing.name, thing.face)
        _blend(canvas, tile, thing.row, thing.column)
    if border:
        framed = np.empty((canvas.shape[0] + TILE // 2, canvas.shape[1] + TILE // 2, 3), np.uint8)
        framed[...] = BACKGROUND
        framed[TILE // 4 : -(TILE // 4), TILE // 4 : -(TILE // 4)] = canvas
        canvas = framed
    return canvas.repeat(scale, 0).repeat(scale, 1)


def _colour(rgb: Iterable[int], background: bool = False) -> str:
    r, g, b = (int(x) for x in rgb)
    return f"\x1b[{48 if background else 38};2;{r};{g};{b}m"


def ansi(level: Level, on_board: Sequence[Thing], colour: bool = True, wide: bool = True) -> str:
    """The board as text, a cell four characters wide, or two: words in upper case, in lower case and dim when they are no
    part of a rule; objects by their first letters, in brackets where there is room; terrain as blocks."""
    active = active_words(on_board)
    width = 4 if wide else 2
    top: dict[tuple[int, int], Thing] = {}
    for thing in sorted(on_board, key=_order):
        top[thing.row, thing.column] = thing
    lines = []
    for r in range(level.height):
        line = ""
        for c in range(level.width):
            shown = top.get((r, c))
            fill = False
            rgb: tuple[int, ...]
            if level.terrain[r, c]:
                text, rgb = "█" * width, TERRAIN_COLOUR
            elif shown is None:
                text, rgb = f"{'·':^{width}}", (70, 76, 96)
            elif shown.name.isupper():
                fill = ((r, c), shown.name) in active
                rgb = word_colour(shown.name)
                text = f"{shown.name if fill else shown.name.lower():^{width}.{width}}"
                if not fill:
                    rgb = tuple(x // 2 for x in rgb)
            else:
                text, rgb = f"({shown.name[:2]})" if wide else shown.name[:2], COLOURS[shown.name]
            if colour:
                text = _colour(rgb, fill) + ("\x1b[30m" if fill else "") + text + "\x1b[0m"
            line += text
        lines.append(line if colour else line.rstrip())
    return "\n".join(lines)
