"""Segments: fixed windows of experience, the unit that travels from actor to replay to learner (R2D2; paper, Table 1).

All N environments are stepped together, so a window of T steps is N segments at once, time-major [T, N, …]. A segment
may run across the end of an episode: `is_first` marks the states where a new one starts. It keeps the goal that was
pursued, but no goal's reward: attainment is computed from the bits when a batch is learned (`deep.relabel`).
`deep.act` fills a `SegmentBuilder`; `deep.replay` stores what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.envs.vector import PAD, ArraySpec, BatchStep, Observation

Array = NDArray[Any]

PER_SEGMENT = frozenset({"previous_action", "previous_reward", "core"})
"""Arrays without a time axis."""


@dataclass(frozen=True)
class Segments:
    """N segments of T transitions (burn-in included), T+1 states.

    # DEVIATION(D16): the paper's trajectories end with the pursuit; these are windows of fixed length.
    """

    observation: Observation  # name → [T+1, N, …]
    is_first: Array  # bool [T+1, N]: this state starts an episode
    action: Array  # int16 [T, N]
    reward: Array  # float32 [T, N]
    terminated: Array  # bool [T, N]
    truncated: Array  # bool [T, N]
    active: Array  # int [T, N, L]: bits of the transition, padded with -1
    turned_on: Array  # bool [T, N, L]: which of these were off in the state before
    goal: Array  # int32 [T, N]: id of the goal pursued, TASK for the task
    previous_action: Array  # int16 [N]: before the first state
    previous_reward: Array  # float32 [N]
    core: Array  # float16 [N, 2, H]: the core's state in the first state

    @property
    def steps(self) -> int:
        return int(self.action.shape[0])

    @property
    def size(self) -> int:
        """N."""
        return int(self.action.shape[1])

    @property
    def is_valid(self) -> Array:
        """Transitions whose successor is the next state, or that have none, bool [T, N].

        Where a time limit cut the episode, the next state stored is another episode's first: there is nothing to
        bootstrap from, so that one transition is not learned. The one before it bootstraps from the state in between.
        """
        # DEVIATION(D17): the transition that a time limit cuts is not learned, as its successor is not stored.
        return ~self.truncated

    def arrays(self) -> dict[str, Array]:
        """Every array by name, observations as `observation.<name>`: the wire format."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "observation"}
        return named | {f"observation.{name}": array for name, array in self.observation.items()}

    @staticmethod
    def from_arrays(arrays: dict[str, Array]) -> Segments:
        """The inverse of `arrays`."""
        prefix = "observation."
        observation = {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
        rest = {name: array for name, array in arrays.items() if not name.startswith(prefix)}
        return Segments(observation=observation, **rest)

    @staticmethod
    def join(parts: Sequence[Segments]) -> Segments:
        """Segments of several sources, side by side along N."""
        if len(parts) == 1:
            return parts[0]
        arrays = [part.arrays() for part in parts]
        axis = {name: 0 if name in PER_SEGMENT else 1 for name in arrays[0]}
        return Segments.from_arrays({name: np.concatenate([a[name] for a in arrays], axis[name]) for name in axis})

    def part(self, rows: slice) -> Segments:
        """Some of the segments, along N."""
        return self.map(lambda name, array: array[rows] if name in PER_SEGMENT else array[:, rows])

    def map(self, function: Callable[[str, Array], Array]) -> Segments:
        """The same segments with every array replaced by function(name, array)."""
        return Segments.from_arrays({name: function(name, array) for name, array in self.arrays().items()})

    def last(self, steps: int) -> Segments:
        """Only the last `steps` transitions (what is new in overlapping windows); the core's state is then unknown."""
        skip = self.steps - steps
        cut = self.map(lambda name, array: array if name in PER_SEGMENT else array[skip:])
        if skip:
            cut = replace(cut, previous_action=self.action[skip - 1], previous_reward=self.reward[skip - 1])
        return cut


def bit_dtype(num_bits: int) -> np.dtype[Any]:
    """The smallest integer type for ids of bits and the padding."""
    return np.dtype(np.int16 if num_bits <= np.iinfo(np.int16).max else np.int32)


def turned_on(active: Array, before: Array) -> NDArray[np.bool_]:
    """Which of the active bits [N, L] were off in the state before (its bits [N, L'], padded with -1)."""
    was_on = (active[:, :, None] == before[:, None, :]).any(-1)
    on: NDArray[np.bool_] = ~was_on & (active != PAD)
    return on


class SegmentBuilder:
    """Collects the steps of N environments into windows of burn_in + trace_length transitions, one every trace_length."""

    def __init__(
        self,
        observation_spec: dict[str, ArraySpec],
        num_envs: int,
        num_bits: int,
        max_active: int,
        core_shape: tuple[int, int],
        trace_length: int,
        burn_in: int = 0,
    ):
        self.trace_length, self.burn_in = trace_length, burn_in
        self.window = window = burn_in + trace_length
        n = num_envs
        # One row a state (window + 1) or a transition (window); `previous_…` and `core` belong to states here.
        states = {f"observation.{name}": (spec.shape, spec.dtype) for name, spec in observation_spec.items()}
        states |= {
            "is_first": ((), np.dtype(bool)),
            "previous_action": ((), np.dtype(np.int16)),
            "previous_reward": ((), np.dtype(np.float32)),
            "core": (core_shape, np.dtype(np.float16)),
        }
        transitions: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {
            "action": ((), np.dtype(np.int16)),
            "reward": ((), np.dtype(np.float32)),
            "terminated": ((), np.dtype(bool)),
            "truncated": ((), np.dtype(bool)),
            "active": ((max_active,), bit_dtype(num_bits)),
            "turned_on": ((max_active,), np.dtype(bool)),
            "goal": ((), np.dtype(np.int32)),
        }
        self._states = {name: np.zeros((window + 1, n, *shape), dtype) for name, (shape, dtype) in states.items()}
        self._transitions = {name: np.zeros((window, n, *shape), dtype) for name, (shape, dtype) in transitions.items()}
        self._t = 0

    def start(self, observation: Observation, core: Array) -> None:
        """The state in which all environments stand at the very first step."""
        self._t = 0
        n = core.shape[0]
        self._write_state(0, observation, np.ones(n, bool), np.zeros(n, np.int16), np.zeros(n, np.float32), core)

    def stands_at(self, observation: Observation) -> bool:
        """Whether these are the states that the next step would start from: an environment need not repeat itself."""
        return all(np.array_equal(self._states[f"observation.{name}"][self._t], seen) for name, seen in observation.items())

    def _write_state(
        self, t: int, observation: Observation, is_first: Array, action: Array, reward: Array, core: Array
    ) -> None:
        for name, array in observation.items():
            self._states[f"observation.{name}"][t] = array
        self._states["is_first"][t] = is_first
        self._states["previous_action"][t] = action
        self._states["previous_reward"][t] = reward
        self._states["core"][t] = core

    def append(self, action: Array, goal: Array, was_active: Array, step: BatchStep, core: Array) -> Segments | None:
        """Adds one step; returns the segments when a window is full.

        action, goal [N] were taken and pursued; was_active [N, L] are the bits of the state before; `core` [N, 2, H]
        is the core's state with which the next state will be read.
        """
        t = self._t
        for name, value in (
            ("action", action),
            ("reward", step.reward),
            ("terminated", step.terminated),
            ("truncated", step.truncated),
            ("active", step.final_active),
            ("turned_on", turned_on(step.final_active, was_active)),
            ("goal", goal),
        ):
            self._transitions[name][t] = value
        self._write_state(t + 1, step.observation, step.terminated | step.truncated, action, step.reward, core)
        self._t = t + 1
        if self._t < self.window:
            return None
        segments = self._emit()
        for arrays in (self._states, self._transitions):  # the burn-in of the next window, and its first new state
            for array in arrays.values():
                kept = array[self.trace_length :].copy()
                array[: len(kept)] = kept
        self._t = self.burn_in
        return segments

    def _emit(self) -> Segments:
        arrays = {name: array.copy() for name, array in (self._states | self._transitions).items()}
        for name in PER_SEGMENT:
            arrays[name] = arrays[name][0]
        return Segments.from_arrays(arrays)

    def state_dict(self) -> dict[str, Any]:
        """The unfinished window."""
        return {"t": self._t} | {name: array.copy() for name, array in (self._states | self._transitions).items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self._t = int(state["t"])
        for name, array in (self._states | self._transitions).items():
            array[:] = state[name]
