"""What stands on a map cell, in under a hundred classes (paper §6.3, appendix B.1).

NetHack has 5,976 glyphs, and its characters alone do not do: water and lava are both "}". A class keeps what a player
of the river needs to know: floor, water, lava, boulder, stairs, and monsters and objects by their kind. `glyph_classes`
is the table that `game.RiverGame` looks maps up in; the network embeds the classes.
"""

from __future__ import annotations

from functools import cache

import numpy as np

UNSEEN, BEYOND, YOU, FLOOR, WATER, LAVA, BOULDER, STAIRS_DOWN, STAIRS_UP = range(9)
WALL, FEATURE, TRAP, EFFECT, STATUE, CORPSE, UNKNOWN_MONSTER = range(9, 16)
FIRST_OBJECT = 16  # + NetHack's object class, 0…17
FIRST_MONSTER = 34  # + NetHack's monster class (the letter), 0…60
NUM_CLASSES = 95

CLASS_NAMES = (
    "unseen", "beyond the map", "you", "floor", "water", "lava", "boulder", "stairs down", "stairs up", "wall", "feature", "trap",
    "effect", "statue", "corpse", "unknown monster", "object", "strange object", "weapon", "armour", "ring", "amulet", "tool",
    "food", "potion", "scroll", "spellbook", "wand", "coins", "gem", "rock", "iron ball", "chain", "venom", "monster",
    *(f"monster {letter}" for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@"), "ghost", "golem", "demon",
    "sea monster", "lizard", "worm's tail", "mimic",
)
"""What the classes are called."""

# Class → NetHack's map symbols (rm.h, "cmap"), by number
_SYMBOLS: dict[int, tuple[int, ...]] = {
    UNSEEN: (0,),
    FLOOR: (12, 13, 14, 19, 20, 21, 22, 33, 35, 36),  # doorways, room, corridors, ice, lowered drawbridges
    WATER: (32, 41),
    LAVA: (34,),
    STAIRS_UP: (23, 25),
    STAIRS_DOWN: (24, 26),
    WALL: (*range(1, 12), 15, 16, 17, 18, 37, 38),  # walls, closed doors, bars, trees, raised drawbridges
    TRAP: tuple(range(42, 65)),
    FEATURE: (27, 28, 29, 30, 31, 39, 40),  # altar, grave, throne, sink, fountain, air, cloud
}
_NUM_MAP_SYMBOLS = 87


@cache
def glyph_classes() -> np.ndarray:
    """The class of every glyph, uint8 [5976 + 1]; a read-only table, built once a process."""
    from nle import nethack

    table = np.full(nethack.MAX_GLYPH + 1, EFFECT, np.uint8)  # what no rule below names is a zap, a blast or a stomach

    letters = [FIRST_MONSTER + ord(nethack.permonst(i).mlet) for i in range(nethack.NUMMONS)]
    for offset in (nethack.GLYPH_MON_OFF, nethack.GLYPH_PET_OFF, nethack.GLYPH_DETECT_OFF, nethack.GLYPH_RIDDEN_OFF):
        table[offset:offset + nethack.NUMMONS] = letters
    table[nethack.GLYPH_INVISIBLE] = UNKNOWN_MONSTER
    table[nethack.GLYPH_WARNING_OFF:nethack.GLYPH_STATUE_OFF] = UNKNOWN_MONSTER
    table[nethack.GLYPH_BODY_OFF:nethack.GLYPH_BODY_OFF + nethack.NUMMONS] = CORPSE
    table[nethack.GLYPH_STATUE_OFF:nethack.GLYPH_STATUE_OFF + nethack.NUMMONS] = STATUE

    for i in range(nethack.NUM_OBJECTS):
        kind = nethack.objclass(i)
        is_boulder = nethack.OBJ_NAME(kind) == "boulder"
        table[nethack.GLYPH_OBJ_OFF + i] = BOULDER if is_boulder else FIRST_OBJECT + ord(kind.oc_class)

    symbols = np.full(_NUM_MAP_SYMBOLS, EFFECT, np.uint8)
    for kind, places in _SYMBOLS.items():
        symbols[list(places)] = kind
    table[nethack.GLYPH_CMAP_OFF:nethack.GLYPH_CMAP_OFF + _NUM_MAP_SYMBOLS] = symbols

    table.flags.writeable = False
    return table
