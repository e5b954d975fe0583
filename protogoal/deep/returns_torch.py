"""`deep.returns` in torch, for a learner that is not on the CPU: the same targets, one step of a segment at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from protogoal.deep.returns import H_EPSILON


def h(x: Tensor) -> Tensor:
    """h(x) = sign(x)(√(|x| + 1) − 1) + εx."""
    return x.sign() * ((x.abs() + 1.0).sqrt() - 1.0) + H_EPSILON * x


def h_inverse(y: Tensor) -> Tensor:
    """Its inverse, in 64 bits where the device has them."""
    size = y.abs() if y.device.type == "mps" else y.abs().double()
    root = ((1.0 + 4.0 * H_EPSILON * (size + 1.0 + H_EPSILON)).sqrt() - 1.0) / (2.0 * H_EPSILON)
    return (y.sign() * (root * root - 1.0)).to(y.dtype)


def multi_step_targets(
    kind: str,
    reward: Tensor,
    discount: Tensor,
    action: Tensor,
    is_valid: Tensor,
    q_online: Tensor,
    q_target: Tensor,
    trace_lambda: float = 0.95,
    n_steps: int = 5,
) -> Tensor:
    """Targets G [T, N, G]; shapes and formulas as in `deep.returns`."""
    steps, batch, goals = reward.shape
    best = q_online.argmax(2, keepdim=True)  # [T, N, 1, G]: a* in the state after each transition
    value = q_target.gather(2, best).squeeze(2)  # [T, N, G]
    if kind == "nstep":
        return _nstep(reward, discount, is_valid, value, n_steps)
    targets = torch.empty_like(reward)
    targets[-1] = reward[-1] + discount[-1] * value[-1]
    for t in range(steps - 2, -1, -1):
        goes_on = is_valid[t + 1].unsqueeze(-1)  # [N, 1]
        if kind == "peng":
            further = (1.0 - trace_lambda) * value[t] + trace_lambda * targets[t + 1]
        else:
            chosen = action[t + 1].view(batch, 1, 1).expand(-1, 1, goals)
            taken = q_target[t].gather(1, chosen).squeeze(1)  # [N, G]
            trace = trace_lambda * (best[t].squeeze(1) == chosen.squeeze(1))
            further = value[t] + trace * (targets[t + 1] - taken)
        targets[t] = reward[t] + discount[t] * torch.where(goes_on, further, value[t])
    return targets


def _nstep(reward: Tensor, discount: Tensor, is_valid: Tensor, value: Tensor, n_steps: int) -> Tensor:
    """n-step returns: those of one step more are those of one step less of the next transition, where it is valid."""
    targets = reward + discount * value
    for _ in range(n_steps - 1):
        further = torch.where(is_valid[1:].unsqueeze(-1), targets[1:], value[:-1])
        targets = torch.cat([reward[:-1] + discount[:-1] * further, targets[-1:]])
    return targets
