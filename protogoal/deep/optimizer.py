"""AdamW as torch has it, with gradients clipped, in few calls: for small networks the ceremony around a step costs as much.

Of a table with a row for each slot only those rows are moved that a bit ever had:

    of a table [S + k, d]:  [:used] and [S:],    used = 1 + the last slot that a bit ever had, k rows that are nobody's slot

Other rows are read by nobody and begin anew when they are given (`goals.slots`). Without gradient Adam would leave them as they
are, and so would the mean of weights (`deep.average`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = Mapping[Tensor, tuple[slice, ...]]
"""Of a table the parts that are in use; of what is not named here all."""


class Descent(torch.optim.AdamW):
    """`descend` is zero_grad, backward's gradients, clip_grad_norm_ and step, to the bit; state and settings are torch's."""

    def __init__(self, parameters: Iterable[Tensor], learning_rate: float, epsilon: float = 1e-8, weight_decay: float = 0.0):
        self.parameters = list(parameters)
        self.rows: Rows = {}
        super().__init__(self.parameters, lr=learning_rate, eps=epsilon, weight_decay=weight_decay, fused=True)

    def forget(self) -> None:
        """No gradients, as before `backward`."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def descend(self, max_norm: float = 0.0) -> float:
        """One step with the parameters' gradients, together no longer than max_norm (0: however long); what their length was.

        Only `rows` have a gradient that is not 0, and are moved.
        """
        moved = [p for p in self.parameters if p.grad is not None]
        gradients: list[Tensor] = [p.grad for p in moved if p.grad is not None]
        norm = 0.0
        if max_norm > 0:
            norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))))
            if norm + 1e-6 > max_norm:
                torch._foreach_mul_(gradients, max_norm / (norm + 1e-6))
        moments = [self.state[p] or self._begin(p) for p in moved]
        exp_avg, exp_avg_sq, step = ([m[name] for m in moments] for name in ("exp_avg", "exp_avg_sq", "step"))
        s = self.defaults
        torch._foreach_add_(step, 1)
        if self.rows:
            parts = [self.rows.get(p, ()) for p in moved]
            moved, gradients, exp_avg, exp_avg_sq = (pieces(some, parts) for some in (moved, gradients, exp_avg, exp_avg_sq))
            step = [number for number, some in zip(step, parts, strict=True) for _ in some or (slice(None),)]
        torch._fused_adamw_(moved, gradients, exp_avg, exp_avg_sq, [], step, amsgrad=False, lr=s["lr"], beta1=s["betas"][0],
                            beta2=s["betas"][1], weight_decay=s["weight_decay"], eps=s["eps"], maximize=False)
        return norm

    def _begin(self, parameter: Tensor) -> dict[str, Tensor]:
        self.state[parameter] = {"step": torch.zeros((), device=parameter.device), "exp_avg": torch.zeros_like(parameter),
                                 "exp_avg_sq": torch.zeros_like(parameter)}
        return self.state[parameter]


def rows_in_use(tables: Iterable[Tensor], generation: NDArray[np.int32]) -> Rows:
    """Of tables with a row for each slot, by the generation of each, [S]; all where none was given: bits may have their own."""
    given = np.flatnonzero(generation)
    return {table: (slice(int(given[-1]) + 1), slice(len(generation), None)) for table in tables} if len(given) else {}


def pieces(tensors: Iterable[Tensor], parts: Iterable[tuple[slice, ...]]) -> list[Tensor]:
    """The given parts of each tensor; all of it where there are none."""
    return [piece for tensor, some in zip(tensors, parts, strict=True) for piece in ([tensor[rows] for rows in some] or [tensor])]
