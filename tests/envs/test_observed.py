"""What environments give that only nearly fits: what is taken as it was meant, and what is said of the rest."""

import warnings
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from protogoal.cli import main
from protogoal.envs.describe import in_words
from protogoal.envs.failure import EnvironmentFailure
from protogoal.envs.observed import fitting
from protogoal.envs.pictures import drawn
from protogoal.envs.user_envs import own_batch, reference
from protogoal.run.clips import plain_words
from protogoal.run.training import title_of


class Counting(gymnasium.Env):
    observation_space, action_space, reward = spaces.Discrete(5), spaces.Discrete(2), 0.0

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return np.array([3]), self.reward, False, False, {}


class FourValues(Counting):
    def step(self, action):
        return 0, 0.0, False, {}


class NoTuple(Counting):
    def step(self, action):
        return None


class Unpaid(Counting):
    reward = None


def played(make):
    batch = own_batch(reference(lambda: make(), must_last=False), "", 1)
    try:
        batch.reset(seed=0)
        return batch.step(np.zeros(1, int))
    finally:
        batch.close()


def test_a_state_may_be_an_array_of_one_number():
    assert played(Counting).active[0, 0] == 3


@pytest.mark.parametrize(("make", "words"), [
    (FourValues, r"step 1\) gave 4 values; reset must give \(observation, info\), step \(observation, reward, terminated, trunc"),
    (lambda: TimeLimit(FourValues(), 9), r"step 1\) gave 4 values; reset must give"),
    (NoTuple, r"step 1\) gave a NoneType; reset must give"),
    (Unpaid, r"step 1\) gave the reward None; it must be one number"),
])
def test_a_step_that_gives_something_else_is_one_line(make, words):
    with pytest.raises(EnvironmentFailure, match=words) as caught:
        played(make)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [[np.inf, 1e300], [np.nan, -1e300]])
def test_numbers_without_end_are_read_without_a_warning(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = fitting(np.array(values), "x", (2,), np.dtype(np.float32), lambda: "environment 0")
    assert seen.dtype == np.float32


def test_an_id_in_the_place_of_a_preset_is_told_where_it_belongs(capsys):
    assert main(["train", "FrozenLake-v1"]) == 2
    assert "unknown preset 'FrozenLake-v1'; for an environment: --env FrozenLake-v1" in capsys.readouterr().err


def test_a_part_that_can_have_no_goal_has_no_examples():
    told = {"env": "x", "size": 0, "actions": 2, "is_partial": False, "space": "", "more_in_info": [], "on_at_the_start": [],
            "network": {}, "left_out": {}, "parts": {"word": {"size": 7, "kinds": {}, "examples": []},
                                                     "none": {"size": 0, "kinds": {}, "examples": []}}}
    assert [line.split(maxsplit=1)[1] for line in in_words(told).splitlines() if "examples" in line] \
        == ["found while reading", "none"]


def test_why_there_are_no_clips_is_one_plain_sentence():
    with pytest.raises(EnvironmentFailure) as caught:
        drawn(Counting())
    assert plain_words(caught.value) == "the environment cannot be drawn: NotImplementedError"


@pytest.mark.parametrize(("factory", "title"), [("CartPole-v1", "CartPole-v1"), ("here:1234-make", "first")])
def test_a_run_with_an_environment_of_ones_own_is_called_after_it(factory, title):
    run = SimpleNamespace(preset="own", path=SimpleNamespace(name="first"),
                          config=SimpleNamespace(env=SimpleNamespace(kind="own", factory=factory)))
    assert title_of(run) == title
