"""The product by oneDNN is torch's, with its gradient."""

import pytest
import torch
from torch.nn import functional as F

from protogoal.deep.product import affine, product


@pytest.mark.parametrize("shape", [(40, 5), (3, 5), (0, 5), (4, 11, 5)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_values_and_gradients_are_those_of_torch(shape, has_bias):
    generator = torch.Generator().manual_seed(0)
    made = []
    for function in (affine, F.linear):
        generator.manual_seed(0)
        x, w, b = (torch.randn(s, generator=generator, requires_grad=True) for s in (shape, (7, 5), (7,)))
        y = function(x, w, b if has_bias else None)
        y.square().sum().backward()
        made.append([y, x.grad, w.grad, b.grad])
    for mine, torchs in zip(*made, strict=True):
        assert (mine is None and torchs is None) or torch.allclose(mine, torchs, atol=1e-5)


def test_transposed_factors_are_read_as_they_lie():
    x, w = torch.randn(6, 50), torch.randn(6, 9)
    assert torch.allclose(product(x.T, w.T), x.T @ w, atol=1e-5)


def test_other_types_are_multiplied_in_their_own():
    x, w = torch.randn(50, 6).double(), torch.randn(9, 6).double()
    assert torch.equal(product(x, w), x @ w.T)
