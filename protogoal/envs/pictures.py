"""Pictures of any environment that can draw: made ready to draw without a window, and its frames as pictures of one form.

`envs.user_envs` calls `ready_to_draw` where pictures are wanted, `domains.domain.picture` asks for `as_picture`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from protogoal.envs.failure import EnvironmentFailure

RENDER_MODE = "rgb_array"
OTHER_MODES = ("pixel",)
"""What environments call it that do not know this one: NetHack."""
SMALLEST = 160
"""Pixels that the longer side of a picture has at least; smaller ones are enlarged by a whole number."""


def without_window() -> None:
    """pygame, which draws many environments, opens no window and no sound from here on, nor warns of what it is made of."""
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")


def ready_to_draw(env: gymnasium.Env[Any, Any]) -> None:
    """Sets the render mode of an environment that knows it and was made without: its function takes no such argument."""
    if env.render_mode is None and RENDER_MODE in (env.metadata or {}).get("render_modes", ()):
        env.unwrapped.render_mode = RENDER_MODE


def picture_mode(modes: Collection[str]) -> str:
    """Of the render modes that an environment knows, the one that gives pictures."""
    return next((mode for mode in (RENDER_MODE, *OTHER_MODES) if mode in modes), RENDER_MODE)


def draws(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether it was made to give pictures; one that is made to show itself (human) prints, or opens a window."""
    return env.render_mode not in (None, "human")


def drawn(env: gymnasium.Env[Any, Any]) -> Any:
    """What an environment draws; an error in that is one line."""
    try:
        return env.render()
    except Exception as error:
        words = ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split()))))
        raise EnvironmentFailure(f"the environment cannot be drawn: {words}") from error


def as_picture(frame: Any) -> NDArray[np.uint8] | None:
    """What an environment drew as [height, width, 3]; None where that is no picture.

    The last of several frames; real numbers up to 1 are shares of 255; grey gets three channels, and transparency is left out.
    """
    if isinstance(frame, list | tuple):
        frame = frame[-1] if frame else None
    array = np.asarray(frame)
    if array.dtype.kind not in "fiub" or array.ndim not in (2, 3) or not array.size:
        return None
    if array.dtype.kind in "fb" and array.max() <= 1:
        array = 255.0 * array
    array = np.clip(array, 0, 255).astype(np.uint8)
    array = array[..., None] if array.ndim == 2 else array
    if array.shape[2] not in (1, 3, 4):
        return None
    array = array.repeat(3, 2) if array.shape[2] == 1 else array[..., :3]
    times = max(1, SMALLEST // max(array.shape[:2]))
    return np.ascontiguousarray(array.repeat(times, 0).repeat(times, 1))
