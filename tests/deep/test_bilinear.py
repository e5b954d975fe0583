"""The factors of actions taken, with the gradient that is written out, against the definition and torch's gradient."""

import torch

from protogoal.deep.bilinear import KeptWeights, dueling_weights, factors_of_taken

STATES, TAKEN, ACTIONS, RANK, WIDTH = 23, 20, 3, 4, 6


def by_definition(z, action, weight, bias):
    streams = (z @ weight.T + bias).view(len(z), ACTIONS + 1, RANK)
    advantage, value = streams[:, :-1], streams[:, -1:]
    psi = value + advantage - advantage.mean(1, keepdim=True)
    return psi[torch.arange(len(action)), action], psi


def test_values_and_gradients_are_those_of_the_definition():
    torch.manual_seed(0)
    z, weight = torch.randn(STATES, WIDTH), torch.randn((ACTIONS + 1) * RANK, WIDTH)
    bias, wanted = torch.randn((ACTIONS + 1) * RANK), torch.randn(TAKEN, RANK)
    for action in (torch.randint(ACTIONS, (TAKEN,)), torch.zeros(TAKEN, dtype=torch.int64)):  # of two actions none was taken
        made = []
        for function in (by_definition, lambda *given: factors_of_taken(*given, ACTIONS)):
            leaves = [tensor.clone().requires_grad_() for tensor in (z, weight, bias)]
            taken, psi = function(leaves[0], action, *leaves[1:])
            ((taken - wanted) ** 2).sum().backward()
            made.append([taken, psi, *(leaf.grad for leaf in leaves)])
        for mine, torchs in zip(*made, strict=True):
            assert torch.allclose(mine, torchs, atol=1e-4)


def test_kept_weights_follow_their_layer():
    layer, other = (torch.nn.Linear(WIDTH, (ACTIONS + 1) * RANK).requires_grad_(False) for _ in range(2))
    kept = KeptWeights(layer, ACTIONS)
    first = kept()
    assert kept()[0] is first[0]
    layer.load_state_dict(other.state_dict())
    for mine, made in zip(kept(), dueling_weights(other.weight, other.bias, ACTIONS), strict=True):
        assert torch.equal(mine, made)
