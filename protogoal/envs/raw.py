"""Observations as an environment gives them, read as a batch of environments would; what cannot be one is refused.

An observation is a single one, or a batch with one axis more in front of every array. `run.player` asks `read_raw`, and
`reading.ObservationReader` for any Gymnasium environment `raw_arrays`: the arrays that its workers would have written. What was
left out (`readable`) may be there or not, and the numbers of `info` need not be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from protogoal.envs.counters import INFO
from protogoal.envs.episodes import WHOLE, parts_of
from protogoal.envs.readable import Path, follow
from protogoal.envs.vector import ArraySpec, BatchEnv, Observation
from protogoal.envs.views import innermost
from protogoal.goals.active import sparse_bits, widened


def read_raw(env: BatchEnv, raw: Any) -> tuple[Observation, bool]:
    """Name → [n, …] as the network reads it; and whether it was a single observation."""
    inner: Any = innermost(env)
    if hasattr(inner, "read_raw"):  # any Gymnasium environment
        observation, active, is_single = inner.read_raw(raw)
    else:
        observation, is_single = _as_declared(inner, raw)
        active = _on_planes(observation, inner.max_active)
    if env is inner:
        return observation, is_single
    if not hasattr(env, "read"):
        raise ValueError(f"{type(env).__name__} changes what is observed with every step; single observations cannot be read so")
    return env.read(observation, active), is_single


def _as_declared(env: Any, raw: Any) -> tuple[Observation, bool]:
    """Observations of a batch that has no single environments: what it declares, and nothing else."""
    spec: dict[str, ArraySpec] = env.observation_spec
    named = raw if isinstance(raw, Mapping) else {next(iter(spec)): raw}
    arrays, is_single = as_batch(named, {name: part.shape for name, part in spec.items()})
    for name, part in spec.items():
        check_kind(name, arrays[name], part.dtype)
        if part.num_values and arrays[name].size and not -1 <= arrays[name].min() <= arrays[name].max() < part.num_values:
            raise ValueError(f"observation {name!r} has values outside 0…{part.num_values - 1}")
    return {name: arrays[name].astype(part.dtype) for name, part in spec.items()}, is_single


def _on_planes(observation: Observation, max_active: int) -> np.ndarray:
    """Where the bits are the planes themselves: the ids of those that are on, [n, L] padded with −1."""
    planes = next(iter(observation.values()))
    return widened(sparse_bits(planes.reshape(len(planes), -1) != 0)[:, :max_active], max_active)


def as_actions(env: BatchEnv, chosen: np.ndarray) -> np.ndarray:
    """Actions [n], counted from 0, as the environment takes them."""
    own: np.ndarray | None = getattr(innermost(env), "own_actions", None)
    return chosen if own is None else own[chosen]


def as_batch(named: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, np.ndarray], bool]:
    """Arrays [n, …] of these parts, and whether there was no batch axis; a ValueError where names or shapes are others."""
    if set(named) != set(shapes):
        raise ValueError(f"the observation has the parts {sorted(map(str, named))}, the environment's are {sorted(shapes)}")
    arrays = {name: np.asarray(named[name]) for name in shapes}
    wrong = [name for name, shape in shapes.items() if arrays[name].shape[arrays[name].ndim - len(shape):] != tuple(shape)
             or arrays[name].ndim - len(shape) not in (0, 1)]
    if wrong:
        raise ValueError(f"observation {wrong[0]!r} has shape {arrays[wrong[0]].shape}; the environment gives "
                         f"{tuple(shapes[wrong[0]])}, a batch of them [n, …]")
    extra = {arrays[name].ndim - len(shape) for name, shape in shapes.items()}
    sizes = {len(arrays[name]) for name in shapes} if extra == {1} else set()
    if len(extra) > 1 or len(sizes) > 1:
        shown = {name: array.shape for name, array in arrays.items()}
        raise ValueError(f"parts of one observation have different numbers of states: {shown}")
    is_single = extra == {0}
    return ({name: array[None] for name, array in arrays.items()} if is_single else arrays), is_single


def check_kind(name: str, array: np.ndarray, dtype: Any) -> None:
    """Refuses fractions where the environment gives whole numbers, and anything that is no number."""
    wanted = np.dtype(dtype).kind
    if array.dtype.kind not in "biuf" or (wanted in "iub" and array.dtype.kind == "f"):
        raise ValueError(f"observation {name!r} has the type {array.dtype}; the environment gives {np.dtype(dtype)}")


def raw_arrays(raw: Any, whole: spaces.Space, paths: Mapping[str, Path] | None) -> tuple[dict[str, np.ndarray], bool]:
    """Name → [n, …], and whether it was a single observation. `paths` lead to the parts where they do not lie flat."""
    named = parts_of(whole)
    info = named.pop(INFO, None)
    given = _parts(raw, named, paths)
    texts = {name: part for name, part in named.items() if isinstance(part, spaces.Text)}
    rest = {name: part for name, part in named.items() if name not in texts}
    if missing := sorted(set(texts) - set(given)):
        raise ValueError(f"the observation has no part {missing[0]!r}; the environment's are {sorted(named)}")
    is_single = isinstance(given[next(iter(texts))], (str, bytes)) if texts else False
    arrays: dict[str, np.ndarray] = {}
    if rest:
        arrays, is_single = as_batch({name: given[name] for name in given if name in rest or name not in named},
                                     {name: tuple(part.shape or ()) for name, part in rest.items()})
    for name, part in rest.items():
        check_kind(name, arrays[name], part.dtype)
        is_real = np.issubdtype(part.dtype, np.floating)  # declared bounds of such are seldom kept
        if not is_real and not all(part.contains(state.astype(part.dtype)) for state in arrays[name]):
            raise ValueError(f"observation {name!r} is not in the environment's space {part}")
        arrays[name] = arrays[name].astype(part.dtype)
    for name, part in texts.items():
        arrays[name] = _as_bytes([given[name]] if is_single else given[name], part.max_length)
    if info is not None:
        arrays[INFO] = np.full((len(next(iter(arrays.values()))), *info.shape), np.nan)  # type: ignore[misc]
    return arrays, is_single


def _parts(raw: Any, named: Mapping[str, spaces.Space], paths: Mapping[str, Path] | None) -> Mapping[str, Any]:
    if paths is not None:
        try:
            return follow(paths, raw, named)
        except (LookupError, TypeError):
            raise ValueError(f"the environment observes the parts {sorted(named)}; one is missing here") from None
    is_whole = set(named) == {WHOLE} and not isinstance(raw, Mapping)
    if not is_whole and not isinstance(raw, Mapping):
        raise ValueError(f"the environment observes the parts {sorted(named)}; got a {type(raw).__name__}")
    if not is_whole and set(named) == {WHOLE} and WHOLE not in raw:
        raise ValueError(f"the environment observes one array; got a {type(raw).__name__}")
    return {WHOLE: raw} if is_whole else raw


def _as_bytes(texts: Any, length: int) -> np.ndarray:
    """Texts as their bytes, uint8 [n, length], padded with zeros."""
    array = np.zeros((len(texts), length), np.uint8)
    for row, text in zip(array, texts, strict=True):
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"a text is expected, got a {type(text).__name__}")
        encoded = (text if isinstance(text, bytes) else text.encode("latin-1", "replace"))[:length]
        row[: len(encoded)] = np.frombuffer(encoded, np.uint8)
    return array
