"""ψ(s, a) of the bilinear join Q(s, a, g) = ψ(s, a)·φ(g), dueling, for many states at once.

    ψ(s, a) = W_a z(s) + b_a,    W_a = A_a + V − mean_a A_a,    b likewise

Q = V + A − mean A, and each of these is linear in z: dueling is done once on the weights instead of in every state. Only actions
that were taken carry a gradient δ, one in each state, so backwards each state is multiplied by the weights of one action:

    dW_a = Σ_{a_t = a} δ_t z_tᵀ,    dz_t = W_{a_t}ᵀ δ_t,    dV = Σ_a dW_a,    dA_a = dW_a − dV/A

`deep.network` holds the weights, `deep.learn` calls `factors_of_taken`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from protogoal.deep.product import product


def dueling(streams: Tensor, dim: int) -> Tensor:
    """V + A − mean A along an axis of A + 1 streams, V the last → A."""
    num_actions = streams.shape[dim] - 1
    advantage, value = streams.split([num_actions, 1], dim)
    return advantage + torch.sub(value, advantage.sum(dim, keepdim=True), alpha=1.0 / num_actions)


def dueling_weights(weight: Tensor, bias: Tensor, num_actions: int) -> tuple[Tensor, Tensor]:
    """W [A·d, H] and b [A·d] of a layer with streams [(A+1)·d, H] and [(A+1)·d]."""
    w, b = (dueling(part.view(num_actions + 1, -1), 0) for part in (weight, bias))
    return w.view(-1, weight.shape[1]), b.view(-1)


class KeptWeights:
    """`dueling_weights` of a layer that seldom changes: made anew when it has."""

    def __init__(self, layer: nn.Linear, num_actions: int):
        self._layer, self._num_actions, self._version = layer, num_actions, (-1, -1)
        self._kept: tuple[Tensor, Tensor] = (layer.weight, layer.bias)

    def __call__(self) -> tuple[Tensor, Tensor]:
        weight, bias = self._layer.weight, self._layer.bias
        if self._version != (weight._version, bias._version):
            self._version = weight._version, bias._version
            self._kept = dueling_weights(weight, bias, self._num_actions)
        return self._kept


def _undueled(d: Tensor) -> Tensor:
    """Of d [A+1, …] the first A are gradients of what `dueling` gave; all become those of what it was given."""
    torch.sum(d[:-1], 0, out=d[-1])
    d[:-1].sub_(d[-1], alpha=1.0 / (len(d) - 1))
    return d


class _FactorsOfTaken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, action: Tensor, weight: Tensor, bias: Tensor, num_actions: int) -> tuple[Tensor, Tensor]:
        w, b = dueling_weights(weight, bias, num_actions)
        psi = product(z, w, b).view(len(z), num_actions, -1)
        ctx.save_for_backward(z, action, w)
        ctx.mark_non_differentiable(psi)
        ctx.set_materialize_grads(False)
        return psi[torch.arange(len(action), device=z.device), action], psi

    @staticmethod
    def backward(ctx: Any, delta: Tensor, _: None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        z, action, w = ctx.saved_tensors
        rank, width = delta.shape[1], z.shape[1]
        num_actions = len(w) // rank
        is_taken = action == torch.arange(num_actions, device=z.device).unsqueeze(1)  # [A, R]
        dw, db = w.new_empty(num_actions + 1, rank, width), w.new_empty(num_actions + 1, rank)
        torch.mm(is_taken.to(delta.dtype), delta, out=db[:-1])
        order, times = action.argsort(stable=True), is_taken.sum(1).tolist()
        dz, dz_sorted = torch.zeros_like(z), z.new_empty(len(order), width)
        rows = (part.split(times) for part in (delta[order], z[order], dz_sorted))  # of each action
        for delta_a, z_a, dz_a, w_a, dw_a in zip(*rows, w.view(num_actions, rank, width), dw, strict=False):
            torch.mm(delta_a.T, z_a, out=dw_a)
            torch.mm(delta_a, w_a, out=dz_a)
        dz[order] = dz_sorted
        return dz, None, _undueled(dw.view(num_actions + 1, -1)).view(-1, width), _undueled(db).view(-1), None


def factors_of_taken(z: Tensor, action: Tensor, weight: Tensor, bias: Tensor, num_actions: int) -> tuple[Tensor, Tensor]:
    """ψ(s_t, a_t) [R, d] with gradient of actions [R] taken in the first R of states z [S, H]; ψ(s, a) [S, A, d] without."""
    made: tuple[Tensor, Tensor] = _FactorsOfTaken.apply(z, action, weight, bias, num_actions)  # type: ignore[no-untyped-call]
    return made
