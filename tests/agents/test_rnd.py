"""RND: what is unpredicted pays, what is often seen pays less; the copy is learned, the random network never."""

import dataclasses

import numpy as np
import torch
from reference.tiny_deep import TINY, steps_of

from protogoal.agents.blueprint import INTRINSIC
from protogoal.domains.deep_sea import DeepSeaSettings
from protogoal.run.local import LocalSession

LEARNER = dataclasses.replace(TINY.learner, replay_ratio=8.0, learning_rate=1e-3)
CONFIG = dataclasses.replace(TINY, env=DeepSeaSettings(size=6), learner=LEARNER, steps=1200).with_agent("rnd")


def trained(steps=1200):
    session = LocalSession(CONFIG)
    for step in steps_of(session):
        if step >= steps:
            break
    return session


def test_the_copy_is_learned_and_the_random_network_is_not():
    before, after = LocalSession(CONFIG).agent.network.distillation, trained().agent.network.distillation
    for name, weight in before.fixed.state_dict().items():
        assert torch.equal(weight, after.fixed.state_dict()[name])
    seen = {"active": torch.zeros((1, 1), dtype=torch.int16)}  # the cell in which every episode begins
    assert after.error(seen).item() < 0.5 * before.error(seen).item()


def test_the_bonus_is_bounded_and_terminal_states_pay_none():
    session = trained(400)
    batch = session.agent.replay.sample(64, np.random.default_rng(0))
    bonus = batch.observation[INTRINSIC][1:, :, 0]
    s = CONFIG.exploration
    assert bonus.max() > 0
    assert bonus.min() >= 0
    assert bonus.max() <= s.scale * s.most + 1e-6
    assert (bonus[batch.terminated] == 0).all()


def test_a_batch_of_one_state_alone_is_soon_predicted():
    session = LocalSession(CONFIG)
    network = session.agent.network
    optimizer = torch.optim.Adam(network.distillation.learned.parameters(), 1e-3)
    state = {"active": torch.tensor([[3]], dtype=torch.int16)}
    first = network.distillation.error(state).item()
    for _ in range(100):
        optimizer.zero_grad()
        network.distillation.error(state).sum().backward()
        optimizer.step()
    assert network.distillation.error(state).item() < 0.01 * first
