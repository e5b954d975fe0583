"""Sums of rows are those of `nn.EmbeddingBag`, with its gradient."""

import pytest
import torch
from torch import nn

from protogoal.deep.bag import sum_of_rows


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_values_and_gradients_are_those_of_torch(dtype):
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(9, 4, mode="sum", padding_idx=8)
    ids = torch.randint(-1, 8, (20, 5)).to(dtype)
    made = []
    for function in (lambda: sum_of_rows(ids, bag.weight), lambda: bag(torch.where(ids < 0, 8, ids.long()))):
        bag.zero_grad()
        y = function()
        y.square().sum().backward()
        made.append([y, bag.weight.grad.clone()])
    for mine, torchs in zip(*made, strict=True):
        assert torch.allclose(mine, torchs, atol=1e-5)


def test_a_row_that_is_not_there_is_refused():
    with pytest.raises(IndexError, match="the table has rows 0 to 2; 3 was asked for"):
        sum_of_rows(torch.tensor([[3]]), torch.randn(3, 2))
