"""The goal table: goals as sets of bits, and what is known of each from experience (paper §3, §4.2, §5.3).

A goal is a set of bits that must all be on. Ids 0…B−1 are the 1-hot goals, id = bit; AND-goals follow in the order in
which recombination made them. An id is never used twice, so it may be stored in replay and in logs. TASK = −1 stands
for the task reward, the paper's **0** vector, which is no row of the table.

Attainment of every goal by every transition of a batch is one pass over words of 64 transitions, see `attained_packed`.
`ProtoGoalEvaluator` owns the one table of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

TASK = -1
RECENT = 10  # S(g) looks at the last 10 on-policy pursuits (Algorithm 5)

Packed = NDArray[np.uint64]


class GoalTable:
    """Goals 0…size−1 with count N(g), reward sum and the outcomes of their last pursuits; memory is fixed at `capacity`."""

    def __init__(self, num_bits: int, capacity: int = 20_000, max_members: int = 8):
        if num_bits < 1:
            raise ValueError(f"num_bits must be at least 1, got {num_bits}")
        if capacity < num_bits:
            raise ValueError(f"capacity must hold the {num_bits} single bits, got {capacity}")
        if max_members < 1:
            raise ValueError(f"max_members must be at least 1, got {max_members}")
        self.num_bits, self.capacity, self.max_members = num_bits, capacity, max_members
        self.size = num_bits
        self.transitions = 0  # seen in the table's life
        self._members = np.full((capacity, max_members), -1, np.int32)
        self._members[:num_bits, 0] = np.arange(num_bits)
        self._parents = np.full((capacity, 2), -1, np.int64)
        self._count = np.zeros(capacity, np.int64)
        self._reward_sum = np.zeros(capacity)
        self._pursuits = np.zeros(capacity, np.int64)
        self._outcomes = np.zeros((capacity, RECENT), np.bool_)  # ring: pursuit p of g lies at p mod RECENT
        self._id_of: dict[tuple[int, ...], int] = {}  # AND-goals only

    # --- identity -------------------------------------------------------------------------------------------------

    @property
    def member_array(self) -> NDArray[np.int32]:
        """Bits of every goal, int32 [G, max_members], padded with −1."""
        return self._members[: self.size]

    def members(self, goal: int) -> tuple[int, ...]:
        """The bits of one goal, ascending."""
        self._check_id(goal)
        row = self._members[goal]
        return tuple(int(i) for i in row[row >= 0])

    def parents(self, goal: int) -> tuple[int, int] | None:
        """The two goals an AND-goal was made of; None for a single bit."""
        self._check_id(goal)
        first, second = self._parents[goal]
        return None if first < 0 else (int(first), int(second))

    def find(self, bits: Sequence[int]) -> int | None:
        """The id of the goal with exactly these bits, or None."""
        key = tuple(sorted({int(i) for i in bits}))
        return key[0] if len(key) == 1 else self._id_of.get(key)

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    def add(self, first: int, second: int) -> int | None:
        """first AND second, the union of their bits, as a goal: its id.

        None where it would not be a new conjunction (it equals one of its parents), has too many bits, or the table is
        full. A conjunction that is known already keeps its id.
        """
        union = tuple(sorted(set(self.members(first)) | set(self.members(second))))
        known = self.find(union)
        if known is not None:
            return None if known in (first, second) else known
        if len(union) > self.max_members or self.is_full:
            return None
        goal = self.size
        self._members[goal, : len(union)] = union
        self._parents[goal] = first, second
        self._id_of[union] = goal
        self.size += 1
        return goal

    def _check_id(self, goal: int) -> None:
        if not 0 <= goal < self.size:
            raise ValueError(f"unknown goal id {goal}; allowed are 0…{self.size - 1}")

    # --- attainment -----------------------------------------------------------------------------------------------

    def check_bits(self, bits: ArrayLike) -> NDArray[np.bool_]:
        """A batch of bit vectors as bool [n, B], or a ValueError that says what is wrong."""
        array = np.asarray(bits)
        if array.ndim != 2 or array.shape[1] != self.num_bits:
            raise ValueError(f"bits must have shape [n, {self.num_bits}], got {array.shape}")
        if array.dtype != np.bool_:
            if not ((array == 0) | (array == 1)).all():
                raise ValueError("bits must be 0 or 1")
            array = array.astype(np.bool_)
        return array

    def attained_packed(self, bits: ArrayLike) -> Packed:
        """Which transitions attain which goal, bits [n, B] → uint64 [G, ⌈n/64⌉]; bit t mod 64 of word t div 64 is transition t."""
        columns = pack_columns(self.check_bits(bits))
        packed = np.empty((self.size, columns.shape[1]), np.uint64)
        packed[: self.num_bits] = columns
        _and_members(columns, self._members[self.num_bits : self.size], packed[self.num_bits :])
        return packed

    def attained(self, bits: ArrayLike, goals: ArrayLike | None = None) -> NDArray[np.bool_]:
        """The same as a matrix, bool [n, G]; of the given goals only, if any are given."""
        array = self.check_bits(bits)
        members = self.member_array if goals is None else self._members[np.asarray(goals, np.int64)]
        return attained_by(array, members)

    # --- experience -----------------------------------------------------------------------------------------------

    @property
    def count(self) -> NDArray[np.int64]:
        """N(g): transitions that attained g since it entered the table, [G]."""
        return self._count[: self.size]

    @property
    def reward_mean(self) -> NDArray[np.float64]:
        """R(g): mean task reward on the transitions that attained g; 0 where there were none, [G]."""
        mean: NDArray[np.float64] = self._reward_sum[: self.size] / np.maximum(self.count, 1)
        return mean

    @property
    def pursuits(self) -> NDArray[np.int64]:
        """How often each goal was pursued, [G]."""
        return self._pursuits[: self.size]

    @property
    def success_rate(self) -> NDArray[np.float64]:
        """S(g): share of the last 10 pursuits that attained g; 0 where there were none, [G]."""
        rate: NDArray[np.float64] = self._outcomes[: self.size].sum(1) / np.clip(self.pursuits, 1, RECENT)
        return rate

    @property
    def learning_progress(self) -> NDArray[np.float64]:
        """|S over the last 5 pursuits − S over the 5 before|, [G]; 1 where there were fewer than 10: it must be tried first."""
        half = RECENT // 2
        ages = np.arange(1, RECENT + 1)  # 1 is the last pursuit
        places = (self.pursuits[:, None] - ages) % RECENT
        outcomes = np.take_along_axis(self._outcomes[: self.size], places, 1)
        progress = np.abs(outcomes[:, :half].mean(1) - outcomes[:, half:].mean(1))
        known: NDArray[np.float64] = np.where(self.pursuits >= RECENT, progress, 1.0)
        return known

    def observe(self, bits: ArrayLike, reward: ArrayLike) -> None:
        """Count a batch of transitions: N(g) and the sum of rewards, for every goal; bits [n, B], reward [n]."""
        array = self.check_bits(bits)
        rewards = np.asarray(reward, np.float64)
        if rewards.shape != (len(array),):
            raise ValueError(f"reward must have shape [{len(array)}], one for each transition, got {rewards.shape}")
        if not np.isfinite(rewards).all():
            raise ValueError("rewards must be finite numbers, got NaN or infinity")
        self.transitions += len(array)
        if self.size == self.num_bits:  # no conjunctions: counting columns is enough
            self._count[: self.size] += np.count_nonzero(array, axis=0)
        else:
            _count_goals(pack_columns(array), self._members[: self.size], self._count)
        rewarded = np.flatnonzero(rewards)
        for start in range(0, len(rewarded), 64):  # a few at a time: [64, G] bounds the memory where rewards are dense
            some = rewarded[start : start + 64]
            self._reward_sum[: self.size] += rewards[some] @ self.attained(array[some])

    def record_pursuits(self, goals: ArrayLike, success: ArrayLike) -> None:
        """Outcomes of finished pursuits, in order; ids [n] and bool [n]. TASK entries are passed over."""
        for goal, won in zip(np.atleast_1d(goals).tolist(), np.atleast_1d(success).tolist(), strict=True):
            if goal == TASK:
                continue
            self._check_id(goal)
            self._outcomes[goal, self._pursuits[goal] % RECENT] = won
            self._pursuits[goal] += 1

    # --- state ----------------------------------------------------------------------------------------------------

    _ARRAYS = ("members", "parents", "count", "reward_sum", "pursuits", "outcomes")

    def state_dict(self) -> dict[str, Any]:
        """All of it as plain arrays."""
        state: dict[str, Any] = {name: getattr(self, f"_{name}")[: self.size].copy() for name in self._ARRAYS}
        return state | {"transitions": self.transitions}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        size = len(state["count"])
        if not self.num_bits <= size <= self.capacity or state["members"].shape[1] != self.max_members:
            raise ValueError(f"stored goal table has {size} goals of ≤ {state['members'].shape[1]} bits; this one holds "
                             f"{self.num_bits}…{self.capacity} goals of ≤ {self.max_members} bits")
        if (state["members"][: self.num_bits, 0] != np.arange(self.num_bits)).any():
            raise ValueError(f"stored goal table belongs to a space of another size than {self.num_bits} bits")
        self.size, self.transitions = size, int(state["transitions"])
        for name in self._ARRAYS:
            getattr(self, f"_{name}")[:size] = state[name]
        self._id_of = {self.members(goal): goal for goal in range(self.num_bits, size)}


def attained_by(bits: NDArray[np.bool_], members: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Which transitions attain goals given by their bits: bits [n, B], members [G, L] padded with −1 → bool [n, G]."""
    result = bits[:, members[:, 0]]  # every goal has at least one bit
    for column in members.T[1:]:
        if (column >= 0).any():
            result &= bits[:, column] | (column < 0)
    return result


