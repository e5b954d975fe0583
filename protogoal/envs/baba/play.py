"""Baba Is You in the terminal, for people: `protogoal play LEVEL`, or with `--moves STRING` for scripts.

Arrow keys or WASD move, space waits, Z takes back, R starts again, Q leaves. Below the board stand the rules in force.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import asdict

from protogoal.envs.baba import render
from protogoal.envs.baba.game import Game, actions_of, replay
from protogoal.envs.baba.levels import load_level
from protogoal.envs.baba.rules import DOWN, LEFT, NOOP, RIGHT, UP
from protogoal.envs.baba.sentences import in_force

KEYS = {
    "\x1b[A": UP, "\x1bOA": UP, "w": UP, "\x1b[B": DOWN, "\x1bOB": DOWN, "s": DOWN, "\x1b[D": LEFT, "\x1bOD": LEFT, "a": LEFT,
    "\x1b[C": RIGHT, "\x1bOC": RIGHT, "d": RIGHT, " ": NOOP, ".": NOOP,
}
UNDO, RESET, QUIT = ("z", "u", "\x7f", "\b"), ("r",), ("q", "\x1b", "\x03", "\x04", "")
HELP = "arrows or WASD move · space waits · Z takes back · R starts again · Q leaves"
_KEY = re.compile("\x1b[\\[O][A-D]|.", re.DOTALL)  # several may come at once
_CLEAR, _HIDE, _SHOW = "\x1b[H\x1b[J", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def _dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m"


def screen(game: Game, moves: str = "") -> str:
    """All that is shown between two keys."""
    level = game.level
    columns, rows = shutil.get_terminal_size()
    wide = 4 * level.width + 2 <= columns
    lines = [f"\x1b[1m{level.title or level.name}\x1b[0m" + (_dim(f"  {level.teaches}") if level.teaches else ""), ""]
    if 2 * level.width > columns or level.height + 6 > rows:
        lines.append(_dim(f"(the board is {level.height}×{level.width}; make the terminal larger)"))
    lines += ["  " + line for line in render.ansi(level, game.things(), wide=wide).split("\n")]
    rules = list(dict.fromkeys(str(sentence) for sentence in in_force(game.rules())))
    lines += ["", "  " + (" · ".join(rules) if rules else "no rules at all")]
    if game.won:
        lines.append(f"  \x1b[1;33mYou win, in {game.steps} moves.\x1b[0m  R starts again, Q leaves.")
    elif game.lost:
        lines.append("  \x1b[1;31mNothing is YOU.\x1b[0m  Z takes back, R starts again.")
    else:
        lines.append(_dim(f"  {game.steps} moves{': ' + moves[-(columns - 20):] if moves else ''}"))
    return "\n".join([*lines, "", _dim(f"  {HELP}")])


def _play(game: Game) -> None:
    """The loop: draw, read a key, act."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    moves = [""]  # the string so far, after each thing that can be taken back
    sys.stdout.write(_HIDE)
    try:
        tty.setraw(terminal)
        while True:
            sys.stdout.write(_CLEAR + screen(game, moves[-1]).replace("\n", "\r\n"))
            sys.stdout.flush()
            for key in _KEY.findall(os.read(terminal, 64).decode(errors="ignore")) or [""]:
                key = key if key in KEYS else key.lower()
                if key in QUIT:
                    return
                if key in UNDO:
                    if game.undo():
                        moves.pop()
                elif key in RESET:
                    game.reset()
                    moves.append("")
                elif key in KEYS and not game.won:
                    game.turn(KEYS[key])
                    moves.append(moves[-1] + "udlrs"[KEYS[key]])
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stdout.write(_SHOW)
        sys.stdout.flush()


def play(level_name_or_path: str, moves: str | None = None, as_json: bool = False) -> int:
    """Plays a level at the keyboard, or a string of moves; returns the command's exit code.

    With moves, prints what they came to: {"won", "lost", "steps"} as JSON, or the board and a sentence.
    """
    try:
        level = load_level(level_name_or_path)
        if moves is not None:
            outcome = replay(level, moves)
    except (ValueError, OSError, UnicodeDecodeError) as error:
        print(f"protogoal play: {error}", file=sys.stderr)
        return 2
    if moves is not None:
        if as_json:
            print(json.dumps(asdict(outcome)))
        else:
            game = Game(level)
            for action in actions_of(moves)[: outcome.steps]:
                game.turn(action)
            print(render.ansi(level, game.things(), colour=sys.stdout.isatty()))
            print("won" if outcome.won else "lost: nothing is YOU" if outcome.lost else "not won", f"after {outcome.steps} moves")
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("protogoal play: playing needs a terminal; give --moves STRING to play without one", file=sys.stderr)
        return 2
    try:
        _play(Game(level))
    except ImportError:
        print("protogoal play: this system has no raw terminal (termios); give --moves STRING instead", file=sys.stderr)
        return 2
    return 0
