"""Proto-goals that no action controls, beside any environment: what pruning is for, and how it is tested.

    noise    screens that show another picture at every step, each of its own large number of pictures (eight tenths of the bits)
    clock    two clocks that count steps, whatever happens, over many episodes (a tenth)
    static   a few bits that are always on, and many that never are (a tenth)

They are not part of the observation. `JunkBatch` wraps a `BatchEnv`; `env.junk` of Baba's settings asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from protogoal.envs.vector import BatchEnv, BatchStep, Observation
from protogoal.goals.active import AnyIds
from protogoal.goals.spaces import ProtoGoalSpace, Union

SCREENS, CLOCKS, ALWAYS_ON = 8, 2, 8
PERIODS = np.array([1, 7])  # steps that a tick of each clock takes


class JunkSpace(ProtoGoalSpace):
    """`size` bits; the batch itself says which are on."""

    def __init__(self, size: int):
        super().__init__(size)
        self.pictures = max(1, size * 8 // 10 // SCREENS)
        self.ticks = max(1, size // 10 // CLOCKS)
        self.first_clock = SCREENS * self.pictures
        self.first_static = self.first_clock + CLOCKS * self.ticks
        if self.first_static + 1 > size:
            raise ValueError(f"junk must be at least {SCREENS + CLOCKS + 1} bits; got {size}")

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        raise ValueError("junk is made by JunkBatch, not from observations")

    def kind(self, i: int) -> str:
        if i < self.first_clock:
            return f"screen {i // self.pictures}"
        return f"clock {(i - self.first_clock) // self.ticks}" if i < self.first_static else "static"

    def kinds_of(self, bits: AnyIds) -> Sequence[str]:
        screens = [f"screen {i}" for i in range(SCREENS)]
        shown = [screens[i] for i in (bits[bits < self.first_clock] // self.pictures).tolist()]
        return shown + [self.kind(i) for i in bits[bits >= self.first_clock].tolist()]

    def name(self, i: int) -> str:
        if i < self.first_clock:
            return f"{self.kind(i)} shows {i % self.pictures}"
        if i < self.first_static:
            return f"{self.kind(i)} at {(i - self.first_clock) % self.ticks}"
        return f"static {i - self.first_static}"


class JunkBatch:
    """A batch of environments with junk after its own bits; everything else is the inner batch's."""

    def __init__(self, env: BatchEnv, junk: JunkSpace):
        self.env, self.junk = env, junk
        self.num_envs, self.num_actions, self.observation_spec = env.num_envs, env.num_actions, env.observation_spec
        self.num_bits = env.num_bits + junk.size
        static = junk.first_static + np.arange(min(ALWAYS_ON, junk.size - junk.first_static))
        self.max_active = env.max_active + SCREENS + CLOCKS + len(static)
        self._screens = env.num_bits + junk.pictures * np.arange(SCREENS)  # first id of each
        self._clocks = env.num_bits + junk.first_clock + junk.ticks * np.arange(CLOCKS)
        on = env.num_bits + np.append(np.zeros(SCREENS + CLOCKS, np.int64), static)
        self._on = np.tile(on.astype(np.int32), (env.num_envs, 1))  # ids of what is on; the first of them change
        self._rng = np.random.default_rng(0)
        self._time = np.zeros(env.num_envs, np.int64)

    def reset(self, seed: int | None = None) -> tuple[Observation, np.ndarray]:
        if seed is not None:
            self._rng = np.random.default_rng([seed, 1])
        self._time = self._rng.integers(10**6, size=self.num_envs)
        observation, active = self.env.reset(seed)
        return observation, self._beside(active, self._draw())

    def step(self, actions: np.ndarray) -> BatchStep:
        self._time += 1
        step, junk = self.env.step(actions), self._draw()
        return step._replace(active=self._beside(step.active, junk), final_active=self._beside(step.final_active, junk))

    def _draw(self) -> np.ndarray:
        """Ids of the junk that is on, behind those of the inner batch, [N, …]."""
        j, on = self.junk, self._on
        on[:, :SCREENS] = self._screens + self._rng.integers(j.pictures, size=(self.num_envs, SCREENS))
        on[:, SCREENS : SCREENS + CLOCKS] = self._clocks + (self._time[:, None] // PERIODS) % j.ticks
        return on

    def _beside(self, active: np.ndarray, junk: np.ndarray) -> np.ndarray:
        return np.concatenate([active, junk], 1, dtype=np.int32)

    def get_state(self) -> dict[str, Any] | None:
        inner = self.env.get_state()
        return None if inner is None else {"env": inner, "rng": self._rng.bit_generator.state, "time": self._time.copy()}

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, np.ndarray]:
        observation, active = self.env.set_state(state["env"])
        self._time = np.array(state["time"])
        self._rng.bit_generator.state = state["rng"]
        junk = self._draw()
        self._rng.bit_generator.state = state["rng"]  # a new draw is shown, as if none had been made
        return observation, self._beside(active, junk)

    def close(self) -> None:
        self.env.close()


def with_junk(env: BatchEnv, space: ProtoGoalSpace, size: int) -> tuple[BatchEnv, ProtoGoalSpace]:
    """The environments and their space with `size` bits of junk behind."""
    junk = JunkSpace(size)
    return JunkBatch(env, junk), Union([space, junk])
