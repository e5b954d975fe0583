"""An LSTM over segments in which episodes begin: products over all steps at once wherever no step waits for another.

    i, f, g, o = σ(…), σ(…), tanh(…), σ(…)    … = W_ih x_t + b_ih + W_hh h + b_hh,    h, c = 0 where an episode begins
    c_t = f c + i g,    h_t = o tanh c_t,    σ(x) = (1 + tanh(x/2))/2

The gradient is written out: of a step only the way through W_hh depends on the step after it; gradients of weights, and of
x, are one product over all steps. Between two products a step is two calls of tanh and three compiled passes; elsewhere than on the
CPU it is torch's cell. The weights are those of `nn.LSTMCell`. `deep.network` calls it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from protogoal.deep.product import product


class Steps(NamedTuple):
    """What T steps made of N rows: gates [T, N, 4H], tanh c_t and h_t [T, N, H], and what steps start from [T+1, N, H]."""

    gates: Tensor
    squashed: Tensor
    hidden: Tensor
    hidden_before: Tensor
    cell_before: Tensor

    @property
    def core(self) -> Tensor:
        """The state after them, [N, 2, H]."""
        return torch.stack([self.hidden_before[-1], self.cell_before[-1]], 1)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _halve(of_x, of_hidden):  # type: ignore[no-untyped-def]
    """Gates [N, 4H] before their tanh: the sum of both parts, halved where σ comes of it."""
    width = of_x.shape[1] // 4
    half = of_x.dtype.type(0.5)
    for n in range(of_x.shape[0]):
        gates, added = of_x[n], of_hidden[n]
        for k in range(2 * width):
            gates[k] = half * (gates[k] + added[k])
        for k in range(2 * width, 3 * width):
            gates[k] += added[k]
        for k in range(3 * width, 4 * width):
            gates[k] = half * (gates[k] + added[k])


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _remember(gates, before, cell):  # type: ignore[no-untyped-def]
    """Gates [N, 4H] after their tanh become i, f, g, o; c_t [N, H] of c."""
    width = before.shape[1]
    half = gates.dtype.type(0.5)
    for n in range(gates.shape[0]):
        i, f, g, o = gates[n, :width], gates[n, width : 2 * width], gates[n, 2 * width : 3 * width], gates[n, 3 * width :]
        old, new = before[n], cell[n]
        for k in range(width):
            i[k] = half + half * i[k]
            f[k] = half + half * f[k]
            o[k] = half + half * o[k]
            new[k] = f[k] * old[k] + i[k] * g[k]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _say(gates, cell, squashed, goes_on, hidden, next_hidden, next_cell):  # type: ignore[no-untyped-def]
    """h_t [N, H], and what the next step starts from, for which goes_on [N] is given."""
    width = cell.shape[1]
    for n in range(cell.shape[0]):
        o, keep = gates[n, 3 * width :], goes_on[n]
        for k in range(width):
            said = o[k] * squashed[n, k]
            hidden[n, k] = said
            next_hidden[n, k] = keep * said
            next_cell[n, k] = keep * cell[n, k]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _back(gates, before, squashed, d_output, d_after, goes_on, goes_on_after, d_cell, d_gates):  # type: ignore[no-untyped-def]
    """Gradients of gates before σ and tanh [N, 4H]; d_after [N, H] is that of the state that the step after starts from.

    d_cell [N, H]: of c_t by the steps after, becomes that of c_{t−1}.
    """
    width = before.shape[1]
    one = gates.dtype.type(1)
    for n in range(gates.shape[0]):
        i, f, g, o = gates[n, :width], gates[n, width : 2 * width], gates[n, 2 * width : 3 * width], gates[n, 3 * width :]
        d_i, d_f, d_g, d_o = (d_gates[n, :width], d_gates[n, width : 2 * width], d_gates[n, 2 * width : 3 * width],
                              d_gates[n, 3 * width :])
        old, tanh_c, d_h, d_next, d_c = before[n], squashed[n], d_output[n], d_after[n], d_cell[n]
        keep, keep_after = goes_on[n], goes_on_after[n]
        for k in range(width):
            dh = d_h[k] + keep_after * d_next[k]
            dc = d_c[k] + dh * o[k] * (one - tanh_c[k] * tanh_c[k])
            d_i[k] = dc * g[k] * i[k] * (one - i[k])
            d_f[k] = dc * old[k] * f[k] * (one - f[k])
            d_g[k] = dc * i[k] * (one - g[k] * g[k])
            d_o[k] = dh * tanh_c[k] * o[k] * (one - o[k])
            d_c[k] = dc * f[k] * keep


def _steps(x: Tensor, goes_on: Tensor, core: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Steps:
    steps, n = x.shape[:2]
    gates = product(x.flatten(0, 1), w_ih, bias).view(steps, n, -1)  # of x alone
    made = Steps(gates, *(gates.new_empty(steps + k, n, w_hh.shape[1]) for k in (0, 0, 1, 1)))
    for before, first in zip(made[3:], core.unbind(1), strict=True):
        torch.mul(first, goes_on[0], out=before[0])
    cell = torch.empty_like(core[:, 0])
    of_steps, squashed, hidden, hidden_before, cell_before = (part.numpy() for part in made)
    keep = F.pad(goes_on.flatten(1), (0, 0, 0, 1), value=1.0).numpy()  # [T+1, N]
    for t in range(steps):
        _halve(of_steps[t], product(made.hidden_before[t], w_hh).numpy())
        gates[t].tanh_()
        _remember(of_steps[t], cell_before[t], cell.numpy())
        torch.tanh(cell, out=made.squashed[t])
        _say(of_steps[t], cell.numpy(), squashed[t], keep[t + 1], hidden[t], hidden_before[t + 1], cell_before[t + 1])
    return made


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> tuple[Tensor, Tensor]:
        x, goes_on, _, w_ih, w_hh, _ = given
        made = _steps(*given)
        core = made.core
        ctx.save_for_backward(x, goes_on, w_ih, w_hh, *made)
        ctx.mark_non_differentiable(core)
        ctx.set_materialize_grads(False)
        return made.hidden, core

    @staticmethod
    def backward(ctx: Any, d_outputs: Tensor, _: None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, goes_on, w_ih, w_hh, *saved = ctx.saved_tensors
        made = Steps(*saved)
        d_gates = torch.empty_like(made.gates)
        d_after, d_cell = torch.zeros_like(made.hidden[0]), torch.zeros_like(made.hidden[0])
        given = (part.numpy() for part in (made.gates, made.cell_before, made.squashed, d_outputs.contiguous(), d_gates))
        gates, before, squashed, d_output, d_made = given
        keep = F.pad(goes_on.flatten(1), (0, 0, 0, 1), value=1.0).numpy()  # [T+1, N]
        for t in range(len(x) - 1, -1, -1):
            _back(gates[t], before[t], squashed[t], d_output[t], d_after.numpy(), keep[t], keep[t + 1], d_cell.numpy(), d_made[t])
            d_after = product(d_gates[t], w_hh.T)
        flat = d_gates.flatten(0, 1)  # [T·N, 4H]
        return (product(flat, w_ih.T).view_as(x), None, None, product(flat.T, x.flatten(0, 1).T),
                product(flat.T, made.hidden_before[:-1].flatten(0, 1).T), flat.sum(0))


def unroll(cell: nn.LSTMCell, x: Tensor, goes_on: Tensor, core: Tensor) -> tuple[Tensor, Tensor]:
    """h [T, N, H] for x [T, N, I], and the state [N, 2, H] after them, which carries no gradient.

    goes_on [T, N, 1]: 0 where a state begins an episode. core [N, 2, H]: h and c before the first.
    """
    if x.device.type != "cpu":
        return _step_by_step(cell, x, goes_on, core)
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh)
    if torch.is_grad_enabled():
        made: tuple[Tensor, Tensor] = _Unroll.apply(x, goes_on, core, *weights)  # type: ignore[no-untyped-call]
        return made
    steps = _steps(x, goes_on, core, *weights)
    return steps.hidden, steps.core


def _step_by_step(cell: nn.LSTMCell, x: Tensor, goes_on: Tensor, core: Tensor) -> tuple[Tensor, Tensor]:
    hidden, state = core.unbind(1)
    outputs = []
    for t in range(len(x)):
        hidden, state = cell(x[t], (hidden * goes_on[t], state * goes_on[t]))
        outputs.append(hidden)
    return torch.stack(outputs), torch.stack([hidden, state], 1).detach()
