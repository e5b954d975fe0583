"""MiniGrid's DoorKey with proto-goals: the code of docs/tutorial.md. Run from this directory:

    protogoal train --env minigrid_doorkey:make_env --space minigrid_doorkey:proto_goals --run runs/doorkey
"""

# --8<-- [start:imports]
import gymnasium
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
from gymnasium import spaces

from protogoal import Factor, ObjectGrid, OneHotFactors, Union

# --8<-- [end:imports]

# --8<-- [start:view]
THINGS = ["agent", "key", "ball", "box", "goal", "open door", "closed door", "locked door"]
CARRIED = ["nothing", "key", "ball", "box"]
DIRECTIONS = ["east", "south", "west", "north"]
DOORS = ["locked", "closed", "open"]


class ObjectView(gymnasium.ObservationWrapper):
    """What stands where; and what the agent carries, which way it looks, how its door is."""

    def __init__(self, env):
        super().__init__(env)
        rows, columns = env.unwrapped.height, env.unwrapped.width
        self.observation_space = spaces.Dict({
            "things": spaces.MultiBinary((len(THINGS), rows, columns)),
            "walls": spaces.MultiBinary((1, rows, columns)),
            "status": spaces.MultiDiscrete([len(CARRIED), len(DIRECTIONS), len(DOORS)]),
        })

        env.unwrapped.gen_obs = dict  # MiniGrid's own 7 × 7 view is not used, and costs half of its time

    def observation(self, _):
        world = self.unwrapped
        things, walls = (np.zeros(self.observation_space[name].shape, np.int8) for name in ("things", "walls"))
        door = "locked"
        for place, thing in enumerate(world.grid.grid):
            row, column = divmod(place, world.width)
            if thing is not None and thing.type == "wall":
                walls[0, row, column] = 1
            elif thing is not None and thing.type == "door":
                door = "open" if thing.is_open else "locked" if thing.is_locked else "closed"
                things[THINGS.index(f"{door} door"), row, column] = 1
            elif thing is not None:
                things[THINGS.index(thing.type), row, column] = 1
        column, row = world.agent_pos
        things[THINGS.index("agent"), row, column] = 1
        carried = world.carrying.type if world.carrying else "nothing"
        status = np.array([CARRIED.index(carried), world.agent_dir, DOORS.index(door)])
        return {"things": things, "walls": walls, "status": status}
# --8<-- [end:view]


# --8<-- [start:factory]
def make_env(render_mode=None):
    """One environment; `render_mode` is asked for where pictures are wanted.

    Episodes are 250 steps at most instead of 640: a failed one then costs less.
    """
    return ObjectView(gymnasium.make("MiniGrid-DoorKey-8x8-v0", max_steps=250, render_mode=render_mode, disable_env_checker=True))


def proto_goals(env):
    """Every thing in every cell, everything that can be carried, every way to look, every state of the door."""
    _, rows, columns = env.observation_space["things"].shape
    status = [Factor("carrying", tuple(f"carrying {thing}" for thing in CARRIED)),
              Factor("looking", tuple(f"looking {direction}" for direction in DIRECTIONS)),
              Factor("door", tuple(f"door {state}" for state in DOORS))]
    return Union([ObjectGrid(THINGS, rows, columns, key="things"), OneHotFactors(status, key="status")])
# --8<-- [end:factory]


if __name__ == "__main__":
    # --8<-- [start:look]
    env = make_env()
    space = proto_goals(env)
    observation, _ = env.reset(seed=0)
    bits = space.bits(None, None, {name: np.asarray(part)[None] for name, part in observation.items()})[0]
    print(f"{space.size} proto-goals; on at the start: {', '.join(space.name(i) for i in np.flatnonzero(bits))}")
    # --8<-- [end:look]
