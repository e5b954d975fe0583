"""An LSTM over segments in which episodes begin: products over all steps at once wherever no step waits for another.

    i, f, g, o = σ(…), σ(…), tanh(…), σ(…)    … = W_ih x_t + b_ih + W_hh h + b_hh,    h, c = 0 where an episode begins
    c_t = f c + i g,    h_t = o tanh c_t

The gradient is written out: of a step only the way through W_hh depends on the step after it; gradients of weights, and of
x, are one product over all steps. The weights are those of `nn.LSTMCell`. `deep.network` calls it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from protogoal.deep.product import product

sigmoid_backward, tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


class Steps(NamedTuple):
    """What T steps made of N rows, [T, N, H] each, gates [T, N, 4H]; `before`: what a step starts from."""

    gates: Tensor
    hidden_before: Tensor
    cell_before: Tensor
    squashed: Tensor  # tanh c_t
    hidden: Tensor
    core: Tensor  # [N, 2, H] after the last


def _steps(x: Tensor, goes_on: Tensor, core: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Steps:
    gates = product(x.flatten(0, 1), w_ih, bias).view(*x.shape[:2], -1)  # of x alone
    before, state_before, squashed, after = (gates.new_empty(*x.shape[:2], w_hh.shape[1]) for _ in range(4))
    made = Steps(gates, before, state_before, squashed, after, core)
    hidden, cell = core.unbind(1)
    for t in range(len(x)):
        torch.mul(hidden, goes_on[t], out=made.hidden_before[t])
        torch.mul(cell, goes_on[t], out=made.cell_before[t])
        i, f, g, o = gates[t].add_(product(made.hidden_before[t], w_hh)).chunk(4, 1)
        for gate in (i, f, o):
            gate.sigmoid_()
        cell = torch.addcmul(f * made.cell_before[t], i, g.tanh_())
        torch.tanh(cell, out=made.squashed[t])
        hidden = torch.mul(o, made.squashed[t], out=made.hidden[t])
    return made._replace(core=torch.stack([hidden, cell], 1))


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> tuple[Tensor, Tensor]:
        x, goes_on, _, w_ih, w_hh, _ = given
        made = _steps(*given)
        ctx.save_for_backward(x, goes_on, w_ih, w_hh, made.gates, made.hidden_before, made.cell_before, made.squashed)
        ctx.mark_non_differentiable(made.core)
        ctx.set_materialize_grads(False)
        return made.hidden, made.core

    @staticmethod
    def backward(ctx: Any, d_outputs: Tensor, _: None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, goes_on, w_ih, w_hh, gates, hidden_before, cell_before, squashed = ctx.saved_tensors
        d_gates = torch.empty_like(gates)
        d_hidden = d_cell = torch.zeros_like(squashed[0])  # from the step after
        for t in range(len(x) - 1, -1, -1):
            i, f, g, o = gates[t].chunk(4, 1)
            d_hidden = d_hidden + d_outputs[t]
            d_cell = d_cell + tanh_backward(d_hidden * o, squashed[t])
            torch.cat([sigmoid_backward(d_cell * g, i), sigmoid_backward(d_cell * cell_before[t], f), tanh_backward(d_cell * i, g),
                       sigmoid_backward(d_hidden * squashed[t], o)], 1, out=d_gates[t])
            d_hidden, d_cell = product(d_gates[t], w_hh.T) * goes_on[t], d_cell * f * goes_on[t]
        flat = d_gates.flatten(0, 1)  # [T·N, 4H]
        return (product(flat, w_ih.T).view_as(x), None, None, product(flat.T, x.flatten(0, 1).T),
                product(flat.T, hidden_before.flatten(0, 1).T), flat.sum(0))


def unroll(cell: nn.LSTMCell, x: Tensor, goes_on: Tensor, core: Tensor) -> tuple[Tensor, Tensor]:
    """h [T, N, H] for x [T, N, I], and the state [N, 2, H] after them, which carries no gradient.

    goes_on [T, N, 1]: 0 where a state begins an episode. core [N, 2, H]: h and c before the first.
    """
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh)
    if torch.is_grad_enabled():
        made: tuple[Tensor, Tensor] = _Unroll.apply(x, goes_on, core, *weights)  # type: ignore[no-untyped-call]
        return made
    steps = _steps(x, goes_on, core, *weights)
    return steps.hidden, steps.core
