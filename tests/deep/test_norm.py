"""A layer as one operation is torch's linear layer, normalisation and rectifier, with their gradients."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from protogoal.deep.norm import dense, dense_of_ids


def layer():
    torch.manual_seed(0)
    linear, norm = nn.Linear(5, 7), nn.LayerNorm(7)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2.0)
        norm.bias.uniform_(-0.5, 0.5)
    return linear, norm


def compared(functions, leaves, dtype):
    made = []
    for function in functions:
        for leaf in leaves:
            leaf.grad = None
        y = function()
        (y * torch.linspace(-1, 2, y.numel(), dtype=dtype).view_as(y)).sum().backward()
        made.append([y.detach(), *(leaf.grad.clone() for leaf in leaves)])
        with torch.no_grad():
            assert torch.equal(function(), y)
    for mine, torchs in zip(*made, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_of_a_dense_layer_are_those_of_torch(dtype):
    linear, norm = (module.to(dtype) for module in layer())
    x = torch.randn(20, 5, dtype=dtype, requires_grad=True)
    compared([lambda: dense(x, linear, norm), lambda: F.relu(norm(linear(x)))],
             [x, *linear.parameters(), *norm.parameters()], dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_of_a_layer_of_ids_are_those_of_torch(dtype):
    _, norm = (module.to(dtype) for module in layer())
    table, bias = (torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((9, 7), (7,)))
    ids = torch.randint(-1, 9, (20, 11))
    is_on = F.one_hot(ids.clamp(min=0), 9).to(dtype) * (ids >= 0).unsqueeze(-1)
    compared([lambda: dense_of_ids(ids, table, bias, norm), lambda: F.relu(norm(is_on.sum(1) @ table + bias))],
             [table, bias, *norm.parameters()], dtype)


def test_what_is_not_a_number_stays_so():
    linear, norm = layer()
    with torch.no_grad():
        assert dense(torch.full((1, 5), torch.nan), linear, norm).isnan().all()
