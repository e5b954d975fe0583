"""Slots: rows of a network for the bits that are learned, few, beside the bits that are declared, any number.

A bit takes a slot when a goal with it is learned or offered, and keeps it as long as one is; slots of others are given away,
those longest out of use first. Each time a slot changes its bit its `generation` rises, by which a learner knows that the row must
begin anew. Where there are slots for all bits, each bit has the slot of its own number, for ever.

The evaluator assigns them at each refresh; goal sets and known goals carry them, so that networks never see a bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.stored import stored_like, stored_number

NEVER = -1


class Slots:
    """Which bit has which slot."""

    def __init__(self, num_bits: int, capacity: int):
        self.num_bits, self.capacity = num_bits, min(num_bits, capacity)
        self.is_identity = num_bits <= capacity
        self.generation = np.zeros(self.capacity, np.int32)
        self._bit_of = np.full(self.capacity, NEVER, np.int32)
        self._used = np.full(self.capacity, NEVER, np.int64)  # the refresh that last wanted it
        self._now = 0
        self._slot_of = np.full(0 if self.is_identity else num_bits, NEVER, np.int32)

    def assign(self, bits: NDArray[np.integer[Any]]) -> None:
        """Slots for these bits, the first of them first; as many as there are."""
        if self.is_identity:
            return
        self._now += 1
        wanted = np.asarray(bits[: self.capacity], np.int64)
        held = self._slot_of[wanted]
        self._used[held[held >= 0]] = self._now
        new = wanted[held < 0]
        free = np.argsort(self._used, kind="stable")[: len(new)]
        free = free[self._used[free] < self._now]
        new = new[: len(free)]
        before = self._bit_of[free]
        self._slot_of[before[before >= 0]] = NEVER
        self._slot_of[new] = free
        self._bit_of[free], self._used[free] = new, self._now
        self.generation[free] += 1

    def of(self, members: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """The slots of bits, −1 for the padding −1 and for a bit that has none."""
        if self.is_identity:
            return np.asarray(members, np.int32)
        return np.where(members >= 0, self._slot_of[np.maximum(members, 0)], np.int32(NEVER)).astype(np.int32)

    def has(self, members: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Whether all bits of each goal [G, L] have a slot, bool [G]."""
        return np.asarray(((self.of(members) >= 0) | (members < 0)).all(1))

    def state_dict(self) -> dict[str, Any]:
        """All of it, as plain arrays."""
        return {"bit_of": self._bit_of.copy(), "used": self._used.copy(), "generation": self.generation.copy(), "now": self._now}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        bit_of = stored_like(state["bit_of"], "slots", self._bit_of, NEVER, self.num_bits - 1)
        self._bit_of[:] = bit_of
        self._used[:] = stored_like(state["used"], "use of slots", self._used)
        self.generation[:] = stored_like(state["generation"], "generation of slots", self.generation)
        self._now = stored_number(state["now"], "refresh of slots")
        if not self.is_identity:
            self._slot_of[:] = NEVER
            taken = np.flatnonzero(bit_of >= 0)
            self._slot_of[bit_of[taken]] = taken
