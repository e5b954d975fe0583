"""MiniHack: two rooms and a corridor in the dark. Run: python examples/minihack_corridor.py (extras deep, minihack)

The proto-goals are derived: each monster, object and part of the dungeon in sight, beside the hero or carried, where the hero
stands, the status line, words of messages. The last lines print what was seen most rarely, which is where exploration has got to.
"""

import argparse

import numpy as np

import protogoal

ENV = "MiniHack-Corridor-R2-v0"


def main(steps=200_000, run=None, **fields):
    agent = protogoal.train(ENV, steps=steps, run=run, **fields)
    goals = agent.goals(as_table=False)
    for i in np.argsort(goals["count"])[:10]:
        print(f"{goals['count'][i]:6}  {goals['name'][i]}  {goals['verdict'][i]}")
    print(f"the task: {agent.evaluate(20)['success']:.2f}")
    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000, help="steps to train (default %(default)s)")
    parser.add_argument("--run", default="runs/minihack", help="directory of the run (default %(default)s)")
    main(**vars(parser.parse_args()))