def pack_columns(bits: NDArray[np.bool_]) -> Packed:
    """Columns of bool [n, B] as words of 64 transitions, uint64 [B, ⌈n/64⌉]."""
    words = max(1, -(-len(bits) // 64))
    packed = np.zeros((bits.shape[1], words * 8), np.uint8)
    octets = np.packbits(bits, axis=0, bitorder="little").T  # [B, ⌈n/8⌉]
    packed[:, : octets.shape[1]] = octets
    return packed.view("<u8").astype(np.uint64, copy=False)


def unpack_columns(packed: Packed, n: int) -> NDArray[np.bool_]:
    """The inverse: uint64 [G, W] → bool [n, G]."""
    octets = np.ascontiguousarray(packed.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=n, bitorder="little").T.astype(np.bool_)


@nb.njit(cache=True)
def _and_members(columns: Packed, members: NDArray[np.int32], out: Packed) -> None:
    for g in range(members.shape[0]):
        for w in range(columns.shape[1]):
            out[g, w] = columns[members[g, 0], w]
        for k in range(1, members.shape[1]):
            if members[g, k] < 0:
                break
            for w in range(columns.shape[1]):
                out[g, w] &= columns[members[g, k], w]


@nb.njit(cache=True)
def popcount(word: np.uint64) -> np.int64:
    """Number of bits that are on in a 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@nb.njit(cache=True)
def _count_goals(columns: Packed, members: NDArray[np.int32], count: NDArray[np.int64]) -> None:
    for g in range(members.shape[0]):
        for w in range(columns.shape[1]):
            word = columns[members[g, 0], w]
            if word == np.uint64(0):
                continue
            for k in range(1, members.shape[1]):
                if members[g, k] < 0:
                    break
                word &= columns[members[g, k], w]
            count[g] += popcount(word)
