"""Replay of segments: bounded, preallocated, planes packed to bits (paper, Table 1: 1e6 transitions, not prioritised).

The paper samples uniformly and relabels with rare goals. When every goal is learned on every transition that preference
for the rare is gone; `novelty_share` brings it back by drawing part of a batch by the novelty of what happened in a
segment: of the goals that are learned (`want`), and of reward. Draws by outcome make rare accidents look likely, so what is
drawn more often counts for less:

    P(i) = (1 − share)/n + share · q_i,   q_i ∝ N_i^-exponent,   weight_i = (n P(i))^-β,   β = correction · N_i/(N_i + 300)

N_i is how often the rarest wanted thing of segment i ever happened. So the first wins are learned from at full weight, and what
has happened often enough to be judged is learned without bias.

The learner samples segments here, the paper's rule of pruning single transitions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from protogoal.deep.segments import PER_SEGMENT, PREFIX, Segments, Sizes, lists_in, schema
from protogoal.deep.settings import ReplaySettings
from protogoal.deep.stored import check_segments, stored_width
from protogoal.goals.active import dense_bits, widened
from protogoal.goals.stored import stored_array, stored_like, stored_number
from protogoal.goals.values import TransitionBatch

Array = NDArray[Any]

REWARD_SHARE = 0.2  # of the draws by novelty, at least, for segments with a reward
OFTEN = 300  # times a thing must happen to be corrected by half
DRAWS = 100  # attempts to find a transition that was not truncated


class Replay:
    """The last `capacity` transitions, as segments of burn_in + trace_length.

    Room for bits that are on, `max_active` of a transition at first, grows with what comes, up to `most_active`, which is what
    memory allows; beyond that those that are wanted stay, and `dropped` counts the others.
    """

    def __init__(self, sizes: Sizes, settings: ReplaySettings, most_active: int | None = None):
        self.settings, self.spec, self.num_bits = settings, dict(sizes.observation), sizes.num_bits
        self.capacity = settings.capacity // settings.trace_length  # in segments
        self._arrays = {
            name: np.zeros((self.capacity, *shape), dtype)
            for name, (shape, dtype) in layout(sizes, settings).items()
        }
        self._lists = lists_in(sizes.observation)
        self.most_active = most_active or self.num_bits
        self.dropped = 0  # ids for which there was no room
        self._next = self.size = self.added = 0  # in segments
        # What turned on in a segment, at its rarest: a bit, or REWARD, or NOTHING; and how often each ever did.
        self._reward, self._nothing = self.num_bits, self.num_bits + 1
        self._rarest = np.full(self.capacity, self._nothing, np.int32)
        self._turned_on = np.zeros(self.num_bits + 2, np.int64)
        self._is_wanted = np.ones(self.num_bits + 2, np.bool_)
        self._novelty = self._cumulative = np.empty(0)  # weight of each segment in the novelty draw, and sums; empty: to be made

    @property
    def transitions(self) -> int:
        """Transitions that can be learned from."""
        return self.size * self.settings.trace_length

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values()) + self._rarest.nbytes + self._turned_on.nbytes

    def add(self, segments: Segments) -> None:
        """Stores N segments; the oldest make room."""
        segments = self._fitted(segments)
        rarest = self._count(segments)
        if segments.size > self.capacity:
            segments = segments.part(slice(-self.capacity, None))
            rarest = rarest[-self.capacity :]
        places = (self._next + np.arange(segments.size)) % self.capacity
        for name, array in segments.arrays().items():
            if name not in self._arrays:
                continue
            rows = array if name in PER_SEGMENT else np.moveaxis(array, 1, 0)  # [N, T, …]
            if name in self._lists:
                self._widen(name, rows.shape[-1])
                rows = widened(rows, self._arrays[name].shape[-1])
            self._arrays[name][places] = _pack(rows) if self._is_packed(name) else rows
        self._rarest[places] = rarest
        self._next = int((self._next + segments.size) % self.capacity)
        self.size = min(self.size + segments.size, self.capacity)
        self.added += segments.size
        self._cumulative = np.empty(0)

    def _widen(self, name: str, width: int) -> None:
        """Room for `width` ids in every stored list of that name."""
        stored = self._arrays[name]
        if width > stored.shape[-1]:
            wide = np.zeros((*stored.shape[:-1], width), stored.dtype)  # taken from the machine as it is filled
            wide[: self.size] = widened(stored[: self.size], width)
            self._arrays[name] = wide

    def _fitted(self, segments: Segments) -> Segments:
        """Segments with at most `most_active` bits on at once: the wanted ones first, in their order."""
        if segments.active.shape[-1] <= self.most_active:
            return segments
        rank = np.where(segments.active < 0, 2, ~self._is_wanted[segments.active])
        kept = np.argsort(rank, axis=-1, kind="stable")[..., : self.most_active]
        active, on = (np.take_along_axis(array, kept, -1) for array in (segments.active, segments.turned_on))
        self.dropped += int((segments.active >= 0).sum() - (active >= 0).sum())
        return replace(segments, active=active, turned_on=on)

    def _count(self, segments: Segments) -> NDArray[np.int32]:
        """Counts what turned on, and returns for each segment the rarest of it that is wanted, [N]."""
        new = segments.last(self.settings.trace_length)
        active, turned_on, reward = (np.moveaxis(array, 1, 0) for array in (new.active, new.turned_on, new.reward))  # [N, T, …]
        _add_counts(active, turned_on, reward, self._turned_on)
        rarest: NDArray[np.int32] = _rarest(active, turned_on, reward, self._turned_on, self._is_wanted)
        return rarest

    def want(self, bits: NDArray[np.integer[Any]]) -> None:
        """From now on only these bits, and reward, make a segment novel; those stored are looked at again."""
        wanted = np.zeros(self.num_bits + 2, np.bool_)
        wanted[bits] = wanted[self._reward] = True
        self._is_wanted = wanted
        stored = (self._arrays[name][: self.size, self.settings.burn_in :] for name in ("active", "turned_on", "reward"))
        active, turned_on, reward = stored
        self._rarest[: self.size] = _rarest(active, turned_on, reward, self._turned_on, wanted)
        self._cumulative = np.empty(0)

    def novelty_weights(self) -> NDArray[np.float64]:
        """Weight of each stored segment in the novelty draw, [size]: n^-exponent of the rarest thing that turned on."""
        rarest = self._rarest[: self.size]
        weights = np.maximum(self._turned_on[rarest], 1).astype(np.float64) ** -self.settings.novelty_exponent
        weights[rarest == self._nothing] = 0.0
        is_paid = rarest == self._reward
        paid, others = weights[is_paid].sum(), weights[~is_paid].sum()
        if 0 < paid < REWARD_SHARE * (paid + others):  # beside many goals a first win would be one thing among hundreds
            weights[is_paid] *= REWARD_SHARE / (1.0 - REWARD_SHARE) * others / paid
        return weights

    def draw(self, batch_size: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Places of `batch_size` segments, uniform, the last `novelty_share` of them by novelty; and what each counts for."""
        if self.size == 0:
            raise ValueError("replay is empty; nothing can be sampled from it")
        by_novelty = round(batch_size * self.settings.novelty_share)
        places = rng.integers(self.size, size=batch_size)
        weight = np.ones(batch_size, np.float32)
        if by_novelty:
            if not len(self._cumulative):
                self._novelty = self.novelty_weights()
                self._cumulative = np.cumsum(self._novelty)
            total = self._cumulative[-1]
            if total > 0:
                found = np.searchsorted(self._cumulative, rng.random(by_novelty) * total, side="right")
                places[batch_size - by_novelty :] = np.minimum(found, self.size - 1)
                share = by_novelty / batch_size
                q = self._novelty[places] / total
                times = self._turned_on[self._rarest[places]]
                beta = np.where(q > 0, times / (times + OFTEN), 1.0) * self.settings.correction
                weight = (((1.0 - share) + share * self.size * q) ** -beta).astype(np.float32)
        return places, weight

    def sample(self, batch_size: int, rng: np.random.Generator) -> Segments:
        """A batch of segments, time-major."""
        return self.read(*self.draw(batch_size, rng))

    def read(self, places: NDArray[np.integer[Any]], weight: NDArray[np.float32]) -> Segments:
        """The segments stored at these places."""
        arrays = {}
        for name, stored in self._arrays.items():
            rows = stored[places]
            if self._is_packed(name):
                rows = _unpack(rows, self.spec[name.removeprefix(PREFIX)].shape)
            arrays[name] = rows if name in PER_SEGMENT else np.moveaxis(rows, 0, 1)
        return Segments.from_arrays(arrays | {"weight": weight})

    def sample_transitions(self, n: int, rng: np.random.Generator) -> TransitionBatch:
        """Up to n single transitions, uniform, as the proto-goal evaluator reads them: flat observations, lists of bits."""
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
            active=self._arrays["active"][segment, t],
        )

    def _flat(self, segment: Array, t: Array) -> Array:
        """Observations as rows of numbers, [n, D]; ids and characters become one-hot."""
        parts: list[Array] = []
        for name, spec in self.spec.items():
            key = f"{PREFIX}{name}"
            rows = self._arrays[key][segment, t]
            if spec.kind == "planes":
                parts.append(_unpack(rows, spec.shape).reshape(len(rows), -1))
            elif spec.kind == "active":
                parts.append(dense_bits(rows, spec.num_values))
            elif spec.kind in ("picture", "bytes"):
                parts.append(rows.reshape(len(rows), -1) / np.float32(255))
            elif spec.kind in ("characters", "grid"):
                cells = rows.reshape(len(rows), -1).astype(np.int64)
                cells += spec.num_values * np.arange(cells.shape[1])
                parts.append(dense_bits(cells, spec.num_values * cells.shape[1]))
            else:
                parts.append(rows)
        return np.concatenate(parts, 1) if len(parts) > 1 else parts[0]

    def _is_packed(self, name: str) -> bool:
        part = name.removeprefix(PREFIX)
        return part != name and self.spec[part].kind == "planes"

    def state_dict(self) -> dict[str, Any]:
        """Everything stored, as arrays of what is filled; large."""
        state: dict[str, Any] = {name: array[: self.size] for name, array in self._arrays.items()}
        counters = {"next": self._next, "size": self.size, "added": self.added}
        return {"arrays": state, "rarest": self._rarest[: self.size], "turned_on": self._turned_on.copy(),
                "wanted": np.packbits(self._is_wanted)} | counters

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        size = stored_number(state["size"], "replay size")
        if size > self.capacity or set(state["arrays"]) != set(self._arrays):
            raise ValueError(f"stored replay of {size} segments does not fit this one of {self.capacity}")
        for name in self._lists:
            self._widen(name, stored_width(state["arrays"], name))
        check_segments(state["arrays"], self._arrays, self.spec, self.num_bits, size)
        for name, array in state["arrays"].items():
            self._arrays[name][:size] = array
        self._rarest[:size] = stored_array(state["rarest"], "rarest", (size,), "i", 0, self._nothing)
        self._turned_on[:] = stored_like(state["turned_on"], "turned_on", self._turned_on, 0)
        wanted = stored_array(state["wanted"], "wanted", (-(-(self.num_bits + 2) // 8),), "i", 0, 255).astype(np.uint8)
        self._is_wanted = np.unpackbits(wanted, count=self.num_bits + 2).astype(np.bool_)
        self._next = stored_number(state["next"], "replay next", 0, self.capacity) % self.capacity
        self.size, self.added = size, stored_number(state["added"], "replay added")
        self._cumulative = np.empty(0)


def layout(sizes: Sizes, settings: ReplaySettings) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and type of one stored segment's arrays, by name."""
    steps = settings.burn_in + settings.trace_length
    rows: dict[str, tuple[int, ...]] = {"state": (steps + 1,), "transition": (steps,), "segment": ()}
    arrays = {name: ((*rows[per], *shape), dtype) for name, (shape, dtype, per) in schema(sizes).items()}
    packed = {f"{PREFIX}{name}": ((steps + 1, -(-int(np.prod(spec.shape)) // 8)), np.dtype(np.uint8))
              for name, spec in sizes.observation.items() if spec.kind == "planes"}
    return arrays | packed


def replay_bytes(sizes: Sizes, settings: ReplaySettings) -> int:
    """Memory that a replay of these settings takes when full."""
    segment = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in layout(sizes, settings).values())
    return settings.capacity // settings.trace_length * (segment + 4) + 8 * (sizes.num_bits + 2)


@nb.njit(cache=True)
def _add_counts(active, turned_on, reward, count):  # type: ignore[no-untyped-def]
    """Adds what turned on in segments [N, T, L] to the counts of bits, and rewards [N, T] to the last but one."""
    for i in range(active.shape[0]):
        for t in range(active.shape[1]):
            if reward[i, t] != 0:
                count[-2] += 1
            for l in range(active.shape[2]):
                if turned_on[i, t, l]:
                    count[active[i, t, l]] += 1


@nb.njit(cache=True)
def _rarest(active, turned_on, reward, count, is_wanted):  # type: ignore[no-untyped-def]
    """The rarest wanted thing that turned on in each segment, [N]: a bit, the last but one for reward, the last for nothing."""
    rarest = np.full(active.shape[0], len(count) - 1, np.int32)
    for i in range(active.shape[0]):
        least = np.iinfo(np.int64).max
        for t in range(active.shape[1]):
            if reward[i, t] != 0 and count[-2] < least:
                rarest[i], least = len(count) - 2, count[-2]
            for l in range(active.shape[2]):
                if turned_on[i, t, l]:
                    bit = active[i, t, l]
                    if is_wanted[bit] and count[bit] < least:
                        rarest[i], least = bit, count[bit]
    return rarest


def _pack(planes: Array) -> NDArray[np.uint8]:
    """Binary planes [N, T, C, H, W] → bits [N, T, ⌈CHW/8⌉]."""
    return np.packbits(planes.reshape(*planes.shape[:2], -1), axis=-1)


def _unpack(packed: Array, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The inverse, for any leading axes."""
    count = int(np.prod(shape))
    return np.unpackbits(packed, axis=-1, count=count).reshape(*packed.shape[:-1], *shape)

