"""How the network reads the observations of a Gymnasium environment, with or without the environment.

`gym_batch` reads with it what environments give and what `predict` is asked about; a saved agent (`run.saved`) has one made of its
file: `state_dict` is what such a file keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from protogoal.envs.episodes import parts_of
from protogoal.envs.failure import EnvironmentFailure
from protogoal.envs.observed import Limits
from protogoal.envs.raw import raw_arrays
from protogoal.envs.readable import Path
from protogoal.envs.readers import Moments, reader
from protogoal.envs.vector import Observation


class ObservationReader:
    """Reads arrays [N, …] by name. `paths` lead to parts that do not lie flat, `hidden` ones are not shown to the network."""

    def __init__(self, space: spaces.Space, paths: Mapping[str, Path] | None, hidden: Collection[str],
                 moments: Callable[[], Moments]):
        self.space, self.paths, self.hidden, self.moments = space, paths, hidden, moments
        named = parts_of(space)
        self._readers = {name: reader(name, part, moments) for name, part in named.items() if name not in hidden}
        if not self._readers:
            raise ValueError("the network is shown nothing of the observation")
        self.spec = {name: spec for name, (spec, _) in self._readers.items()}
        self._limits = Limits(named)

    def read(self, arrays: Mapping[str, np.ndarray], who: Callable[[int], str]) -> Observation:
        """As the network sees it; what is outside its space is refused, and `who` says whose it is."""
        self._limits.check(arrays, who)
        found = {name: read(arrays[name]) for name, (_, read) in self._readers.items()}
        for name, values in found.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                env = int(np.argwhere(~np.isfinite(values))[0, 0])
                raise EnvironmentFailure(f"{who(env)} observed a number in {name!r} that is not finite; "
                                         "NaN and infinity are not allowed")
        return found

    def arrays(self, raw: Any) -> tuple[dict[str, np.ndarray], bool]:
        """One observation, or a batch, as arrays by name; and whether it was one alone."""
        return raw_arrays(raw, self.space, self.paths)

    def state_dict(self) -> dict[str, Any]:
        """All of it, as plain arrays and JSON-able values."""
        return {"space": space_state(self.space), "hidden": list(self.hidden),
                "moments": {name: list(moments) for name, moments in self.moments().items()},
                "paths": None if self.paths is None else {name: list(path) for name, path in self.paths.items()}}


def stored_reader(state: Mapping[str, Any]) -> ObservationReader:
    """The reader again; a ValueError where its state is none."""
    try:
        moments = {str(name): (np.asarray(mean, float), np.asarray(deviation, float))
                   for name, (mean, deviation) in state["moments"].items()}
        paths = None if state["paths"] is None else {str(name): tuple(path) for name, path in state["paths"].items()}
        return ObservationReader(space_of(state["space"]), paths, [str(name) for name in state["hidden"]], lambda: moments)
    except (AssertionError, TypeError, AttributeError, LookupError, ValueError) as error:
        words = " ".join(f"{type(error).__name__} {error}".split())
        raise ValueError(f"stored observation space cannot be read: {words}") from None


def space_state(space: spaces.Space) -> dict[str, Any]:
    """An observation space as plain arrays and JSON-able values."""
    if isinstance(space, spaces.Dict):
        return {"parts": {name: space_state(part) for name, part in space.spaces.items()}}
    if isinstance(space, spaces.Box):
        return {"box": [space.low, space.high]}
    if isinstance(space, spaces.Discrete):
        return {"discrete": [int(space.n), int(space.start)]}
    if isinstance(space, spaces.MultiDiscrete):
        return {"multi-discrete": [space.nvec, space.start]}
    if isinstance(space, spaces.MultiBinary):
        return {"multi-binary": list(space.shape)}
    if isinstance(space, spaces.Text):
        return {"text": int(space.max_length)}
    raise ValueError(f"a {type(space).__name__} cannot be stored")


def space_of(state: Mapping[str, Any]) -> spaces.Space:
    """The space again."""
    [(kind, value)] = state.items()
    if kind == "parts":
        return spaces.Dict({str(name): space_of(part) for name, part in value.items()})
    if kind == "box":
        low, high = (np.asarray(bound) for bound in value)
        return spaces.Box(low, high, dtype=low.dtype.type)
    if kind == "discrete":
        return spaces.Discrete(int(value[0]), start=int(value[1]))
    if kind == "multi-discrete":
        nvec = np.asarray(value[0])
        return spaces.MultiDiscrete(nvec, dtype=nvec.dtype.type, start=np.asarray(value[1]))
    if kind == "multi-binary":
        return spaces.MultiBinary([int(n) for n in value])
    return spaces.Text(int(value))
