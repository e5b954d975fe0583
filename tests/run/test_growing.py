"""Lists of ids that grow in the middle of a run: nothing is lost, and a resumed run is the same to the bit."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from reference.tiny_deep import TINY, differences, steps_of

from protogoal import ProtoGoalSpace
from protogoal.domains.user_env import OwnSettings
from protogoal.run import checkpoint
from protogoal.run.local import LocalSession

LENGTH = 30


class Line(gymnasium.Env):
    """A line to walk along; at its end the episode ends, with a reward."""

    observation_space = gymnasium.spaces.Discrete(LENGTH)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self.place, {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        self.steps += 1
        at_end = self.place == LENGTH - 1
        return self.place, float(at_end), at_end, self.steps >= 60, {}


class Thermometer(ProtoGoalSpace):
    """As many bits are on as one has walked far; room is made for one."""

    usual_active = 1

    def __init__(self):
        super().__init__(LENGTH)

    def _active(self, s, a, s_next):
        ids = np.arange(LENGTH)
        return np.where(ids <= np.asarray(s_next).reshape(-1, 1), ids, -1)

    def name(self, i):
        return f"past {i}"

    def kind(self, i):
        return "past"


def thermometer(env):
    return Thermometer()


@pytest.mark.parametrize("observation", ["own", "bits"])
def test_a_run_whose_lists_grow_is_resumed_to_the_bit(observation, tmp_path):
    env = OwnSettings("test_growing:Line", "test_growing:thermometer", observation=observation)
    config = dataclasses.replace(TINY, env=env, threads=1, steps=800)
    whole, saved, width = LocalSession(config), None, 0
    for step in steps_of(whole):
        if saved is None and step >= 100:
            width = whole.agent.replay.state_dict()["arrays"]["active"].shape[-1]
            saved = checkpoint.save(tmp_path / "c", step, whole.state_dict())
    grown = whole.agent.replay.state_dict()["arrays"]["active"]
    assert 1 < width < grown.shape[-1]
    assert whole.agent.replay.dropped == 0
    on = (grown >= 0).sum(-1)
    assert on.max() > width  # what is stored later has more on than there was room for then
    again = LocalSession(config)
    again.load_state_dict(checkpoint.load(saved)[1])
    for _ in steps_of(again):
        pass
    states = [session.state_dict() for session in (whole, again)]
    for state in states:
        for name in ("seconds", "cpu_seconds"):
            state["log"].pop(name)
    assert differences(*states) == []
