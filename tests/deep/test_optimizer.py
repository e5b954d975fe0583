"""A step is torch's own, clipped or not, and parameters without gradient stay."""

import pytest
import torch

from protogoal.deep.optimizer import Descent


@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e6])
def test_steps_are_those_of_torch(max_norm):
    ours, theirs = ([torch.nn.Parameter(torch.ones(shape)) for shape in ((2, 3), (4,), (2,))] for _ in range(2))
    descent = Descent(ours, 0.01, 1e-8, 0.1)
    adam = torch.optim.AdamW(theirs, lr=0.01, eps=1e-8, weight_decay=0.1, fused=True)
    for k in range(5):
        for parameters in (ours, theirs):
            for p in parameters[: 2 + k % 2]:  # the last has no gradient every other time
                p.grad = torch.full_like(p, 0.1 * k + 0.3)
        norm = descent.descend(max_norm)
        if max_norm:
            assert norm == pytest.approx(float(torch.nn.utils.clip_grad_norm_(theirs, max_norm)))
        adam.step()
        descent.forget()
        adam.zero_grad()
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)
