"""The two figures of the Taxi experiment, drawn from its CSV alone; called by experiments/taxi.py.

learning.png: success of both agents over training, with the standard error. goal_space.png: the 5×5 grid at some moments,
as in the paper: which taxi cells and passenger places are goals, and that destinations are not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.envs.toy_text.taxi import MAP

from protogoal.envs.taxi import DEPOTS
from protogoal.experiments.curves import on_grid, read_csv, success_curves
from protogoal.experiments.drawing import INK, MUTED, pyplot, save, tidy
from protogoal.goals.plausibility import Verdict

AGENT_COLOUR = {"proto-goal": "#0072B2", "Q-learning": "#D55E00"}  # Okabe and Ito: colour-blind safe
PLAUSIBLE = str(int(Verdict.PLAUSIBLE))
DEPOT_COLOUR = {"R": "#d62728", "G": "#2ca02c", "Y": "#e3b505", "B": "#1f5fd0"}
DARK, TAXI, PASSENGER = "#23252e", "#f4c430", "#8e3fa8"
PICTURES = (500, 2_000, 10_000, 50_000, 70_000, 300_000)  # steps at which the grid is shown
PARTS = {"taxi": slice(0, 25), "passenger": slice(25, 30), "destination": slice(30, 34)}


def _thousands(steps: float) -> str:
    return f"{steps / 1000:g}k" if steps >= 1000 else f"{steps:g}"


def draw_learning(out: Path) -> None:
    """Mean success against steps, band = standard error over seeds, thin lines = seeds."""
    plt = pyplot(11)
    curves = success_curves(read_csv(out / "curves.csv"))
    steps = next(iter(curves["proto-goal"].values()))[:, 0]
    figure, axes = plt.subplots(figsize=(8, 4.4), constrained_layout=True)
    mark = 100_000 if steps[-1] >= 100_000 else steps[-1]
    axes.axvline(mark, color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
    for agent, colour in AGENT_COLOUR.items():
        values = on_grid(curves[agent], steps)  # [seeds, points]
        mean, error = values.mean(0), values.std(0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
        for line in values:
            axes.plot(steps, line, color=colour, linewidth=0.5, alpha=0.16, zorder=1)
        axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.28, linewidth=0, zorder=2)
        axes.plot(steps, mean, color=colour, linewidth=2.4, zorder=3)
        at = float(np.interp(mark, steps, mean))
        axes.plot([mark], [at], "o", color=colour, markersize=6, markeredgecolor="white", zorder=4)
        below = agent == "Q-learning"
        axes.annotate(f"{at:.2f}", (mark, at), xytext=(9, -13 if below else -15), textcoords="offset points", color=colour,
                      weight="bold")
        half = int(np.argmax(mean >= 0.55)) if (mean >= 0.55).any() else len(steps) // 2
        axes.annotate(agent, (steps[half], mean[half]), xytext=(12 if below else -12, 0), textcoords="offset points",
                      color=colour, weight="bold", ha="left" if below else "right", va="center")
    axes.set(xlabel="environment steps", ylabel="success of the greedy policy", xlim=(0, steps[-1]), ylim=(-0.02, 1.03))
    axes.set_title(f"SparseTaxi: mean of {len(values)} seeds ± standard error", loc="left", fontsize=12)
    axes.xaxis.set_major_formatter(lambda x, _: _thousands(x))
    tidy(axes)
    save(figure, out / "learning.png", dpi=160)


def draw_goal_space(out: Path) -> None:
    """Grids at some moments above, the number of goals of each kind over all moments below."""
    plt = pyplot(11)
    steps, plausible = read_goal_space(out)  # [M], [seeds, M, B]
    share = plausible.mean(0)  # [M, B]
    shown = _moments(steps)
    figure = plt.figure(figsize=(13, 6.6), constrained_layout=True)
    above, below = figure.subfigures(2, 1, height_ratios=(1.18, 1))
    panels = above.subplots(1, len(shown) + 1)
    _draw_map(panels[0])
    for axes, k in zip(panels[1:], shown, strict=True):
        _draw_moment(axes, share[k], f"{int(steps[k]):,} steps")
    above.suptitle(f"The goal space over training: share of {len(plausible)} seeds in which a proto-goal is plausible", x=0.01,
                   ha="left", fontsize=12)
    _draw_counts(below.subplots(), steps, plausible, steps[shown])
    save(figure, out / "goal_space.png", dpi=160)


def read_goal_space(out: Path) -> tuple[np.ndarray, np.ndarray]:
    """goal_space.csv → moments [M], plausible bool [seeds, M, B]; the digit of a plausible verdict."""
    rows = read_csv(out / "goal_space.csv")
    steps = np.array(sorted({int(row["step"]) for row in rows}))
    seeds = sorted({int(row["seed"]) for row in rows})
    verdicts = {(int(row["seed"]), int(row["step"])): row["verdicts"] for row in rows}
    return steps, np.array([[[digit == PLAUSIBLE for digit in verdicts[seed, step]] for step in steps] for seed in seeds])


def _moments(steps: np.ndarray) -> np.ndarray:
    """Positions of the moments to show: those of PICTURES that the run has reached, and its end."""
    wanted = [step for step in PICTURES if step < steps[-1]] + [steps[-1]]
    return np.array([int(np.abs(steps - step).argmin()) for step in wanted])


def _frame(axes: Any, title: str, colour: str = INK) -> None:
    axes.set(xlim=(-0.58, 4.58), ylim=(6.45, -0.58), aspect="equal")
    axes.axis("off")
    axes.set_title(title, fontsize=10.5, color=colour)


def _draw_walls(axes: Any, colour: str) -> None:
    for row in range(5):
        for column in range(4):
            if MAP[1 + row][2 * column + 2] == "|":
                axes.plot([column + 0.5] * 2, [row - 0.5, row + 0.5], color=colour, linewidth=3, solid_capstyle="butt", zorder=5)
    axes.plot([-0.5, 4.5, 4.5, -0.5, -0.5], [-0.5, -0.5, 4.5, 4.5, -0.5], color=colour, linewidth=2, zorder=5)


def _draw_map(axes: Any) -> None:
    """The domain itself: walls and depots, and what the signs mean."""
    from matplotlib.patches import Circle, Rectangle

    for row in range(5):
        for column in range(5):
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="#f4f5f7", edgecolor="white", linewidth=1.2))
    for name, (row, column) in DEPOTS:
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=DEPOT_COLOUR[name], alpha=0.85))
        axes.text(column, row, name, ha="center", va="center", color="white", weight="bold", fontsize=12)
    _draw_walls(axes, INK)
    for y, patch, words in ((5.2, Rectangle((-0.5, 4.98), 0.44, 0.44, facecolor=TAXI), "taxi cell"),
                            (5.75, Circle((-0.28, 5.75), 0.24, facecolor=PASSENGER), "passenger place")):
        axes.add_patch(patch)
        axes.text(0.1, y, words, va="center", fontsize=8.5, color=MUTED)
    axes.plot([-0.46, -0.1], [6.44, 6.16], color=INK, linewidth=1.3, solid_capstyle="round", clip_on=False)
    axes.text(0.1, 6.3, "destination, pruned", va="center", fontsize=8.5, color=MUTED)
    _frame(axes, "the domain", MUTED)


def _draw_moment(axes: Any, share: np.ndarray, title: str) -> None:
    """One grid: taxi cells from dark to yellow, passenger places as purple discs, destinations below."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Circle, Rectangle

    taxi, passenger, destination = (share[part] for part in PARTS.values())
    shade = LinearSegmentedColormap.from_list("taxi", [DARK, TAXI])
    for i, value in enumerate(taxi):
        row, column = divmod(i, 5)
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=shade(value), edgecolor="white", linewidth=0.7))
    below = 5.28  # the row under the grid where "in the taxi" is drawn
    places: list[tuple[float, float]] = [*(cell for _, cell in DEPOTS), (below, 0.55)]
    for value, (y, x) in zip(passenger, places, strict=True):
        if value > 0:
            axes.add_patch(Circle((x, y), 0.33, facecolor=PASSENGER, alpha=float(value), linewidth=0, zorder=3))
        edge = MUTED if y == below else "white"
        axes.add_patch(Circle((x, y), 0.33, facecolor="none", edgecolor=edge, linewidth=0.9, zorder=4))
    for (name, cell), value in zip(DEPOTS, passenger[:4], strict=True):
        axes.text(cell[1], cell[0], name, ha="center", va="center", color="white", fontsize=7.5, weight="bold", zorder=6,
                  alpha=1.0 if value > 0.3 else 0.75)
    axes.text(1.05, below, "passenger in taxi", va="center", fontsize=8, color=MUTED)
    for k, ((name, _), value) in enumerate(zip(DEPOTS, destination, strict=True)):
        _draw_destination(axes, 0.1 + 0.62 * k, 6.13, name, float(value))
    axes.text(2.6, 6.13, "destinations" if destination.any() else "pruned", va="center", fontsize=8, color=MUTED)
    _draw_walls(axes, "white")
    _frame(axes, title)


