"""x Wᵀ + b, the product that networks are made of, by the fastest library at hand.

torch multiplies by MKL, which does not use the wide registers of processors of other makers. oneDNN, which torch brings along for
convolutions, compiles its code for the processor it finds: there the same product takes half the time. Where torch has no oneDNN,
and off the CPU, it is torch's own. `deep.network` and `deep.learn` call it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
FEW_ROWS = 8  # up to here BLAS is as fast


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b [M, O] of x [M, I], W [O, I], b [O], transposed or not; without a graph."""
    if HAS_ONEDNN and x.shape[0] > FEW_ROWS and x.dtype == torch.float32 and x.device.type == "cpu":
        made: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return made
    return F.linear(x, weight, bias)


class _Affine(torch.autograd.Function):
    """dx = dy W,   dW = dyᵀ x,   db = Σ dy"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        is_wanted = ctx.needs_input_grad
        return (product(dy, weight.T) if is_wanted[0] else None, product(dy.T, x.T) if is_wanted[1] else None,
                dy.sum(0) if is_wanted[2] else None)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b [..., O] of x [..., I]."""
    rows = x.reshape(-1, x.shape[-1])
    multiply = _Affine.apply if torch.is_grad_enabled() else product
    made: Tensor = multiply(rows, weight, bias)  # type: ignore[no-untyped-call]
    return made.view(*x.shape[:-1], weight.shape[0])


class Affine(nn.Linear):
    """`nn.Linear` by `affine`."""

    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)
