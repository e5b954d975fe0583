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
from protogoal.experiments.drawing import pyplot, save, tidy
from protogoal.record.seeds import mean_curve

if TYPE_CHECKING:
    from protogoal.experiments.arms import Comparison

Curves = Mapping[str, Mapping[int, np.ndarray]]

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.2)), (0, (1.5, 1)), (0, (6, 1, 1.5, 1)), (0, (3, 1, 1, 1, 1, 1)))
"""One for each arm, as lines that meet at 0 or 1 hide each other."""
MOST_SEEDS_DRAWN = 4
"""More lines than these, for each arm, hide each other; of fewer seeds a t interval says nothing."""
SHORT = 0.98
"""A run that made less than this of the planned steps was cut short."""

PANELS = {"baba-small": "Baba, U-Maze small", "baba": "Baba, U-Maze medium", "keycorridor": "MiniGrid KeyCorridor",
          "multiroom": "MultiRoom, own view", "keycorridor-view": "KeyCorridor, own view"}
"""Folder of results → its title."""
AGENTS = ("proto-goal R2D2", "R2D2", "count bonus", "Agent57")
"""One colour each, in every panel."""


def draw(comparison: Comparison, out: Path) -> None:
    """Each figure that the CSV files of `out` allow and the comparison asks for; one that they do not is removed."""
    rows = read_csv(out / "curves.csv")
    curves = success_curves(rows)
    longest = max(points[-1, 0] for of in curves.values() for points in of.values())
    if most_points(curves) > 1:
        planned = [scale.steps for scale in comparison.scales.values() if SHORT * longest <= scale.steps]
        cut = min((steps for steps in planned if steps < 10 * longest), default=longest) * SHORT
        _draw_success(comparison, curves, 1e6, "environment steps (millions)", out / "learning.png", cut)
    else:
        (out / "learning.png").unlink(missing_ok=True)
    if comparison.shows_time:
        of_time = success_curves(rows, "seconds")
        _draw_success(comparison, of_time, 60.0, "minutes, on one shared core", out / "time.png", has_mean=False)
    if comparison.shows_goals and (out / "goals.csv").exists():
        title = comparison.title + f", {comparison.arms[0].panel}" * bool(comparison.arms[0].panel)
        end = max(points[-1, 0] for points in curves[comparison.arms[0].label].values())
        discovered.plot(read_csv(out / "goals.csv"), COLOURS, title, out / "goals.png", end)
    else:
        (out / "goals.png").unlink(missing_ok=True)
    if (out / "achievements.csv").exists():
        draw_achievements(comparison.title, out)


def most_points(curves: Curves) -> int:
    """Evaluations of the run that has the most."""
    return max(len(points) for of in curves.values() for points in of.values())


def _draw_success(
    comparison: Comparison, curves: Curves, unit: float, xlabel: str, file: Path, cut: float = 0.0, has_mean: bool = True
) -> None:
    """Each seed's line, the mean over seeds, of many seeds its 95 % t interval instead; a panel for each group of arms."""
    plt = pyplot()
    panels = list(dict.fromkeys(arm.panel for arm in comparison.arms if arm.label in curves))
    size = (7, 4.2) if len(panels) == 1 else (2.7 * len(panels) + 0.6, 3.4)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, constrained_layout=True)
    for k, (axis, panel) in enumerate(zip(axes[0], panels, strict=True)):
        arms = [arm for arm in comparison.arms if arm.panel == panel and arm.label in curves]
        shade = 0.15 if len(arms) <= 3 else 0.06
        is_cut = [draw_arm(axis, curves[arm.label], unit, place, arm.name, shade, cut=cut, has_mean=has_mean)
                  for place, arm in enumerate(arms)]
        _frame(axis, panel or comparison.title, xlabel)
        if k == 0:
            axis.set_ylabel("success at the task")
        if any(is_cut):
            _explain_ends(axis)
    handles = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3 if len(arms) <= 3 else 2, frameon=False)
    if len(panels) > 1:
        figure.suptitle(comparison.title)
    save(figure, file)


def _frame(axis: Any, title: str, xlabel: str) -> None:
    axis.set(ylim=(-0.03, 1.03), xlim=(0, None), title=title, xlabel=xlabel)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _explain_ends(axis: Any) -> None:
    axis.plot([], [], "x", color="black", markersize=6, label="cut short here")


