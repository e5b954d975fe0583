"""A view and a proto-goal space of one's own, for MiniGrid's DoorKey: the code of docs/tutorial.md. Run from this directory:

    protogoal train --env doorkey_goals:make_env --space doorkey_goals:proto_goals --run runs/own --steps 40000
"""

import gymnasium
import minigrid  # noqa: F401  (registers its environments)
from gymnasium import spaces

from protogoal import Factor, NamedCallables, OneHotFactors, Union


class WithPlace(gymnasium.ObservationWrapper):
    """MiniGrid's view, and the cell in which the agent stands."""

    def __init__(self, env):
        super().__init__(env)
        self.grid = env.unwrapped.height, env.unwrapped.width
        place = spaces.MultiDiscrete([self.grid[0] * self.grid[1]])
        self.observation_space = spaces.Dict({**env.observation_space.spaces, "place": place})

    def observation(self, observation):
        column, row = self.unwrapped.agent_pos
        return {**observation, "place": [row * self.grid[1] + column]}


def make_env(render_mode=None):
    """One environment; `render_mode` is asked for where pictures are wanted."""
    return WithPlace(gymnasium.make("MiniGrid-DoorKey-5x5-v0", render_mode=render_mode))


def proto_goals(env):
    """The agent in every cell; and two things that one can tell from the view, where the agent is at [3, 6] and looks up."""
    rows, columns = env.unwrapped.height, env.unwrapped.width
    places = OneHotFactors([Factor.positions("agent", rows, columns)], (rows, columns), key="place")
    events = NamedCallables({
        "holds the key": lambda s, a, s_next: s_next[3, 6, 0] == 5,
        "door opened": lambda s, a, s_next: s is not None and s[3, 5, 0] == 4 and s[3, 5, 2] > 0 and s_next[3, 5, 2] == 0,
    }, key="image")
    return Union([places, events])
