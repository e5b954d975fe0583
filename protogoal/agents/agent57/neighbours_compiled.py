"""The search of `neighbours` as machine code: codes lie in blocks of 32 states, number by number, and a block is compared with a
query in d vector operations, with no sum across a vector and no branch.

What numba has no words for is written as LLVM's: vectors of 32 numbers, and asking memory for what will be read next. It takes
an eighteenth of the plain search's time (`protogoal bench agent57`), and half of what the same loops take in numba alone.
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
Codes = NDArray[np.int8]
Places = NDArray[np.int64]

LANES = 32
"""States in a block."""
ROUNDING = 1.001
"""What the rounding of sums may make of a bound, and far more."""
AHEAD = 128
"""Lines of codes, of 32 bytes, from the one that is compared to the one that memory is asked for."""


@nb.njit(cache=True, nogil=True)
def nearest(states: Floats, codes: Codes, unit: Floats, held: Places, query: Floats, k: int) -> Floats:
    best = np.full((len(query), k), np.float32(np.inf), np.float32)  # ascending
    distance = np.empty((codes.shape[1], LANES), np.float32)
    places = np.empty(states.shape[1], np.int64)
    for i in range(len(query)):
        x, q, row = states[i], query[i], best[i]
        for place in places[: candidates(x, codes[i], q / unit[i], held[i], k, distance, places)]:
            total = _squared_distance(x[place], q)
            if total < row[k - 1]:
                _insert(row, total)
    return best


@nb.njit(cache=True, nogil=True)
def candidates(x: Floats, codes: Codes, q: Floats, held: int, k: int, distance: Floats, places: Places) -> int:
    """Writes to `places` where every state is that can be among the k nearest of the first `held`; returns how many. q is in units.

    The codes fall into at least 2k groups. The k-th least of the groups' minima is no less than the k-th least distance of a
    code, as each group has other states.
    """
    full, rest = divmod(held, LANES)
    least = np.full((-(-2 * k // LANES), LANES), np.float32(np.inf), np.float32)
    for block in range(full):
        _compare(codes, block, q, distance, least[block % len(least)])  # type: ignore[call-arg]
    k_th = np.sort(least.ravel())[k - 1]
    reach = np.float32(ROUNDING * (np.sqrt(k_th) + np.sqrt(np.float32(len(q)))) ** 2)
    if rest > 0:
        _compare(codes, full, q, distance, least[0])  # type: ignore[call-arg]
    count = 0
    for block in range(full + (rest > 0)):
        bits: np.uint32 = _within(distance, block, reach)  # type: ignore[call-arg]
        while bits != 0:
            place = block * LANES + _lowest(bits)  # type: ignore[call-arg]
            bits &= bits - np.uint32(1)
            if place < held:
                _soon(x[place])  # type: ignore[call-arg]
                places[count] = place
                count += 1
    return count


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _squared_distance(x: Floats, q: Floats) -> np.float32:
    total = np.float32(0.0)
    for d in range(len(q)):
        total += (x[d] - q[d]) * (x[d] - q[d])
    return total


@nb.njit(cache=True, nogil=True)
def _insert(row: Floats, total: np.float32) -> None:
    """Puts a distance in its place; the largest drops out."""
    place = len(row) - 1
    while place > 0 and row[place - 1] > total:
        row[place] = row[place - 1]
        place -= 1
    row[place] = total


# --- What numba cannot say: vectors of 32 numbers, and reading ahead --------------------------------------------------

BYTES, SINGLES = ir.VectorType(ir.IntType(8), LANES), ir.VectorType(ir.FloatType(), LANES)
INT32, INT64 = ir.IntType(32), ir.IntType(64)


def _data(context: Any, builder: Any, kind: Any, array: Any, element: Any) -> Any:
    return builder.bitcast(context.make_array(kind)(context, builder, array).data, element.as_pointer())


def _all_lanes(builder: Any, number: Any) -> Any:
    one = builder.insert_element(SINGLES(ir.Undefined), number, INT32(0))
    return builder.shuffle_vector(one, SINGLES(ir.Undefined), ir.VectorType(INT32, LANES)([0] * LANES))


def _ask_for(builder: Any, address: Any) -> None:
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, INT32, INT32, INT32])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
    builder.call(prefetch, [builder.bitcast(address, pointer), INT32(0), INT32(3), INT32(1)])  # to read; near; data


@intrinsic  # type: ignore[untyped-decorator]
def _compare(typing_context: Any, codes: Any, block: Any, query: Any, distance: Any, least: Any) -> Any:
    """Squared distances of the codes of one block to a query, into its row of `distance` and, lane by lane, into `least`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        codes, block, query, distance, least = arguments
        query_array = context.make_array(signature.args[2])(context, builder, query)
        size = cgutils.unpack_tuple(builder, query_array.shape)[0]
        lines = builder.gep(_data(context, builder, signature.args[0], codes, BYTES), [builder.mul(block, size)])
        total = cgutils.alloca_once(builder, SINGLES)
        builder.store(SINGLES([0.0] * LANES), total)
        with cgutils.for_range(builder, size) as loop:
            line = builder.gep(lines, [loop.index])
            _ask_for(builder, builder.gep(line, [INT64(AHEAD)]))
            q = _all_lanes(builder, builder.load(builder.gep(query_array.data, [loop.index])))
            difference = builder.fsub(builder.sitofp(builder.load(line, align=1), SINGLES), q)
            square = builder.fmul(difference, difference, flags=("contract",))
            builder.store(builder.fadd(builder.load(total), square, flags=("contract",)), total)
        found = builder.load(total)
        builder.store(found, builder.gep(_data(context, builder, signature.args[3], distance, SINGLES), [block]), align=4)
        kept = _data(context, builder, signature.args[4], least, SINGLES)
        before = builder.load(kept, align=4)
        builder.store(builder.select(builder.fcmp_ordered("<", found, before), found, before), kept, align=4)
        return context.get_dummy_value()

    return types.void(codes, types.intp, query, distance, least), generate


@intrinsic  # type: ignore[untyped-decorator]
def _within(typing_context: Any, distance: Any, block: Any, reach: Any) -> Any:
    """A bit for each distance of a block: whether it is at most `reach`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        distance, block, reach = arguments
        row = builder.gep(_data(context, builder, signature.args[0], distance, SINGLES), [block])
        near = builder.fcmp_ordered("<=", builder.load(row, align=4), _all_lanes(builder, reach))
        return builder.bitcast(near, ir.IntType(LANES))

    return types.uint32(distance, types.intp, types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def _lowest(typing_context: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.cttz(arguments[0], ir.IntType(1)(1)), INT64)

    return types.intp(types.uint32), generate


@intrinsic  # type: ignore[untyped-decorator]
def _soon(typing_context: Any, row: Any) -> Any:
    """Asks for the beginning of a row, of two lines of 64 bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _data(context, builder, signature.args[0], arguments[0], ir.FloatType())
        for first in (0, 16):
            _ask_for(builder, builder.gep(data, [INT64(first)]))
        return context.get_dummy_value()

    return types.void(row), generate
