"""An environment's observation as one flat dictionary of what can be read; the rest is left out, and said.

Dict and Tuple in one another become parts with names ("inventory/wood"; the parts of a Tuple are "part 0", "part 1", …). Spaces
of one's own whose samples are strings (MiniGrid's MissionSpace) are read as text. Parts that are nothing a network or a proto-
goal could read (Graph, Sequence, …) are left out with a reason. NetHack's screens say the same thing many times over; what is
needed is kept.

`user_envs.EnvReference` wraps with it where anything is to be done; an environment that observes one array, or a flat dictionary of
readable parts, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal.envs import nethack
from protogoal.envs.counters import INFO
from protogoal.envs.episodes import WHOLE, parts_of
from protogoal.envs.readers import LONGEST_VECTOR, kind_of

Path = tuple[Any, ...]
"""Keys and places that lead to a part; of `glyphs_crop` () where it has to be cut out first."""

TEXT_LENGTH = 512
"""Bytes that are kept of a text whose space does not say how long it may be."""

LATIN = frozenset(map(chr, range(1, 256)))

CROP = "glyphs_crop"


class Readable(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment that observes a flat dictionary of readable parts.

    `paths` leads to each of them, `left_out` says why others are not there.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], paths: Mapping[str, Path], parts: Mapping[str, spaces.Space[Any]],
                 left_out: Mapping[str, str]):
        super().__init__(env)
        self.paths, self.parts, self.left_out = dict(paths), dict(parts), dict(left_out)
        self.observation_space = spaces.Dict(self.parts)

    def observation(self, observation: Any) -> dict[str, Any]:
        return follow(self.paths, observation, self.parts)


def readable(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment with an observation that can be read; a ValueError where nothing of it can."""
    whole = env.observation_space
    flat = parts_of(whole)
    is_nethack = nethack.is_nethack(env)
    if INFO in flat:
        raise ValueError(f"no part of an observation may be called {INFO!r}; the numbers of info are")
    if not is_nethack and all(isinstance(name, str) and reason_against(part) is None for name, part in flat.items()):
        return env
    paths: dict[str, Path] = {}
    parts: dict[str, spaces.Space[Any]] = {}
    left_out: dict[str, str] = {}
    for name, (path, part) in named_leaves(whole).items():
        is_message = is_nethack and name == "message" and isinstance(part, spaces.Box) and len(part.shape) == 1
        read = _text(part.shape[0]) if is_message and part.shape else as_text(part)
        why = (nethack.reason_against(name, flat) if is_nethack else None) or reason_against(read)
        if why is None:
            paths[name], parts[name] = path, read
        else:
            left_out[name] = why
    if CROP not in parts and is_whole_map(flat):
        paths[CROP], parts[CROP] = (), spaces.Box(0, nethack.NO_GLYPH, (nethack.CROP, nethack.CROP), np.int16)
    if not parts:
        raise ValueError("nothing of the observation can be read: " + "; ".join(f"{name} {why}" for name, why in left_out.items()))
    return Readable(env, paths, parts, left_out)


def is_whole_map(flat: Mapping[str, Any]) -> bool:
    """Whether NetHack's map and the hero's place are there, of which what lies around the hero can be cut."""
    return flat.keys() >= nethack.PARTS and [len(flat[name].shape or ()) for name in ("glyphs", "blstats")] == [2, 1]


def hidden_in(space: spaces.Space[Any]) -> tuple[str, ...]:
    """Parts that are for proto-goals alone: the network reads what lies around NetHack's hero, not the whole map."""
    has_crop = isinstance(space, spaces.Dict) and space.spaces.keys() >= {"glyphs", CROP}
    return (INFO, "glyphs") if has_crop else (INFO,)


def wrappers(env: Any) -> Iterator[Any]:
    """An environment and all that it is wrapped around, from without to within."""
    while True:
        yield env
        if not isinstance(env, gymnasium.Wrapper):
            return
        env = env.env


def leaves(space: spaces.Space[Any], path: Path = ()) -> Iterator[tuple[Path, spaces.Space[Any]]]:
    """The parts of nested Dict and Tuple spaces, and what leads to each."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from leaves(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from leaves(part, (*path, i))
    else:
        yield path, space


def named_leaves(space: spaces.Space[Any]) -> dict[str, tuple[Path, spaces.Space[Any]]]:
    """The parts by name, each with what leads to it; where two would have one name, the deeper has primes: "a/b", "a/b'"."""
    found: dict[str, tuple[Path, spaces.Space[Any]]] = {}
    for path, part in sorted(leaves(space), key=lambda leaf: len(leaf[0])):
        name = "/".join(f"part {key}" if isinstance(key, int) else str(key) for key in path) or WHOLE
        while name in found:
            name += "'"
        found[name] = path, part
    return found


def follow(paths: Mapping[str, Path], observation: Any, parts: Mapping[str, spaces.Space[Any]]) -> dict[str, Any]:
    """The parts of one observation, or of a batch with an axis more in front of every array."""
    found = {}
    for name, path in paths.items():
        if name == CROP and not path:
            found[name] = nethack.crop(observation["glyphs"], observation["blstats"])
            continue
        part = observation
        for key in path:
            part = part[key]
        if isinstance(parts[name], spaces.Text) and isinstance(part, np.ndarray) and part.dtype == np.uint8:  # NetHack's message
            part = as_string(part) if part.ndim == 1 else [as_string(row) for row in part]
        found[name] = part
    return found


def as_string(array: np.ndarray) -> str:
    """Bytes up to the first zero."""
    return array.tobytes().split(b"\0", 1)[0].decode("latin-1")


def as_text(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """A space of one's own whose samples are strings, as Text; all others as they are."""
    is_own = not type(space).__module__.startswith("gymnasium.")
    return _text(TEXT_LENGTH) if is_own and space.dtype is not None and np.dtype(space.dtype).kind == "U" else space


def _text(length: int) -> spaces.Text:
    return spaces.Text(length, min_length=0, charset=LATIN)


def reason_against(space: spaces.Space[Any]) -> str | None:
    """Why a part cannot be read; None where it can."""
    if not isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Text)):
        return f"is {type(space).__name__}, which is none of Box, Discrete, MultiDiscrete, MultiBinary and Text"
    if space.shape is not None and 0 in space.shape:
        return "has no numbers"
    many = int(np.prod(space.shape or ()))
    if kind_of(space) == "numbers" and many > LONGEST_VECTOR:
        return f"has {many:,} numbers, and at most {LONGEST_VECTOR:,} are read that are no picture and no grid"
    return None
