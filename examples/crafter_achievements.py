"""Crafter without its reward, goals from `info`. Run: python examples/crafter_achievements.py (extras deep, crafter)

The network sees Crafter's picture alone. Inventory and achievements, which the game keeps in `info`, are proto-goals beside those
of the picture: "wood ≥ 3", "collect drink rises". The agent thus knows more than its observation; say so wherever you compare it.
Episodes are cut at 1,000 steps here (Crafter's own are up to 10,000). A million steps take hours: drawing is slow.
"""

import argparse

import protogoal

ENV = "CrafterNoReward-v1?length=1000"
INFO = "inventory,achievements"


def main(steps=200_000, run=None, **fields):
    agent = protogoal.train(ENV, steps=steps, info=INFO, run=run, **fields)
    goals = agent.goals(as_table=False)
    print("  times  success  goal")
    for name, kind, count, success in zip(*(goals[key] for key in ("name", "kind", "count", "success")), strict=True):
        if "picture" not in kind:
            print(f"{count:7}  {success:7.2f}  {name}")
    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000, help="steps to train (default %(default)s)")
    parser.add_argument("--run", default="runs/crafter", help="directory of the run (default %(default)s)")
    main(**vars(parser.parse_args()))
