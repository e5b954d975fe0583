"""The experiments of the paper, each a module with data (settings, seeds, scale), `run` and `plot`.

`run(scale, seeds, out)` writes raw CSV, the figure and a README; `plot(out)` redraws the figure from the CSV alone.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

EXPERIMENTS: dict[str, str] = {
    "taxi": "protogoal.experiments.taxi",
    "controllability": "protogoal.experiments.controllability",
}


def experiment(name: str) -> ModuleType:
    """The module of an experiment; loaded only now, as some need extras."""
    return importlib.import_module(EXPERIMENTS[name])


def redraw(results: Path) -> list[str]:
    """Draw the figures of every experiment that has a folder under `results` again; returns their names."""
    found = [name for name in EXPERIMENTS if (results / name).is_dir()]
    if not found:
        raise ValueError(f"no results to draw under {results}; expected folders named {', '.join(EXPERIMENTS)}")
    for name in found:
        experiment(name).plot(results / name)
    return found
