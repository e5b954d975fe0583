"""What a moving view forgets: how far one came in this episode.

MiniGrid's view shows what is near and nothing of the way here, so none of its goals lies deep in a building: "a doorway entered" is
as true of the first as of the last. By dead reckoning, from nothing but the views and the actions, the cells that were seen and
the doorways that were walked through are counted, each place once, so that going to and fro gains nothing. The two numbers are a
part of the observation: proto-goals are made of them (`derive`), and the networks of all agents read them.

    p ← p + d   on a step forward onto what can be entered          d ← ± i d   on a turn
    a cell of the view, a ahead and r to the right, is the place p + (a − i r) d

`user_envs.EnvReference` wraps with it; `run.player` reckons for those who ask with MiniGrid's own observations.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from protogoal.envs import known
from protogoal.envs.episodes import parts_of
from protogoal.goals.derived import minigrid as m

WAY = "way"
"""The name of the part."""

LEVELS = {"doorways passed": range(1, 11), "tens of cells seen": (*range(1, 11), *range(15, 51, 5))}
"""What is counted, and from which numbers on it is a goal; more than the last counts as the last."""

MOST = np.array([levels[-1] for levels in LEVELS.values()])

TURNS = {m.LEFT: 1j, m.RIGHT: -1j}
ENTERED = (m.EMPTY, m.FLOOR, m.GOAL, m.LAVA)
"""What a step forward leads onto; an open door too."""


def forgets(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment shows MiniGrid's view as numbers."""
    named = parts_of(env.observation_space)
    return WAY not in named and known.shows_things(env, named.get("image")) and not known.sees_all(env)


class Reckoning:
    """The way of one episode."""

    def __init__(self) -> None:
        self._place, self._direction = 0j, 1j
        self._ahead = np.zeros(3, np.int64)  # type, colour and state of what is in front
        self._doorways: set[complex] = set()
        self._seen: set[complex] = set()

    def moved(self, action: int) -> None:
        """The action that was taken where `saw` was asked last."""
        kind, _, state = self._ahead
        is_doorway = kind == m.DOOR and state == 0
        if action == m.FORWARD and (is_doorway or kind in ENTERED):
            self._place += self._direction
            if is_doorway:
                self._doorways.add(self._place)
        self._direction *= TURNS.get(action, 1)

    def saw(self, image: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers, now that the view is this one."""
        width, height = image.shape[:2]
        self._ahead = image[width // 2, height - 2]
        r, above = np.nonzero(image[..., 0] != m.UNSEEN)
        self._seen.update((self._place + self._direction * (height - 1 - above - 1j * (r - width // 2))).tolist())
        return np.minimum([len(self._doorways), len(self._seen) // 10], MOST)


class Way(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observation also has the two numbers."""

    def __init__(self, env: gymnasium.Env[Any, Any]):
        super().__init__(env)
        self.observation_space = spaces.Dict(env.observation_space.spaces | {WAY: spaces.MultiDiscrete(MOST + 1)})  # type: ignore
        self._reckoning = Reckoning()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._reckoning = Reckoning()
        return self._with(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._reckoning.moved(int(action))
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with(observation), reward, terminated, truncated, info

    def _with(self, observation: Any) -> dict[str, Any]:
        return {**observation, WAY: self._reckoning.saw(np.asarray(observation["image"]))}


def reckoned(
    raw: Any, before: Sequence[Reckoning], actions: NDArray[Any], is_first: NDArray[np.bool_]
) -> tuple[Any, list[Reckoning]]:
    """A raw observation, or a batch, with the numbers, and the ways until then."""
    images = np.asarray(raw["image"])
    ways = [Reckoning() if first else copy.deepcopy(way) for way, first in zip(before, is_first, strict=True)]
    for way, action, first in zip(ways, actions, is_first, strict=True):
        if not first:
            way.moved(int(action))
    numbers = np.stack([way.saw(image) for way, image in zip(ways, images.reshape(len(ways), *images.shape[-3:]), strict=True)])
    return {**raw, WAY: numbers[0] if images.ndim == 3 else numbers}, ways
