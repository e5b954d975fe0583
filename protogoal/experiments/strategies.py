"""The paper's rule for choosing goals against three others (goals/strategies.py), on SparseTaxi and the small U-Maze.

Two comparisons of arms in one experiment, each in its own folder; `protogoal.experiments.arms` runs and draws them. The
second needs the extra `deep` and is passed over where it is missing.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from protogoal.experiments.arms import Arm, Comparison, Scale
from protogoal.experiments.arms_readme import TABLE_HEAD, table
from protogoal.experiments.comparisons import ONE_CORE, SMOKE, TEST, TINY
from protogoal.files import write_whole

ARMS = {  # label → (desirability, strategy)
    "the paper's rule": ("paper", "paper"),
    "uniform": ("uniform", "uniform"),
    "novelty × reachability": ("paper", "product"),
    "learning progress": ("progress", "desirable"),
}


def _arms(preset: str) -> list[Arm]:
    return [Arm(label, preset, {"pge.desirability": u, "pge.strategy": name}) for label, (u, name) in ARMS.items()]


COMPARISONS = {
    "taxi": Comparison(
        "strategies", "Ways to choose goals, SparseTaxi", "its rule is novelty, then local reachability, within timescale buckets; "
        "it is not compared with these others there.",
        _arms("taxi-protogoal"), {"smoke": Scale(4_000, 1), "cpu": Scale(150_000, 20), "paper": Scale(300_000, 20)},
        smoke={"learning.eval_every": 2_000}, **TEST),
    "baba-small": Comparison(
        "strategies", "Ways to choose goals, Baba Is You U-Maze small", "its rule is novelty, then local reachability, within "
        "timescale buckets; it is not compared with these others there.",
        _arms("baba-umaze-small-protogoal"), {"smoke": SMOKE, "cpu": Scale(400_000, 3), "paper": Scale(20_000_000, 3)},
        ONE_CORE, TINY, **TEST),
}


def run(scale: str, seeds: int | None, out: Path) -> None:
    """Train what is missing in both domains; CSV, figure and README in a folder each, and one table of both."""
    for name, comparison in COMPARISONS.items():
        if name == "taxi" or importlib.util.find_spec("torch"):
            comparison.run(scale, seeds, out / name)
        else:
            print(f"{name} is passed over: it needs pip install \"protogoal[deep]\"")
    describe(out)


def plot(out: Path) -> None:
    """Draw the figure of each domain from its CSV alone."""
    for name in _finished(out):
        COMPARISONS[name].plot(out / name)


def _finished(out: Path) -> list[str]:
    return [name for name in COMPARISONS if (out / name / "curves.csv").is_file()]


def describe(out: Path) -> None:
    lines = [
        "# Ways to choose goals", "",
        "Success at the task over the last tenth of training, and over all of it, which tells fast rules from slow ones; "
        "mean over seeds, with the 95 % interval (by t; exact where all seeds agree).", "",
        f"| domain {TABLE_HEAD}", "|---" * 9 + "|",
    ]
    for name in _finished(out):
        lines += [f"| [{name}]({name}/README.md) {row}" for row in table(COMPARISONS[name], out / name)]
    notes = out / "notes.md"
    lines += ["", notes.read_text()] if notes.exists() else [""]
    lines += [*(f"![learning curves, {name}]({name}/learning.png)" for name in _finished(out)), ""]
    write_whole(out / "README.md", "\n".join(lines))