def _draw_destination(axes: Any, x: float, y: float, name: str, share: float) -> None:
    """A letter in its depot's colour, as strong as the share of seeds; grey and struck through once it is pruned in all."""
    alpha = 0.3 + 0.7 * share if share else 1.0
    axes.text(x, y, name, ha="center", va="center", fontsize=9.5, weight="bold", color=DEPOT_COLOUR[name] if share else "#b4bac2",
              alpha=alpha)
    if share == 0:
        axes.plot([x - 0.26, x + 0.26], [y + 0.2, y - 0.2], color=INK, linewidth=1.3, solid_capstyle="round")


def _draw_counts(axes: Any, steps: np.ndarray, plausible: np.ndarray, shown: np.ndarray) -> None:
    names = {"taxi": ("taxi cells", "#b8860b"), "passenger": ("passenger places", PASSENGER),
             "destination": ("destinations", "#7a828c")}
    for kind, (words, colour) in names.items():
        part = plausible[:, :, PARTS[kind]].mean(2)  # [seeds, M]: share of the kind
        mean, error = part.mean(0), part.std(0, ddof=min(1, len(part) - 1)) / np.sqrt(len(part))
        total = PARTS[kind].stop - PARTS[kind].start
        axes.plot(steps, mean, color=colour, linewidth=2.2, label=f"{words}, of {total}",
                  linestyle="--" if kind == "destination" else "-")
        axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    for step in shown:
        axes.axvline(step, color="#d5d9df", linewidth=0.9, zorder=0)
    axes.set(xscale="log", xlabel="environment steps", ylabel="share that is plausible", xlim=(steps[0], steps[-1]),
             ylim=(-0.03, 1.04))
    axes.xaxis.set_major_formatter(lambda x, _: _thousands(x))
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.005, 1.0), ncols=3, borderaxespad=0.2)
    axes.spines[["top", "right"]].set_visible(False)
