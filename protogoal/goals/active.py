"""Lists of ids: which bits are on, as their ids instead of B zeros and ones.

A list is a row of an array int [n, L], padded with −1; L is no less than the most that are on in any row. So a transition costs
what is on in it, whatever is declared. Proto-goal spaces give lists in ascending order, each id once, the padding last; those of
environments and replay may be in any order. `spaces.ProtoGoalSpace.active` makes them, nearly everything else reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

PAD = -1
"""Fills the unused places of a list."""

Bits = NDArray[np.bool_]
Ids = NDArray[np.int32]
AnyIds = NDArray[np.integer[Any]]


class WrongIds(ValueError):
    """Raised where a space gives something else than it must; in one line."""


def sparse_bits(bits: Bits) -> Ids:
    """Bits [n, B] as lists [n, L], ascending; L is the most of any row, at least 1."""
    row, bit = np.nonzero(bits)
    many = np.count_nonzero(bits, axis=1)
    return _listed(len(bits), row, bit, many)


def dense_bits(active: AnyIds, num_bits: int) -> Bits:
    """Lists [..., L] as bits [..., B]."""
    rows = active.reshape(-1, active.shape[-1])
    bits = np.zeros((len(rows), num_bits + 1), np.bool_)  # the last column takes the padding
    bits[np.arange(len(rows))[:, None], rows] = True
    dense: Bits = bits[:, :num_bits].reshape(*active.shape[:-1], num_bits)
    return dense


def compact(active: AnyIds) -> Ids:
    """The same lists with the padding last, and no wider than they must be; the order of ids is kept."""
    row, place = np.nonzero(active != PAD)
    return _listed(len(active), row, active[row, place], np.bincount(row, minlength=len(active)))


def ascending(active: AnyIds) -> Ids:
    """The same lists in ascending order, each id once, the padding last."""
    ids = np.sort(np.asarray(active, np.int32), axis=1)
    ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = PAD
    return compact(ids)


def side_by_side(parts: list[tuple[AnyIds, int]]) -> Ids:
    """Lists of several spaces as one: [n, L] each, and what is added to its ids; ascending where they are and follow each other."""
    return compact(np.concatenate([np.where(ids == PAD, PAD, ids + first) for ids, first in parts], axis=1))


def widened(lists: NDArray[Any], width: int) -> NDArray[Any]:
    """Lists [..., L], or what is said of each of their ids (bool), with room for `width`; as they are where they have it."""
    more = width - lists.shape[-1]
    fill = False if lists.dtype == np.bool_ else PAD
    return lists if more <= 0 else np.pad(lists, [(0, 0)] * (lists.ndim - 1) + [(0, more)], constant_values=fill)


def as_wide(parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Lists of several sources, all as wide as the widest of them."""
    width = max(part.shape[-1] for part in parts)
    return [widened(part, width) for part in parts]


def turned_on(active: AnyIds, before: AnyIds) -> Bits:
    """Which of the bits that are on, [n, L], were off in the state before, whose list is [n, L']; bool [n, L]."""
    was_on: Bits = _is_in(before, active)
    on: Bits = ~was_on & (active != PAD)
    return on


def contains(active: AnyIds, wanted: AnyIds) -> Bits:
    """Which of each row's wanted bits are on: lists [n, L] and [n, M] → bool [n, M]."""
    on: Bits = _is_in(active, wanted)  # the padding never is
    return on


def check_ids(ids: Any, num_bits: int) -> Ids:
    """Lists that a space gave, [n, L], no wider than they must be; refused in one line where they are not what they must be."""
    array = np.asarray(ids)
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise WrongIds(f"the proto-goal space gave {array.dtype} ids of shape {array.shape}; it must give whole numbers [N, L], "
                         "padded with -1")
    if array.size and (array.max() >= num_bits or array.min() < PAD):
        wrong = array.max() if array.max() >= num_bits else array.min()
        raise WrongIds(f"the proto-goal space gave the id {wrong}; allowed are 0…{num_bits - 1}, and -1 after the last one")
    array = np.ascontiguousarray(array, np.int32)
    row, place = _first_unsorted(array)
    if row >= 0:
        one, two = array[row, place - 1], array[row, place]
        words = f"the id {one} twice" if one == two else f"the id {two} after {one}"
        raise WrongIds(f"the proto-goal space gave {words}; ids must ascend, each once, with -1 after the last one")
    return array[:, : max(1, int((array != PAD).sum(1).max(initial=0)))]


def _listed(n: int, row: NDArray[np.int64], ids: AnyIds, many: NDArray[np.int64]) -> Ids:
    """Ids by their rows, ascending, as lists."""
    active = np.full((n, max(1, int(many.max(initial=0)))), PAD, np.int32)
    active[row, np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)] = ids
    return active


@nb.njit(cache=True)
def _first_unsorted(ids):  # type: ignore[no-untyped-def]
    """Row and place of the first id that does not ascend, or comes after the padding; (−1, −1) where all is well."""
    for i in range(ids.shape[0]):
        for l in range(1, ids.shape[1]):
            if ids[i, l] != PAD and (ids[i, l] <= ids[i, l - 1] or ids[i, l - 1] == PAD):
                return i, l
    return -1, -1


@nb.njit(cache=True)
def _is_in(lists, wanted):  # type: ignore[no-untyped-def]
    """Whether each of wanted [n, M] is in its row of lists [n, L], bool [n, M]: a merge, after sorting what is not sorted."""
    found = np.zeros(wanted.shape, np.bool_)
    have = np.empty(lists.shape[1], np.int64)
    for i in range(lists.shape[0]):
        size, is_sorted = 0, True
        for bit in lists[i]:
            if bit >= 0:
                have[size] = bit
                is_sorted = is_sorted and (size == 0 or have[size - 1] <= bit)
                size += 1
        if not is_sorted:
            have[:size].sort()
        place, last = 0, -1
        for m in range(wanted.shape[1]):
            bit = wanted[i, m]
            if bit < 0:
                continue
            if bit < last:
                place = np.searchsorted(have[:size], bit)
            while place < size and have[place] < bit:
                place += 1
            found[i, m] = place < size and have[place] == bit
            last = bit
    return found
