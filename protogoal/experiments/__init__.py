"""The experiments of the paper, each a module with data (settings, seeds, scale), `run` and `plot`.

`run(scale, seeds, out)` writes raw CSV, the figure and a README; `plot(out)` redraws the figure from the CSV alone.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, Protocol


class Experiment(Protocol):
    """What an experiment can do; a module (taxi) or a `Comparison` of arms."""

    def run(self, scale: str, seeds: int | None, out: Path) -> None: ...
    def plot(self, out: Path) -> None: ...


# name → module, or module:key of its COMPARISONS; loaded only when it is asked for, as some need extras
EXPERIMENTS: dict[str, str] = {
    "taxi": "protogoal.experiments.taxi",
    "controllability": "protogoal.experiments.controllability",
    "strategies": "protogoal.experiments.strategies",
    "scaling": "protogoal.experiments.scaling",
    **{
        name: f"protogoal.experiments.comparisons:{name}"
        for name in (
            "baba", "baba-small", "baba-paper", "agent57", "agent57-fresh", "agent57-umaze", "agent57-river",
            "minihack-narrow-river", "minihack-wide-river-lava", "ablation-p-task", "ablation-desirability",
            "ablation-reachability", "ablation-stratification", "ablation-hindsight", "ablation-plausibility",
            "ablation-recombination", "junk-small", "junk-medium", "junk-unpruned", "pruning-parts", "parts",
            "deep-sea", "multiroom", "multiroom-4", "lockedroom", "keycorridor-view", "montezuma", "crafter",
        )
    },
}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    module, _, key = EXPERIMENTS[name].partition(":")
    loaded: Any = importlib.import_module(module)
    found: Experiment = loaded.COMPARISONS[key] if key else loaded
    return found


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def redraw(results: Path) -> list[str]:
    """Draw the figures of every experiment that has a folder under `results` again; returns their names."""
    found = [name for name in EXPERIMENTS if any((results / name).rglob("*.csv"))]
    if not found:
        raise ValueError(f"no results to draw under {results}; expected folders named {', '.join(EXPERIMENTS)}")
    import matplotlib

    from protogoal.experiments import arms_figures

    with matplotlib.rc_context():  # each sets its own style, and none is left
        for name in found:
            experiment(name).plot(results / name)
        arms_figures.draw_summary(results)
    return found
