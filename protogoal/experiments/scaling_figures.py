"""The figures of the scaling experiment, drawn from its CSV alone; called by experiments/scaling.py.

load.png: the rate that simulated actors offer and the rate that is made; CPU time of each process against it, and where
each would be full. soak.png: memory of each process over a long run.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from protogoal.experiments.curves import read_csv
from protogoal.experiments.drawing import MUTED, pyplot, save

NEEDED = 128 * 260  # steps a second of the paper's actors
LEARNED_BY_AN_UPDATE = 64 * 10  # transitions, with the paper's settings; one is learned for each that is acted
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")  # Okabe and Ito


def called(process: str) -> str:
    """The name of a process; the player of the task was called evaluator in what version 0.1.0 recorded."""
    return {"evaluator": "player"}.get(process, process)


def loads(out: Path) -> dict[str, np.ndarray]:
    """process → [rates, 2]: steps a second made, CPU seconds a second; `workers` is one simulated worker."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in read_csv(out / "load.csv"):
        found[called(row["process"])].append((float(row["achieved"]), float(row["cpus"])))
    return {name: np.array(points) for name, points in found.items()}


def costs(out: Path) -> dict[str, float]:
    """process → CPU seconds a step, fitted through all rates, in which the high ones count most: a message costs less where
    many wait. Most costly first. Simulated workers are left out, and so is the player of the task, which costs the same
    at any rate. Acting and learning, which the load only simulates, are those of components.csv, on one core."""
    fitted = {name: float((points[:, 0] * points[:, 1]).sum() / (points[:, 0] ** 2).sum())
              for name, points in loads(out).items() if name not in ("workers", "player")}
    if "learner" in fitted:
        fitted["learner, without computing"] = fitted.pop("learner")
    alone = {row["component"]: float(row["cpu_seconds"]) for row in read_csv(out / "components.csv")}
    if "update" in alone:
        fitted |= {"learning, one core": alone["update"] / LEARNED_BY_AN_UPDATE, "acting, one core": alone["act"]}
    return dict(sorted(fitted.items(), key=lambda item: -item[1]))


def draw_load(out: Path) -> None:
    """What was kept; and CPU time: measured points, the line through them, and where a process is full."""
    plt = pyplot(11)
    figure, (kept, axes) = plt.subplots(1, 2, figsize=(11.5, 5), constrained_layout=True, width_ratios=(1, 1.5))
    measured = loads(out)
    rates = sorted({(float(row["offered"]), float(row["achieved"])) for row in read_csv(out / "load.csv")})
    kept.plot([1_000, 100_000], [1_000, 100_000], color=MUTED, linewidth=0.8)
    kept.plot(*np.array(rates).T, "o", color=COLOURS[0])
    kept.axvline(NEEDED, color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
    kept.text(NEEDED * 0.93, 1_300, "128 actors\n260 steps/s each", color=MUTED, ha="right")
    kept.text(1_500, 45_000, "all processes on the two cores\nof one machine", color=MUTED)
    kept.set(xscale="log", yscale="log", xlabel="steps offered a second", ylabel="steps acted, stored and counted a second",
             title="What is kept")
    grid = np.geomspace(1_000, 400_000, 50)
    for colour, (name, cost) in zip(COLOURS, costs(out).items(), strict=False):
        points = measured.get(name.removesuffix(", without computing"))
        axes.plot(grid, grid * cost, color=colour, linewidth=1.2, linestyle="--" if points is None else "-",
                  label=f"{name}: full at {float(f'{1 / cost:.3g}'):,.0f} steps/s")
        if points is not None:
            axes.plot(*points.T, "o", color=colour, markersize=4)
    axes.axhline(1.0, color=MUTED, linewidth=0.8)
    axes.axvline(NEEDED, color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
    axes.text(9_000, 0.85, "one core", color=MUTED, va="top")
    axes.set(xscale="log", yscale="log", ylim=(1e-2, 1e4), xlim=(1_000, 400_000), xlabel="steps acted a second",
             ylabel="CPU seconds a second", title="What breaks first, and when")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    save(figure, out / "load.png", dpi=160)


def memory(out: Path) -> dict[str, dict[str, np.ndarray]]:
    """engine → process → [samples, 2]: minutes, megabytes (processes of one name added up)."""
    sums: dict[tuple[str, str, float], float] = defaultdict(float)
    for row in read_csv(out / "soak.csv"):
        sums[row["engine"], called(row["process"]), float(row["seconds"]) / 60] += float(row["megabytes"])
    found: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for (engine, process, minutes), megabytes in sums.items():
        found[engine][process].append((minutes, megabytes))
    return {engine: {name: np.array(points) for name, points in of.items()} for engine, of in found.items()}


def growth(out: Path) -> list[tuple[str, str, float, float]]:
    """(engine, process, MB after half of the run, MB over its last tenth)."""
    rows = []
    for engine, processes in memory(out).items():
        for name, points in processes.items():
            last = points[-1, 0]
            early = points[(points[:, 0] > last * 0.5) & (points[:, 0] < last * 0.6), 1]
            late = points[points[:, 0] > last * 0.9, 1]
            if len(early) and len(late):
                rows.append((engine, name, float(np.median(early)), float(np.median(late))))
    return rows


def draw_soak(out: Path) -> None:
    """Memory that belongs to each process alone, against time."""
    plt = pyplot(11)
    found = memory(out)
    figure, every = plt.subplots(1, len(found), figsize=(5.5 * len(found), 4.6), constrained_layout=True, squeeze=False)
    for axes, (engine, processes) in zip(every[0], found.items(), strict=True):
        styles = [(colour, line) for line in ("-", "--") for colour in COLOURS]
        for (colour, line), (name, points) in zip(styles, processes.items(), strict=False):
            axes.plot(*points.T, color=colour, linestyle=line, linewidth=1.3, label=name)
        most = max(float(points[:, 1].max()) for points in processes.values())
        axes.set(xlabel="minutes", ylabel="MB", title=f"{engine} engine", ylim=(0, 1.4 * most))  # room for the legend
        axes.legend(frameon=False, fontsize=9, ncol=2, loc="upper left")
    save(figure, out / "soak.png", dpi=160)
