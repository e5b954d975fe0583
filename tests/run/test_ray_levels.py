"""Levels of numbers are found in the first steps of one process; every other process of a run takes them from it."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from reference.tiny_deep import FEW_CPUS, TINY, steps_of

ray = pytest.importorskip("ray")

from protogoal.config import RaySettings  # noqa: E402
from protogoal.domains.user_env import OwnSettings  # noqa: E402
from protogoal.envs.user_envs import space_of  # noqa: E402
from protogoal.run import checkpoint  # noqa: E402
from protogoal.run.local import LocalSession  # noqa: E402
from protogoal.run.ray.session import RaySession  # noqa: E402
from protogoal.run.ray.state import saved_spaces  # noqa: E402


class Unsteady(gymnasium.Env):
    """Shows random numbers, of another size in each environment that is made: seeds fix nothing."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.size = np.random.default_rng().uniform(1, 100)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._see(), {}

    def step(self, action):
        self.time += 1
        return self._see(), float(action), False, self.time >= 8, {}

    def _see(self):
        return (self.size * self.np_random.normal(size=2)).astype(np.float32)


CONFIG = dataclasses.replace(
    TINY, env=OwnSettings("test_ray_levels:Unsteady"), steps=10**6, ray=RaySettings(workers=2, answer_seconds=300.0, **FEW_CPUS))


def levels(state):
    """What each process says of its space: the run's, the evaluator's, each worker's."""
    return [{"spaces": space["spaces"], "moments": space["moments"]} for space in saved_spaces(state)]


def trained(session, steps):
    for step in steps_of(session):
        if step >= steps:
            return session.state_dict()
    raise AssertionError("it ended too early")


@pytest.mark.filterwarnings("ignore")
def test_all_processes_have_the_levels_of_the_run_also_after_a_resume(small_ray, tmp_path):
    first = RaySession(CONFIG)
    try:
        state = trained(first, 200)
    finally:
        first.close()
    found = levels(state)
    assert len(found) == 4
    assert all(one == found[0] for one in found)

    state = checkpoint.load(checkpoint.save(tmp_path, 1, state))[1]
    space_of("CartPole-v1")  # of first steps a process remembers the last: those of the run are forgotten
    local = LocalSession(dataclasses.replace(CONFIG, actor=dataclasses.replace(CONFIG.actor, num_envs=6)))
    assert levels(local.state_dict())[0] != found[0]  # it has looked for itself
    another = RaySession(dataclasses.replace(CONFIG, ray=dataclasses.replace(CONFIG.ray, workers=1)))  # episodes begin afresh
    try:
        another.load_state_dict(state)
        later = levels(trained(another, 400))
    finally:
        another.close()
    assert all(one == found[0] for one in later)
