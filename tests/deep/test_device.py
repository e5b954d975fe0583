"""Devices: every tensor of an update comes through one boundary, and targets in torch are the compiled ones."""

import dataclasses

import numpy as np
import pytest
import torch
from reference.tiny_deep import TINY, TINY_AGENT57, differences, steps_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protogoal.agents import distillation
from protogoal.agents.agent57 import embedding, split
from protogoal.deep import device, learn, returns, returns_torch
from protogoal.deep.learn import Learner
from protogoal.run import player
from protogoal.run.local import LocalSession


def random_batch(rng, steps=7, batch=5, actions=3, goals=4):
    shape = (steps, batch, goals)
    q = rng.normal(size=(2, steps, batch, actions, goals)).astype(np.float32)
    attained = rng.random(shape) < 0.2
    return (attained.astype(np.float32), (0.95 * ~attained).astype(np.float32), rng.integers(actions, size=(steps, batch)),
            rng.random((steps, batch)) < 0.8, q[0], q[1])


@pytest.mark.parametrize("kind", ["retrace", "peng", "nstep"])
def test_targets_in_torch_are_the_compiled_ones(kind):
    rng = np.random.default_rng(0)
    for _ in range(20):
        reward, discount, action, is_valid, q_online, q_target = random_batch(rng)
        arrays = (reward, discount, action.astype(np.int16), is_valid, q_online, q_target)
        compiled = returns.multi_step_targets(kind, *arrays, 0.9, 3)
        tensors = (torch.from_numpy(array) for array in (reward, discount, action, is_valid, q_online, q_target))
        np.testing.assert_allclose(returns_torch.multi_step_targets(kind, *tensors, 0.9, 3).numpy(), compiled, atol=1e-6)


def test_the_transform_in_torch_is_the_compiled_one():
    x = np.linspace(-50, 50, 101, dtype=np.float32)
    np.testing.assert_allclose(returns_torch.h(torch.from_numpy(x)).numpy(), returns.h(x), rtol=1e-6)
    np.testing.assert_allclose(returns_torch.h_inverse(torch.from_numpy(returns.h(x))).numpy(), x, rtol=1e-4, atol=1e-4)


def test_a_device_that_is_not_there_is_refused_in_one_line():
    assert device.resolve("cpu").type == "cpu"
    assert device.resolve("auto").type in ("cpu", "cuda", "mps")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="there is no cuda device here; allowed are auto, cpu"):
            device.resolve("cuda")


class OneDevice(TorchDispatchMode):
    """Refuses an operation on a tensor that did not come from the network, the boundary, or an operation on these."""

    def __init__(self, known):
        super().__init__()
        self.known = {id(tensor): tensor for tensor in known}  # kept, so that no id is used twice

    def keep(self, tensor):
        self.known[id(tensor)] = tensor
        return tensor

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        options = options or {}
        tensors = [leaf for leaf in tree_leaves((arguments, options)) if isinstance(leaf, torch.Tensor)]
        foreign = [tensor for tensor in tensors if tensor.ndim and id(tensor) not in self.known]
        made = function(*arguments, **options)
        is_factory = not tensors and options.get("device") is not None
        if foreign and len(foreign) < len(tensors):
            raise AssertionError(f"{function} on tensors of two devices: {[tuple(t.shape) for t in foreign]}")
        if not foreign and (tensors or is_factory):
            for leaf in tree_leaves(made):
                if isinstance(leaf, torch.Tensor):
                    self.keep(leaf)
        return made


@pytest.mark.parametrize("config", [
    dataclasses.replace(TINY, threads=1), TINY_AGENT57, dataclasses.replace(TINY, env=TINY_AGENT57.env).with_agent("rnd"),
    dataclasses.replace(TINY, learner=dataclasses.replace(TINY.learner, value_transform="h", returns="nstep", relabel="all")),
    dataclasses.replace(TINY, network=dataclasses.replace(TINY.network, join="concat")),
], ids=["protogoal", "agent57", "rnd", "h, nstep, all", "concat"])
def test_every_tensor_of_an_update_comes_through_the_boundary(config, monkeypatch):
    """The torch path is taken, as on a GPU, and tensors made beside the boundary are refused."""
    session = LocalSession(config)
    for step in steps_of(session):
        if step >= 300:
            break
    agent = session.agent
    learner = agent.learner
    parts = [part for part in (learner, *vars(learner).values()) if isinstance(part, Learner)]
    networks = {id(m): m for part in parts for m in (part.network, part.target, part.average.network)}
    networks[id(agent.network)] = agent.network
    networks[id(learner.average.network)] = learner.average.network
    known = [t for m in networks.values() for t in (*m.parameters(), *m.buffers())]
    for optimizer in (part.optimizer for part in {id(p): p for p in (learner, *parts)}.values()):
        known += [t for moments in optimizer.state.values() for t in moments.values()]
    mode = OneDevice(known)
    for part in parts:
        monkeypatch.setattr(part, "device", FakeDevice())
        part.target.load_state_dict(part.target.state_dict())  # what is kept of its weights is made anew
    boundary = device.place
    for module in (learn, distillation, embedding, split):
        monkeypatch.setattr(module, "place", lambda array, where: mode.keep(boundary(array, torch.device("cpu"))))
    batch = agent.replay.sample(config.learner.batch_size, np.random.default_rng(0))
    with mode:
        figures = learner.update(batch, agent.known)
    assert np.isfinite(figures["loss"])


class FakeDevice:
    """Says that it is no CPU."""

    type = "elsewhere"


def test_the_torch_path_learns_the_same(monkeypatch):
    ends = []
    for elsewhere in (False, True):
        session = LocalSession(dataclasses.replace(TINY, threads=1, steps=400))
        start = {name: array.copy() for name, array in session.agent.learner.state_dict()["network"].items()}
        if elsewhere:
            monkeypatch.setattr(session.agent.learner, "device", FakeDevice())
            monkeypatch.setattr(learn, "place", lambda array, where: device.place(array, torch.device("cpu")))
        for _ in steps_of(session):
            pass
        ends.append(session.agent.learner.state_dict()["network"])
    assert differences(*({name: array.shape for name, array in end.items()} for end in ends)) == []
    moved = {name: np.abs(array - start[name]).max() for name, array in ends[0].items()}
    assert max(moved.values()) > 1e-4
    for name, array in ends[0].items():
        np.testing.assert_allclose(ends[1][name], array, atol=0.05 * moved[name])


def test_a_checkpoint_made_on_the_cpu_fits_another_setting_of_device():
    first = LocalSession(dataclasses.replace(TINY, threads=1, steps=300, device="cpu"))
    for _ in steps_of(first):
        pass
    state = first.state_dict()
    assert not [leaf for leaf in tree_leaves(state) if isinstance(leaf, torch.Tensor)]  # arrays alone, which are of no device
    second = LocalSession(dataclasses.replace(first.config, device="auto"))
    second.load_state_dict(state)
    assert differences(state["agent"], second.state_dict()["agent"]) == []


def test_a_network_elsewhere_is_played_with_as_a_copy_on_the_cpu(monkeypatch):
    session = LocalSession(dataclasses.replace(TINY, threads=1))
    network = session.agent.learner.average.network
    assert session.playing is network
    moved = []
    monkeypatch.setattr(player, "device_of", lambda _: FakeDevice())
    monkeypatch.setattr(type(network), "cpu", lambda copied: moved.append(copied) or copied)
    assert session.playing is moved[0] is not network
    for name, array in network.state_dict().items():
        assert torch.equal(moved[0].state_dict()[name], array)
