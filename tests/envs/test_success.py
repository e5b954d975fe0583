"""What counts as success: what an environment says, a threshold, a return above 0 where rewards are sparse, or nothing."""

import enum

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from protogoal.domains.deep_sea import DEEP_SEA
from protogoal.domains.domain import success_rule
from protogoal.domains.user_env import OwnSettings
from protogoal.envs.success import ABOVE_0, UNTOLD, SuccessRule, find_rule, told
from protogoal.envs.workers import WorkerPool
from protogoal.presets import PRESETS


class Toy(gymnasium.Env):
    """Ten steps; what each is paid, and what `info` says at the end, are given."""

    def __init__(self, rewards=(0.0,), says=None, fails_at=0):
        self.observation_space, self.action_space = spaces.Discrete(10), spaces.Discrete(2, start=1)
        self.rewards, self.says, self.fails_at = rewards, says or {}, fails_at

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t += 1
        if self.t == self.fails_at:
            raise RuntimeError("out of order")
        over = self.t == 9
        return self.t, self.rewards[self.t % len(self.rewards)], over, False, self.says if over else {}


def rule_of(factory, success_return=None):
    pool = WorkerPool(factory, 1)
    try:
        return find_rule(pool, success_return)
    finally:
        pool.close()


@pytest.mark.parametrize(("env", "kind", "threshold"), [
    ("FrozenLake-v1", "threshold", 0.7), ("CartPole-v1", "threshold", 475.0), ("MountainCar-v0", "threshold", -110.0),
    ("CliffWalking-v1", "none", 0.0),
])
def test_gymnasiums_own_environments_have_the_rule_that_fits_them(env, kind, threshold):
    rule = success_rule(OwnSettings(env, "a:b"))
    assert (rule.kind, rule.threshold) == (kind, threshold)


def test_minigrid_pays_when_it_is_won():
    pytest.importorskip("minigrid")
    assert rule_of(lambda: gymnasium.wrappers.FilterObservation(gymnasium.make("MiniGrid-Empty-5x5-v0"), ["image"])) == ABOVE_0


def test_minihack_says_itself_which_episodes_succeed():
    pytest.importorskip("minihack")
    assert success_rule(OwnSettings("MiniHack-Room-5x5-v0")).kind == "told"  # its steps have costs


def test_our_own_domains_are_not_looked_at():
    for name in ("baba-umaze-small-protogoal", "minihack-narrow-river-protogoal", "deep-sea-protogoal"):
        assert success_rule(PRESETS[name].env) == ABOVE_0
    assert DEEP_SEA.success_rule(PRESETS["deep-sea-r2d2"].env, 0.5).threshold == 0.5


def test_the_rules_come_in_their_order():
    assert rule_of(lambda: Toy(says={"is_success": np.bool_(False)}), 3.0).kind == "told"
    assert rule_of(lambda: Toy(says={"success": 1.0})).kind == "told"
    assert rule_of(lambda: Toy(says={"success": "no"})) == ABOVE_0
    assert rule_of(lambda: Toy((-1.0,)), -12.0).threshold == -12.0
    assert rule_of(lambda: Toy((1.0,))).kind == rule_of(lambda: Toy((-1.0,))).kind == "none"
    assert rule_of(lambda: Toy((1.0, *[0.0] * 8))) == ABOVE_0  # one reward, at the end


def test_an_environment_that_fails_is_judged_by_what_was_seen():
    assert rule_of(lambda: Toy((1.0,), fails_at=1)) == ABOVE_0
    assert rule_of(lambda: Toy((1.0,), fails_at=5)).kind == "none"


def test_success_of_episodes():
    returns, says = np.array([-1.0, 0.0, 2.0]), np.array([1, 0, UNTOLD], np.int8)
    assert ABOVE_0.of(returns).tolist() == [0, 0, 1]
    assert ABOVE_0.of(returns, says).tolist() == [1, 0, 1]
    assert SuccessRule("threshold", 0.0).of(returns).tolist() == [0, 1, 1]
    assert SuccessRule("told").of(returns, says).tolist() == [1, 0, 0]
    assert SuccessRule("none").of(returns).tolist() == [UNTOLD] * 3
    paid = np.array([True, False, False])
    assert ABOVE_0.of_pursuit(paid, returns).tolist() == [True, False, False]
    assert SuccessRule("none").of_pursuit(paid, returns).tolist() == [True, False, False]
    assert SuccessRule("threshold", 0.0).of_pursuit(paid, returns).tolist() == [True, True, True]  # paid, or at the threshold
    assert SuccessRule("threshold", 9.0).of_pursuit(paid, returns).tolist() == [True, False, False]
    assert SuccessRule("told").of_pursuit(paid, returns, says).tolist() == [True, False, False]
    nobody, costs, ended = np.zeros(3, np.bool_), np.array([-13.0, -200.0, 5.0]), np.array([True, False, True])
    for kind in ("none", "threshold"):  # every step costs: an episode that was ended in time got somewhere
        assert SuccessRule(kind, 90.0).of_pursuit(nobody, costs, None, ended).tolist() == [True, False, False]
    assert not ABOVE_0.of_pursuit(nobody, costs, None, ended).any()  # where rewards are sparse it may have been a death


StepStatus = enum.IntEnum("StepStatus", {"ABORTED": -1, "RUNNING": 0, "DEATH": 1, "TASK_SUCCESSFUL": 2})


@pytest.mark.parametrize(("info", "said"), [
    ({"end_status": StepStatus.TASK_SUCCESSFUL}, 1), ({"end_status": StepStatus.DEATH}, 0), ({"end_status": 2}, UNTOLD),
    ({"is_success": True}, 1), ({"is_success": 0.0, "success": True}, 0), ({"success": np.array([1])}, 1),
    ({"success": None}, UNTOLD), ({}, UNTOLD), (None, UNTOLD), ({"is_success": float("nan")}, 0),
])
def test_what_info_says(info, said):
    assert told(info) == said
