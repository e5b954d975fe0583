"""An environment and a proto-goal space as a user would write them, to be named on the command line."""

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal import Factor, OneHotFactors
from protogoal.envs.user_envs import OwnDomain

CELLS = 6


class Corridor(gymnasium.Env):
    """Left and right; reward 1 at the right end, 20 steps."""

    observation_space = spaces.MultiDiscrete([CELLS])
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 0, 0
        return np.array([self.place]), {}

    def step(self, action):
        self.place = int(np.clip(self.place + (1 if action else -1), 0, CELLS - 1))
        self.time += 1
        won = self.place == CELLS - 1
        return np.array([self.place]), float(won), won, self.time >= 20 and not won, {}

    def render(self):
        picture = np.zeros((2, CELLS, 3), np.uint8)
        picture[:, self.place] = 255
        return picture


def make():
    return Corridor()


def drawn(render_mode=None):
    env = Corridor()
    env.render_mode = render_mode
    return env


class Costly(Corridor):
    """The same, where every step costs 1."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, -1.0, terminated, truncated, info


class Strict(Corridor):
    """The same, which pays on the way and says that nothing is a success."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 1.0, terminated, truncated, info | {"is_success": False}


class Rich(Corridor):
    """The same, which pays 10,000 at the end and costs 1 a step."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, 1e4 * reward - 1.0, terminated, truncated, info


class Long(Corridor):
    """The same with episodes of 10,000 steps, which pays 1 in the right half."""

    def step(self, action):
        observation, _, _, _, info = super().step(action)
        return observation, float(self.place > CELLS // 2), False, self.time >= 10_000, info


def rich():
    return Rich()


def long():
    return Long()


def costly():
    return Costly()


def strict():
    return Strict()


def cells(env):
    return OneHotFactors([Factor("cell", tuple(f"cell {i}" for i in range(env.observation_space.nvec[0])))])


def broken():
    raise RuntimeError("no such maze")


def nothing(*_):
    return 3


DOMAIN = OwnDomain("own_corridor:make", "own_corridor:cells", "6 cells", {"steps": 4_000, "actor.num_envs": 4})
