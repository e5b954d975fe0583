"""One game for scripts and people: step by step, with undo, or a whole string of moves at once.

`replay(level, "rrdd")` tells whether the moves win; `Game` is what `play` and `render` look at. Both use the compiled
engine, without the environment's ending: a game in which nothing is YOU goes on, since something that moves by itself
may push a new rule together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protogoal.envs.baba.batch import BabaBatch
from protogoal.envs.baba.levels import Level, load_level
from protogoal.envs.baba.rules import DEAD, NOOP
from protogoal.envs.baba.sentences import Sentence, sentences

MOVES = {"u": 0, "d": 1, "l": 2, "r": 3, "s": NOOP, ".": NOOP}
"""Letters of a move string: up, down, left, right, and s or . to wait. Upper case means the same."""


@dataclass(frozen=True)
class Outcome:
    """What a string of moves came to. `steps` counts the moves made; nothing is played after the win."""

    won: bool
    lost: bool
    """Nothing was YOU any more at the end."""
    steps: int


@dataclass(frozen=True)
class Thing:
    """An object on the board: its kind's name (upper case for a word), where it is and where it faces (0–3)."""

    name: str
    row: int
    column: int
    face: int


class Game:
    """One game with a history."""

    def __init__(self, level: str | Path | Level):
        self._batch = BabaBatch(level, 1, max_episode_steps=np.iinfo(np.int32).max, autoreset=False)
        self.level = self._batch.level
        self._actions = np.zeros(1, np.int64)
        self._history: list[tuple[dict[str, np.ndarray], bool]] = []
        self.won = False

    def turn(self, action: int) -> None:
        """Plays one action, 0–4."""
        self._history.append((self._batch.get_state(), self.won))
        self._actions[0] = action
        self.won = bool(self._batch.step(self._actions).reward[0] > 0)

    def undo(self) -> bool:
        """Takes the last turn back; False if there is none."""
        if not self._history:
            return False
        state, self.won = self._history.pop()
        self._batch.set_state(state)
        return True

    def reset(self) -> None:
        """Back to the start; can itself be undone."""
        self._history.append((self._batch.get_state(), self.won))
        self._batch.reset()
        self.won = False

    @property
    def steps(self) -> int:
        return int(self._batch.episode_steps[0])

    @property
    def lost(self) -> bool:
        """Whether nothing is YOU."""
        return not self.won and not self._batch.has_player(0)

    @property
    def planes(self) -> np.ndarray:
        """uint8 [P, H, W], the engine's own array."""
        return self._batch.planes[0]

    def state(self) -> dict[str, np.ndarray]:
        """The position, for `render`: kind, cell, face [1, M] and steps."""
        return self._batch.get_state()

    def things(self) -> list[Thing]:
        """Everything on the board, in slot order."""
        return things(self.level, self.state())

    def rules(self) -> list[Sentence]:
        """The sentences spelled on the board."""
        return spelled(self.things())


def things(level: Level, state: dict[str, np.ndarray], n: int = 0) -> list[Thing]:
    """Game n of a batch's state as a list of things."""
    found = []
    for kind, cell, face in zip(state["kind"][n], state["cell"][n], state["face"][n], strict=True):
        if kind != DEAD:
            row, column = divmod(int(cell), level.width)
            found.append(Thing(level.kinds[kind], row, column, int(face)))
    return found


def spelled(on_board: list[Thing]) -> list[Sentence]:
    """The sentences that these things spell."""
    words: dict[tuple[int, int], list[str]] = {}
    for thing in on_board:
        if thing.name.isupper():
            words.setdefault((thing.row, thing.column), []).append(thing.name)
    return sentences(words)


def actions_of(moves: str) -> list[int]:
    """A move string as actions. Raises ValueError at the first letter that is none."""
    for i, letter in enumerate(moves):
        if letter.lower() not in MOVES:
            raise ValueError(f"move {i} is {letter!r}; moves are u, d, l, r, and s or . to wait")
    return [MOVES[letter.lower()] for letter in moves]


def replay(level: str | Path | Level, moves: str) -> Outcome:
    """Plays a string of moves from the start, up to the win if there is one."""
    actions = actions_of(moves)
    game = Game(load_level(level))
    for action in actions:
        game.turn(action)
        if game.won:
            break
    return Outcome(won=game.won, lost=game.lost, steps=game.steps)
