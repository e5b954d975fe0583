"""Segments: fixed windows of experience, the unit that travels from actor to replay to learner (R2D2; paper, Table 1).

All N environments are stepped together, so a window of T steps is N segments at once, time-major [T, N, …]. A segment
may run across the end of an episode: `is_first` marks the states where a new one starts. It keeps the goal that was
pursued, but no goal's reward: attainment is computed from the bits when a batch is learned (`deep.relabel`).
`deep.act` fills a `SegmentBuilder`; `deep.replay` stores what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, NamedTuple, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from protogoal.deep.stored import check_segments, stored_width
from protogoal.envs.vector import ArraySpec, BatchStep, Observation
from protogoal.goals.active import as_wide, widened
from protogoal.goals.scale import UNKNOWN
from protogoal.goals.stored import stored_number

Array = NDArray[Any]

PREFIX = "observation."

@dataclass(frozen=True)
class Field:
    """An array of segments: one row a state (T+1), a transition (T) or a segment; its shape beyond that, and its type.

    Sizes that differ from run to run have names: `active` (room for bits that are on, which may grow), `core` (the recurrent core's
    state); `bit` is the smallest type that holds ids of bits. What is not stored is given when a segment is drawn.
    """

    per: Literal["state", "transition", "segment"]
    dtype: Any
    size: Literal["", "active", "core"] = ""
    is_stored: bool = True


@dataclass(frozen=True)
class Segments:
    """N segments of T transitions (burn-in included), T+1 states. The one schema: a line here is all that a new array needs.

    # DEVIATION(D16): the paper's trajectories end with the pursuit; these are windows of fixed length.
    """

    observation: Observation  # name → [T+1, N, …], as the environments say
    is_first: Annotated[Array, Field("state", bool)]  # this state starts an episode
    action: Annotated[Array, Field("transition", np.int16)]
    reward: Annotated[Array, Field("transition", np.float32)]
    terminated: Annotated[Array, Field("transition", bool)]
    truncated: Annotated[Array, Field("transition", bool)]
    active: Annotated[Array, Field("transition", "bit", "active")]  # bits of the transition, padded with -1
    turned_on: Annotated[Array, Field("transition", bool, "active")]  # which of these were off in the state before
    goal: Annotated[Array, Field("transition", np.int32)]  # id of the goal pursued, TASK for the task
    previous_action: Annotated[Array, Field("segment", np.int16)]  # before the first state
    previous_reward: Annotated[Array, Field("segment", np.float32)]
    best: Annotated[Array, Field("segment", np.float32)]  # return of the task by then, of all environments; see `goals.scale`
    core: Annotated[Array, Field("segment", np.float16, "core")]  # the core's state in the first state, [2, H]
    weight: Annotated[Array, Field("segment", np.float32, is_stored=False)]  # what it counts for in the loss, by how it was drawn

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
        return named | {f"{PREFIX}{name}": array for name, array in self.observation.items()}

    @staticmethod
    def from_arrays(arrays: dict[str, Array]) -> Segments:
        """The inverse of `arrays`."""
        observation = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        rest = {name: array for name, array in arrays.items() if not name.startswith(PREFIX)}
        return Segments(observation=observation, **rest)

    @staticmethod
    def join(parts: Sequence[Segments]) -> Segments:
        """Segments of several sources, side by side along N."""
        if len(parts) == 1:
            return parts[0]
        arrays = [part.arrays() for part in parts]
        axis = {name: 0 if name in PER_SEGMENT else 1 for name in arrays[0]}
        of = {name: [a[name] for a in arrays] for name in axis}
        widths = {name: len({array.shape[-1] for array in some}) for name, some in of.items()}
        return Segments.from_arrays({name: np.concatenate(as_wide(some) if widths[name] > 1 else some, axis[name])
                                     for name, some in of.items()})

    def part(self, rows: slice) -> Segments:
        """Some of the segments, along N."""
        return self.map(lambda name, array: array[rows] if name in PER_SEGMENT else array[:, rows])

    def map(self, function: Callable[[str, Array], Array]) -> Segments:
        """The same segments with every array replaced by function(name, array)."""
        return Segments.from_arrays({name: function(name, array) for name, array in self.arrays().items()})

    def last(self, steps: int) -> Segments:
        """Only the last `steps` transitions (what is new in overlapping windows); the core's state is then unknown."""
        skip = self.steps - steps
        if skip == 0:
            return self
        cut = self.map(lambda name, array: array if name in PER_SEGMENT else array[skip:])
        return replace(cut, previous_action=self.action[skip - 1], previous_reward=self.reward[skip - 1])


FIELDS: dict[str, Field] = {name: hint.__metadata__[0] for name, hint in get_type_hints(Segments, include_extras=True).items()
                            if get_origin(hint) is Annotated}
PER_SEGMENT = frozenset(name for name, of in FIELDS.items() if of.per == "segment")
"""Arrays without a time axis."""

Schema = dict[str, tuple[tuple[int, ...], np.dtype[Any], str]]
"""Name → (shape, type, per state | transition | segment)."""


class Sizes(NamedTuple):
    """What differs from run to run: the parts of an observation, bits, room for those that are on at first, the core's state."""

    observation: dict[str, ArraySpec]
    num_bits: int
    max_active: int
    core: tuple[int, int]


