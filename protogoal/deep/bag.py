"""Sums of a table's rows by lists of their numbers, padded with −1: a linear layer that reads only the ones of a binary vector.

    y_m = Σ_l W[ids_ml],    dW[i] = Σ over all places that hold i of dy_m

Compiled on the CPU, without the sorting and the copies of `nn.EmbeddingBag`; elsewhere it is torch's. Torsos and goals of
`deep.network` call it.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _sum_rows(ids, table, out):  # type: ignore[no-untyped-def]
    """out [M, H] = Σ_l table[ids [M, L]], four rows at a time in their order; the number of a row that is not there, or −1."""
    some = np.empty(ids.shape[1], np.int64)
    for m in range(ids.shape[0]):
        count = 0
        for l in range(ids.shape[1]):
            i = ids[m, l]
            if i >= table.shape[0]:
                return i
            if i >= 0:
                some[count] = i
                count += 1
        made = out[m]
        made[:] = 0.0
        fours = count - count % 4
        for k in range(0, fours, 4):
            first, second, third, fourth = table[some[k]], table[some[k + 1]], table[some[k + 2]], table[some[k + 3]]
            for h in range(made.shape[0]):
                made[h] = (((made[h] + first[h]) + second[h]) + third[h]) + fourth[h]
        for k in range(fours, count):
            row = table[some[k]]
            for h in range(made.shape[0]):
                made[h] += row[h]
    return -1


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _add_rows(ids, rows, table):  # type: ignore[no-untyped-def]
    """table[ids [M, L]] += rows [M, H]"""
    for m in range(ids.shape[0]):
        added = rows[m]
        for l in range(ids.shape[1]):
            i = ids[m, l]
            if i >= 0:
                row = table[i]
                for h in range(row.shape[0]):
                    row[h] += added[h]


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ids: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return _sums(ids, table)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        (ids,) = ctx.saved_tensors
        return None, add_rows(ids, dy.contiguous(), ctx.shape)


def add_rows(ids: Tensor, rows: Tensor, shape: torch.Size) -> Tensor:
    """dW of that shape, from dy [M, H] as `rows`."""
    d_table = rows.new_zeros(shape)
    _add_rows(ids.numpy(), rows.numpy(), d_table.numpy())
    return d_table


def _sums(ids: Tensor, table: Tensor) -> Tensor:
    made = table.new_empty(len(ids), table.shape[1])
    missing = _sum_rows(ids.numpy(), table.detach().numpy(), made.numpy())
    if missing >= 0:
        raise IndexError(f"the table has rows 0 to {len(table) - 1}; {missing} was asked for")
    return made


def sum_of_rows(ids: Tensor, table: Tensor) -> Tensor:
    """Σ_l W[ids_ml] [M, H] of whole numbers [M, L], −1 or a row's, and W [I, H]; −1 adds nothing."""
    if table.device.type != "cpu":
        is_there = ids >= 0
        return F.embedding_bag(ids.long().clamp(min=0), table, mode="sum", per_sample_weights=is_there.to(table.dtype))
    ids = ids.contiguous()
    if torch.is_grad_enabled():
        made: Tensor = _Sum.apply(ids, table)  # type: ignore[no-untyped-call]
        return made
    return _sums(ids, table)
