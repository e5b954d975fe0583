"""MiniGrid's KeyCorridor with a view and proto-goals of one's own. Run from this directory:

    protogoal train --env minigrid_keycorridor:make_env --space minigrid_keycorridor:proto_goals --run runs/corridor
"""

import gymnasium
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
from gymnasium import spaces

from protogoal import Factor, OneHotFactors, Union

THINGS = ["key", "ball"]
CARRIED = ["nothing", *THINGS]
KINDS = ["nothing", "wall", *THINGS, "locked door", "closed door", "open door"]
DIRECTIONS = ["east", "south", "west", "north"]
LOCK = ["locked", "unlocked"]
MANY = 4  # open doors are counted up to here
SIGHT = 3  # cells that the agent sees on each side


def kind(thing):
    """A thing of MiniGrid's as an index into KINDS."""
    if thing is None:
        return 0
    if thing.type == "door":
        return KINDS.index("open door" if thing.is_open else "locked door" if thing.is_locked else "closed door")
    return KINDS.index(thing.type)


class CorridorView(gymnasium.ObservationWrapper):
    """The world in whole numbers.

    where   the cell of the agent and of each thing; one number more for a thing that is in no cell
    status  what is carried, which way the agent looks, what is in front of it, how the lock is, how many doors are open
    seen    the 7 × 7 cells around the agent, turned so that it looks up
    """

    def __init__(self, env):
        super().__init__(env)
        self.rows, self.columns = env.unwrapped.height, env.unwrapped.width
        self.nowhere = self.rows * self.columns
        self.observation_space = spaces.Dict({
            "where": spaces.MultiDiscrete([self.nowhere + 1] * (1 + len(THINGS))),
            "status": spaces.MultiDiscrete([len(CARRIED), len(DIRECTIONS), len(KINDS), len(LOCK), MANY + 1]),
            "seen": spaces.MultiDiscrete([len(KINDS)] * (2 * SIGHT + 1) ** 2),
        })
        env.unwrapped.gen_obs = dict  # MiniGrid's own view is not used, and costs half of its time

    def observation(self, _):
        world = self.unwrapped
        column, row = world.agent_pos
        cells = np.array([kind(thing) for thing in world.grid.grid]).reshape(self.rows, self.columns)
        walled = np.pad(cells, SIGHT, constant_values=KINDS.index("wall"))
        around = walled[row : row + 2 * SIGHT + 1, column : column + 2 * SIGHT + 1]
        seen = np.rot90(around, world.agent_dir + 1)
        found = [np.flatnonzero(cells == KINDS.index(thing)) for thing in THINGS]
        where = [row * self.columns + column, *(places[0] if len(places) else self.nowhere for places in found)]
        carried = CARRIED.index(world.carrying.type if world.carrying else "nothing")
        is_unlocked = not (cells == KINDS.index("locked door")).any()
        num_open = min(MANY, (cells == KINDS.index("open door")).sum())
        status = [carried, world.agent_dir, seen[SIGHT - 1, SIGHT], is_unlocked, num_open]
        return {"where": np.array(where), "status": np.array(status), "seen": seen.flatten()}


def make_env(render_mode=None):
    """One environment; `render_mode` is asked for where pictures are wanted."""
    return CorridorView(gymnasium.make("MiniGrid-KeyCorridorS3R3-v0", render_mode=render_mode, disable_env_checker=True))


def proto_goals(env):
    """The agent and every thing in every cell, or in none; and every value of the status."""
    where = []
    for thing in ["agent", *THINGS]:
        cells = Factor.positions(thing, env.rows, env.columns)
        where.append(Factor(thing, (*cells.names, f"{thing} in no cell"), (*cells.cells, None)))
    status = [Factor("carrying", tuple(f"carrying {thing}" for thing in CARRIED)),
              Factor("looking", tuple(f"looking {direction}" for direction in DIRECTIONS)),
              Factor("before", tuple(f"before {kind}" for kind in KINDS)),
              Factor("lock", tuple(f"lock {state}" for state in LOCK)),
              Factor("doors", tuple(f"{number} doors open" for number in [*range(MANY), f"{MANY} or more"]))]
    return Union([OneHotFactors(where, (env.rows, env.columns), key="where"), OneHotFactors(status, key="status")])


if __name__ == "__main__":
    env = make_env()
    space = proto_goals(env)
    observation, _ = env.reset(seed=0)
    bits = space.bits(None, None, {name: part[None] for name, part in observation.items()})[0]
    print(f"{space.size} proto-goals; on at the start: {', '.join(space.name(i) for i in np.flatnonzero(bits))}")
