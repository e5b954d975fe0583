"""Crafter (Hafner 2021) as a Gymnasium environment. The package has the interface of old Gym, and registers nothing new.

An episode is 10,000 steps, or a life. `info` has `inventory` and `achievements`, also at the start. Episodes follow from their
seeds. Drawing takes most of Crafter's time; it is the observation, so it cannot be spared. `door` imports this for ids that begin
with Crafter.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import register
from numpy.typing import NDArray

DRAWN = np.array([256, 256])
"""Pixels of a picture that people look at."""


class Crafter(gymnasium.Env[NDArray[np.uint8], Any]):
    """64 × 64 pixels of what lies around, 17 actions; reward 1 for each first achievement, ±0.1 for health (`reward`)."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (Gymnasium's own way)

    def __init__(self, reward: bool = True, length: int = 10_000, render_mode: str | None = None):
        import crafter  # type: ignore[import-untyped, unused-ignore]

        self.render_mode, self._arguments, self._made = render_mode, {"reward": reward, "length": length}, crafter.Env
        self._game = self._made(seed=0, **self._arguments)
        self.observation_space = spaces.Box(0, 255, tuple(int(n) for n in self._game.observation_space.shape), np.uint8)
        self.action_space = spaces.Discrete(int(self._game.action_space.n))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._game._seed, self._game._episode = seed, 0
        observation = self._game.reset()
        player = self._game._player
        return observation, {"inventory": player.inventory.copy(), "achievements": _all(player.achievements)}

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        observation, reward, is_over, info = self._game.step(int(action))
        is_dead = info["discount"] == 0
        return observation, float(reward), is_dead, bool(is_over and not is_dead), info

    def render(self) -> Any:
        usual, self._game._size = self._game._size, DRAWN  # an array as the argument is not taken
        try:
            return self._game.render()
        finally:
            self._game._size = usual


def _all(achievements: Any) -> dict[str, int]:
    return {name: int(count) for name, count in achievements.items()}


for _name, _reward in (("Crafter-v1", True), ("CrafterReward-v1", True), ("CrafterNoReward-v1", False)):
    if _name not in gymnasium.registry:
        register(_name, entry_point="protogoal.envs.crafter:Crafter", kwargs={"reward": _reward})
