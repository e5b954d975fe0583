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


class Steps(NamedTuple):
    """What T steps made of N rows: gates [T, N, 4, H], c_t, tanh c_t and h_t [T, N, H], and the state after the last [N, 2, H]."""

    gates: Tensor
    cell: Tensor
    squashed: Tensor
    hidden: Tensor
    core: Tensor


def _steps(x: Tensor, goes_on: Tensor, core: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Steps:
    gates = product(x.flatten(0, 1), w_ih, bias).view(*x.shape[:2], 4, -1)  # of x alone
    made = Steps(gates, *(gates.new_empty(*x.shape[:2], w_hh.shape[1]) for _ in range(3)), core)
    hidden, cell = core.unbind(1)
    is_cut = (goes_on == 0).flatten(1).any(1).tolist()  # the state before is taken as it is where no episode begins
    for t, (of_step, c, squashed, h) in enumerate(zip(*made[:4], strict=True)):
        if is_cut[t]:
            hidden, cell = hidden * goes_on[t], cell * goes_on[t]
        of_step.flatten(1).add_(product(hidden, w_hh))
        of_step[:, :2].sigmoid_()
        i, f, g, o = of_step.unbind(1)
        cell = torch.addcmul(f * cell, i, g.tanh_(), out=c)
        hidden = torch.mul(o.sigmoid_(), torch.tanh(cell, out=squashed), out=h)
    return made._replace(core=torch.stack([hidden, cell], 1))


def _before(after: Tensor, first: Tensor, goes_on: Tensor) -> Tensor:
    """What each step starts from, [T, N, H]."""
    return torch.cat([first.unsqueeze(0), after[:-1]]).mul_(goes_on)


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> tuple[Tensor, Tensor]:
        x, goes_on, core, w_ih, w_hh, _ = given
        made = _steps(*given)
        ctx.save_for_backward(x, goes_on, core, w_ih, w_hh, *made[:4])
        ctx.mark_non_differentiable(made.core)
        ctx.set_materialize_grads(False)
        return made.hidden, made.core

    @staticmethod
    def backward(ctx: Any, d_outputs: Tensor, _: None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, goes_on, core, w_ih, w_hh, gates, cell, squashed, hidden = ctx.saved_tensors
        _, f, _, o = gates.unbind(2)
        by_cell, by_hidden = _slopes(gates, _before(cell, core[:, 1], goes_on), squashed)
        to_cell, further = o * (1.0 - squashed * squashed), f * goes_on
        d_gates = torch.empty_like(gates)
        d_hidden = d_cell = torch.zeros_like(squashed[0])  # from the step after
        for t in range(len(x) - 1, -1, -1):
            d_hidden = d_hidden + d_outputs[t]
            d_cell = torch.addcmul(d_cell, d_hidden, to_cell[t])
            of_step = d_gates[t]
            torch.mul(d_cell.unsqueeze(1), by_cell[t], out=of_step[:, :3])
            torch.mul(d_hidden, by_hidden[t], out=of_step[:, 3])
            d_hidden, d_cell = product(of_step.flatten(1), w_hh.T) * goes_on[t], d_cell * further[t]
        flat = d_gates.flatten(2).flatten(0, 1)  # [T·N, 4H]
        before = _before(hidden, core[:, 0], goes_on).flatten(0, 1)
        return (product(flat, w_ih.T).view_as(x), None, None, product(flat.T, x.flatten(0, 1).T), product(flat.T, before.T),
                flat.sum(0))


def _slopes(gates: Tensor, cell_before: Tensor, squashed: Tensor) -> tuple[Tensor, Tensor]:
    """By how much i, f, g before their σ or tanh move c_t, [T, N, 3, H], and o h_t, [T, N, H]."""
    i, f, g, o = gates.unbind(2)
    by_cell = torch.stack([g * i * (1.0 - i), cell_before * f * (1.0 - f), i * (1.0 - g * g)], 2)
    return by_cell, squashed * o * (1.0 - o)


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
