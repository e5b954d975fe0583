"""Pictures of things, drawn by code: twelve rows of twelve pixels an object, letters of three by five for the words.

In an object's picture (sprites.txt) `#` is its colour, `+` a darker shade, `o` a lighter one, `x` the background, `.` nothing.
Types without a picture of their own are drawn as a tile with their first letter. `render` puts tiles together to frames.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np

from protogoal.envs.baba.rules import OPERATORS, PROPERTIES

TILE = 24  # pixels of a tile's side at scale 1; objects are drawn at 12 and doubled
BACKGROUND = np.array((16, 18, 26), np.uint8)
FIELD = np.array((24, 27, 38), np.uint8)

COLOURS = {
    "baba": (245, 240, 245), "flag": (237, 226, 133), "rock": (194, 158, 70), "wall": (92, 106, 140), "keke": (229, 83, 59),
    "skull": (188, 72, 110), "lava": (232, 112, 42), "goop": (80, 150, 170), "love": (235, 108, 168), "floor": (58, 64, 84),
    "grass": (92, 131, 57), "water": (68, 131, 205), "key": (237, 210, 90), "door": (206, 96, 72), "ice": (150, 200, 235),
    "belt": (96, 112, 150), "box": (158, 118, 68), "tree": (108, 152, 70), "star": (237, 226, 133), "crab": (229, 83, 59),
    "jelly": (95, 160, 220), "bubble": (150, 200, 235), "ghost": (217, 57, 106), "robot": (150, 156, 172),
    "me": (145, 110, 200), "leaf": (142, 94, 156), "bug": (140, 100, 72), "bird": (229, 150, 80), "moon": (237, 226, 160),
    "sun": (240, 200, 70), "fire": (232, 90, 42), "brick": (150, 92, 72), "text": (217, 57, 106),
    "YOU": (217, 57, 106), "WIN": (237, 226, 133), "PUSH": (180, 140, 60), "STOP": (110, 150, 60), "MOVE": (120, 170, 90),
    "DEFEAT": (170, 60, 90), "SINK": (80, 140, 220), "HOT": (226, 110, 50), "MELT": (120, 190, 235), "OPEN": (237, 210, 90),
    "SHUT": (206, 96, 72), "WEAK": (110, 120, 170), "SHIFT": (110, 140, 210), "FLOAT": (180, 210, 240),
}
OPERATOR_COLOUR = (225, 225, 232)
TERRAIN_COLOUR = (54, 60, 82)

_WIDE_LETTERS = {  # five by five: three columns are too few for these
    "M": "1000111011101011000110001", "W": "1000110001101011010101010", "N": "1000111001101011001110001",
}
_LETTERS = {
    "A": "010101111101101", "B": "110101110101110", "C": "011100100100011", "D": "110101101101110", "E": "111100110100111",
    "F": "111100110100100", "G": "011100101101011", "H": "101101111101101", "I": "111010010010111", "J": "001001001101010",
    "K": "101101110101101", "L": "100100100100111", "O": "010101101101010",
    "P": "110101110100100", "Q": "010101101110011", "R": "110101110101101", "S": "011100010001110", "T": "111010010010010",
    "U": "101101101101111", "V": "101101101101010", "X": "101101010101101", "Y": "101101010010010",
    "Z": "111001010100111",
}


@cache
def pictures() -> dict[str, np.ndarray]:
    """Object → its pixels, characters [12, 12]: paragraphs of sprites.txt, the name above the rows."""
    text = (resources.files(__package__) / "sprites.txt").read_text(encoding="utf-8")
    named = (paragraph.split("\n") for paragraph in text.strip().split("\n\n"))
    return {name: np.array([list(row) for row in rows]) for name, *rows in named}


def _paint(target: np.ndarray, mask: np.ndarray, colour: tuple[int, ...] | np.ndarray) -> None:
    """Colours the masked pixels of an RGBA tile and makes them opaque."""
    target[mask, :3] = colour
    target[mask, 3] = 255


def _shade(colour: tuple[int, ...], factor: float) -> np.ndarray:
    """Darker below 1, lighter above."""
    rgb = np.array(colour, float)
    return (rgb * factor if factor <= 1 else rgb + (255 - rgb) * (factor - 1)).astype(np.uint8)


@cache
def lettering(word: str) -> np.ndarray:
    """A word as a mask, bool [24, 24]: one line of up to three letters, or two lines."""
    lines = [word] if len(word) <= 3 else [word[: (len(word) + 1) // 2], word[(len(word) + 1) // 2 :]]
    tall = 3 if len(lines) == 1 else 2
    mask = np.zeros((TILE, TILE), np.bool_)
    top = (TILE - (5 * tall * len(lines) + 2 * (len(lines) - 1))) // 2
    for line in lines:
        wide = 3 if len(line) <= 2 else 2
        left = (TILE - (3 * wide * len(line) + 2 * (len(line) - 1))) // 2
        for letter in line:
            wide_glyph = letter in _WIDE_LETTERS
            glyph = np.array(list((_WIDE_LETTERS if wide_glyph else _LETTERS)[letter]), int).reshape(5, -1).astype(bool)
            columns = ([1, 1, 2, 1, 1] if wide == 2 else [2, 2, 1, 2, 2]) if wide_glyph else [wide] * 3
            mask[top : top + 5 * tall, left : left + 3 * wide] |= glyph.repeat(tall, 0).repeat(columns, 1)
            left += 3 * wide + 2
        top += 5 * tall + 2
    return mask


@cache
def _rounded(margin: int) -> np.ndarray:
    """A block with its corners cut, bool [24, 24]."""
    mask = np.zeros((TILE, TILE), np.bool_)
    mask[margin : TILE - margin, margin : TILE - margin] = True
    for r in (margin, TILE - margin - 1):
        for c in (margin, TILE - margin - 1):
            mask[r, c] = False
    return mask


def word_colour(word: str) -> tuple[int, ...]:
    """A property's own colour, or that of the object a noun names, light enough to read."""
    if word in OPERATORS:
        return OPERATOR_COLOUR
    colour = COLOURS.get(word) or COLOURS[word.lower()]
    return colour if max(colour) >= 160 else tuple(_shade(colour, 1.35).tolist())


