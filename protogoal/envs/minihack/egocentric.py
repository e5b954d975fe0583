"""The river seen from the player: what lies where, relative to where one stands, as a short list of ids.

Levels are made anew each episode, so what is learned about "a boulder one step east, water behind it" must hold wherever
that is; seen from the player it is the same id everywhere. Floor is left out, and so is what lies far to the sides: a
list of a few dozen ids is what a fully connected layer on the one-hot view would read, at a small part of the price of
convolutions over embedded characters. `run.environments` puts this view around a river batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from protogoal.envs.minihack import glyphs
from protogoal.envs.minihack.game import COLUMNS, ROWS
from protogoal.envs.vector import PAD, ArraySpec, BatchEnv, BatchStep, Observation

KINDS = ("unseen", "water", "lava", "boulder", "stairs down", "stairs up", "monster", "object", "obstacle", "other")
_FLOOR = -1  # and the player, who is always in the middle


def _kinds_of_classes() -> np.ndarray:
    """Class of `glyphs` → kind, int8 [NUM_CLASSES]."""
    kind = np.full(glyphs.NUM_CLASSES, KINDS.index("other"), np.int8)
    for name, classes in {
        "unseen": [glyphs.UNSEEN], "water": [glyphs.WATER], "lava": [glyphs.LAVA], "boulder": [glyphs.BOULDER],
        "stairs down": [glyphs.STAIRS_DOWN], "stairs up": [glyphs.STAIRS_UP], "obstacle": [glyphs.WALL, glyphs.STATUE],
        "object": [glyphs.CORPSE, *range(glyphs.FIRST_OBJECT, glyphs.FIRST_MONSTER)],
        "monster": [glyphs.UNKNOWN_MONSTER, *range(glyphs.FIRST_MONSTER, glyphs.NUM_CLASSES)],
    }.items():
        kind[classes] = KINDS.index(name)
    kind[[glyphs.FLOOR, glyphs.YOU, glyphs.BEYOND]] = _FLOOR
    return kind


class EgocentricView:
    """A river batch whose "map" and "crop" are replaced by "around": ids (kind, row offset, column offset).

    `reach`: columns seen to either side. `with_message`: the words of the last message are part of the observation
    ("said"); without them a boulder that does not budge looks like one that was not pushed.
    """

    def __init__(self, env: BatchEnv, reach: int = 12, with_message: bool = True):
        if not 1 <= reach < COLUMNS:
            raise ValueError(f"reach must be 1…{COLUMNS - 1} columns, not {reach}")
        self.env = env
        self.num_envs, self.num_actions = env.num_envs, env.num_actions
        self.num_bits, self.max_active = env.num_bits, env.max_active
        self.reach, self.with_message = int(reach), with_message
        self.longest = ROWS * min(COLUMNS, 2 * self.reach + 1)
        self._kind = _kinds_of_classes()
        height, self._width = 2 * ROWS - 1, 2 * self.reach + 1
        self._cells = height * self._width
        rows, columns = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
        self._rows, self._columns = rows.astype(np.int64), columns.astype(np.int64)
        self.observation_spec = {
            "around": ArraySpec((self.longest,), np.dtype(np.int16), "active", len(KINDS) * self._cells),
            **{name: env.observation_spec[name] for name in ("position", "status")},
        }
        if with_message:
            self.observation_spec["said"] = ArraySpec((env.max_active,), np.dtype(np.int16), "active", env.num_bits)

    def reset(self, seed: int | None = None) -> tuple[Observation, np.ndarray]:
        observation, active = self.env.reset(seed)
        return self._see(observation, active), active

    def step(self, actions: np.ndarray) -> BatchStep:
        step = self.env.step(actions)
        final = self._see(step.final_observation, step.final_active)
        now = final if step.observation is step.final_observation else self._see(step.observation, step.active)
        return step._replace(observation=now, final_observation=final)

    def get_state(self) -> dict[str, Any] | None:
        return self.env.get_state()

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, np.ndarray]:
        observation, active = self.env.set_state(state)
        return self._see(observation, active), active

    def close(self) -> None:
        self.env.close()

    def _see(self, observation: Observation, active: np.ndarray) -> Observation:
        seen = {"around": self._around(observation["map"], observation["position"]), "position": observation["position"],
                "status": observation["status"]}
        if self.with_message:
            seen["said"] = active.astype(np.int16)
        return seen

    def _around(self, cells: np.ndarray, position: np.ndarray) -> np.ndarray:
        """map [N, 7, 25] and position ids [N, 2] → ids int16 [N, longest], padded with −1."""
        kind = self._kind[cells.reshape(len(cells), -1)]  # [N, 175]
        row, column = position[:, 0].astype(np.int64), position[:, 1].astype(np.int64) - ROWS
        across = self._columns - column[:, None] + self.reach  # [N, 175]
        down = self._rows - row[:, None] + ROWS - 1
        env, cell = np.nonzero((kind != _FLOOR) & (across >= 0) & (across < self._width))
        ids = kind[env, cell].astype(np.int64) * self._cells + down[env, cell] * self._width + across[env, cell]
        count = np.bincount(env, minlength=len(cells))
        place = np.arange(len(env)) - (np.cumsum(count) - count)[env]  # rank of each id within its row
        around = np.full((len(cells), self.longest), PAD, np.int16)
        around[env, place] = ids
        return around
