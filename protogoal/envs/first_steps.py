"""What the first steps show: random play with a fixed seed, before anything is trained.

Numbers need their scale, and text whether it ever changes; both are found here once, in the same way in every process, and then
stay. Actions are held for a while, which leads further than drawing each anew. `derive` asks, and only for environments that have
such parts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal.envs.episodes import parts_of
from protogoal.envs.failure import failure
from protogoal.envs.observed import fitting, part_of, started

STEPS = 1_000
LONGEST_HOLD = 8
SEED = 20_260
PATIENCE = 5.0
"""Seconds after which people are told how long it will take."""


@dataclass(frozen=True)
class FirstSteps:
    """Of the wanted parts: what was seen, [n, …] of numbers; of texts, whether they changed within an episode."""

    seen: dict[str, np.ndarray]
    changes: dict[str, bool]


_played: dict[tuple[Any, ...], FirstSteps] = {}
"""The first steps that this process played last, by environment and parts."""


def remembered_steps(env: gymnasium.Env[Any, Any], numbers: Collection[str], texts: Collection[str],
                     name: Any = None) -> FirstSteps:
    """`first_steps`; those of an environment that has a `name` are not played again."""
    key = (name, tuple(numbers), tuple(texts))
    first = _played.get(key) or first_steps(env, numbers, texts)
    if name is not None:
        _played.clear()
        _played[key] = first
    return first


def first_steps(env: gymnasium.Env[Any, Any], numbers: Collection[str], texts: Collection[str]) -> FirstSteps:
    """Plays random actions."""
    rng = np.random.default_rng(SEED)
    rows: dict[str, list[np.ndarray]] = {name: [] for name in numbers}
    changes = dict.fromkeys(texts, False)
    before: dict[str, Any] = {}
    episode, step, action, hold = 0, 0, 0, 0
    parts, is_dict = parts_of(env.observation_space), isinstance(env.observation_space, spaces.Dict)
    declared = {name: (tuple(parts[name].shape), np.dtype(parts[name].dtype)) for name in numbers}

    def who() -> str:
        return f"environment 0 (seed {SEED + episode}, {f'step {step}' if step else 'reset'})"

    def look(observation: Any) -> None:
        for name, (shape, dtype) in declared.items():
            seen = fitting(part_of(observation, name, is_dict, who), name, shape, dtype, who)
            rows[name].append(np.array(seen, np.float64).ravel())
        for name in texts:
            text = part_of(observation, name, is_dict, who)
            changes[name] |= step > 0 and text != before[name]
            before[name] = text

    try:
        began, is_told = time.monotonic(), False
        look(started(env.reset(seed=SEED), who))
        for t in range(STEPS):
            if not is_told and time.monotonic() - began > PATIENCE:
                is_told = True
                left = (time.monotonic() - began) * (STEPS - t) / max(1, t)
                print(f"looking at the environment's first {STEPS:,} random steps: about {left:,.0f} s more", file=sys.stderr)
            if hold == 0:
                action, hold = int(rng.integers(env.action_space.n)), int(rng.integers(1, LONGEST_HOLD + 1))  # type: ignore[attr-defined]
            hold, step = hold - 1, step + 1
            observation, _, terminated, truncated, _ = env.step(action + int(env.action_space.start))  # type: ignore[attr-defined]
            look(observation)
            if terminated or truncated:
                episode, step = episode + 1, 0
                look(started(env.reset(seed=SEED + episode), who))
    except BaseException as error:
        raise failure(error, who()) from error
    return FirstSteps({name: np.stack(some) for name, some in rows.items()}, changes)
