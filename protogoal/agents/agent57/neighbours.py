"""The k nearest of many states, for each environment among its own: an exact search that reads one byte a number.

Beside the states x lie their codes c = round(x / u), one byte a number, with a unit u for each environment. No number of a code
is off by more than ½, so by the triangle inequality

    | ‖x − q‖ / u  −  ‖c − q / u‖ |  ≤  ½√d

A state whose code is farther than that of k others by more than √d is not among the k nearest. Those that are left, of 5,000
about thirty, are compared exactly (`neighbours_compiled`). Where that cannot be compiled, `plain_nearest` compares all.
`memory` measures episodic novelty by these distances.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.int8]
Places = NDArray[np.int64]
Search = Callable[[Floats, Codes, Floats, Places, Floats, int], Floats]

BYTES_A_NUMBER = 5
"""Of a state: single precision, and the code."""
LANES = 32
"""States in a block."""
LARGEST_CODE = 127
SMALLEST_UNIT = 2.0**-40
SPARE = 1.25
"""A unit is so much larger than it must be: it need not change with each state that is a little larger than all before."""


class Neighbours:
    """Up to `capacity` states of d numbers in each of n environments, and the search among them."""

    def __init__(self, num_envs: int, capacity: int, size: int):
        self._states = np.zeros((num_envs, capacity, size), np.float32)
        self._codes = np.zeros((num_envs, -(-capacity // LANES), size, LANES), np.int8)
        self._unit = np.full(num_envs, SMALLEST_UNIT, np.float32)
        self.held = np.zeros(num_envs, np.int64)

    def put(self, place: Places, state: Floats) -> None:
        """One state of each environment, [n, d], at its place [n], which is at most the first free one."""
        rows, (block, lane) = np.arange(len(place)), np.divmod(place, LANES)
        self._states[rows, place] = state
        self.held = np.maximum(self.held, place + 1)
        for row in np.flatnonzero(np.abs(state).max(1) > LARGEST_CODE * self._unit):
            self._encode(int(row))
        self._codes[rows, block, :, lane] = np.rint(state / self._unit[:, None])

    def _encode(self, row: int) -> None:
        """A unit in which all states of an environment have a code, and their codes."""
        states = self._states[row, : self.held[row]]
        self._unit[row] = max(SPARE * np.abs(states).max() / LARGEST_CODE, SMALLEST_UNIT)
        block, lane = np.divmod(np.arange(len(states)), LANES)
        self._codes[row, block, :, lane] = np.rint(states / self._unit[row])

    def clear(self, rows: Places) -> None:
        """Forgets the states of these environments."""
        self.held[rows], self._unit[rows] = 0, SMALLEST_UNIT

    def nearest(self, query: Floats, k: int) -> Floats:
        """Squared distances [n, k], ascending, of query [n, d] to the k nearest; ∞ where there are fewer."""
        return search()(self._states, self._codes, self._unit, self.held, query, k)

    def candidates(self, row: int, query: Floats, k: int) -> Places:
        """Places of the states of an environment that can be among the k nearest to query [d]: those compared exactly."""
        from protogoal.agents.agent57.neighbours_compiled import candidates

        states, codes, q = self._states[row], self._codes[row], query / self._unit[row]
        distance, places = np.empty(codes.shape[::2], np.float32), np.empty(len(states), np.int64)
        return places[: candidates(states, codes, q, self.held[row], k, distance, places)]

    def rows(self) -> Floats:
        """A copy of the states, [n, the most that an environment holds, d]; 0 where it holds none."""
        most = self.held.max()
        is_held = np.arange(most) < self.held[:, None]
        return np.where(is_held[..., None], self._states[:, :most], np.float32(0.0))

    def load_rows(self, states: Floats, held: Places) -> None:
        """Take back what `rows` gave."""
        self._states[:, : states.shape[1]], self.held[:] = states, held
        for row in np.flatnonzero(held):
            self._encode(int(row))


@functools.cache
def search() -> Search:
    """The compiled search, or the plain one where this machine's numba cannot compile it."""
    try:
        from protogoal.agents.agent57.neighbours_compiled import nearest

        few = Neighbours(1, 1, 1)
        nearest(few._states, few._codes, few._unit, few.held, np.zeros((1, 1), np.float32), 1)
    except Exception as error:  # whatever another version of numba or LLVM has against it
        warnings.warn(f"the search for near states cannot be compiled ({type(error).__name__}); a slower one is used", stacklevel=2)
        return plain_nearest
    found: Search = nearest
    return found


def plain_nearest(states: Floats, codes: Codes, unit: Floats, held: Places, query: Floats, k: int) -> Floats:
    """All distances, and the k least of them."""
    best = np.full((len(query), k), np.inf, np.float32)
    for row, x, count, q in zip(best, states, held, query, strict=True):
        distance = np.square(x[:count] - q).sum(-1)
        row[: min(k, count)] = np.sort(np.partition(distance, k - 1)[:k] if count > k else distance)
    return best
