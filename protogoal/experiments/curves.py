"""What every experiment does with its numbers: CSV files, success curves over steps, colours.

Intervals over seeds are in `record.statistics`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import permutation_test

from protogoal.files import write_whole

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito: colour-blind safe


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A CSV that is there whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{x:.6g}" if isinstance(x, float) else x for x in row] for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV; a ValueError where it is missing."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; run the experiment first")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def success_curves(rows: Sequence[Mapping[str, str]], x: str = "step") -> dict[str, dict[int, np.ndarray]]:
    """arm → seed → [points, 2] of (x, success)."""
    curves: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for row in rows:
        point = float(row[x]), int(row["successes"]) / int(row["episodes"])
        curves.setdefault(row["arm"], {}).setdefault(int(row["seed"]), []).append(point)
    return {arm: {seed: np.array(points) for seed, points in of.items()} for arm, of in curves.items()}


def on_grid(curves: Mapping[int, np.ndarray], grid: np.ndarray) -> np.ndarray:
    """Success of every seed at common points, [seeds, points]: the last evaluation at or before each; 0 before the first."""
    out = np.zeros((len(curves), len(grid)))
    for k, points in enumerate(curves.values()):
        place = np.searchsorted(points[:, 0], grid, side="right") - 1
        out[k] = np.where(place >= 0, points[np.maximum(place, 0), 1], 0.0)
    return out


def mean_of_end(points: np.ndarray, steps: float, share: float) -> float:
    """Mean success over the last `share` of the first `steps` steps."""
    made = points[points[:, 0] <= steps]
    made = made if len(made) else points[:1]
    return float(made[made[:, 0] >= made[-1, 0] * (1 - share), 1].mean())


def solved_from(points: np.ndarray, success: float = 0.9) -> float:
    """The step of the first evaluation from which no later one falls below `success`; ∞ where the last one does."""
    below = np.flatnonzero(points[:, 1] < success)
    first = below[-1] + 1 if len(below) else 0
    return float(points[first, 0]) if first < len(points) else np.inf


def chance_of_lead(first: np.ndarray, other: np.ndarray, draws: int = 100_000, seed: int = 0) -> float:
    """How likely a random split of the seeds of both, [n] and [m], has means as far apart as `first` is ahead of `other`.

    The one-sided permutation test: all splits where there are at most `draws` of them, else so many at random.
    """
    result = permutation_test((first, other), lambda x, y, axis: x.mean(axis) - y.mean(axis), vectorized=True, n_resamples=draws,
                              batch=1000, alternative="greater", rng=np.random.default_rng(seed))
    return float(result.pvalue)
