"""What an actor needs of its environments: a batch that steps at once and resets itself (paper §5.4).

N environments take one action each; each transition (s, a, r, s') comes back with its proto-goal bits b(s, a, s'), as
the ids of the bits that are on (`active`, padded with -1). Bits are sparse in every domain here: eight of 1365 in
Baba, a few words of a message in MiniHack. `protogoal.deep.act` is the caller; `gym_batch` makes such a batch of any
Gymnasium environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from protogoal.goals.active import PAD

Observation = dict[str, np.ndarray]
"""Name → array [N, …]; the names and shapes are those of `BatchEnv.observation_spec`."""

ObservationKind = Literal["planes", "characters", "grid", "picture", "bytes", "vector", "active"]

AXES = {"planes": 3, "characters": 2, "grid": 3, "picture": 3, "bytes": 1, "vector": 1, "active": 1}
"""Axes of each kind."""


@dataclass(frozen=True)
class ArraySpec:
    """Shape, type and meaning of one part of an observation, without the batch axis.

    planes: binary uint8 [C, H, W]. characters: uint8 or int16 [H, W] with values below `num_values`. grid: the same with
    channels, [C, H, W], whose values do not overlap (each channel has ids of its own). picture: uint8 [C, H, W], 0…255.
    bytes: uint8 [D], whatever they stand for. vector: float32 [D]. active: int16 or int32 [L], ids below
    `num_values` of what is on in a long binary vector, padded with -1; L may grow.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    kind: ObservationKind
    num_values: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        if self.kind not in AXES:
            raise ValueError(f"an observation's kind is one of {sorted(AXES)}; got {self.kind!r}")
        if len(self.shape) != AXES[self.kind]:
            raise ValueError(f"an observation of kind {self.kind!r} has {AXES[self.kind]} axes; got shape {self.shape}")
        if self.kind in ("characters", "grid", "active") and self.num_values < 1:
            raise ValueError(f"an observation of kind {self.kind!r} needs num_values ≥ 1; got {self.num_values}")


class BatchStep(NamedTuple):
    """One transition of each of N environments. Arrays stay valid until the next call of `step`; copy what you keep.

    Finished episodes are reset within the same step, so two states come back. `observation` and `active` are where the
    next action is taken (the new episode's start after a reset); `final_observation` is s' of the transition and
    `final_active` its bits b(s, a, s'). Where the episode goes on the two are equal (and may be the same array).
    """

    observation: Observation
    active: np.ndarray  # int [N, L], padded with -1
    final_observation: Observation
    final_active: np.ndarray  # int [N, L], padded with -1
    reward: np.ndarray  # float32 [N]
    terminated: np.ndarray  # bool [N]: the environment ended the episode
    truncated: np.ndarray  # bool [N]: a time limit cut it; never together with terminated
    success: np.ndarray | None = None  # int8 [N]: 1, 0 or -1, what the environment says of it; counts where an episode ended


class BatchEnv(Protocol):
    """N copies of one environment, stepped together."""

    num_envs: int
    num_actions: int
    num_bits: int
    """B, the size of the proto-goal space; ids in `active` are below it."""
    max_active: int
    """L, the width of the lists of ids at first; where more bits are on they become wider, and stay so."""
    observation_spec: dict[str, ArraySpec]

    def reset(self, seed: int | None = None) -> tuple[Observation, np.ndarray]:
        """Starts all N episodes anew; returns (observation, active). With a seed, the whole future is reproducible."""
        ...

    def step(self, actions: np.ndarray) -> BatchStep:
        """Takes one action in each environment (int [N], below num_actions)."""
        ...

    def get_state(self) -> dict[str, Any] | None:
        """Arrays and plain values from which `set_state` goes on to the bit; None where the environment cannot."""
        ...

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, np.ndarray]:
        """Goes back to what `get_state` gave; returns (observation, active) like `reset`."""
        ...

    def close(self) -> None:
        """Frees what the environments hold. Safe to call twice."""
        ...


def check_start(env: BatchEnv, observation: Observation, active: np.ndarray) -> None:
    """Refuses environments whose first observation is not what they said it would be, before anything is learned."""
    if env.num_actions < 1:
        raise ValueError(f"the environment has {env.num_actions} actions; at least 1 is needed, and they must be discrete")
    if env.num_actions > np.iinfo(np.int16).max:  # how replay keeps them
        raise ValueError(f"the environment has {env.num_actions:,} actions; at most {np.iinfo(np.int16).max:,} are possible")
    if set(observation) != set(env.observation_spec):
        raise ValueError(f"the environment observes {sorted(observation)}, it declared {sorted(env.observation_spec)}")
    for name, spec in env.observation_spec.items():
        array, shape = observation[name], (env.num_envs, *spec.shape)
        may_grow = spec.kind == "active" and array.shape[:-1] == shape[:-1] and array.shape[-1] >= shape[-1]
        if array.shape != shape and not may_grow:
            raise ValueError(f"observation {name!r} has shape {array.shape}, declared is {shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"observation {name!r} has NaN or infinite entries; all must be finite")
        if spec.num_values and array.size and array.max() >= spec.num_values:
            raise ValueError(f"observation {name!r} has the value {array.max()}, allowed are those below {spec.num_values}")
    if active.ndim != 2 or len(active) != env.num_envs:
        raise ValueError(f"bits have shape {active.shape}, declared is ({env.num_envs}, any)")
    if active.size and (active.max() >= env.num_bits or active.min() < PAD):
        raise ValueError(f"bit {active.max()} is on, the space has bits 0…{env.num_bits - 1}")
