"""Environments that are known by name: what their numbers and values are called, and which show only a part of the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal.envs import nethack
from protogoal.envs.readable import wrappers

NUMBERS: dict[str, tuple[str, ...]] = {
    "CartPoleEnv": ("cart position", "cart speed", "pole angle", "pole speed"),
    "MountainCarEnv": ("position", "speed"),
    "AcrobotEnv": ("cos first angle", "sin first angle", "cos second angle", "sin second angle", "first speed", "second speed"),
    "LunarLander": ("x", "y", "speed in x", "speed in y", "angle", "turning speed", "left leg down", "right leg down"),
}
"""Class of an environment → its numbers."""

PARTS: dict[str, dict[str, str]] = {
    "BlackjackEnv": {"part 0": "your sum", "part 1": "dealer's card", "part 2": "usable ace"},
}
"""Class of an environment → what parts of its observation are called."""

FULL_VIEWS = ("FullyObsWrapper", "SymbolicObsWrapper", "RGBImgObsWrapper")
"""Wrappers of MiniGrid that show the whole grid."""

OTHER_VIEWS = ("SymbolicObsWrapper", "OneHotPartialObsWrapper", "RGBImgObsWrapper", "RGBImgPartialObsWrapper")
"""Wrappers of MiniGrid whose numbers are not type, colour and state of a thing."""


def is_minigrid(env: gymnasium.Env[Any, Any]) -> bool:
    return any(base.__module__.startswith("minigrid.") for base in type(env.unwrapped).__mro__)


def is_river(env: gymnasium.Env[Any, Any]) -> bool:
    """protogoal's own river, whose cells are classes of things."""
    return any(base.__module__ == "protogoal.envs.minihack.env" for base in type(env.unwrapped).__mro__)


def sees_all(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether a wrapper shows the whole grid of MiniGrid."""
    return any(type(inner).__name__ in FULL_VIEWS for inner in wrappers(env))


def shows_things(env: gymnasium.Env[Any, Any], part: Any) -> bool:
    """Whether a part is a grid of MiniGrid's things: type, colour and state of each cell."""
    is_grid = isinstance(part, spaces.Box) and len(part.shape) == 3 and part.shape[2] == 3 and np.issubdtype(part.dtype, np.integer)
    return is_grid and is_minigrid(env) and not any(type(inner).__name__ in OTHER_VIEWS for inner in wrappers(env))


def is_partial(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether the observation is known to show only a part of the state: MiniGrid's view, NetHack's map."""
    return (is_minigrid(env) and not sees_all(env)) or nethack.is_nethack(env) or is_river(env)


def part_name(env: gymnasium.Env[Any, Any], part: str) -> str:
    """What a part of the observation is called."""
    return PARTS.get(type(env.unwrapped).__name__, {}).get(part, part)


def number_names(env: gymnasium.Env[Any, Any], word: str, part: Any) -> Sequence[str]:
    """What the numbers of a part are called."""
    size = int(np.prod(part.shape))
    names = NUMBERS.get(type(env.unwrapped).__name__, ())
    return names if len(names) == size else part_places(word, part.shape)


def part_places(word: str, shape: tuple[int, ...]) -> list[str]:
    """Names of the numbers of an array: "state[2,3]"."""
    return [f"{word}[{','.join(map(str, place))}]" for place in np.ndindex(*shape)] if np.prod(shape) > 1 else [word]


def value_names(env: gymnasium.Env[Any, Any], name: str, part: Any) -> Sequence[str]:
    """What the values of a grid without channels are called: classes of things in the river, characters of NetHack's map."""
    if is_river(env) and name in ("map", "crop"):
        from protogoal.envs.minihack.glyphs import CLASS_NAMES

        return CLASS_NAMES
    if nethack.is_nethack(env) and name in ("chars", "chars_crop") and (part.low.min(), part.high.max()) == (0, 255):
        return [repr(chr(i)) for i in range(256)]
    return ()


def plane_names(env: gymnasium.Env[Any, Any]) -> list[str]:
    """What the planes of an observation are called: MinAtar's games say it, others in an attribute of this name."""
    inner: Any = env.unwrapped
    channels = getattr(getattr(getattr(inner, "game", None), "env", None), "channels", None)
    return sorted(channels, key=channels.__getitem__) if isinstance(channels, dict) else list(getattr(inner, "plane_names", ()))


def grid_width(env: gymnasium.Env[Any, Any], count: int) -> int:
    """The width of the grid whose cells the values of a Discrete observation are; 0 where they are none."""
    inner: Any = env.unwrapped
    rows, columns = getattr(inner, "nrow", 0), getattr(inner, "ncol", 0)
    shape = getattr(inner, "shape", None)
    if not rows and isinstance(shape, tuple) and len(shape) == 2:  # CliffWalking
        rows, columns = shape
    if isinstance(rows, (int, np.integer)) and isinstance(columns, (int, np.integer)) and rows * columns == count:
        return int(columns)
    return 0


def is_taxi(env: gymnasium.Env[Any, Any]) -> bool:
    """Gymnasium's Taxi or the sparse one, whose one number is the taxi's cell, the passenger's place and the destination."""
    return type(env.unwrapped).__name__ in ("TaxiEnv", "SparseTaxi")