def draw_arm(
    axis: Any, seeds: Mapping[int, np.ndarray], unit: float, place: int, name: str, shade: float, is_counted: bool = True,
    cut: float = 0.0, has_mean: bool = True,
) -> bool:
    """One arm, in the colour and dashes of its place, the first above all others; whether a run of it ended before `cut`.

    Drawn are the mean as far as every seed went and the seeds themselves; of more than a few seeds the mean's interval instead.
    Without a mean they are drawn alone: over time the common part is short. `is_counted`: the legend says how many seeds.
    """
    colour, dashes, above = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)], 3 - 0.1 * place
    label = f"{name}  ({len(seeds)} seed{'s' * (len(seeds) > 1)})" if is_counted else name
    if has_mean:
        curves = [{"step": points[:, 0], "seconds": points[:, 0], "success": points[:, 1]} for points in seeds.values()]
        mean = mean_curve(curves, "success")
        marker = "o" if len(mean["step"]) == 1 else ""  # a line of one point is not seen
        axis.plot(mean["step"] / unit, mean["success"], color=colour, linestyle=dashes, linewidth=2.2, label=label, marker=marker,
                  zorder=above)
        if len(seeds) > MOST_SEEDS_DRAWN:
            axis.fill_between(mean["step"] / unit, mean["low"], mean["high"], color=colour, alpha=shade, linewidth=0, zorder=1)
    ended = False
    for points in seeds.values() if len(seeds) <= MOST_SEEDS_DRAWN or not has_mean else ():
        thin = {"linewidth": 0.8, "alpha": 0.55} if has_mean else {"linewidth": 1.4, "label": label}
        axis.plot(points[:, 0] / unit, points[:, 1], color=colour, linestyle=dashes, zorder=above - 1, **thin)
        label = ""
        if points[-1, 0] < cut:
            axis.plot(points[-1, 0] / unit, points[-1, 1], "x", color=colour, markersize=8, markeredgewidth=2, zorder=4,
                      clip_on=False)
            ended = True
    return ended


def draw_achievements(title: str, out: Path) -> None:
    """achievements.png: how many of the episodes of training unlocked what."""
    rows = read_csv(out / "achievements.csv")
    [share] = [name for name in rows[0] if name.startswith("per cent")]
    unlocked = [row for row in reversed(rows) if float(row[share]) > 0]
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7, 3.4), constrained_layout=True)
    bars = axis.barh([row["achievement"] for row in unlocked], [float(row[share]) for row in unlocked], color=COLOURS[0])
    axis.bar_label(bars, [f"{float(row[share]):.1f}" for row in unlocked], padding=3, fontsize=9)
    axis.set(title=f"{title}: achievements", xlabel=f"{share}; {len(rows) - len(unlocked)} others never")
    tidy(axis)
    axis.grid(visible=False, axis="y")
    save(figure, out / "achievements.png")


def draw_summary(results: Path) -> Path | None:
    """results/summary.png, of those panels whose CSV is there; None where there is none."""
    from protogoal.experiments.comparisons import COMPARISONS

    found = {name: title for name, title in PANELS.items() if (results / name / "curves.csv").is_file()}
    if not found:
        return None
    plt = pyplot()
    figure, axes = plt.subplots(1, len(found), figsize=(3.0 * len(found), 3.3), sharey=True, squeeze=False, constrained_layout=True)
    for axis, (name, title) in zip(axes[0], found.items(), strict=True):
        curves = success_curves(read_csv(results / name / "curves.csv"))
        drawn = {agent: curves[agent] for agent in AGENTS if agent in curves}
        longest = max(points[-1, 0] for of in drawn.values() for points in of.values())
        planned = COMPARISONS[name].scales["cpu"].steps if name in COMPARISONS else longest
        cut = SHORT * max(longest, planned)
        ends = [draw_arm(axis, of, 1e6, AGENTS.index(agent), agent, 0.12, is_counted=False, cut=cut) for agent, of in drawn.items()]
        numbers = sorted({len(of) for of in drawn.values()})
        _frame(axis, f"{title}\n{' or '.join(map(str, numbers))} seed{'s' * (numbers[-1] > 1)}", "million steps")
        axis.title.set_fontsize(11)
        axis.locator_params(axis="x", nbins=4)
        if any(ends):
            _explain_ends(axis)
    axes[0][0].set_ylabel("success at the task")
    handles = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False)
    save(figure, results / "summary.png")
    return results / "summary.png"
