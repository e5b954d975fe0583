"""The MiniHack river as a Gymnasium environment (paper §6.3, appendix B.1).

The player starts left of a river, the stairs are to the right of it, and boulders lie about; pushed into the water they
make a bridge. Every episode is a new level; reset(seed=…) fixes all of it: the level, the dice, and every later episode
until the next seed. Eight compass moves, 350 steps, reward 1 on the stairs and 0 otherwise (MiniHack's penalty for
moves that do not pass time is left out).

`GymBatchEnv` runs many of these in worker processes; the words of "message" are its proto-goals.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal.envs.minihack.game import COLUMNS, MAX_MONSTERS, MOVES, ROWS, SCENARIOS, Frame, RiverGame
from protogoal.envs.minihack.glyphs import BEYOND, NUM_CLASSES
from protogoal.envs.minihack.render import draw_ansi, draw_rgb

MESSAGE_LENGTH = 512
"""Longest message that is kept; a page of NetHack's message line has at most 80 characters, a fall into the river six pages."""

_IMPAIRED = 0x3A0  # NetHack's conditions blind, stunned, confused, hallucinating


class RiverEnv(gymnasium.Env[dict[str, Any], Any]):
    """NarrowRiver with 0–4 monsters, or WideRiverWithLava.

    Observation:
        map       uint8 [7, 25]: what stands on each cell of the room, as far as it was seen (classes of `glyphs`)
        crop      uint8 [c, c]: the same around the player, who is in the middle; cells off the map are BEYOND
        position  the player's row and column
        status    float32 [2]: hit points over their maximum; 1 when blind, stunned, confused or hallucinating
        message   text: what the game said after the move, "" after a reset

    `pages`: a move can bring several pages of messages. "last" keeps what is on the screen when the player moves again,
    as NLE's observation does and the paper's with it; a death then has no words. "all" joins them.
    `reset(options={"seeds": …})` plays the level of NLE's own three seeds: of the dice, of what is shown, of the level.
    Ends: `terminated` by death or on the stairs, `truncated` at `max_steps`. NLE calls the last one a termination with
    status ABORTED, even when the last step reaches the stairs; here that is a success.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}  # noqa: RUF012  (Gymnasium's way)

    def __init__(self, scenario: str = "narrow-river", monsters: int = 0, max_steps: int = 350, crop: int = 9,
                 pages: Literal["last", "all"] = "last", render_mode: str | None = None):
        if scenario not in SCENARIOS:
            raise ValueError(f"scenario must be one of {sorted(SCENARIOS)}; got {scenario!r}")
        if not 0 <= monsters <= MAX_MONSTERS:
            raise ValueError(f"monsters must be 0…{MAX_MONSTERS}; got {monsters}")
        if max_steps < 1:
            raise ValueError(f"max_steps must be at least 1; got {max_steps}")
        if crop < 1 or crop % 2 == 0:
            raise ValueError(f"crop must be an odd number of cells, 1 or more; got {crop}")
        if pages not in ("last", "all"):
            raise ValueError(f"pages must be 'last' or 'all'; got {pages!r}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be one of {self.metadata['render_modes']} or None; got {render_mode!r}")
        self.render_mode = render_mode
        self.max_steps = int(max_steps)
        self._pages = pages
        self._margin = crop // 2
        self._padded = np.full((ROWS + 2 * self._margin, COLUMNS + 2 * self._margin), BEYOND, np.uint8)
        self._game: RiverGame | None = RiverGame(scenario, int(monsters), drawable=render_mode is not None)
        self._steps = 0
        self._frame: Frame | None = None
        self._said: tuple[str, ...] = ()

        self.action_space = spaces.Discrete(len(MOVES))
        classes = NUM_CLASSES - 1
        self.observation_space = spaces.Dict({
            "map": spaces.Box(0, classes, (ROWS, COLUMNS), np.uint8),
            "crop": spaces.Box(0, classes, (crop, crop), np.uint8),
            "position": spaces.MultiDiscrete([ROWS, COLUMNS]),
            "status": spaces.Box(0.0, 1.0, (2,), np.float32),
            "message": spaces.Text(MESSAGE_LENGTH, min_length=0, charset="".join(map(chr, range(1, 256)))),
        })

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed, options=options)
        drawn = self.np_random.integers(2**62, size=3).tolist()
        core, shown, level = (options or {}).get("seeds", drawn)
        self._frame = self._running().start((core, shown, level))
        self._steps, self._said = 0, ()  # the greeting is no event of the level
        return self._observe(self._frame, ""), {}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self._frame, self._said, died, at_goal = self._running().move(int(action))
        self._steps += 1
        message = self._said[-1] if self._pages == "last" else "  ".join(page for page in self._said if page)
        terminated = died or at_goal
        truncated = not terminated and self._steps >= self.max_steps
        end = "death" if died else "goal" if at_goal else "limit" if truncated else "running"
        return self._observe(self._frame, message[:MESSAGE_LENGTH]), float(at_goal), terminated, truncated, {"end": end}

    def render(self) -> Any:
        if self.render_mode is None or self._frame is None:
            return None
        said = "  ".join(page for page in self._said if page)
        if self.render_mode == "ansi":
            return draw_ansi(self._frame, said)
        return draw_rgb(self._frame, said, self._steps, self.max_steps)

    def close(self) -> None:
        if self._game is not None:
            self._game.close()
            self._game = None

    def _running(self) -> RiverGame:
        if self._game is None:
            raise RuntimeError("this environment is closed")
        return self._game

    def _observe(self, frame: Frame, message: str) -> dict[str, Any]:
        row = min(max(frame.row, 0), ROWS - 1)
        column = min(max(frame.column, 0), COLUMNS - 1)
        m = self._margin
        self._padded[m:m + ROWS, m:m + COLUMNS] = frame.cells
        return {
            "map": frame.cells,
            "crop": self._padded[row:row + 2 * m + 1, column:column + 2 * m + 1].copy(),
            "position": np.array((row, column), np.int64),
            "status": np.array((min(max(frame.health, 0.0), 1.0), frame.condition & _IMPAIRED != 0), np.float32),
            "message": message,
        }
