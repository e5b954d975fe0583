"""N games of one level, stepped together (the fast core; Gymnasium's classes in `env` are thin covers over it).

Arrays are made once and written in place: `planes` uint8 [N, P, H, W], and `bits`, the same memory seen as [N, B],
since the proto-goals are exactly "this kind of thing in this cell": bit = (plane · H + row) · W + column. `active`
lists the bits that are on.

A game that ends starts anew within the same step. `planes` and `active` then show the new episode's start, while
`final_planes` and `final_active` show s', the state the transition led to. Where the episode goes on the two are equal.
Satisfies `protogoal.envs.vector.BatchEnv`, which the actor drives.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from protogoal.envs.baba import engine
from protogoal.envs.baba.levels import TERRAIN, Level, load_level
from protogoal.envs.baba.movement import Scratch
from protogoal.envs.baba.rules import AND, DEAD, IS, NO_WORD, NOT, NOUN, PROPERTIES, PROPERTY, TEXT_NOUN
from protogoal.envs.vector import ArraySpec, BatchStep, Observation

if TYPE_CHECKING:
    from protogoal.goals.spaces import ObjectGrid

NUM_ACTIONS = 5
ACTIONS = ("up", "down", "left", "right", "no-op")


def tables(level: Level) -> engine.Tables:
    """The level's geometry and vocabulary as the engine's lookup tables."""
    height, width = level.height, level.width
    inside = np.full((height + 2, width + 2), -1, np.int16)
    cells = np.arange(height * width, dtype=np.int16).reshape(height, width)
    inside[1:-1, 1:-1] = np.where(level.terrain, -1, cells)
    near = np.stack([inside[:-2, 1:-1], inside[2:, 1:-1], inside[1:-1, :-2], inside[1:-1, 2:]]).reshape(4, -1)
    num_objects = level.num_object_types
    operators = {"IS": IS, "AND": AND, "NOT": NOT}
    word_class = np.full(len(level.kinds), NO_WORD, np.uint8)
    word_value = np.zeros(len(level.kinds), np.int16)
    group = np.full(len(level.kinds), num_objects, np.int16)
    word_of = np.full(num_objects + 1, -1, np.int16)
    for k, name in enumerate(level.kinds):
        if k < num_objects:
            group[k] = k
        elif name in operators:
            word_class[k] = operators[name]
        elif name in PROPERTIES:
            word_class[k], word_value[k] = PROPERTY, 1 << PROPERTIES.index(name)
        else:
            noun = num_objects if name == TEXT_NOUN else level.kinds.index(name.lower())
            word_class[k], word_value[k] = NOUN, noun
            if name != TEXT_NOUN:
                word_of[noun] = k
    return engine.Tables(np.ascontiguousarray(near), word_class, word_value, group, word_of)


def _games(level: Level, num_envs: int) -> engine.Games:
    """N games at the start of a level, before their lists and rules are made."""
    capacity, groups, cells = level.capacity, level.num_object_types + 1, level.height * level.width
    games = engine.Games(
        kind=np.full((num_envs, capacity), DEAD, np.uint8),
        cell=np.zeros((num_envs, capacity), np.int16),
        face=np.zeros((num_envs, capacity), np.uint8),
        head=np.zeros((num_envs, cells), np.int16),
        link=np.zeros((num_envs, capacity), np.int16),
        props=np.zeros((num_envs, groups), np.int32),
        becomes=np.zeros((num_envs, groups), np.int64),
        summary=np.zeros((num_envs, 2), np.int32),
        steps=np.zeros(num_envs, np.int32),
    )
    games.kind[:, : len(level.kind)] = level.kind
    games.cell[:, : len(level.kind)] = level.cell
    games.face[:, : len(level.kind)] = level.face
    return games


def _scratch(level: Level) -> Scratch:
    size = level.capacity
    return Scratch(
        leaving=np.zeros(size, np.uint8), granted=np.zeros(size, np.uint8), heading=np.zeros(size, np.uint8),
        queue=np.zeros(4 * size, np.int32), left=np.zeros(size, np.int16), mover=np.zeros(size, np.int16),
        stage=np.zeros(size, np.uint8), can_go=np.zeros(size, np.uint8), pushed=np.zeros(size, np.uint8),
        doomed=np.zeros(size, np.uint8), cancelled=np.zeros((level.num_object_types + 1, 2), np.int64),
        tally=np.zeros(4, np.int64),
    )


class BabaBatch:
    """N copies of a level.

    `terrain_plane` adds the static terrain as one more plane, which no action can change. With `autoreset` = False a
    game goes on after its end, and may begin with nothing that is YOU (something may still make a YOU); for replays.
    """

    num_actions = NUM_ACTIONS

    def __init__(self, level: str | Path | Level = "umaze-medium", num_envs: int = 1, max_episode_steps: int = 1000,
                 seed: int | None = None, terrain_plane: bool = False, autoreset: bool = True):
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1; got {num_envs}")
        if max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1; got {max_episode_steps}")
        self.level = level = load_level(level)
        self.num_envs = int(num_envs)
        self.max_episode_steps = int(max_episode_steps)
        self.autoreset = bool(autoreset)
        self.terrain_plane = bool(terrain_plane)
        self.plane_names = (*level.kinds, TERRAIN) if terrain_plane else level.kinds
        self.num_cells = level.height * level.width
        self.num_bits = len(self.plane_names) * self.num_cells
        terrain = np.flatnonzero(level.terrain) + len(level.kinds) * self.num_cells if terrain_plane else np.empty(0, int)
        self.max_active = level.capacity + len(terrain)
        self._tables = tables(level)
        self._scratch = _scratch(level)
        self._start, self._start_views = _games(level, 1), self._views(1, terrain)
        engine.rebuild(self._tables, self._start, self._scratch, self._start_views)
        engine.transform_start(self._tables, self._start, self._scratch, self._start_views)
        if autoreset and not engine.has_player(self._tables, self._start, 0):
            raise ValueError(f"level {level.name} has no player: nothing is YOU at the start")
        self._games, self._seen = _games(level, self.num_envs), self._views(self.num_envs, terrain)
        shape = (self.num_envs, len(self.plane_names), level.height, level.width)
        self.planes = self._seen.planes.reshape(shape)
        self.bits = self._seen.planes
        self.active = self._seen.active
        self.final_planes = self._seen.final_planes.reshape(shape)
        self.final_bits = self._seen.final_planes
        self.final_active = self._seen.final_active
        self.reward = np.zeros(self.num_envs, np.float32)
        self.terminated = np.zeros(self.num_envs, np.bool_)
        self.truncated = np.zeros(self.num_envs, np.bool_)
        self.episode_steps = self._games.steps
        self._actions = np.zeros(self.num_envs, np.int64)
        self.observation_spec = {"planes": ArraySpec(shape[1:], np.dtype(np.uint8), "planes")}
        self._observation: Observation = {"planes": self.planes}
        self._final_observation: Observation = {"planes": self.final_planes}
        self._step = BatchStep(self._observation, self.active, self._final_observation, self.final_active, self.reward,
                               self.terminated, self.truncated)
        self.reset(seed)

    @cached_property
    def space(self) -> ObjectGrid:
        """The proto-goal space: names ("FLAG at (8,0)" = row 8, column 0), kinds and cells of the bits."""
        from protogoal.goals.spaces import ObjectGrid  # here, since playing needs nothing of the evaluator

        return ObjectGrid(self.plane_names, self.level.height, self.level.width)

    def _views(self, num_envs: int, terrain: np.ndarray) -> engine.Views:
        """Empty planes but for the terrain, whose bits stand after the objects' in `active`."""
        ids = np.int16 if self.num_bits <= np.iinfo(np.int16).max else np.int32
        planes = np.zeros((num_envs, self.num_bits), np.uint8)
        active = np.full((num_envs, self.max_active), -1, ids)
        planes[:, terrain] = 1
        active[:, self.level.capacity :] = terrain
        return engine.Views(planes, active, planes.copy(), active.copy(), np.zeros(num_envs, np.bool_))

    def reset(self, seed: int | None = None) -> tuple[Observation, np.ndarray]:
        """Starts all games anew. Nothing here is random, so the seed changes nothing; it is checked all the same."""
        if seed is not None and seed < 0:
            raise ValueError(f"a seed is a number ≥ 0; got {seed}")
        engine.restart_all(self._start, self._start_views, self._games, self._seen)
        self.reward[:] = 0
        self.terminated[:] = False
        self.truncated[:] = False
        return self._observation, self.active

    def reset_where(self, mask: np.ndarray) -> None:
        """Starts some games anew, those where mask, bool [N], is True."""
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"the mask must be bool of shape ({self.num_envs},); got {mask.dtype} of {mask.shape}")
        state, start = self.get_state(), self._start
        for name in ("kind", "cell", "face", "steps"):
            state[name][mask] = getattr(start, name)
        self.set_state(state)

    def step(self, actions: np.ndarray) -> BatchStep:
        """One action a game, int [N]: 0 up, 1 down, 2 left, 3 right, 4 no-op. The arrays returned are this object's own."""
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ValueError(f"actions must be {self.num_envs} whole numbers, shape ({self.num_envs},); got shape "
                             f"{actions.shape} of {actions.dtype}")
        self._actions[:] = actions
        bad = engine.step_all(self._tables, self._games, self._scratch, self._start, self._start_views, self._seen,
                              self._actions, self.max_episode_steps, self.autoreset, self.reward, self.terminated,
                              self.truncated)
        if bad >= 0:
            raise ValueError(f"action {actions[bad]} of game {bad} is not allowed; actions are 0 to {NUM_ACTIONS - 1} "
                             f"({', '.join(ACTIONS)})")
        return self._step

    def has_player(self, n: int) -> bool:
        """Whether anything is YOU in game n."""
        return bool(engine.has_player(self._tables, self._games, n))

    def get_state(self) -> dict[str, Any]:
        """All that a game's future depends on: kind, cell, face [N, M] and the episode's steps [N]."""
        return {name: getattr(self._games, name).copy() for name in ("kind", "cell", "face", "steps")}

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, np.ndarray]:
        """Goes back to what `get_state` gave, to the bit; everything else follows from it."""
        arrays = {}
        for name in ("kind", "cell", "face", "steps"):
            mine = getattr(self._games, name)
            value = np.asarray(state.get(name))
            if value.shape != mine.shape or value.dtype != mine.dtype:
                raise ValueError(f"state {name!r} must be {mine.dtype} {mine.shape}; got {value.dtype} {value.shape}")
            arrays[name] = value
        alive = arrays["kind"] != DEAD
        cells = arrays["cell"][alive].astype(np.int64)
        legal = (arrays["kind"][alive] < len(self.level.kinds)).all() and (arrays["face"] < 4).all()
        legal = legal and ((cells >= 0) & (cells < self.num_cells)).all() and not self.level.terrain.ravel()[cells].any()
        if not legal:
            raise ValueError(f"the state is not one of level {self.level.name}: a kind, cell or direction is out of range")
        for name, value in arrays.items():
            getattr(self._games, name)[:] = value
        engine.rebuild(self._tables, self._games, self._scratch, self._seen)
        return self._observation, self.active

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made anew from the state: `planes` and the like are views, which copying would part."""
        settings = {"num_envs": self.num_envs, "max_episode_steps": self.max_episode_steps, "terrain_plane": self.terrain_plane,
                    "autoreset": self.autoreset}
        return _restored, (self.level, settings, self.get_state())

    def close(self) -> None:
        """Nothing to free."""


def _restored(level: Level, settings: dict[str, Any], state: dict[str, Any]) -> BabaBatch:
    batch = BabaBatch(level, **settings)
    batch.set_state(state)
    return batch
