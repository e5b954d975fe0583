"""What every layer does, y = max(0, LayerNorm(a)) with a = x Wᵀ + b or a sum of rows of W, as one operation.

    x̂ = (a − μ)/σ,    y = max(0, γ x̂ + β),    μ, σ² over a row of a, σ = √(var + ε)
    e = dy [y > 0],    da = (γe − mean γe − x̂ mean γe x̂)/σ,    dγ = Σ e x̂,    dβ = Σ e,    db = Σ da,    dx, dW of `product`, `bag`

Layers here are small: torch's calls for the parts, and its graph between them, cost as much as the arithmetic. Compiled on the
CPU, elsewhere it is torch's. `deep.network` calls it.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from protogoal.deep.bag import add_rows, sum_of_rows
from protogoal.deep.product import affine, product

SUMS = {"reassoc", "contract", "nsz"}  # sums run over vectors; what is not a number stays so, and ends a run


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def _forward(a, gamma, beta, epsilon, y, of_rows):  # type: ignore[no-untyped-def]
    """y [M, H] of a [M, H], and of each row μ and 1/σ [2, M]."""
    zero, one, width = a.dtype.type(0), a.dtype.type(1), a.dtype.type(a.shape[1])
    for m in range(a.shape[0]):
        row, made = a[m], y[m]
        total = zero
        for h in range(row.shape[0]):
            total += row[h]
        mu = total / width
        total = zero
        for h in range(row.shape[0]):
            total += (row[h] - mu) * (row[h] - mu)
        r = one / (total / width + a.dtype.type(epsilon)) ** a.dtype.type(0.5)
        of_rows[0, m], of_rows[1, m] = mu, r
        for h in range(row.shape[0]):
            value = (row[h] - mu) * r * gamma[h] + beta[h]
            made[h] = zero if value < 0 else value


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def _backward(dy, a, y, gamma, of_rows, da, d_gamma, d_beta, d_bias):  # type: ignore[no-untyped-def]
    """da [M, H], and to dγ, dβ, db [H] what they add up to."""
    zero, width = a.dtype.type(0), a.dtype.type(a.shape[1])
    for m in range(a.shape[0]):
        row, seen, above, made, mu, r = a[m], dy[m], y[m], da[m], of_rows[0, m], of_rows[1, m]
        total, along = zero, zero
        for h in range(row.shape[0]):
            e = seen[h] if above[h] > 0 else zero
            x_hat = (row[h] - mu) * r
            d_beta[h] += e
            d_gamma[h] += e * x_hat
            made[h] = e * gamma[h]
            total += made[h]
            along += made[h] * x_hat
        total /= width
        along /= width
        for h in range(row.shape[0]):
            made[h] = r * (made[h] - total - (row[h] - mu) * r * along)
            d_bias[h] += made[h]


def _rectified(a: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """y [M, H], and of each row μ and 1/σ [2, M]."""
    y, of_rows = torch.empty_like(a), a.new_empty(2, len(a))
    _forward(a.numpy(), gamma.detach().numpy(), beta.detach().numpy(), epsilon, y.numpy(), of_rows.numpy())
    return y, of_rows


def _unrectified(dy: Tensor, a: Tensor, y: Tensor, gamma: Tensor, of_rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """da [M, H], and dγ, dβ, db [H]."""
    da, d_gamma, d_beta, d_bias = torch.empty_like(a), torch.zeros_like(gamma), torch.zeros_like(gamma), torch.zeros_like(gamma)
    _backward(dy.contiguous().numpy(), a.numpy(), y.numpy(), gamma.numpy(), of_rows.numpy(), da.numpy(), d_gamma.numpy(),
              d_beta.numpy(), d_bias.numpy())
    return da, d_gamma, d_beta, d_bias


class _Dense(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
        a = product(x, weight, bias)
        y, of_rows = _rectified(a, gamma, beta, epsilon)
        ctx.save_for_backward(x, weight, a, y, gamma, of_rows)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight, *saved = ctx.saved_tensors
        da, d_gamma, d_beta, d_bias = _unrectified(dy, *saved)
        return product(da, weight.T) if ctx.needs_input_grad[0] else None, product(da.T, x.T), d_bias, d_gamma, d_beta, None


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ids: Tensor, table: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
        a = sum_of_rows(ids, table).add_(bias)
        y, of_rows = _rectified(a, gamma, beta, epsilon)
        ctx.save_for_backward(ids, a, y, gamma, of_rows)
        ctx.shape = table.shape
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        ids, *saved = ctx.saved_tensors
        da, d_gamma, d_beta, d_bias = _unrectified(dy, *saved)
        return None, add_rows(ids, da, ctx.shape), d_bias, d_gamma, d_beta, None


def dense(x: Tensor, linear: nn.Linear, norm: nn.LayerNorm) -> Tensor:
    """max(0, LayerNorm(x Wᵀ + b)) [M, H] of rows x [M, I]."""
    if x.device.type != "cpu":
        return F.relu(norm(affine(x, linear.weight, linear.bias)))
    if torch.is_grad_enabled():
        made: Tensor = _Dense.apply(x, linear.weight, linear.bias, norm.weight, norm.bias, norm.eps)  # type: ignore[no-untyped-call]
        return made
    return _rectified(product(x, linear.weight, linear.bias), norm.weight, norm.bias, norm.eps)[0]


def dense_of_ids(ids: Tensor, table: Tensor, bias: Tensor, norm: nn.LayerNorm) -> Tensor:
    """max(0, LayerNorm(Σ_l W[ids_l] + b)) [M, H] of rows of ids [M, L], −1 or a row of W [I, H]."""
    if table.device.type != "cpu":
        return F.relu(norm(sum_of_rows(ids, table) + bias))
    if torch.is_grad_enabled():
        made: Tensor = _Bag.apply(ids, table, bias, norm.weight, norm.bias, norm.eps)  # type: ignore[no-untyped-call]
        return made
    return _rectified(sum_of_rows(ids, table).add_(bias), norm.weight, norm.bias, norm.eps)[0]
