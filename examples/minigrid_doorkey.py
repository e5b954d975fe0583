"""MiniGrid's DoorKey with proto-goals: the code of docs/tutorial.md. Run from this directory:

    protogoal train --env minigrid_doorkey:make_env --space minigrid_doorkey:proto_goals --run runs/doorkey
"""

# --8<-- [start:imports]
import gymnasium
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
from gymnasium import spaces

from protogoal import Factor, OneHotFactors, Union

# --8<-- [end:imports]

# --8<-- [start:view]
THINGS = ["key", "door", "goal"]
BESIDE = ["nothing", "wall", *THINGS]
CARRIED = ["nothing", "key"]
DIRECTIONS = {"east": (0, 1), "south": (1, 0), "west": (0, -1), "north": (-1, 0)}  # a step that way: rows, columns
DOORS = ["locked", "closed", "open"]


class ObjectView(gymnasium.ObservationWrapper):
    """The world in a few whole numbers.

    where   the cell of the agent and of each thing; one number more for a thing that is in no cell
    status  what is carried, which way the agent looks, how its door is
    seen    the same as the agent sees it: each thing's place ahead and to the right of it, and what is on its four sides
    """

    def __init__(self, env):
        super().__init__(env)
        self.rows, self.columns = env.unwrapped.height, env.unwrapped.width
        self.reach = max(self.rows, self.columns) - 1  # nothing is farther away
        self.nowhere, self.unseen = self.rows * self.columns, (2 * self.reach + 1) ** 2
        self.observation_space = spaces.Dict({
            "where": spaces.MultiDiscrete([self.nowhere + 1] * (1 + len(THINGS))),
            "status": spaces.MultiDiscrete([len(CARRIED), len(DIRECTIONS), len(DOORS)]),
            "seen": spaces.MultiDiscrete([self.unseen + 1] * len(THINGS) + [len(BESIDE)] * 4),
        })
        env.unwrapped.gen_obs = dict  # MiniGrid's own 7 × 7 view is not used, and costs half of its time

    def observation(self, _):
        world, cells = self.unwrapped, self.unwrapped.grid.grid
        column, row = world.agent_pos
        down, right = list(DIRECTIONS.values())[world.agent_dir]
        found = {thing.type: place for place, thing in enumerate(cells) if thing is not None and thing.type in THINGS}
        where = [row * self.columns + column, *(found.get(thing, self.nowhere) for thing in THINGS)]
        seen = []
        for thing in THINGS:
            r, c = divmod(found.get(thing, 0), self.columns)
            ahead = (r - row) * down + (c - column) * right
            aside = (r - row) * right - (c - column) * down
            place = (self.reach + ahead) * (2 * self.reach + 1) + self.reach + aside
            seen.append(place if thing in found else self.unseen)
        for r, c in ((down, right), (right, -down), (-right, down), (-down, -right)):
            beside = cells[(row + r) * self.columns + column + c]
            seen.append(BESIDE.index(beside.type if beside else "nothing"))
        door = cells[found["door"]]
        state = "open" if door.is_open else "locked" if door.is_locked else "closed"
        status = [CARRIED.index(world.carrying.type if world.carrying else "nothing"), world.agent_dir, DOORS.index(state)]
        return {"where": np.array(where), "status": np.array(status), "seen": np.array(seen)}
# --8<-- [end:view]


# --8<-- [start:factory]
def make_env(render_mode=None):
    """One environment; `render_mode` is asked for where pictures are wanted.

    Episodes are 250 steps at most instead of 640: a failed one then costs less.
    """
    return ObjectView(gymnasium.make("MiniGrid-DoorKey-8x8-v0", max_steps=250, render_mode=render_mode, disable_env_checker=True))


def proto_goals(env):
    """The agent and every thing in every cell, or in none; what is carried, every way to look, every state of the door."""
    where = []
    for thing in ["agent", *THINGS]:
        cells = Factor.positions(thing, env.rows, env.columns)
        where.append(Factor(thing, (*cells.names, f"{thing} in no cell"), (*cells.cells, None)))
    status = [Factor("carrying", tuple(f"carrying {thing}" for thing in CARRIED)),
              Factor("looking", tuple(f"looking {direction}" for direction in DIRECTIONS)),
              Factor("lock", tuple(f"door {state}" for state in DOORS))]
    return Union([OneHotFactors(where, (env.rows, env.columns), key="where"), OneHotFactors(status, key="status")])
# --8<-- [end:factory]


if __name__ == "__main__":
    # --8<-- [start:look]
    env = make_env()
    space = proto_goals(env)
    observation, _ = env.reset(seed=0)
    bits = space.bits(None, None, {name: part[None] for name, part in observation.items()})[0]
    print(f"{space.size} proto-goals; on at the start: {', '.join(space.name(i) for i in np.flatnonzero(bits))}")
    # --8<-- [end:look]
