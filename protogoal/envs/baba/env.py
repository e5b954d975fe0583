"""Baba Is You for Gymnasium: one game (`BabaEnv`) or many (`BabaVectorEnv`), registered as `protogoal/Baba-v0`.

Observation: one binary plane per object type and word of the level, uint8 [P, H, W]. Actions: up, down, left, right,
no-op. Reward 1 and terminated when some YOU meets a WIN; reward 0 and terminated when nothing is YOU; truncated after
`max_episode_steps`. The flattened planes are the proto-goal bits; `space` names them: "FLAG at (8,0)" is row 8, column 0.

The vector environment resets a finished game within the same step (Gymnasium's SAME_STEP): the observation returned is
the new episode's first, and `infos["final_obs"]` has, where `infos["_final_obs"]` is True, the old episode's last.
Both are covers over `BabaBatch`; agents that want speed use that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from protogoal.envs.baba import render
from protogoal.envs.baba.batch import NUM_ACTIONS, BabaBatch
from protogoal.envs.baba.game import things
from protogoal.envs.baba.levels import Level

RENDER_MODES = ("rgb_array", "ansi")
_NO_LIMIT = np.iinfo(np.int32).max


def _check_render_mode(render_mode: str | None) -> None:
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be one of {', '.join(RENDER_MODES)} or None; got {render_mode!r}")


def _picture(batch: BabaBatch, state: dict[str, Any], n: int, render_mode: str) -> Any:
    on_board = things(batch.level, state, n)
    return render.frame(batch.level, on_board) if render_mode == "rgb_array" else render.ansi(batch.level, on_board)


class BabaEnv(gym.Env[np.ndarray, Any]):
    """One game. A level is a name ("umaze-medium"), a path to a level file, or a `Level`. No limit where it is None."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 8}  # noqa: RUF012 (Gymnasium's own way)

    def __init__(self, level: str | Path | Level = "umaze-medium", max_episode_steps: int | None = 1000,
                 terrain_plane: bool = False, render_mode: str | None = None):
        _check_render_mode(render_mode)
        self.render_mode = render_mode
        limit = _NO_LIMIT if max_episode_steps is None else max_episode_steps
        self._batch = BabaBatch(level, 1, limit, terrain_plane=terrain_plane, autoreset=False)
        if not self._batch.has_player(0):
            raise ValueError(f"level {self._batch.level.name} has no player: nothing is YOU at the start")
        self.level = self._batch.level
        self.space = self._batch.space
        self.plane_names = self._batch.plane_names
        self.observation_space = gym.spaces.Box(0, 1, self._batch.planes.shape[1:], np.uint8)
        self.action_space = gym.spaces.Discrete(NUM_ACTIONS)
        self._action = np.zeros(1, np.int64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Back to the start, always the same; the seed only seeds `np_random`, which nothing here uses."""
        super().reset(seed=seed)
        self._batch.reset()
        return self._batch.planes[0].copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not allowed; actions are 0 to {NUM_ACTIONS - 1}")
        self._action[0] = action
        result = self._batch.step(self._action)
        reward, terminated, truncated = float(result.reward[0]), bool(result.terminated[0]), bool(result.truncated[0])
        return self._batch.planes[0].copy(), reward, terminated, truncated, {"won": reward > 0}

    def render(self) -> Any:
        """An RGB array or a string, as `render_mode` says; None without one."""
        return None if self.render_mode is None else _picture(self._batch, self._batch.get_state(), 0, self.render_mode)


def make_env(level: str | Path | Level = "umaze-medium", terrain_plane: bool = False, render_mode: str | None = None) -> BabaEnv:
    """A game for `gymnasium.make`, which keeps the step limit itself (1000, or its own argument `max_episode_steps`)."""
    return BabaEnv(level, None, terrain_plane, render_mode)


class BabaVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """N games stepped by one compiled call. `copy` = False hands out the engine's own arrays, overwritten at each step."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 8, "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int = 1, level: str | Path | Level = "umaze-medium", max_episode_steps: int = 1000,
                 terrain_plane: bool = False, render_mode: str | None = None, copy: bool = True):
        _check_render_mode(render_mode)
        self.render_mode = render_mode
        self.batch = BabaBatch(level, num_envs, max_episode_steps, terrain_plane=terrain_plane)
        self.level = self.batch.level
        self.space = self.batch.space
        self.num_envs = num_envs
        self.copy = copy
        self.single_observation_space = gym.spaces.Box(0, 1, self.batch.planes.shape[1:], np.uint8)
        self.single_action_space = gym.spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: int | list[int | None] | None = None,
              options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts all games anew. With options={"reset_mask": bool [N]} only those."""
        if isinstance(seed, int):
            super().reset(seed=seed)
        mask = (options or {}).get("reset_mask")
        if mask is None:
            self.batch.reset()
        else:
            self.batch.reset_where(mask)
        return self._out(self.batch.planes), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        result = self.batch.step(actions)
        infos: dict[str, Any] = {"won": result.reward > 0}
        ended = result.terminated | result.truncated
        if ended.any():
            infos |= {"final_obs": self._out(self.batch.final_planes), "_final_obs": ended,
                      "final_info": {"won": infos["won"], "_won": ended}, "_final_info": ended}
        return (self._out(self.batch.planes), result.reward.astype(np.float64), self._out(result.terminated),
                self._out(result.truncated), infos)

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each game."""
        if self.render_mode is None:
            return None
        state = self.batch.get_state()
        return tuple(_picture(self.batch, state, n, self.render_mode) for n in range(self.num_envs))

    def _out(self, array: np.ndarray) -> np.ndarray:
        return array.copy() if self.copy else array
