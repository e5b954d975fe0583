"""One game of NetHack on a MiniHack river level, driven without the parts that nobody here looks at.

MiniHack builds the level, names the character and sets the options; that is its own code, run once a process. The game
is then stepped through NLE's `Nethack` class with the few screen buffers that matter: MiniHack's environment fills and
copies sixteen a step (descriptions of every cell among them), which is five sixths of its time. Key by key the game is
the same but for one thing: to describe cells NetHack writes where it keeps a missile in flight, so that in MiniHack's own
environment one interrupted by a message may fly elsewhere (2 of 60 episodes with 4 monsters); here it flies on.
tests/envs/test_minihack.py plays both side by side. `env.RiverEnv` makes a Gymnasium environment of it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np

from protogoal.envs.minihack.glyphs import YOU, glyph_classes

SCENARIOS: dict[str, dict[str, bool]] = {
    "narrow-river": {"narrow": True},  # the paper's NarrowRiver: one boulder makes the bridge
    "wide-river-lava": {"lava": True},  # WideRiverWithLava: two boulders, and most of the river is lava
}
MAX_MONSTERS = 4

ROWS, COLUMNS = 7, 25
TOP, LEFT = 7, 26  # where MiniHack's "center, center" puts a 25×7 map on NetHack's 79×21 screen
ROOM = (slice(TOP, TOP + ROWS), slice(LEFT, LEFT + COLUMNS))

MOVES = ("N", "E", "S", "W", "NE", "SE", "SW", "NW")

_SPACE, _ESCAPE = ord(" "), 27
_QUIT = (0x80 | ord("q"), ord("y"))  # M-q, and yes
_MOST_LAST_SCREENS = 50
_ASKS = (b"eat", b"attack", b"direction?", b"pray")  # questions that NLE leaves to the player's next key
_IN_QUESTION, _IN_TEXT_PROMPT, _WAITS_FOR_SPACE, _ON_STAIRS_DOWN = 1, 2, 3, 4  # places in NLE's "internal"
_IN_MOVELOOP = 3  # place in NLE's "program_state"
_CONDITION, _HP, _MAX_HP = 25, 10, 11  # places in NLE's "blstats"


class Level(NamedTuple):
    """What MiniHack made of a scenario: a directory with the compiled level, and how it starts the game."""

    directory: str
    options: tuple[str, ...]
    player: str
    keys: tuple[int, ...]  # the key of each of the eight moves


@cache
def compile_level(scenario: str, monsters: int) -> Level:
    """Lets MiniHack build the scenario; the result serves every game of this process and is removed at its end."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
        try:
            from minihack.envs.river import MiniHackRiver
        except ImportError as error:
            raise ImportError("MiniHack needs the packages nle and minihack: pip install 'protogoal[minihack]' "
                              f"({error})") from error
    river = MiniHackRiver(observation_keys=("glyphs",), n_monster=monsters, **SCENARIOS[scenario])
    try:
        directory = tempfile.mkdtemp(prefix="protogoal-level-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        shutil.copyfile(os.path.join(river.nethack._vardir, "nhdat"), os.path.join(directory, "nhdat"))
        options = tuple(option for option in river.nethack.options if not option.startswith("name:"))
        names = tuple(action.name for action in river.actions)
        if names != MOVES:
            raise RuntimeError(f"this version of MiniHack orders the moves as {names}, not {MOVES}")
        return Level(directory, options, f"Agent-{river.character}", tuple(int(action) for action in river.actions))
    finally:
        river.close()


class Frame(NamedTuple):
    """What a player sees after a move."""

    cells: np.ndarray  # uint8 [7, 25], classes of `glyphs`
    row: int
    column: int
    health: float  # hit points over their maximum
    condition: int  # NetHack's bits for blind, confused, stunned, …
    chars: np.ndarray | None = None  # uint8 [7, 25] and
    colours: np.ndarray | None = None  # uint8 [7, 25], for drawing


class Outcome(NamedTuple):
    """A move's result. `pages` are the messages it brought, one a page of the message line."""

    frame: Frame
    pages: tuple[str, ...]
    died: bool
    at_goal: bool


class RiverGame:
    """A game that can be started anew from seeds, and moved in."""

    def __init__(self, scenario: str, monsters: int, drawable: bool = False):
        from nle import nethack

        self._level = compile_level(scenario, monsters)
        self._drawable = drawable
        self._under_way = False
        self._classes = glyph_classes()
        keys = ["glyphs", "blstats", "message", "program_state", "internal"] + (["chars", "colors"] if drawable else [])
        self._nethack = nethack.Nethack(
            observation_keys=keys, options=self._level.options, playername=self._level.player, ttyrec=None,
            hackdir=self._level.directory, spawn_monsters=False,
            fix_moon_phase=True,  # luck would otherwise depend on the date
        )
        buffers = dict(zip(keys, self._nethack._obs, strict=True))  # NLE writes into these arrays at every step
        self._glyphs, self._stats = buffers["glyphs"][ROOM], buffers["blstats"]
        self._message, self._state, self._internal = buffers["message"], buffers["program_state"], buffers["internal"]
        if drawable:
            self._chars, self._colours = buffers["chars"][ROOM], buffers["colors"][ROOM]

    def start(self, seeds: tuple[int, int, int]) -> Frame:
        """Starts a game from three seeds: of the game's dice, of what is shown, and of the level."""
        core, shown, level = seeds
        self._quit()
        self._nethack.set_initial_seeds(core, shown, False, level)
        self._nethack.reset()
        self._under_way = True
        for _ in range(1000):  # the first screens, before the first move
            if self._state[_IN_MOVELOOP]:
                return self._frame()
            self._press(_SPACE)
        raise RuntimeError("NetHack did not start: no move was possible after 1000 keys")

    def move(self, direction: int) -> Outcome:
        """Presses the key of a move, then turns the pages as NLE does: space at --More--, escape at prompts."""
        over = self._press(self._level.keys[direction])
        if not over and not self._internal[_IN_QUESTION:_WAITS_FOR_SPACE + 1].any():  # the usual case: one page
            return Outcome(self._frame(), (self._text(),), False, bool(self._internal[_ON_STAIRS_DOWN]))
        pages, frame = [self._text()], self._frame()
        while not over:
            if self._internal[_WAITS_FOR_SPACE]:
                key, go_on = _SPACE, True
            elif self._internal[_IN_TEXT_PROMPT]:
                key, go_on = _ESCAPE, True
            elif self._internal[_IN_QUESTION] and not any(question in bytes(self._message) for question in _ASKS):
                key, go_on = _ESCAPE, False
            else:
                break
            over = self._press(key)
            pages.append(self._text())
            if not over and pages[-1]:
                frame = self._frame()  # after a death the screens of the last rites follow, without a message or a map
            if not go_on:
                break
        return Outcome(frame if over else self._frame(), tuple(pages), bool(over),
                       not over and bool(self._internal[_ON_STAIRS_DOWN]))

    def _press(self, key: int) -> bool:
        """Sends one key; True when that ended the game."""
        _, over = self._nethack.step(key)
        self._under_way = not over
        return bool(over)

    def _quit(self) -> None:
        """Ends a game that is under way by NetHack's own command: starting another over it would leak its memory."""
        if not self._under_way:
            return
        for key in (_ESCAPE, *_QUIT, *[_SPACE] * _MOST_LAST_SCREENS):
            if self._press(key):
                return

    def close(self) -> None:
        """Frees the game and its directory."""
        self._nethack.close()

    def _frame(self) -> Frame:
        stats = self._stats
        row, column = int(stats[1]) - TOP, int(stats[0]) - LEFT
        cells = self._classes[self._glyphs]
        if 0 <= row < ROWS and 0 <= column < COLUMNS:
            cells[row, column] = YOU
        chars, colours = (self._chars.copy(), self._colours.copy()) if self._drawable else (None, None)
        return Frame(cells, row, column, float(stats[_HP]) / max(int(stats[_MAX_HP]), 1), int(stats[_CONDITION]), chars, colours)

    def _text(self) -> str:
        if not self._message[0]:
            return ""
        return self._message.tobytes().split(b"\0", 1)[0].decode("latin-1")
