"""The unrolled LSTM is `nn.LSTMCell`, step by step, with its gradient."""

import torch

from protogoal.deep.lstm import unroll


def plain(cell, x, goes_on, core):
    hidden, state = core.unbind(1)
    outputs = []
    for t in range(len(x)):
        hidden, state = cell(x[t], (hidden * goes_on[t], state * goes_on[t]))
        outputs.append(hidden)
    return torch.stack(outputs), torch.stack([hidden, state], 1)


def test_values_and_gradients_are_those_of_the_cell_step_by_step():
    torch.manual_seed(0)
    cell = torch.nn.LSTMCell(5, 6)
    goes_on = (torch.rand(9, 4, 1) < 0.7).float()
    x, core, wanted = torch.randn(9, 4, 5), torch.randn(4, 2, 6), torch.randn(9, 4, 6)
    made = []
    for function in (unroll, plain):
        cell.zero_grad()
        read = x.clone().requires_grad_()
        outputs, after = function(cell, read, goes_on, core)
        ((outputs - wanted) ** 2).sum().backward()
        made.append([outputs, after, read.grad, *(p.grad for p in cell.parameters())])
    for mine, torchs in zip(*made, strict=True):
        assert torch.allclose(mine, torchs, atol=1e-5)


def test_without_a_graph_it_says_the_same():
    cell, x, core = torch.nn.LSTMCell(5, 6), torch.randn(3, 4, 5), torch.randn(4, 2, 6)
    with torch.no_grad():
        alone = unroll(cell, x, torch.ones(3, 4, 1), core)
    for mine, other in zip(alone, unroll(cell, x, torch.ones(3, 4, 1), core), strict=True):
        assert torch.equal(mine, other)
