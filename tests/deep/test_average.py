"""The mean of the weights that the player plays with."""

import numpy as np
import torch
from torch import nn

from protogoal.deep.average import AverageWeights


def number(value):
    layer = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(value)
    layer.register_buffer("policy", torch.tensor(int(value)))
    return layer


def test_the_mean_follows_the_recursion():
    layer, rng = number(1.0), np.random.default_rng(0)
    average, mean = AverageWeights(layer, 0.9), 1.0
    for n in range(1, 200):
        value = rng.normal()
        with torch.no_grad():
            layer.weight.fill_(value)
        average.update()
        keep = min(0.9, (1 + n) / (10 + n))
        mean = keep * mean + (1 - keep) * value
    assert np.isclose(average.network.weight.item(), mean, atol=1e-6)


def test_early_on_few_updates_count_so_that_the_first_weights_are_soon_forgotten():
    layer = number(0.0)
    average = AverageWeights(layer, 0.9999)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    for _ in range(100):
        average.update()
    assert average.network.weight.item() > 0.999


def test_without_decay_it_is_the_network_itself():
    layer = number(3.0)
    average = AverageWeights(layer, 0.0)
    average.update()
    assert average.network is layer
    assert average.state_dict() == {}


def test_buffers_are_copied_and_learning_is_left_alone():
    layer = number(1.0)
    average = AverageWeights(layer, 0.5)
    layer.policy.fill_(7)
    average.update()
    assert average.network.policy.item() == 7
    assert layer.weight.requires_grad
    assert not average.network.weight.requires_grad


def test_it_goes_on_to_the_bit_from_what_was_saved():
    layer = number(1.0)
    one, two = AverageWeights(layer, 0.9), AverageWeights(layer, 0.9)
    for _ in range(5):
        with torch.no_grad():
            layer.weight.add_(1.0)
        one.update()
    two.load_state_dict(one.state_dict())
    with torch.no_grad():
        layer.weight.add_(1.0)
    one.update()
    two.update()
    assert torch.equal(one.network.weight, two.network.weight)
