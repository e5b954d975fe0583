"""MiniGrid through its own 7 × 7 view, with nothing to write. Run: python examples/minigrid_view.py (extras deep, minigrid)

Two minutes on one core. The proto-goals are derived from the view ("yellow key carried", "a door opened"); docs/partial.md says
which of them make sense in a view that moves.
"""

import argparse

import protogoal

ENV = "MiniGrid-DoorKey-5x5-v0"


def main(steps=40_000, **fields):
    agent = protogoal.train(ENV, steps=steps, **fields)
    goals = agent.goals(as_table=False)
    mastered = [name for name, is_mastered in zip(goals["name"], goals["mastered"], strict=True) if is_mastered]
    print(f"{len(goals['name'])} goals were seen, {len(mastered)} are mastered: {'; '.join(mastered[:8])}")
    print(f"the task: {agent.evaluate(20)['success']:.2f}")
    for goal in ("key carried", "a door opened"):
        if goal in goals["name"]:
            print(f"{goal}: {agent.evaluate(20, goal=goal)['success']:.2f}")
    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40_000, help="steps to train (default %(default)s)")
    main(parser.parse_args().steps)
