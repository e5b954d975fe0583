"""The k nearest of many states, for each environment among its own: an exact search in half precision.

States lie in blocks of 32, number by number: the d-th numbers of all 32 fill one cache line, and a block is compared with a
query in d vector operations, with no sum across a vector. No sorting: the k best are kept, and almost every block is farther.
`memory` measures episodic novelty by these distances.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]

LANES = 32
"""States in a block: as many half-precision numbers as a cache line of 64 bytes holds."""


class StateBlocks:
    """Room for `capacity` states of d numbers in each of n environments."""

    def __init__(self, num_envs: int, capacity: int, size: int):
        self._blocks = np.zeros((num_envs, -(-capacity // LANES), size, LANES), np.float16)

    def put(self, place: NDArray[np.int64], state: Halves) -> None:
        """One state of each environment, [n, d], at its place [n]."""
        block, lane = np.divmod(place, LANES)
        self._blocks[np.arange(len(place)), block, :, lane] = state

    def nearest(self, held: NDArray[np.int64], query: Halves, k: int) -> Floats:
        """Squared distances [n, k], ascending, of query [n, d] to the k nearest of the first held[i] states; else ∞."""
        found: Floats = _nearest(self._blocks.view(np.uint16), held, query.astype(np.float32), k)
        return found

    def rows(self, most: int) -> Halves:
        """A copy of the first states of each environment, [n, most, d]."""
        block, lane = np.divmod(np.arange(most), LANES)
        return np.ascontiguousarray(self._blocks[:, block, :, lane].swapaxes(0, 1))

    def load_rows(self, states: Halves) -> None:
        """Take back what `rows` gave."""
        block, lane = np.divmod(np.arange(states.shape[1]), LANES)
        self._blocks[:, block, :, lane] = states.swapaxes(0, 1)


@intrinsic  # type: ignore[untyped-decorator]
def _compare(typing_context: Any, blocks: Any, block: Any, query: Any, worst: Any, distance: Any) -> Any:
    """Squared distances of the states of one block to a query, into `distance`; the bits say which are below `worst`."""
    single, word = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(i: int, kind: Any) -> Any:
            array = context.make_array(signature.args[i])(context, builder, arguments[i])
            return builder.bitcast(array.data, kind.as_pointer())

        def all_lanes(number: Any) -> Any:
            one = builder.insert_element(single(ir.Undefined), number, ir.IntType(32)(0))
            return builder.shuffle_vector(one, single(ir.Undefined), word([0] * LANES))

        def number(bits: Any) -> Any:  # half precision, which numba does not have, but most processors do
            if "+f16c" in context.codegen().magic_tuple()[2].split(","):
                return builder.fpext(builder.bitcast(bits, ir.VectorType(ir.HalfType(), LANES)), single)
            # else by hand: exponent and fraction move to their places, 2^112 makes up for the other bias, the sign goes on top
            half = builder.zext(bits, word)
            size = builder.bitcast(builder.shl(builder.and_(half, word([0x7FFF] * LANES)), word([13] * LANES)), single)
            scaled = builder.bitcast(builder.fmul(size, single([2.0**112] * LANES)), word)
            sign = builder.shl(builder.and_(half, word([0x8000] * LANES)), word([16] * LANES))
            return builder.bitcast(builder.or_(scaled, sign), single)

        half_word = ir.VectorType(ir.IntType(16), LANES)
        size = cgutils.unpack_tuple(builder, context.make_array(signature.args[2])(context, builder, arguments[2]).shape)[0]
        lines, q = data(0, half_word), data(2, ir.FloatType())
        first = builder.mul(arguments[1], size)
        total = cgutils.alloca_once_value(builder, single([0.0] * LANES))
        with cgutils.for_range(builder, size) as loop:
            line = builder.load(builder.gep(lines, [builder.add(first, loop.index)]), align=2)
            difference = builder.fsub(number(line), all_lanes(builder.load(builder.gep(q, [loop.index]))))
            square = builder.fmul(difference, difference, flags=("contract",))
            builder.store(builder.fadd(builder.load(total), square, flags=("contract",)), total)
        found = builder.load(total)
        builder.store(found, data(4, single), align=4)
        return builder.bitcast(builder.fcmp_ordered("<", found, all_lanes(arguments[3])), ir.IntType(LANES))

    return types.uint32(blocks, types.intp, query, types.float32, distance), generate


@nb.njit(cache=True, nogil=True)
def _nearest(blocks: NDArray[np.uint16], held: NDArray[np.int64], query: Floats, k: int) -> Floats:
    """For each environment a row of the k best so far, ascending."""
    best = np.full((len(query), k), np.float32(np.inf), np.float32)
    distance = np.empty(LANES, np.float32)
    for i in range(len(query)):
        states, q, row = blocks[i], query[i], best[i]
        for b in range(-(-held[i] // LANES)):
            if _compare(states, b, q, row[k - 1], distance) == 0:  # type: ignore[call-arg]
                continue
            for total in distance[: min(LANES, held[i] - b * LANES)]:
                if total < row[k - 1]:
                    place = k - 1
                    while place > 0 and row[place - 1] > total:
                        row[place] = row[place - 1]
                        place -= 1
                    row[place] = total
    return best