def schema(sizes: Sizes) -> Schema:
    """The arrays that are stored of one run's segments."""
    shapes: dict[str, tuple[int, ...]] = {"": (), "active": (sizes.max_active,), "core": sizes.core}
    bit = bit_dtype(sizes.num_bits)
    arrays: Schema = {f"{PREFIX}{name}": (spec.shape, spec.dtype, "state") for name, spec in sizes.observation.items()}
    return arrays | {name: (shapes[of.size], bit if of.dtype == "bit" else np.dtype(of.dtype), of.per)
                     for name, of in FIELDS.items() if of.is_stored}


def lists_in(observation_spec: Mapping[str, ArraySpec]) -> frozenset[str]:
    """Names of the arrays that are lists of ids, or say something of each id: their last axis may grow."""
    seen = {f"{PREFIX}{name}" for name, spec in observation_spec.items() if spec.kind == "active"}
    return frozenset(seen | {name for name, of in FIELDS.items() if of.size == "active"})


def bit_dtype(num_bits: int) -> np.dtype[Any]:
    """The smallest integer type for ids of bits and the padding."""
    return np.dtype(np.int16 if num_bits <= np.iinfo(np.int16).max else np.int32)


class SegmentBuilder:
    """Collects the steps of N environments into windows of burn_in + trace_length transitions, one every trace_length."""

    def __init__(self, sizes: Sizes, num_envs: int, trace_length: int, burn_in: int = 0):
        self.trace_length, self.burn_in = trace_length, burn_in
        self._sizes = sizes
        self.window = window = burn_in + trace_length
        # What a segment has once belongs to its first state, so here every state has it.
        rows = {"state": window + 1, "segment": window + 1, "transition": window}
        self._arrays = {name: np.zeros((rows[per], num_envs, *shape), dtype) for name, (shape, dtype, per)
                        in schema(sizes).items()}
        self._lists = lists_in(sizes.observation)
        self._t = 0

    def start(self, observation: Observation, core: Array) -> None:
        """The state in which all environments stand at the very first step."""
        self._t = 0
        n = core.shape[0]
        self._write_state(0, observation, np.ones(n, bool), np.zeros(n, np.int16), np.zeros(n, np.float32), core, UNKNOWN)

    def stands_at(self, observation: Observation) -> bool:
        """Whether these are the states that the next step would start from: an environment need not repeat itself."""
        kept = {name: self._arrays[f"{PREFIX}{name}"][self._t] for name in observation}
        return all(np.array_equal(*(as_wide(pair) if f"{PREFIX}{name}" in self._lists else pair))
                   for name, seen in observation.items() for pair in [[kept[name], seen]])

    def _write_state(
        self, t: int, observation: Observation, is_first: Array, action: Array, reward: Array, core: Array, best: float
    ) -> None:
        seen = {f"{PREFIX}{name}": part for name, part in observation.items()}
        self._write(t, seen | {"is_first": is_first, "previous_action": action, "previous_reward": reward, "core": core,
                               "best": np.full(len(is_first), best, np.float32)})

    def _write(self, t: int, values: Mapping[str, Array]) -> None:
        for name, value in values.items():
            if name in self._lists:
                self._arrays[name] = widened(self._arrays[name], value.shape[-1])
                value = widened(value, self._arrays[name].shape[-1])
            self._arrays[name][t] = value

    def append(
        self, action: Array, goal: Array, came_on: Array, step: BatchStep, core: Array, best: float = UNKNOWN
    ) -> Segments | None:
        """Adds one step; returns the segments when a window is full.

        action, goal [N] were taken and pursued; came_on [N, L] says which of the step's bits turned on; `core` [N, 2, H]
        is the core's state with which the next state will be read; `best` the best return by now.
        """
        t = self._t
        self._write(t, {"action": action, "reward": step.reward, "terminated": step.terminated, "truncated": step.truncated,
                        "active": step.final_active, "turned_on": came_on, "goal": goal})
        self._write_state(t + 1, step.observation, step.terminated | step.truncated, action, step.reward, core, best)
        self._t = t + 1
        if self._t < self.window:
            return None
        segments = self._emit()
        for array in self._arrays.values():  # the burn-in of the next window, and its first new state
            kept = array[self.trace_length :].copy()
            array[: len(kept)] = kept
        self._t = self.burn_in
        return segments

    def _emit(self) -> Segments:
        arrays = {name: (array[0] if name in PER_SEGMENT else array).copy() for name, array in self._arrays.items()}
        return Segments.from_arrays(arrays | {"weight": np.ones(arrays["action"].shape[1], np.float32)})

    def state_dict(self) -> dict[str, Any]:
        """The unfinished window."""
        return {"t": self._t} | {name: array.copy() for name, array in self._arrays.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self._t = stored_number(state["t"], "t", 0, self.window - 1)
        for name in self._lists:
            self._arrays[name] = widened(self._arrays[name], stored_width(state, name))
        check_segments(state, self._arrays, self._sizes.observation, self._sizes.num_bits)
        for name, array in self._arrays.items():
            array[:] = state[name]
