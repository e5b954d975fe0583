"""Pictures of the river: the room drawn by code, the message beneath it, and the same as coloured text.

`RiverEnv.render` calls this; `protogoal watch` makes a film of it.
"""

from __future__ import annotations

import textwrap
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from protogoal.envs.minihack import glyphs
from protogoal.envs.minihack.game import COLUMNS, ROWS, Frame

CELL = 24  # pixels, both ways
MARGIN = 12
TEXT_HEIGHT = 76
WIDTH, HEIGHT = COLUMNS * CELL + 2 * MARGIN, ROWS * CELL + 2 * MARGIN + TEXT_HEIGHT
_LINE = 66  # characters that fit beneath the room
_FINE = 4  # shapes are drawn this much larger and scaled down, for smooth edges

_PAGE, _SEAM, _INK, _FAINT = (13, 16, 23), (22, 27, 38), (230, 234, 242), (128, 138, 158)
_GROUND = {glyphs.UNSEEN: (17, 21, 30), glyphs.WATER: (31, 88, 163), glyphs.LAVA: (190, 59, 22)}
_FLOOR = (44, 51, 66)
_WAVE = {glyphs.WATER: (110, 172, 240), glyphs.LAVA: (255, 190, 84)}
_YOU, _GOAL = (64, 201, 162), (255, 214, 92)
_HEALTHY, _HURT = (64, 201, 162), (236, 96, 96)

# NetHack's sixteen colours, lightened where they would vanish on a dark ground
_COLOURS = (
    (96, 110, 140), (224, 86, 86), (92, 184, 98), (196, 150, 84),
    (92, 140, 238), (204, 112, 214), (82, 190, 202), (196, 202, 214),
    (140, 146, 160), (255, 150, 80), (142, 232, 130), (250, 226, 110),
    (128, 176, 255), (240, 150, 246), (132, 232, 240), (255, 255, 255),
)


def draw_rgb(frame: Frame, message: str, step: int, max_steps: int) -> np.ndarray:
    """The room, the message beneath it, and a line with hit points and steps → uint8 [HEIGHT, WIDTH, 3]."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), _PAGE)
    for row in range(ROWS):
        for column in range(COLUMNS):
            char, colour = (int(frame.chars[row, column]), int(frame.colours[row, column])) \
                if frame.chars is not None and frame.colours is not None else (ord("?"), 7)
            picture.paste(_tile(int(frame.cells[row, column]), char, colour & 15), (MARGIN + column * CELL, MARGIN + row * CELL))
    draw = ImageDraw.Draw(picture)
    top = ROWS * CELL + 2 * MARGIN
    lines = textwrap.wrap(message, _LINE)
    if len(lines) > 2:
        lines[1] = lines[1][:_LINE - 2] + " …"
    for i, line in enumerate(lines[:2]):
        draw.text((MARGIN, top - 2 + 20 * i), line, font=_font(15), fill=_INK)
    bottom = HEIGHT - MARGIN - 11
    draw.text((MARGIN, bottom - 2), "HP", font=_font(12), fill=_FAINT)
    health = min(max(frame.health, 0.0), 1.0)
    left, length = MARGIN + 24, 120
    draw.rounded_rectangle((left, bottom, left + length, bottom + 9), 4, fill=_SEAM)
    if health > 0:
        draw.rounded_rectangle((left, bottom, left + max(9, round(length * health)), bottom + 9), 4,
                               fill=_HEALTHY if health > 1 / 3 else _HURT)
    draw.text((WIDTH - MARGIN, bottom - 2), f"step {step} of {max_steps}", font=_font(12), fill=_FAINT, anchor="ra")
    return np.asarray(picture)


def draw_ansi(frame: Frame, message: str) -> str:
    """The room as coloured text, the message beneath it."""
    if frame.chars is None or frame.colours is None:
        return message
    lines = []
    for chars, colours in zip(frame.chars, frame.colours, strict=True):
        cells = (f"\033[{int(colour) >> 3 & 1};3{int(colour) & 7}m{chr(char)}" for char, colour in zip(chars, colours, strict=True))
        lines.append("".join(cells) + "\033[0m")
    return "\n".join([*lines, message]) + "\n"


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans Mono, which comes with Matplotlib."""
    import matplotlib

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono-Bold.ttf"), size)


@cache
def _tile(kind: int, char: int, colour: int) -> Image.Image:
    """One cell's picture; drawn large, scaled down, kept."""
    size = CELL * _FINE
    tile = Image.new("RGB", (size, size), _SEAM)
    draw = ImageDraw.Draw(tile)
    gap = _FINE // 2
    ground = _GROUND.get(kind, _FLOOR)
    draw.rectangle((gap, gap, size - gap, size - gap), fill=ground)
    middle = size / 2
    if kind in _WAVE:
        for y in (0.34, 0.66):
            xs = np.linspace(0.14, 0.86, 25)
            points = [(x * size, (y + 0.07 * np.sin((x - 0.14) / 0.72 * 4 * np.pi)) * size) for x in xs]
            draw.line(points, fill=_WAVE[kind], width=2 * _FINE, joint="curve")
    elif kind == glyphs.FLOOR:
        draw.ellipse(_disc(middle, middle, 1.3 * _FINE), fill=(86, 95, 114))
    elif kind == glyphs.BOULDER:
        draw.ellipse(_disc(middle, middle + _FINE, 9.2 * _FINE), fill=(74, 80, 92))
        draw.ellipse(_disc(middle, middle, 9 * _FINE), fill=(152, 158, 170))
        draw.ellipse(_disc(middle - 2.6 * _FINE, middle - 2.8 * _FINE, 4.4 * _FINE), fill=(190, 196, 206))
    elif kind in (glyphs.STAIRS_DOWN, glyphs.STAIRS_UP):
        tint = _GOAL if kind == glyphs.STAIRS_DOWN else _FAINT
        for i in range(4):  # four steps, going down to the right or up to it
            height = (4 - i if kind == glyphs.STAIRS_DOWN else i + 1) * 4.2 * _FINE
            x = (3.4 + 4.4 * i) * _FINE
            draw.rectangle((x, 20.4 * _FINE - height, x + 3.8 * _FINE, 20.4 * _FINE), fill=tint)
    elif kind == glyphs.YOU:
        draw.ellipse(_disc(middle, middle, 11 * _FINE), fill=_YOU)
        draw.text((middle, middle), "@", font=_font(17 * _FINE), fill=_PAGE, anchor="mm")
    elif kind != glyphs.UNSEEN:
        text = chr(char) if 32 < char < 127 else "?"
        draw.text((middle, middle), text, font=_font(18 * _FINE), fill=_COLOURS[colour], anchor="mm")
    return tile.resize((CELL, CELL), Image.Resampling.LANCZOS)


def _disc(x: float, y: float, radius: float) -> tuple[float, float, float, float]:
    return x - radius, y - radius, x + radius, y + radius
