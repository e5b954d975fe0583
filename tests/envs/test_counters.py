"""Numbers of `info` as proto-goals: how they are found, and what is said where an environment fails meanwhile."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from protogoal import ProtoGoalSpace
from protogoal.cli import main
from protogoal.envs.counters import LOOKED_AT, values_of
from protogoal.envs.describe import describe
from protogoal.envs.user_envs import EnvReference, reference, reference_of


class Told(gymnasium.Env):
    """Episodes of 10 steps; `info` is what `told` gives for all steps until now and those of the episode."""

    observation_space, action_space = spaces.Discrete(5), spaces.Discrete(2)
    played = 0

    def told(self):
        return {}

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return 0, self.told()

    def step(self, action):
        self.t, self.played = self.t + 1, self.played + 1
        return self.t % 5, 0.0, False, self.t >= 10, self.told()


def named(made):
    return reference(lambda: made(), must_last=False)


class Last(Told):
    def told(self):
        return {"score": 1.0} if self.t == 10 else {}


class Late(Told):
    def told(self):
        return {"early": 1} | ({"late": {"gold": 2}} if self.played >= 700 else {})


class Growing(Told):
    def told(self):
        return {"found": {f"thing {k}": 1 for k in range(1 + self.played // 100)}} if self.played < 300 else {}


class Fails(Told):
    def told(self):
        return {"gold": 1 / (5 - self.t)}


class Seedless(Told):
    def reset(self):
        return super().reset()


class FourValues(Told):
    def step(self, action):
        return super().step(action)[1:]


class Unreadable(Told):
    observation_space = property(lambda self: self.unknown.space)

    def __getattr__(self, name):
        raise RuntimeError(f"no {name} yet")


class Nameless(ProtoGoalSpace):
    def __init__(self):
        super().__init__(3)

    def _bits(self, s, a, s_next):
        return np.ones((len(s_next), 3), bool)

    def name(self, i):
        raise RuntimeError("no names")

    def kind(self, i):
        return "thing"


@pytest.mark.parametrize("info", [None, [1, 2], 3, {"other": None}])
def test_an_info_without_numbers_is_none(info):
    made = type("Odd", (Told,), {"told": lambda self: info})
    assert describe(named(made))["more_in_info"] == []
    with pytest.raises(ValueError, match="no numbers of that name in info in the first 1,000 random steps; there are none"):
        reference_of(named(made), "gold")
    assert np.isnan(values_of(info, ["gold"])).all()


def test_a_number_without_an_end_counts_as_missing():
    assert np.isnan(values_of({"gold": 10**400}, ["gold"])).all()


@pytest.mark.parametrize(("made", "info", "names"), [
    (Last, "score", ("score",)),
    (Late, "early,late", ("early", "late/gold")),
    (Growing, "found", ("found/thing 0", "found/thing 1", "found/thing 2")),
])
def test_what_only_the_last_info_of_an_episode_or_a_late_one_has_is_found(made, info, names):
    assert reference_of(named(made), info).counters == names


def test_the_search_ends_when_every_name_is_found_and_nothing_new_comes():
    envs = []

    def make():
        envs.append(type("Early", (Told,), {"told": lambda self: {"gold": self.t}})())
        return envs[-1]

    assert reference_of(named(make), "gold").counters == ("gold",)
    assert 0 < envs[0].played < LOOKED_AT // 2


def test_a_hint_names_what_comes_only_after_the_reset():
    assert describe(named(Last))["more_in_info"] == ["score"]


def test_a_hint_looks_up_to_where_the_environment_fails():
    assert describe(named(Fails))["more_in_info"] == ["gold"]


@pytest.mark.parametrize(("made", "words"), [
    (Fails, r"^environment 0 \(seed 0, step 5\) raised ZeroDivisionError: division by zero"),
    (Seedless, r"^environment 0 \(seed 0, reset\) raised TypeError: .*unexpected keyword argument 'seed'"),
    (FourValues, r"^environment 0 \(seed 0, step 1\) gave 4 values; reset must give \(observation, info\), step \(observation,"),
])
def test_an_environment_that_fails_while_info_is_read_is_told_with_seed_and_step(made, words):
    with pytest.raises(ValueError, match=words):
        reference_of(named(made), "gold")


def test_a_space_that_cannot_be_asked_for_is_one_failure():
    with pytest.raises(ValueError, match=r"^the observation_space of .* raised RuntimeError: no unknown yet"):
        EnvReference(named(Unreadable))()


def test_a_proto_goal_without_a_name_is_one_failure(capsys):
    space = reference(lambda env: Nameless(), must_last=False)
    assert main(["space", "--env", named(Told), "--space", space]) == 2
    told = capsys.readouterr().err
    assert "name(0) of here:" in told
    assert "raised RuntimeError: no names" in told
