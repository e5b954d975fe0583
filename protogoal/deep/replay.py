"""Replay of segments: bounded, preallocated, planes packed to bits (paper, Table 1: 1e6 transitions, not prioritised).

The paper samples uniformly and relabels with rare goals. When every goal is learned on every transition that preference
for the rare is gone; `novelty_share` brings it back by drawing part of a batch by the novelty of what happened in a
segment. The learner samples segments here, the proto-goal evaluator single transitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.deep.segments import PER_SEGMENT, Segments, bit_dtype
from protogoal.deep.settings import ReplaySettings
from protogoal.envs.vector import ArraySpec, dense_bits
from protogoal.goals.values import TransitionBatch

Array = NDArray[Any]

DRAWS = 100  # attempts to find a transition that was not truncated


class Replay:
    """The last `capacity` transitions, as segments of burn_in + trace_length."""

    def __init__(
        self,
        observation_spec: dict[str, ArraySpec],
        num_bits: int,
        max_active: int,
        core_shape: tuple[int, int],
        settings: ReplaySettings,
    ):
        self.settings, self.num_bits, self.spec = settings, num_bits, dict(observation_spec)
        self.capacity = settings.capacity // settings.trace_length  # in segments
        self._arrays = {
            name: np.zeros((self.capacity, *shape), dtype)
            for name, (shape, dtype) in layout(observation_spec, num_bits, max_active, core_shape, settings).items()
        }
        self._next = self.size = self.added = 0  # in segments
        # What turned on in a segment, at its rarest: a bit, or REWARD, or NOTHING; and how often each ever did.
        self._reward, self._nothing = num_bits, num_bits + 1
        self._rarest = np.full(self.capacity, self._nothing, np.int32)
        self._turned_on = np.zeros(num_bits + 2, np.int64)
        self._cumulative: NDArray[np.float64] | None = None

    @property
    def transitions(self) -> int:
        """Transitions that can be learned from."""
        return self.size * self.settings.trace_length

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values()) + self._rarest.nbytes + self._turned_on.nbytes

    def add(self, segments: Segments) -> None:
        """Stores N segments; the oldest make room."""
        rarest = self._count(segments)
        if segments.size > self.capacity:
            segments = segments.part(slice(-self.capacity, None))
            rarest = rarest[-self.capacity :]
        places = (self._next + np.arange(segments.size)) % self.capacity
        for name, array in segments.arrays().items():
            rows = array if name in PER_SEGMENT else np.moveaxis(array, 1, 0)  # [N, T, …]
            self._arrays[name][places] = _pack(rows) if self._is_packed(name) else rows
        self._rarest[places] = rarest
        self._next = int((self._next + segments.size) % self.capacity)
        self.size = min(self.size + segments.size, self.capacity)
        self.added += segments.size
        self._cumulative = None

    def _count(self, segments: Segments) -> NDArray[np.int32]:
        """Counts what turned on, and returns for each segment the rarest of it, [N]."""
        new = segments.last(self.settings.trace_length)
        bit = np.where(new.turned_on, new.active, self._nothing).astype(np.int32)  # [T, N, L]
        rewarded = np.where(new.reward != 0, self._reward, self._nothing).astype(np.int32)  # [T, N]
        happened = np.concatenate([bit, rewarded[..., None]], -1)
        self._turned_on += np.bincount(happened.ravel(), minlength=self.num_bits + 2)
        happened = np.moveaxis(happened, 1, 0).reshape(new.size, -1)  # [N, T·(L+1)]
        count = np.where(happened == self._nothing, np.iinfo(np.int64).max, self._turned_on[happened])
        return np.take_along_axis(happened, count.argmin(1)[:, None], 1)[:, 0]

    def novelty_weights(self) -> NDArray[np.float64]:
        """Weight of each stored segment in the novelty draw, [size]: n^-exponent of the rarest thing that turned on."""
        weight = np.maximum(self._turned_on, 1).astype(np.float64) ** -self.settings.novelty_exponent
        weight[self._nothing] = 0.0
        weights: NDArray[np.float64] = weight[self._rarest[: self.size]]
        return weights

    def draw(self, batch_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Places of `batch_size` segments: uniform, the last `novelty_share` of them by novelty."""
        if self.size == 0:
            raise ValueError("replay is empty; nothing can be sampled from it")
        by_novelty = round(batch_size * self.settings.novelty_share)
        places = rng.integers(self.size, size=batch_size)
        if by_novelty:
            if self._cumulative is None:
                self._cumulative = np.cumsum(self.novelty_weights())
            total = self._cumulative[-1]
            if total > 0:
                found = np.searchsorted(self._cumulative, rng.random(by_novelty) * total, side="right")
                places[batch_size - by_novelty :] = np.minimum(found, self.size - 1)
        return places

    def sample(self, batch_size: int, rng: np.random.Generator) -> Segments:
        """A batch of segments, time-major."""
        return self.read(self.draw(batch_size, rng))

    def read(self, places: NDArray[np.integer[Any]]) -> Segments:
        """The segments stored at these places."""
        arrays = {}
        for name, stored in self._arrays.items():
            rows = stored[places]
            if self._is_packed(name):
                rows = _unpack(rows, self.spec[name.removeprefix("observation.")].shape)
            arrays[name] = rows if name in PER_SEGMENT else np.moveaxis(rows, 0, 1)
        return Segments.from_arrays(arrays)

    def sample_transitions(self, n: int, rng: np.random.Generator) -> TransitionBatch:
        """Up to n single transitions, uniform, as the proto-goal evaluator reads them: flat observations, dense bits."""
        for _ in range(DRAWS):  # one, but for a handful of transitions
            segment = rng.integers(self.size, size=n)
            t = self.settings.burn_in + rng.integers(self.settings.trace_length, size=n)
            kept = ~self._arrays["truncated"][segment, t]  # the successor of others is another episode's first state
            if kept.any():
                break
        segment, t = segment[kept], t[kept]
        terminated = self._arrays["terminated"][segment, t]
        return TransitionBatch(
            observation=self._flat(segment, t),
            action=self._arrays["action"][segment, t],
            next_observation=self._flat(segment, t + 1),
            terminated=terminated,
            bits=dense_bits(self._arrays["active"][segment, t], self.num_bits),
        )

    def _flat(self, segment: Array, t: Array) -> Array:
        """Observations as rows of numbers, [n, D]; ids and characters become one-hot."""
        parts = []
        for name, spec in self.spec.items():
            key = f"observation.{name}"
            rows = self._arrays[key][segment, t]
            if spec.kind == "planes":
                parts.append(_unpack(rows, spec.shape).reshape(len(rows), -1))
            elif spec.kind == "active":
                parts.append(dense_bits(rows, spec.num_values))
            elif spec.kind == "characters":
                cells = rows.reshape(len(rows), -1).astype(np.int64)
                cells += spec.num_values * np.arange(cells.shape[1])
                parts.append(dense_bits(cells, spec.num_values * cells.shape[1]))
            else:
                parts.append(rows)
        return np.concatenate(parts, 1) if len(parts) > 1 else parts[0]

    def _is_packed(self, name: str) -> bool:
        part = name.removeprefix("observation.")
        return part != name and self.spec[part].kind == "planes"

    def state_dict(self) -> dict[str, Any]:
        """Everything stored, as arrays of what is filled; large."""
        state: dict[str, Any] = {name: array[: self.size] for name, array in self._arrays.items()}
        counters = {"next": self._next, "size": self.size, "added": self.added}
        return {"arrays": state, "rarest": self._rarest[: self.size], "turned_on": self._turned_on.copy()} | counters

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        size = int(state["size"])
        if size > self.capacity or set(state["arrays"]) != set(self._arrays):
            raise ValueError(f"stored replay of {size} segments does not fit this one of {self.capacity}")
        for name, array in state["arrays"].items():
            if array.shape[1:] != self._arrays[name].shape[1:]:
                raise ValueError(f"stored replay has {name} of shape {array.shape[1:]}, not {self._arrays[name].shape[1:]}")
            self._arrays[name][:size] = array
        self._rarest[:size] = state["rarest"]
        self._turned_on[:] = state["turned_on"]
        self._next, self.size, self.added = int(state["next"]), size, int(state["added"])
        self._cumulative = None


