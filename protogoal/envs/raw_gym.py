"""One observation of a Gymnasium environment, or a batch, as the arrays that its workers would have written; else a ValueError.

What was left out (`readable`) may be there or not, and the numbers of `info` need not be. `GymBatchEnv.read_raw` asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from protogoal.envs.counters import INFO
from protogoal.envs.episodes import WHOLE
from protogoal.envs.raw import as_batch, check_kind
from protogoal.envs.readable import Path, follow


def raw_arrays(raw: Any, whole: spaces.Space, paths: Mapping[str, Path] | None) -> tuple[dict[str, np.ndarray], bool]:
    """Name → [n, …], and whether it was a single observation. `paths` lead to the parts where they do not lie flat."""
    named = dict(whole.spaces) if isinstance(whole, spaces.Dict) else {WHOLE: whole}
    info, named = named.get(INFO), {name: part for name, part in named.items() if name != INFO}
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
