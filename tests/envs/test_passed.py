"""Doorways passed: the count from the view alone is what the grid says, and it is a goal, but nothing that the network reads."""

import gymnasium
import numpy as np
import pytest

from protogoal.envs.passed import COUNTER, Passed, forgets
from protogoal.envs.user_envs import EnvReference, own_batch, space_of

wrappers = pytest.importorskip("minigrid.wrappers")

ROOMS = "MiniGrid-MultiRoom-N4-S5-v0"


def test_the_view_tells_which_doorways_were_passed():
    env = Passed(gymnasium.make(ROOMS))
    rng = np.random.default_rng(0)
    passed, most = set(), 0
    _, info = env.reset(seed=0)
    for _ in range(4_000):
        world = env.unwrapped
        ahead = world.grid.get(*world.front_pos)
        is_closed = ahead is not None and ahead.type == "door" and not ahead.is_open
        action = 5 if is_closed and rng.random() < 0.9 else rng.choice([0, 1, 2, 2, 2, 5])  # 5 opens, 2 walks
        _, _, terminated, truncated, info = env.step(action)
        here = world.grid.get(*world.agent_pos)
        if here is not None and here.type == "door":
            passed.add(here.color)
        assert info[COUNTER] == len(passed)
        most = max(most, len(passed))
        if terminated or truncated:
            passed = set()
            _, info = env.reset()
            assert info[COUNTER] == 0
    assert most >= 2


def test_they_are_goals_of_a_moving_view_and_hidden_from_the_network():
    goals = space_of(ROOMS).space
    names = [goals.name(i) for i in range(goals.size)]
    assert {"doorways passed ≥ 1", "doorways passed ≥ 3", "a doorway entered"} <= set(names)
    assert [name for name in names if name.startswith("doorways passed ≥")][-1] == "doorways passed ≥ 10"
    batch = own_batch(ROOMS, "", 2)
    assert not any("info" in name for name in batch.observation_spec)
    batch.close()


def test_a_whole_grid_and_other_environments_forget_nothing():
    assert forgets(gymnasium.make(ROOMS))
    assert not forgets(wrappers.FullyObsWrapper(gymnasium.make(ROOMS)))
    assert not forgets(gymnasium.make("CartPole-v1"))
    assert not isinstance(EnvReference("CartPole-v1")(), Passed)
