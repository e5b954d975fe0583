"""One figure of the main results: success against steps, a panel for each task, from the CSV files under results/ alone."""

from __future__ import annotations

from pathlib import Path

from protogoal.experiments.arms_figures import draw_arm
from protogoal.experiments.curves import COLOURS, read_csv, success_curves
from protogoal.experiments.drawing import pyplot, save

PANELS = {"baba-small": "Baba, U-Maze small", "baba": "Baba, U-Maze medium", "keycorridor": "MiniGrid KeyCorridor",
          "minihack-wide-river-lava": "MiniHack, wide river"}
"""Folder of results → its title."""
AGENTS = ("proto-goal R2D2", "R2D2", "count bonus", "Agent57")
"""One colour each, in every panel."""


def draw(results: Path) -> Path | None:
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
