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


class ObjectView(gymnasium.ObservationWrapper):
    """What stands where, which way the agent looks, and what it carries."""

    def __init__(self, env):
        super().__init__(env)
        rows, columns = env.unwrapped.height, env.unwrapped.width
        self.observation_space = spaces.Dict({
            "things": spaces.MultiBinary((len(THINGS), rows, columns)),
            "walls": spaces.MultiBinary((1, rows, columns)),
            "direction": spaces.Discrete(4),
            "carrying": spaces.MultiDiscrete([len(CARRIED)]),
        })

        env.unwrapped.gen_obs = dict  # MiniGrid's own 7 × 7 view is not used, and costs half of its time

    def observation(self, _):
        world = self.unwrapped
        things, walls = (np.zeros(self.observation_space[name].shape, np.int8) for name in ("things", "walls"))
        for place, thing in enumerate(world.grid.grid):
            row, column = divmod(place, world.width)
            if thing is not None and thing.type == "wall":
                walls[0, row, column] = 1
            elif thing is not None:
                things[THINGS.index(name_of(thing)), row, column] = 1
        column, row = world.agent_pos
        things[THINGS.index("agent"), row, column] = 1
        carried = world.carrying.type if world.carrying else "nothing"
        return {"things": things, "walls": walls, "direction": world.agent_dir, "carrying": np.array([CARRIED.index(carried)])}


def name_of(thing):
    """A door is open, closed or locked; everything else is what it is."""
    if thing.type != "door":
        return thing.type
    return "open door" if thing.is_open else "locked door" if thing.is_locked else "closed door"
# --8<-- [end:view]


# --8<-- [start:factory]
def make_env(render_mode=None):
    """One environment; `render_mode` is asked for where pictures are wanted.

    Episodes are 250 steps at most instead of 640: a failed one then costs less.
    """
    return ObjectView(gymnasium.make("MiniGrid-DoorKey-8x8-v0", max_steps=250, render_mode=render_mode, disable_env_checker=True))


def proto_goals(env):
    """Every thing in every cell, and everything that can be carried."""
    _, rows, columns = env.observation_space["things"].shape
    carrying = Factor("carrying", tuple(f"carrying {thing}" for thing in CARRIED))
    return Union([ObjectGrid(THINGS, rows, columns, key="things"), OneHotFactors([carrying], key="carrying")])
# --8<-- [end:factory]


if __name__ == "__main__":
    # --8<-- [start:look]
    env = make_env()
    space = proto_goals(env)
    observation, _ = env.reset(seed=0)
    bits = space.bits(None, None, {name: np.asarray(part)[None] for name, part in observation.items()})[0]
    print(f"{space.size} proto-goals; on at the start: {', '.join(space.name(i) for i in np.flatnonzero(bits))}")
    # --8<-- [end:look]
