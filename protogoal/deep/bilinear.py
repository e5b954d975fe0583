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
from torch import Tensor

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
        dz = torch.zeros_like(z)
        for a, w_a in enumerate(w.view(num_actions, rank, width)):
            rows = is_taken[a].nonzero().squeeze(1)
            delta_a = delta[rows]
            torch.mm(delta_a.T, z[rows], out=dw[a])
            dz[rows] = delta_a @ w_a
        return dz, None, _undueled(dw.view(num_actions + 1, -1)).view(-1, width), _undueled(db).view(-1), None


def factors_of_taken(z: Tensor, action: Tensor, weight: Tensor, bias: Tensor, num_actions: int) -> tuple[Tensor, Tensor]:
    """ψ(s_t, a_t) [R, d] with gradient of actions [R] taken in the first R of states z [S, H]; ψ(s, a) [S, A, d] without."""
    made: tuple[Tensor, Tensor] = _FactorsOfTaken.apply(z, action, weight, bias, num_actions)  # type: ignore[no-untyped-call]
    return made