def layout(
    observation_spec: dict[str, ArraySpec],
    num_bits: int,
    max_active: int,
    core_shape: tuple[int, int],
    settings: ReplaySettings,
) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and type of one stored segment's arrays, by name."""
    steps = settings.burn_in + settings.trace_length
    arrays: dict[str, tuple[tuple[int, ...], Any]] = {}
    for name, spec in observation_spec.items():
        if spec.kind == "planes":
            arrays[f"observation.{name}"] = ((steps + 1, -(-int(np.prod(spec.shape)) // 8)), np.uint8)
        else:
            arrays[f"observation.{name}"] = ((steps + 1, *spec.shape), spec.dtype)
    arrays |= {
        "is_first": ((steps + 1,), bool),
        "action": ((steps,), np.int16),
        "reward": ((steps,), np.float32),
        "terminated": ((steps,), bool),
        "truncated": ((steps,), bool),
        "active": ((steps, max_active), bit_dtype(num_bits)),
        "turned_on": ((steps, max_active), bool),
        "goal": ((steps,), np.int32),
        "previous_action": ((), np.int16),
        "previous_reward": ((), np.float32),
        "core": (core_shape, np.float16),
    }
    return {name: (shape, np.dtype(dtype)) for name, (shape, dtype) in arrays.items()}


def replay_bytes(
    observation_spec: dict[str, ArraySpec],
    num_bits: int,
    max_active: int,
    core_shape: tuple[int, int],
    settings: ReplaySettings,
) -> int:
    """Memory that a replay of these settings takes when full."""
    stored = layout(observation_spec, num_bits, max_active, core_shape, settings).values()
    segment = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in stored)
    return settings.capacity // settings.trace_length * (segment + 4) + 8 * (num_bits + 2)


def _pack(planes: Array) -> NDArray[np.uint8]:
    """Binary planes [N, T, C, H, W] → bits [N, T, ⌈CHW/8⌉]."""
    return np.packbits(planes.reshape(*planes.shape[:2], -1), axis=-1)


def _unpack(packed: Array, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The inverse, for any leading axes."""
    count = int(np.prod(shape))
    return np.unpackbits(packed, axis=-1, count=count).reshape(*packed.shape[:-1], *shape)

