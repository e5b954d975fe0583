"""What every agent of the registry must be able to do: to train, to be saved and go on to the bit, to be taken apart and joined."""

import dataclasses

import numpy as np
import pytest
from reference.tiny_deep import TINY, differences, steps_of

from protogoal import registry
from protogoal.config import RaySettings
from protogoal.domains.deep_sea import DeepSeaSettings
from protogoal.presets import PRESETS, at_paper_scale
from protogoal.run.local import LocalSession
from protogoal.run.ray.state import share_of_knowledge, without_episodes
from protogoal.run.ray.supervisor import Published
from protogoal.run.ray.worker import Worker

EVERY = pytest.mark.parametrize("agent", registry.AGENTS)


def tiny(agent, **fields):
    return dataclasses.replace(TINY, env=DeepSeaSettings(size=6), steps=600, **fields).with_agent(agent)


def run(session, until=10**9):
    for step in steps_of(session):
        if step >= until:
            return session
    return session


@EVERY
def test_saved_half_way_an_agent_goes_on_to_the_bit(agent):
    whole = run(LocalSession(tiny(agent)))
    half = run(LocalSession(tiny(agent)), until=300)
    again = LocalSession(tiny(agent))
    again.load_state_dict(half.state_dict())
    run(again)
    assert whole.agent.learner.updates > 3
    assert differences(again.agent.state_dict(), whole.agent.state_dict()) == []


@EVERY
def test_what_several_workers_know_goes_to_one_actor_and_back_to_several(agent):
    config, cls = tiny(agent, ray=RaySettings(workers=2)), registry.agent(agent)
    workers = [Worker(config, index, 2) for index in range(2)]
    for worker in workers:
        worker.collect(Published(), Published(), None, True, 4)
    states = [worker.state() for worker in workers]
    local = LocalSession(tiny(agent)).agent.actor
    local.load_state_dict(without_episodes(cls, states))
    assert not local.was_restored
    joined = cls.join_knowledge(states)
    assert differences({part: local.state_dict()[part] for part in joined}, joined) == []
    three = [Worker(dataclasses.replace(config, ray=RaySettings(workers=3)), index, 2) for index in range(3)]
    for index, worker in enumerate(three):
        assert not worker.begin_afresh(share_of_knowledge(cls, states, index, 2))
    shared = [worker.actor.shared() for worker in workers]
    assert (shared[0] is None) == (three[0].actor.shared() is None)


@EVERY
def test_an_agent_has_a_preset_on_every_domain_and_settings_of_the_papers_scale(agent):
    tasks = {name.removesuffix("-r2d2") for name in PRESETS if name.endswith("-r2d2")}
    for task in tasks:
        config = PRESETS[f"{task}-{agent}"]
        assert config.agent == at_paper_scale(config).agent == agent
        assert type(config.exploration) is registry.agent(agent).settings


def test_settings_of_another_agent_are_refused():
    with pytest.raises(ValueError, match="exploration must be Agent57Settings, of the agent agent57"):
        dataclasses.replace(tiny("count-bonus"), agent="agent57")
    with pytest.raises(ValueError, match=r"agent must be one of protogoal, .*; got 'r2d3'"):
        tiny("r2d3")


def test_novelty_is_learned_with_the_task_and_not_read_by_the_network():
    from protogoal.agents.blueprint import INTRINSIC

    session = run(LocalSession(tiny("count-bonus")), until=400)
    batch = session.agent.replay.sample(8, np.random.default_rng(0))
    paid = session.agent.learner.paid(batch)
    assert batch.observation[INTRINSIC].max() > 0
    assert np.allclose(paid.reward - batch.reward, batch.observation[INTRINSIC][1:, :, 0], atol=1e-6)
    assert INTRINSIC not in session.agent.network.torsos
