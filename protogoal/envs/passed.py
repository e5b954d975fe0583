"""What a moving view forgets: how many doorways were passed in this episode, as far as their colours tell them apart.

MiniGrid's view shows what is near and nothing of the way here, so none of its goals lies deep in a building: "a doorway entered" is
as true of the first as of the last. The colours of the doors that were walked through are counted, each once, so that going to and
fro gains nothing. It follows from what the agent saw and did; it is told in `info`, for proto-goals (`counters`), and the network
does not read it.

`user_envs.EnvReference` wraps with it.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal.envs import known
from protogoal.goals.derived.minigrid import DOOR, FORWARD

COUNTER = "doorways passed"
"""Its name in `info`."""


def forgets(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment shows MiniGrid's view as numbers."""
    image = getattr(env.observation_space, "spaces", {}).get("image")
    return (isinstance(image, spaces.Box) and len(image.shape) == 3 and image.shape[-1] == 3 and known.is_minigrid(env)
            and not known.sees_all(env))


class Passed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose `info` has the number of colours."""

    def __init__(self, env: gymnasium.Env[Any, Any]):
        super().__init__(env)
        self._ahead = np.zeros(3, np.int64)  # type, colour and state of what is in front
        self._colours: set[int] = set()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._colours = set()
        return self._seen(observation), self._with(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        kind, colour, state = self._ahead
        if action == FORWARD and kind == DOOR and state == 0:
            self._colours.add(int(colour))
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._seen(observation), reward, terminated, truncated, self._with(info)

    def _seen(self, observation: Any) -> Any:
        image = observation["image"]
        self._ahead = np.asarray(image[image.shape[0] // 2, image.shape[1] - 2], np.int64)
        return observation

    def _with(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, COUNTER: len(self._colours)}
