"""The learner: its gradient is that of the loss as written, its parts are where they should be."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from grids import Corridor
from reference.learner import PlainLearner
from test_segments import play

from protogoal.deep.learn import Learner, unroll_inputs
from protogoal.deep.network import make_network
from protogoal.deep.relabel import KnownGoals, relabel
from protogoal.deep.returns import h, h_inverse, multi_step_targets
from protogoal.deep.segments import Segments
from protogoal.deep.settings import LearnerSettings, NetworkSettings

ENV = Corridor(length=5, limit=6, num_envs=6)
BITS = np.arange(5, dtype=np.int32)[:, None]
KNOWN = KnownGoals(np.arange(5), BITS, BITS, np.zeros(5, np.int32), np.arange(1, 6), np.ones(5, bool), np.ones(5, bool), 5)
SETTINGS = LearnerSettings(relabel="all", learning_rate=1e-3, adam_epsilon=1e-8, weight_decay=0.0, max_gradient_norm=0.0)


def networks(join="bilinear", core="none", count=2):
    settings = NetworkSettings(hidden=12, rank=6, goal_hidden=8, join=join, core=core)
    return [make_network(ENV.observation_spec, 2, 5, settings, np.random.SeedSequence(i)) for i in range(count)]


def batch_for(network, burn_in=0):
    segments, _ = play(ENV, 6 + burn_in, 6, burn_in, core_shape=network.core_shape)
    segment = segments[0]
    core = np.random.default_rng(0).normal(size=segment.core.shape).astype(np.float16)
    weight = np.random.default_rng(1).random(segment.size).astype(np.float32)
    return replace(segment, core=core, goal=np.ones_like(segment.goal), weight=weight)


def slow_loss(network, target, batch: Segments, known, settings, rng, burn_in=0):
    """The loss of one batch, goal by goal and action by action, straight from the definition; with gradient."""
    goals = relabel(batch, known, settings, rng, burn_in)
    learned = batch.last(batch.steps - burn_in)
    z = network.unroll(*unroll_inputs(batch))[0][burn_in:]
    z_target = target.unroll(*unroll_inputs(batch))[0][burn_in:]
    steps, n = learned.action.shape
    total, valid = 0.0, 0
    for i in range(n):
        for k in range(goals.weight.shape[1]):
            members = torch.as_tensor(goals.slots[k] if goals.slots.ndim == 2 else goals.slots[i, k])
            q = network.q_each(z[:, i], members.expand(steps + 1, 1, -1))[:, 0]  # [T+1, A]
            with torch.no_grad():
                q_target = target.q_each(z_target[:, i], members.expand(steps + 1, 1, -1))[:, 0].numpy()
            if settings.value_transform == "h":
                q_target = h_inverse(q_target)
            targets = multi_step_targets(
                settings.returns, goals.reward[:, i : i + 1, k : k + 1], goals.discount[:, i : i + 1, k : k + 1],
                learned.action[:, i : i + 1], learned.is_valid[:, i : i + 1],
                q.detach().numpy()[1:, None, :, None], q_target[1:, None, :, None], settings.trace_lambda, settings.n_steps,
            )[:, 0, 0]
            if settings.clip_goal_values and k > 0:
                targets = targets.clip(0, 1)
            if settings.value_transform == "h":
                targets = h(targets)
            for t in range(steps):
                if learned.is_valid[t, i]:
                    error = q[t, int(learned.action[t, i])] - float(targets[t])
                    total = total + float(goals.weight[i, k]) * float(batch.weight[i]) * error**2
        valid += int(learned.is_valid[:, i].sum())
    return total / valid


@pytest.mark.parametrize("core", ["none", "lstm"])
@pytest.mark.parametrize("join", ["bilinear", "concat"])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"relabel": "novelty", "hindsight_goals": 2, "unattained_goals": 1},
        {"returns": "peng", "value_transform": "h"},
        {"returns": "nstep", "n_steps": 3, "clip_goal_values": True},
    ],
)
def test_the_gradient_is_that_of_the_loss_as_defined(join, core, change):
    settings = replace(SETTINGS, **change)
    network, target = networks(join, core)
    batch = batch_for(network)
    learner = Learner(network, target, settings, seed=3)
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    expected = slow_loss(network, target, batch, KNOWN, settings, np.random.default_rng(3))
    gradients = torch.autograd.grad(expected, list(network.parameters()), allow_unused=True)
    figures = learner.update(batch, KNOWN)
    assert figures["loss"] == pytest.approx(expected.item(), rel=1e-4)
    for (name, parameter), gradient in zip(network.named_parameters(), gradients, strict=True):
        if gradient is not None:
            assert torch.allclose(parameter.grad, gradient, atol=1e-6), name


def test_a_burn_in_warms_up_the_core_without_gradient():
    network, target = networks(core="lstm")
    batch = batch_for(network, burn_in=4)
    learner = Learner(network, target, SETTINGS, seed=0, burn_in=4)
    figures = learner.update(batch, KNOWN)
    again, target = networks(core="lstm")
    whole = slow_loss(again, again, batch, KNOWN, SETTINGS, np.random.default_rng(0), burn_in=4)
    assert figures["loss"] == pytest.approx(whole.item(), rel=1e-4)  # the same values; only the gradient stops


def test_transitions_cut_by_the_time_limit_are_not_learned():
    network, _target = networks()
    batch = batch_for(network)
    assert batch.truncated.any()
    changed = replace(batch, reward=np.where(batch.truncated, -1.0, batch.reward).astype(np.float32))
    losses = [Learner(*networks(), SETTINGS, 0).update(b, KNOWN)["loss"] for b in (batch, changed)]
    assert losses[0] == losses[1]


def test_the_target_network_is_copied_at_its_period():
    network, target = networks()
    learner = Learner(network, target, replace(SETTINGS, target_period=3), 0)
    batch = batch_for(network)
    same = []
    for _ in range(6):
        learner.update(batch, KNOWN)
        same.append(all((a == b).all() for a, b in zip(network.parameters(), target.parameters(), strict=True)))
    assert same == [False, False, True, False, False, True]


def test_a_saved_learner_goes_on_to_the_bit():
    network, target = networks()
    learner = Learner(network, target, SETTINGS, 0)
    batch = batch_for(network)
    for _ in range(3):
        learner.update(batch, KNOWN)
    other = Learner(*networks(), SETTINGS, 9)
    other.load_state_dict(learner.state_dict())
    for _ in range(3):
        assert learner.update(batch, KNOWN) == other.update(batch, KNOWN)
    assert all((a == b).all() for a, b in zip(learner.network.parameters(), other.network.parameters(), strict=True))


def test_without_goals_only_the_task_moves_the_values():
    network, target = networks()
    batch = batch_for(network)
    learner = Learner(network, target, SETTINGS, 0)
    figures = learner.update(batch, KnownGoals.none(5))
    assert figures["goals_learned"] == 1
    moved = network.phi.free.weight.grad.abs().sum(1)
    assert (moved[:6] == 0).all()  # five bits and the padding
    assert moved[6] > 0  # the task


@pytest.mark.parametrize("join", ["bilinear", "concat"])
def test_rows_that_belong_to_another_bit_begin_anew_everywhere_and_others_go_on(join):
    network, target = networks(join)
    learner = Learner(network, target, replace(SETTINGS, average_decay=0.9), 0)
    batch = batch_for(network)
    for _ in range(3):
        learner.update(batch, replace(KNOWN, generation=np.ones(5, np.int32)))
    twin = Learner(*networks(join), replace(SETTINGS, average_decay=0.9), 0)
    twin.load_state_dict(learner.state_dict())
    rest = np.array([0, 1, 3, 4])  # bit 2 is not learned here: what becomes of its row is renewal alone
    known = KnownGoals(rest, BITS[rest], BITS[rest], np.ones(5, np.int32), np.ones(4, int), np.ones(4, bool), np.ones(4, bool), 5)
    before = [table.clone() for table, _ in network.goal_tables()]
    learner.update(batch, replace(known, generation=np.array([1, 1, 2, 1, 1], np.int32)))
    twin.update(batch, known)
    for k, (table, std) in enumerate(network.goal_tables()):
        assert (table != twin.network.goal_tables()[k][0]).any(1).nonzero().flatten().tolist() == [2]
        assert (table[2] != before[k][2]).all()
        assert 0 < table[2].std() < 3 * std
        for other in (target, learner.average.network):
            assert torch.allclose(other.goal_tables()[k][0][2], table[2])
        for name, moment in learner.optimizer.state[table].items():
            if name != "step":
                assert (moment[2] == 0).all()
                assert (moment[:2] != 0).any()
    state = learner.state_dict()
    again = Learner(*networks(join), replace(SETTINGS, average_decay=0.9), 9)
    again.load_state_dict(state)
    newer = replace(KNOWN, generation=np.array([1, 2, 2, 1, 1], np.int32))
    assert learner.update(batch, newer) == again.update(batch, newer)


@pytest.mark.parametrize("join", ["bilinear", "concat"])
def test_rows_that_no_bit_ever_had_are_passed_over_and_others_learned_to_the_bit(join):
    settings = replace(SETTINGS, average_decay=0.9, weight_decay=0.0)
    known = replace(KNOWN, ids=np.arange(3), members=BITS[:3], slots=BITS[:3], generation=np.array([1, 1, 1, 0, 0], np.int32),
                    count=np.ones(3, int), is_offered=np.ones(3, bool), is_plausible=np.ones(3, bool))
    learner, whole = (Learner(*networks(join), settings, 0) for _ in range(2))
    batch = batch_for(learner.network)
    for k in range(5):
        learner.update(batch, known)
        whole.update(batch, known)
        if k == 0:
            assert len(learner.optimizer.rows) == len(learner.network.goal_tables())
            whole.optimizer.rows = {}
            whole.average.look_at({})
    for mine, other in zip(learner.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(mine, other)
    for mine, other in zip(learner.average.network.parameters(), whole.average.network.parameters(), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("burn_in", [0, 3])
@pytest.mark.parametrize("core", ["none", "lstm"])
def test_after_a_hundred_updates_the_weights_are_those_of_the_plain_learner(core, burn_in):
    """In 64 bits: Adam with a small ε makes steps of full size out of rounding errors, whatever computes them."""
    settings = replace(SETTINGS, clip_goal_values=True, target_period=30, max_gradient_norm=0.05, average_decay=0.9)
    pair = KnownGoals(np.arange(6), np.array([[i, -1] for i in range(5)] + [[1, 3]], np.int32),
                      np.array([[i, -1] for i in range(5)] + [[1, 3]], np.int32), np.zeros(5, np.int32), np.ones(6, np.int64),
                      np.ones(6, bool), np.ones(6, bool), 5)
    fast, slow = (made([network.double() for network in networks(core=core)]) for made in (
        lambda pair: Learner(*pair, settings, 0, burn_in), lambda pair: PlainLearner(*pair, settings, 0, burn_in)))
    segments, _ = play(ENV, 20 * (6 + burn_in), 6, burn_in, core_shape=fast.network.core_shape)
    for k in range(100):
        batch = replace(segments[k % len(segments)], weight=np.linspace(0.2, 1.0, 6).astype(np.float32))
        losses = [learner.update(batch, pair)["loss"] for learner in (fast, slow)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for part in ("network", "target"):
        for (name, mine), plain in zip(getattr(fast, part).named_parameters(), getattr(slow, part).parameters(), strict=True):
            assert torch.allclose(mine, plain, rtol=0.0, atol=1e-5), (part, name)
    for mine, plain in zip(fast.average.network.parameters(), slow.average.network.parameters(), strict=True):
        assert torch.allclose(mine, plain, rtol=0.0, atol=1e-5)
