"""Crafter without its reward, goals from `info`. Run: python examples/crafter_achievements.py (extras deep, crafter)

The network sees Crafter's picture alone. Inventory and achievements, which the game keeps in `info`, are the proto-goals:
"wood ≥ 3", "cow eaten". The agent thus knows more than its observation; say so wherever you compare it. A million steps take
an hour or two.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

import protogoal
from protogoal.goals.derived.counters import ACHIEVED

ENV = "CrafterNoReward-v1"
INFO = "inventory,achievements"


def main(steps=200_000, run=None, **fields):
    agent = protogoal.train(ENV, steps=steps, info=INFO, run=run, **fields)
    goals = agent.goals(as_table=False)
    print("  times  success  goal")
    for name, count, success in zip(*(goals[key] for key in ("name", "count", "success")), strict=True):
        print(f"{count:7}  {success:7.2f}  {name}")
    if run is not None:
        print_score(run)
    return agent


def rates(run):
    """In how many of the episodes of training each achievement was unlocked, in per cent; each turns on once an episode."""
    record = protogoal.read_run(run)
    metrics, goals = record.metrics, record.goals
    ended = [value for name, value in zip(metrics["name"], metrics["value"], strict=True) if name == "train_episodes"]
    if not ended:
        raise SystemExit(f"{run} has had no evaluation while it trained, at which episodes are counted; let it go on")
    times = defaultdict(int, zip(goals["name"], goals["count"], strict=True))
    return {name: 100 * min(times[name] / max(ended[-1], 1), 1.0) for name in ACHIEVED.values()}


def score(percent):
    """Crafter's score: exp(mean ln(1 + s)) − 1 over its 22 achievements."""
    return float(np.expm1(np.log1p(list(percent)).mean()))


def print_score(run):
    percent = rates(run)
    for name, value in sorted(percent.items(), key=lambda row: -row[1]):
        print(f"{value:6.1f} %  {name}")
    print(f"score: {score(percent.values()):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000, help="steps to train (default %(default)s)")
    parser.add_argument("--run", default="runs/crafter", help="directory of the run (default %(default)s)")
    parser.add_argument("--score", action="store_true", help="only tell the score of the run that is there")
    options = parser.parse_args()
    if options.score:
        print_score(Path(options.run))
    else:
        main(options.steps, options.run)
