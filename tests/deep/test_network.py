"""The network: shapes, joins, the core's memory, and what must not depend on what."""

import numpy as np
import pytest
import torch

from protogoal.deep.network import QNetwork, make_network, weights_from_arrays, weights_to_arrays
from protogoal.deep.settings import NetworkSettings
from protogoal.envs.vector import ArraySpec

SPEC = {
    "planes": ArraySpec((2, 3, 4), np.dtype(np.uint8), "planes"),
    "map": ArraySpec((3, 5), np.dtype(np.uint8), "characters", 7),
    "status": ArraySpec((6,), np.dtype(np.float32), "vector"),
    "on": ArraySpec((4,), np.dtype(np.int16), "active", 11),
}


def observation(steps, n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "planes": torch.from_numpy(rng.integers(0, 2, (steps, n, 2, 3, 4)).astype(np.uint8)),
        "map": torch.from_numpy(rng.integers(0, 7, (steps, n, 3, 5)).astype(np.uint8)),
        "status": torch.from_numpy(rng.normal(size=(steps, n, 6)).astype(np.float32)),
        "on": torch.from_numpy(rng.integers(-1, 11, (steps, n, 4)).astype(np.int16)),
    }


def network(join="bilinear", core="none", seed=0):
    settings = NetworkSettings(hidden=16, rank=8, goal_hidden=12, channels=(4,), core=core, join=join)
    return make_network(SPEC, 3, 9, settings, np.random.SeedSequence(seed))


def unroll(net, steps, n, seed=0, is_first=None, core=None):
    rng = np.random.default_rng(seed + 1)
    first = torch.zeros(steps, n, dtype=torch.bool) if is_first is None else is_first
    return net.unroll(
        observation(steps, n, seed),
        torch.from_numpy(rng.integers(0, 3, (steps, n)).astype(np.int16)),
        torch.from_numpy(rng.random((steps, n), np.float32)),
        first,
        net.initial_core(n) if core is None else core,
    )


GOALS = torch.tensor([[-1, -1], [3, -1], [3, 5], [8, -1]])


@pytest.mark.parametrize("core", ["none", "lstm"])
@pytest.mark.parametrize("join", ["bilinear", "concat"])
def test_all_goals_in_every_state_equal_each_goal_alone(join, core):
    net = network(join, core)
    z, _ = unroll(net, 2, 5)
    z = z.flatten(0, 1)
    together = net.q_all(z, GOALS)
    assert together.shape == (10, 3, 4)
    alone = net.q_each(z, GOALS.expand(10, 4, 2))
    assert torch.allclose(together, alone.transpose(1, 2), atol=1e-6)


@pytest.mark.parametrize("join", ["bilinear", "concat"])
def test_goals_and_states_make_a_difference(join):
    net = network(join)
    z, _ = unroll(net, 1, 4)
    q = net.q_all(z[0], GOALS)
    assert (q[..., 0] != q[..., 1]).any()
    assert (q[..., 1] != q[..., 2]).any()
    assert (q[0] != q[1]).any()


def test_a_goal_is_a_set_of_bits():
    net = network()
    z, _ = unroll(net, 1, 4)
    one, two = net.q_all(z[0], torch.tensor([[3, 5, -1]])), net.q_all(z[0], torch.tensor([[-1, 5, 3]]))
    assert torch.allclose(one, two, atol=1e-6)


def test_dueling_folds_into_the_factors():
    """Q = V + A − mean A, computed from the streams by hand."""
    net = network()
    z, _ = unroll(net, 1, 4)
    streams = net.psi(z[0]).view(4, 4, 8) @ net.goal_factors(GOALS).T  # [N, A+1, G]
    advantage, value = streams[:, :3], streams[:, 3:]
    by_hand = value + advantage - advantage.mean(1, keepdim=True)
    assert torch.allclose(net.q_all(z[0], GOALS), by_hand, atol=1e-5)