@cache
def word_tile(word: str, active: bool) -> np.ndarray:
    """A word's block, RGBA [24, 24, 4]: properties as full blocks, nouns and operators as lettered frames."""
    colour = word_colour(word)
    if not active:
        colour = tuple((np.array(colour) * 0.5 + BACKGROUND * 0.5).astype(int).tolist())
    tile = np.zeros((TILE, TILE, 4), np.uint8)
    if word in PROPERTIES:
        _paint(tile, _rounded(0), colour)
        _paint(tile, lettering(word), BACKGROUND)
    else:
        _paint(tile, _rounded(0), _shade(colour, 0.45))
        _paint(tile, _rounded(1), BACKGROUND)
        _paint(tile, lettering(word), colour)
    if not active:
        r, c = np.indices((TILE, TILE))
        _paint(tile, (np.abs(r + c - (TILE - 1)) <= 1) & _rounded(0), (176, 58, 66))
    return tile


@cache
def object_tile(name: str, face: int) -> np.ndarray:
    """An object, RGBA [24, 24, 4], looking left or right; belts point where they carry."""
    colour = COLOURS[name]
    tile = np.zeros((TILE, TILE, 4), np.uint8)
    if name not in pictures():
        _paint(tile, _rounded(2), colour)
        _paint(tile, lettering(name[0].upper()), BACKGROUND)
        return tile
    pixels = pictures()[name]
    if name == "belt":
        pixels = np.rot90(pixels, {0: 1, 1: 3, 2: 2, 3: 0}[face])
    elif face == 2:
        pixels = pixels[:, ::-1]
    pixels = pixels.repeat(2, 0).repeat(2, 1)
    for symbol, paint in (("#", np.array(colour)), ("+", _shade(colour, 0.62)), ("o", _shade(colour, 1.45)), ("x", BACKGROUND)):
        _paint(tile, pixels == symbol, paint)
    return tile


@cache
def terrain_tile() -> np.ndarray:
    """Static terrain, RGBA [24, 24, 4]: a plain raised block."""
    tile = np.zeros((TILE, TILE, 4), np.uint8)
    tile[...] = (*_shade(TERRAIN_COLOUR, 0.7), 255)
    tile[1:-1, 1:-1, :3] = TERRAIN_COLOUR
    tile[1:3, 1:-1, :3] = _shade(TERRAIN_COLOUR, 1.12)
    return tile
