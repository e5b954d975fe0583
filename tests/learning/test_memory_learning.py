"""Two arms of `env.partial`: the recurrent agent reaches a goal that must be remembered, the plain one only by luck."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import protogoal

pytestmark = pytest.mark.learning

STEPS = 3  # from the sign to the fork
RIGHT_END, WRONG_END, NO_END = 2 + STEPS, 3 + STEPS, 4 + STEPS


class SignPost(gymnasium.Env):
    """The first state shows one of two signs; three steps later it says which of two ends pays. Nothing else tells.

    A third action leads to neither, so that actions matter to each end even for one who has forgotten the sign.
    """

    observation_space = spaces.Discrete(5 + STEPS)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sign, self.time = int(self.np_random.integers(2)), 0
        return self.sign, {}

    def step(self, action):
        self.time += 1
        if self.time <= STEPS:
            return 1 + self.time, 0.0, False, False, {}
        end = NO_END if action == 2 else RIGHT_END if action == self.sign else WRONG_END
        return end, float(end == RIGHT_END), True, False, {}


TINY = {"actor__num_envs": 16, "network__hidden": 32, "network__layers": 1, "network__rank": 16, "network__goal_hidden": 16,
        "learner__min_replay": 500, "learner__learning_rate": 1e-3, "learner__replay_ratio": 4.0, "refresh_every": 1000,
        "replay__capacity": 20_000, "evaluation__every": 100_000, "evaluation__final_episodes": 16, "record": ()}


@pytest.mark.parametrize("seed", [0, 1])
def test_the_recurrent_goal_conditioned_agent_remembers_and_the_plain_one_cannot(seed):
    found = {}
    for partial in ("yes", "no"):
        agent = protogoal.train(SignPost, steps=16_000, seed=seed, env__partial=partial, **TINY)
        found[partial] = [agent.evaluate(128, goal=f"state = {RIGHT_END}")["success"], agent.evaluate(128)["success"]]
    assert np.min(found["yes"]) > 0.9
    assert np.max(found["no"]) < 0.75