def test_the_core_remembers_and_a_new_episode_forgets():
    net = network(core="lstm")
    whole, core = unroll(net, 6, 3)
    assert core.shape == (3, 2, 16)
    first = torch.zeros(6, 3, dtype=torch.bool)
    first[4] = True
    cut, _ = unroll(net, 6, 3, is_first=first)
    assert torch.allclose(whole[:4], cut[:4])
    assert (whole[4:] != cut[4:]).any()
    other, _ = unroll(net, 6, 3, is_first=first, core=torch.randn(3, 2, 16))
    assert torch.allclose(other[4:], cut[4:])  # what was before the new episode is gone


def test_unrolling_in_two_parts_is_unrolling_at_once():
    net = network(core="lstm")
    inputs = observation(6, 3)
    action = torch.randint(0, 3, (6, 3))
    reward, first = torch.rand(6, 3), torch.zeros(6, 3, dtype=torch.bool)
    whole, end = net.unroll(inputs, action, reward, first, net.initial_core(3))
    head = {k: v[:2] for k, v in inputs.items()}
    tail = {k: v[2:] for k, v in inputs.items()}
    _, core = net.unroll(head, action[:2], reward[:2], first[:2], net.initial_core(3))
    rest, last = net.unroll(tail, action[2:], reward[2:], first[2:], core)
    assert torch.allclose(whole[2:], rest, atol=1e-6)
    assert torch.allclose(end, last, atol=1e-6)


def test_padding_adds_nothing_to_a_list_of_ids():
    net = network()
    spec_on = net.torsos["on"]
    one = spec_on(torch.tensor([[2, 5, -1, -1]]))
    two = spec_on(torch.tensor([[-1, 5, -1, 2]]))
    assert torch.allclose(one, two, atol=1e-6)
    before = spec_on.embedding.weight[-1].clone()
    spec_on(torch.tensor([[2, -1, -1, -1]])).sum().backward()
    assert (spec_on.embedding.weight.grad[-1] == 0).all()
    assert (before == spec_on.embedding.weight[-1]).all()


def test_the_seed_decides_the_weights_and_nothing_else_does():
    torch.manual_seed(1)
    one = weights_to_arrays(network(seed=5))
    torch.manual_seed(2)
    state = torch.random.get_rng_state()
    two = weights_to_arrays(network(seed=5))
    assert (torch.random.get_rng_state() == state).all()
    assert all((one[name] == two[name]).all() for name in one)
    assert any((array != one[name]).any() for name, array in weights_to_arrays(network(seed=6)).items())


def test_weights_travel_as_arrays_and_others_are_refused():
    one, two = network(seed=1), network(seed=2)
    weights_from_arrays(two, weights_to_arrays(one))
    assert all((a == b).all() for a, b in zip(one.parameters(), two.parameters(), strict=True))
    with pytest.raises(ValueError, match="do not fit"):
        weights_from_arrays(network(join="concat"), weights_to_arrays(one))


def test_nothing_to_see_or_to_do_is_refused():
    with pytest.raises(ValueError, match="at least one action"):
        QNetwork(SPEC, 0, 9, NetworkSettings())
    with pytest.raises(ValueError, match="observation"):
        QNetwork({}, 3, 9, NetworkSettings())


def test_grids_pictures_and_bytes_have_torsos_under_any_name():
    """Each tells its observations apart, whatever the part is called: torch keeps some names for itself."""
    spec = {
        "keys": ArraySpec((2, 3, 4), np.dtype(np.uint8), "grid", 9),
        "screen.left": ArraySpec((3, 40, 36), np.dtype(np.uint8), "picture"),
        "type": ArraySpec((5,), np.dtype(np.uint8), "bytes"),
    }
    net = make_network(spec, 2, 4, NetworkSettings(hidden=16, rank=8, channels=(4, 4)), np.random.SeedSequence(0))
    rng = np.random.default_rng(0)
    high = {"keys": 9, "screen.left": 256, "type": 256}
    seen = {name: rng.integers(0, high[name], (1, 1, *part.shape)).astype(np.uint8) for name, part in spec.items()}

    def features(arrays):
        nothing = torch.zeros(1, 1)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return net.unroll(tensors, nothing.short(), nothing, nothing.bool(), net.initial_core(1))[0]

    before = features(seen)
    for name in spec:
        other = {key: array.copy() for key, array in seen.items()}
        other[name][0, 0] = (other[name][0, 0].astype(int) + 1) % high[name]
        assert not torch.allclose(before, features(other)), name
