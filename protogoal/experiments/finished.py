"""Runs whose numbers stand in an experiment's CSV already, so that seeds can be added later and on another machine.

runs.csv names every run behind curves.csv: arm, seed, the commit that made it, and a fingerprint of its settings. A run that is
named there with the settings which the experiment would take now is not made again, and its rows stay; all other rows go.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protogoal.experiments.curves import read_csv

RUNS = ("arm", "seed", "commit", "settings")

Run = tuple[str, int]
"""Label of its arm, and its seed."""


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Twelve letters that other settings do not have."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def commits(out: Path) -> dict[Run, str]:
    """Of each run named in runs.csv the commit that made it."""
    return {(row["arm"], int(row["seed"])): row["commit"] for row in _read(out / "runs.csv")}


def kept(out: Path, wanted: Mapping[Run, str]) -> set[Run]:
    """Those of the wanted runs, each with the fingerprint of its settings, that are in the CSV already."""
    named = {(row["arm"], int(row["seed"])): row["settings"] for row in _read(out / "runs.csv")}
    return {run for run, settings in wanted.items() if named.get(run) == settings}


def rows_of(file: Path, runs: set[Run]) -> dict[Run, list[tuple[str, ...]]]:
    """The rows of these runs in a CSV with the columns arm and seed; none where the file is missing."""
    found: dict[Run, list[tuple[str, ...]]] = {run: [] for run in runs}
    for row in _read(file):
        run = row["arm"], int(row["seed"])
        if run in found:
            found[run].append(tuple(row.values()))
    return found


def _read(file: Path) -> list[dict[str, str]]:
    return read_csv(file) if file.is_file() else []
