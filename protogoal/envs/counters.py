"""Numbers that an environment keeps in `info`, as a part of its observation: for proto-goals, and hidden from the network.

`--info inventory,achievements` names entries of `info`. An entry is a number, or a dictionary of numbers ("inventory/wood"), in one
another if need be. Which there are is found in the first random steps and then stays; one that is missing from a step is NaN there,
and turns on nothing. That an agent's goals know more than its observation has to be said with its results.

`user_envs.EnvReference` wraps with it; `derive` makes proto-goals of it (`goals.derived.counters`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from protogoal.envs.episodes import WHOLE, parts_of
from protogoal.envs.failure import failure

INFO = "#info"
"""The name of the part."""

LOOKED_AT = 1_000
"""Random steps in which the numbers of `info` are looked for, at most."""
QUIET = 200
"""Steps without a new number after which no more are looked for, once there are some of every name."""

MOST_COUNTERS = 1_000


class Counters(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observation also has the numbers `names` of its `info`, float64 [C]."""

    def __init__(self, env: gymnasium.Env[Any, Any], names: Sequence[str]):
        super().__init__(env)
        self.names = tuple(names)
        self._is_dict = isinstance(env.observation_space, spaces.Dict)
        parts = parts_of(env.observation_space)
        self.observation_space = spaces.Dict(parts | {INFO: spaces.Box(-np.inf, np.inf, (len(self.names),), np.float64)})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with(observation, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with(observation, info), reward, terminated, truncated, info

    def _with(self, observation: Any, info: Mapping[str, Any]) -> dict[str, Any]:
        return {**(observation if self._is_dict else {WHOLE: observation}), INFO: values_of(info, self.names)}


def values_of(info: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """The numbers of these names, NaN where one is missing or infinite."""
    found = dict(numbers(info, {name.partition("/")[0] for name in names}))
    values = np.array([found.get(name, np.nan) for name in names], np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def numbers(info: Any, wanted: set[str] | None = None, path: str = "") -> Iterator[tuple[str, float]]:
    """Numbers in dictionaries, by their paths; of the outermost only the `wanted` entries. What is no dictionary has none."""
    if not isinstance(info, Mapping):
        return
    for key, value in info.items():
        if wanted is not None and str(key) not in wanted:
            continue
        name = f"{path}{key}"
        if isinstance(value, Mapping):
            yield from numbers(value, None, f"{name}/")
        elif isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
            yield name, _real(value)
        elif isinstance(value, np.ndarray) and value.ndim <= 1 and value.dtype.kind in "biuf":
            yield from ((f"{name}/{i}", float(x)) for i, x in enumerate(np.atleast_1d(value)))


def _real(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # Python's whole numbers have no end
        return np.inf


def counters_of(env: gymnasium.Env[Any, Any], entries: Sequence[str]) -> tuple[str, ...]:
    """The numbers in these entries of `info`, as random actions meet them; a ValueError says what there is where one is missing."""
    found: dict[str, None] = {}
    seen: dict[str, None] = {}
    last_new = 0
    for step, info in infos(env, LOOKED_AT):
        some = dict.fromkeys(name for name, _ in numbers(info, set(entries)))
        last_new = last_new if some.keys() <= found.keys() else step
        found |= some
        seen |= dict.fromkeys(entries_with_numbers(info))
        if step - last_new >= QUIET and not _missing(entries, found):
            break
    if missing := _missing(entries, found):
        raise ValueError(f"--info {missing[0]}: there are no numbers of that name in info in the first {LOOKED_AT:,} random steps; "
                         f"there are {', '.join(seen) or 'none'}")
    if len(found) > MOST_COUNTERS:
        raise ValueError(f"--info {','.join(entries)} names {len(found):,} numbers; at most {MOST_COUNTERS:,} are possible")
    return tuple(sorted(found))


def _missing(entries: Sequence[str], found: Mapping[str, None]) -> list[str]:
    """The entries of which no number was found."""
    return [entry for entry in entries if not any(name == entry or name.startswith(f"{entry}/") for name in found)]


def entries_with_numbers(info: Any) -> Iterator[str]:
    """The outermost entries of `info` that are numbers or have some."""
    return (name.partition("/")[0] for name, _ in numbers(info))


def infos(env: gymnasium.Env[Any, Any], steps: int) -> Iterator[tuple[int, Any]]:
    """What `info` was in so many random steps, and in the resets before and between them, each with the steps until then.

    A failure names the seed and the step of the episode.
    """
    rng = np.random.default_rng(0)
    episode, t = 0, 0

    def started() -> Any:
        try:
            _, info = env.reset(seed=episode)
        except BaseException as error:
            raise failure(error, f"environment 0 (seed {episode}, reset)") from error
        return info

    yield 0, started()
    for step in range(1, steps + 1):
        t += 1
        action = int(env.action_space.start + rng.integers(env.action_space.n))  # type: ignore[attr-defined]
        try:
            _, _, terminated, truncated, info = env.step(action)
            is_over = bool(terminated or truncated)
        except BaseException as error:
            raise failure(error, f"environment 0 (seed {episode}, step {t})") from error
        yield step, info
        if is_over:
            episode, t = episode + 1, 0
            yield step, started()
