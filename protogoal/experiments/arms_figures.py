"""The figures of a comparison: success against steps and against wall time, and what was discovered when.

`draw_summary`: one figure of the main results, a panel for each task, from the CSV files under results/ alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from protogoal.experiments import discovered
from protogoal.experiments.curves import COLOURS, read_csv, success_curves
from protogoal.experiments.drawing import pyplot, save
from protogoal.record.seeds import mean_curve

if TYPE_CHECKING:
    from protogoal.experiments.arms import Comparison

Curves = Mapping[str, Mapping[int, np.ndarray]]

MOST_SEEDS_DRAWN = 4
"""More lines than these, for each arm, hide each other."""

PANELS = {"baba-small": "Baba, U-Maze small", "baba": "Baba, U-Maze medium", "keycorridor": "MiniGrid KeyCorridor",
          "multiroom": "MultiRoom, own view", "keycorridor-view": "KeyCorridor, own view"}
"""Folder of results → its title."""
AGENTS = ("proto-goal R2D2", "R2D2", "count bonus", "Agent57")
"""One colour each, in every panel."""


def draw(comparison: Comparison, out: Path) -> None:
    """Each figure that the CSV files of `out` allow and the comparison asks for."""
    rows = read_csv(out / "curves.csv")
    _draw_success(comparison, success_curves(rows), 1e6, "environment steps (millions)", out / "learning.png")
    if comparison.shows_time:
        _draw_success(comparison, success_curves(rows, "seconds"), 60.0, "minutes, on one shared core", out / "time.png")
    if (out / "goals.csv").exists():
        title = f"{comparison.title}: goals discovered" + f", {comparison.arms[0].panel}" * bool(comparison.arms[0].panel)
        discovered.plot(read_csv(out / "goals.csv"), COLOURS, title, out / "goals.png")


def _draw_success(comparison: Comparison, curves: Curves, unit: float, xlabel: str, file: Path) -> None:
    """Mean success with the 95 % t interval over seeds, and each seed's line; a panel for each group of arms."""
    plt = pyplot()
    panels = list(dict.fromkeys(arm.panel for arm in comparison.arms if arm.label in curves))
    size = (7, 4.2) if len(panels) == 1 else (2.7 * len(panels) + 0.6, 3.4)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, constrained_layout=True)
    for k, (axis, panel) in enumerate(zip(axes[0], panels, strict=True)):
        arms = [arm for arm in comparison.arms if arm.panel == panel and arm.label in curves]
        for colour, arm in zip(COLOURS * 3, arms, strict=False):
            draw_arm(axis, curves[arm.label], unit, colour, arm.name, shade=0.15 if len(arms) <= 3 else 0.06)
        axis.set(ylim=(-0.03, 1.03), title=panel or comparison.title, xlabel=xlabel)
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        if k == 0:
            axis.set_ylabel("success at the task")
            if len(arms) <= 3:
                axis.legend(frameon=False)
            else:  # many lines leave no room among them
                figure.legend(loc="outside lower center", ncols=2, frameon=False)
    if len(panels) > 1:
        figure.suptitle(comparison.title)
    save(figure, file)


def draw_arm(
    axis: Any, seeds: Mapping[int, np.ndarray], unit: float, colour: str, name: str, shade: float, is_counted: bool = True
) -> None:
    """One arm: its mean as far as every seed went, the interval, and, if they are few, the seeds themselves.

    `is_counted`: the legend says how many seeds.
    """
    curves = [{"step": points[:, 0], "seconds": points[:, 0], "success": points[:, 1]} for points in seeds.values()]
    mean = mean_curve(curves, "success")
    label = f"{name}  ({len(seeds)} seed{'s' * (len(seeds) > 1)})" if is_counted else name
    marker = "o" if len(mean["step"]) == 1 else ""  # a line of one point is not seen
    axis.plot(mean["step"] / unit, mean["success"], color=colour, linewidth=2.2, label=label, marker=marker)
    axis.fill_between(mean["step"] / unit, mean["low"], mean["high"], color=colour, alpha=shade, linewidth=0)
    for points in seeds.values() if len(seeds) <= MOST_SEEDS_DRAWN else ():
        axis.plot(points[:, 0] / unit, points[:, 1], color=colour, linewidth=0.7, alpha=0.5)


def draw_summary(results: Path) -> Path | None:
    """results/summary.png, of those panels whose CSV is there; None where there is none."""
    found = {name: title for name, title in PANELS.items() if (results / name / "curves.csv").is_file()}
    if not found:
        return None
    plt = pyplot()
    figure, axes = plt.subplots(1, len(found), figsize=(3.0 * len(found), 3.3), sharey=True, squeeze=False, constrained_layout=True)
    for axis, (name, title) in zip(axes[0], found.items(), strict=True):
        curves = success_curves(read_csv(results / name / "curves.csv"))
        for colour, agent in zip(COLOURS, AGENTS, strict=False):
            if agent in curves:
                draw_arm(axis, curves[agent], 1e6, colour, agent, shade=0.12, is_counted=False)
        axis.set(ylim=(-0.03, 1.03), title=title, xlabel="million steps")
        axis.locator_params(axis="x", nbins=4)
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("success at the task")
    drawn = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower center", ncols=4, frameon=False)
    save(figure, results / "summary.png")
    return results / "summary.png"
