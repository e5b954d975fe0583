"""The figures of the controllability experiment, drawn from its CSV alone; called by experiments/controllability.py.

threshold.png: F1 against threshold for several amounts of data, both estimators, as in the paper. values.png: what the
threshold cuts, the controllability of every bit. data.png: F1 at the paper's threshold against the amount of data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from protogoal.experiments.curves import COLOURS, bootstrap, read_csv
from protogoal.goals.plausibility import CONTROLLABILITY_THRESHOLD

INK, MUTED = "#1b1f24", "#57606a"
TITLES = {"static": "static: Taxi's destination", "timer": "timer: 4×4 grid, 1…100", "distractor": "distractor: noisy pixels"}
ROWS = {"crossfit": "cross-fitted (default)", "lspi": "LSPI, as the paper words it"}
LIMIT = 2.0  # values beyond it are drawn at the edge


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.edgecolor": MUTED, "text.color": INK, "axes.labelcolor": INK,
                         "xtick.color": MUTED, "ytick.color": MUTED, "font.family": "DejaVu Sans"})
    return plt


def _save(figure: Any, path: Path, plt: Any) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}")
    figure.savefig(temporary, dpi=150, format="png", facecolor="white")
    plt.close(figure)
    temporary.replace(path)


def _tidy(axes: Any) -> None:
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


def draw_threshold(out: Path) -> None:
    """One column a domain, one row an estimator, one line an amount of data; all transitions; band = 95 % interval."""
    plt = _pyplot()
    scores: dict[tuple[str, str, int, float], list[float]] = {}
    for row in read_csv(out / "f1.csv"):
        if row["batch"] == "all" and row["estimator"] in ROWS:
            key = row["estimator"], row["domain"], int(row["episodes"]), float(row["threshold"])
            scores.setdefault(key, []).append(float(row["f1"]))
    episodes = sorted({key[2] for key in scores})
    thresholds = np.array(sorted({key[3] for key in scores}))
    shades = plt.get_cmap("viridis_r")(np.linspace(0.15, 0.95, len(episodes)))
    figure, grid = plt.subplots(len(ROWS), len(TITLES), figsize=(10.5, 5.8), sharex=True, sharey=True, constrained_layout=True)
    for line, (estimator, words) in zip(grid, ROWS.items(), strict=True):
        for axes, (domain, title) in zip(line, TITLES.items(), strict=True):
            axes.axvline(CONTROLLABILITY_THRESHOLD, color=MUTED, linewidth=0.9, linestyle=(0, (2, 3)), zorder=0)
            for shade, many in zip(shades, episodes, strict=True):
                values = np.array([scores[estimator, domain, many, t] for t in thresholds]).T  # [seeds, thresholds]
                low, high = bootstrap(values)
                axes.fill_between(thresholds, low, high, color=shade, alpha=0.2, linewidth=0)
                axes.plot(thresholds, values.mean(0), color=shade, linewidth=2, label=f"{many} episodes")
            _tidy(axes)
            axes.set(ylim=(-0.02, 1.04), xlim=(0, thresholds[-1]))
            if estimator == "crossfit":
                axes.set_title(title, fontsize=11)
        line[0].set_ylabel(f"{words}\nF1")
    for axes in grid[-1]:
        axes.set_xlabel("threshold on mean (V_seek + V_avoid)")
    grid[1, 0].annotate("the paper's 0.1", (CONTROLLABILITY_THRESHOLD, 0.05), xytext=(6, 0), textcoords="offset points",
                        color=MUTED, fontsize=9)
    grid[0, 0].legend(frameon=False, fontsize=9, loc="lower center")
    _save(figure, out / "threshold.png", plt)


def draw_values(out: Path) -> None:
    """Every bit of every seed after the last episode: its estimate, by what is true of it."""
    plt = _pyplot()
    rows = read_csv(out / "values.csv")
    figure, grid = plt.subplots(1, len(TITLES), figsize=(10.5, 3.6), sharey=True, constrained_layout=True)
    rng = np.random.default_rng(0)
    for axes, (domain, title) in zip(grid, TITLES.items(), strict=True):
        axes.axhline(CONTROLLABILITY_THRESHOLD, color=MUTED, linewidth=0.9, linestyle=(0, (2, 3)), zorder=0)
        for place, estimator in enumerate(ROWS):
            for truth, colour in (("1", COLOURS[0]), ("0", COLOURS[1])):
                control = np.array([float(r["seek"]) + float(r["avoid"]) for r in rows
                                    if (r["domain"], r["estimator"], r["controllable"]) == (domain, estimator, truth)])
                known = control[~np.isnan(control)]
                spread = 2.4 * place + (0.0 if truth == "1" else 1.0) + rng.uniform(-0.3, 0.3, len(known))
                axes.plot(spread, np.clip(known, -LIMIT, LIMIT), ".", color=colour, markersize=3, alpha=0.35, markeredgewidth=0)
                if len(known) < len(control):
                    axes.annotate(f"{len(control) - len(known)} undecided", (2.4 * place + (truth == "0"), 1.15), ha="center",
                                  color=colour, fontsize=8)
        axes.set_title(title, fontsize=11)
        axes.set_xticks([0.5, 2.9], ["cross-fitted", "LSPI"])
        axes.set(ylim=(-LIMIT * 1.05, LIMIT * 1.05))
        _tidy(axes)
    grid[0].set_ylabel("mean (V_seek + V_avoid)")
    for words, colour, height in (("controllable", COLOURS[0], 0.95), ("not controllable", COLOURS[1], 0.88)):
        grid[1].text(0.03, height, words, color=colour, transform=grid[1].transAxes, weight="bold", fontsize=9, va="top")
    _save(figure, out / "values.png", plt)


def draw_data(out: Path) -> None:
    """F1 at the paper's threshold against episodes: every variant, on all transitions and on one batch."""
    plt = _pyplot()
    scores: dict[tuple[str, str, str, int], list[float]] = {}
    for row in read_csv(out / "f1.csv"):
        if float(row["threshold"]) == CONTROLLABILITY_THRESHOLD:
            key = row["domain"], row["estimator"], row["batch"], int(row["episodes"])
            scores.setdefault(key, []).append(float(row["f1"]))
    episodes = sorted({key[3] for key in scores})
    lines = list(dict.fromkeys(key[1:3] for key in scores))
    colour = dict(zip(dict.fromkeys(estimator for estimator, _ in lines), COLOURS, strict=False))
    figure, grid = plt.subplots(1, len(TITLES), figsize=(10.5, 4.4), sharey=True, constrained_layout=True)
    for axes, (domain, title) in zip(grid, TITLES.items(), strict=True):
        for estimator, batch in lines:
            values = np.array([scores[domain, estimator, batch, e] for e in episodes])  # [episodes, seeds]
            low, high = bootstrap(values.T)
            axes.fill_between(episodes, low, high, color=colour[estimator], alpha=0.12, linewidth=0)
            axes.plot(episodes, values.mean(1), color=colour[estimator], linewidth=2.2 if estimator in ROWS else 1.1,
                      linestyle="-" if batch == "all" else (0, (3, 2)), label=f"{estimator} ({batch})")
        axes.set_title(title, fontsize=11)
        axes.set(xscale="log", xlabel="episodes of a random policy", ylim=(-0.02, 1.04))
        axes.set_xticks(episodes, [str(e) for e in episodes])
        axes.minorticks_off()
        _tidy(axes)
    grid[0].set_ylabel(f"F1 at threshold {CONTROLLABILITY_THRESHOLD:g}")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    _save(figure, out / "data.png", plt)
