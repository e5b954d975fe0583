"""NetHack's glyphs as kinds with names, for proto-goals; and what lies around the hero, for the network.

The whole map is 21 × 79 cells of 5,976 glyphs. The network reads the 9 × 9 around the hero, as MiniHack's `glyphs_crop` has them;
the map is for the proto-goals (`goals.derived.nethack`). Environments that observe other parts of the game (`observation_keys`)
are known by their classes.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import gymnasium
import numpy as np

PARTS = frozenset({"glyphs", "blstats"})
"""Parts by which an observation is known to be NetHack's, whoever gives it."""

MAPS = ("glyphs", "glyphs_crop")

AXES = {"glyphs": 2, "glyphs_crop": 2, "blstats": 1, "inv_glyphs": 1}
"""Parts that are told in words, and how many axes they have where no wrapper has changed them."""

PICTURES = frozenset(f"{name}{crop}" for name in ("chars", "colors", "specials", "pixel") for crop in ("", "_crop"))
"""The map again, in characters, colours or pixels; read where there are no glyphs."""

SCREENS = frozenset({"inv_strs", "inv_letters", "inv_oclasses", "screen_descriptions", "screen_descriptions_crop", "tty_chars",
                     "tty_chars_crop", "tty_colors", "tty_colors_crop", "tty_cursor", "misc", "internal", "program_state"})
"""Text of a screen as bytes, and the game's own book-keeping; never read."""

WHOLE = 21, 79
CROP = 9
NO_GLYPH = 5976

_DUNGEON = {
    "wall": range(1, 12), "doorway": (12,), "open door": (13, 14), "closed door": (15, 16), "iron bars": (17,), "tree": (18,),
    "corridor": (21, 22), "stairs up": (23,), "stairs down": (24,), "ladder up": (25,), "ladder down": (26,), "altar": (27,),
    "grave": (28,), "throne": (29,), "sink": (30,), "fountain": (31,), "water": (32, 41), "ice": (33,), "lava": (34,),
    "lowered drawbridge": (35, 36), "raised drawbridge": (37, 38), "cloud": (40,), "arrow trap": (42,), "dart trap": (43,),
    "falling rock trap": (44,), "squeaky board": (45,), "bear trap": (46,), "land mine": (47,), "rolling boulder trap": (48,),
    "sleeping gas trap": (49,), "rust trap": (50,), "fire trap": (51,), "pit": (52,), "spiked pit": (53,), "hole": (54,),
    "trap door": (55,), "teleportation trap": (56,), "level teleporter": (57,), "magic portal": (58,), "web": (59,),
    "statue trap": (60,), "magic trap": (61,), "anti-magic field": (62,), "polymorph trap": (63,), "vibrating square": (64,),
}
"""NetHack's map symbols (rm.h, "cmap") by what they stand for; floor, darkness and effects are nothing."""


def is_nethack(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment is NetHack's: by its class, or by the parts that it observes."""
    is_ours = any(base.__module__.partition(".")[0] in ("nle", "minihack") for base in type(env.unwrapped).__mro__)
    named = getattr(env.observation_space, "spaces", {})
    return is_ours or (isinstance(named, dict) and set(named) >= PARTS)


def reason_against(part: str, parts: Collection[str]) -> str | None:
    """Why a part of NetHack is not read, beside these others; None where it is, or is none of NetHack's."""
    if part in PICTURES | SCREENS and set(parts) >= PARTS:
        return "says what other parts say"
    if part in PICTURES and set(MAPS) & set(parts):
        return "says what the glyphs say"
    return "is a screen or book-keeping of NetHack; glyphs, glyphs_crop, blstats, message and inv_glyphs are read" \
        if part in SCREENS else None


def map_of(parts: Collection[str]) -> str:
    """The part of which the goals are made that name things; "" where there is none."""
    return next((name for name in MAPS if name in parts and (name != "glyphs" or "blstats" in parts or MAPS[1] not in parts)), "")


HEROES = ("archeologist", "barbarian", "caveman", "cavewoman", "healer", "knight", "monk", "priest", "priestess", "ranger", "rogue",
          "samurai", "tourist", "valkyrie", "wizard")
"""Kinds that a human hero looks like."""


def without_heroes(kinds: tuple[str, ...], table: np.ndarray) -> np.ndarray:
    """The table for maps on which nobody says which of the figures is the hero."""
    heroes = [i for i, kind in enumerate(kinds) if kind in HEROES]
    return np.where(np.isin(table, heroes), -1, table)


@cache
def glyph_kinds() -> tuple[tuple[str, ...], np.ndarray]:
    """Names of kinds, and glyph → kind or −1, int64 [5977]."""
    from nle import nethack

    kinds: dict[str, int] = {}
    table = np.full(nethack.MAX_GLYPH + 1, -1, np.int64)

    def is_a(name: str, *glyphs: int) -> None:
        table[list(glyphs)] = kinds.setdefault(name, len(kinds))

    for name, symbols in _DUNGEON.items():
        is_a(name, *(nethack.GLYPH_CMAP_OFF + symbol for symbol in symbols))
    for i in range(nethack.NUMMONS):
        name = str(nethack.permonst(i).mname)
        is_a(name, *(offset + i for offset in (nethack.GLYPH_MON_OFF, nethack.GLYPH_DETECT_OFF, nethack.GLYPH_RIDDEN_OFF)))
        is_a("pet", nethack.GLYPH_PET_OFF + i)
        is_a("corpse", nethack.GLYPH_BODY_OFF + i)
        is_a("statue", nethack.GLYPH_STATUE_OFF + i)
    is_a("unseen monster", nethack.GLYPH_INVISIBLE)
    named_by_use = {chr(number): word for number, word in (
        (nethack.POTION_CLASS, "potion"), (nethack.SCROLL_CLASS, "scroll"), (nethack.SPBOOK_CLASS, "spellbook"),
        (nethack.WAND_CLASS, "wand"), (nethack.RING_CLASS, "ring"))}
    for i in range(nethack.NUM_OBJECTS):
        what = nethack.objclass(i)
        name, of = nethack.OBJ_NAME(what), named_by_use.get(what.oc_class)
        is_a(f"object {i}" if not name else f"{of} of {name}" if of else str(name), nethack.GLYPH_OBJ_OFF + i)
    return tuple(kinds), table


def crop(glyphs: Any, blstats: Any) -> np.ndarray:
    """The cells around the hero, int16 [CROP, CROP], or [n, CROP, CROP] of a batch."""
    maps, status = np.asarray(glyphs), np.asarray(blstats)
    is_single = maps.ndim == 2
    maps, status = (maps[None], status[None]) if is_single else (maps, status)
    half = CROP // 2
    around = np.pad(maps, ((0, 0), (half, half), (half, half)), constant_values=NO_GLYPH)
    rows, columns = np.clip(status[:, 1], 0, maps.shape[1] - 1), np.clip(status[:, 0], 0, maps.shape[2] - 1)
    cut = np.stack([one[row : row + CROP, column : column + CROP] for one, row, column in zip(around, rows, columns, strict=True)])
    return (cut[0] if is_single else cut).astype(np.int16)
