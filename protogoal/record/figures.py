"""The figures of a report, drawn by matplotlib: success, the funnel, every metric, maps of cells, lists of bits.

Each function takes what record/queries.py answers and returns a matplotlib Figure. `as_svg` makes it a part of an HTML
page that follows the page's colours; `as_png` a file for a paper. No global state: pyplot is not used.
"""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from protogoal.record import terms
from protogoal.record.measures import CellMap, Measure
from protogoal.record.palette import BLUE, GREEN, LARGE_SPACE, LIGHT, RUNS, VERDICT, VERMILLION
from protogoal.record.queries import Curve
from protogoal.record.schema import SEQUENCE
from protogoal.record.seeds import Line

_DASHES: dict[str, Any] = {"declared": ":", "observed": "--", "undecided": (0, (1, 3)), "controllable": "-.", "plausible": "-",
                           "offered": (0, (6, 2)), "mastered": "-"}
_STYLE: Any = {
    "font.size": 9.0, "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.25, "legend.frameon": False, "svg.fonttype": "none", "svg.hashsalt": "protogoal",
    "text.parse_math": False, "lines.markersize": 3.0,
}
FEW_POINTS = 30  # so few are also marked, else a curve of one point is not seen
# Ink that stands for "the text colour of the page" in an SVG; no palette has it.
_INK = "#010203"


def run_colours(labels: list[str]) -> dict[str, str]:
    """The colour of each run, the same in every figure."""
    return {label: RUNS[index % len(RUNS)] for index, label in enumerate(labels)}


def success_figure(lines: list[Line]) -> Figure:
    """Success at the task with its 95 % interval, one line a run, or one for the seeds of a configuration."""
    figure, axes = _evaluations(lines, "success", "success at the task")
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    return figure


def return_figure(lines: list[Line]) -> Figure:
    """Mean return at the task, one line a run, or one for the seeds of a configuration with its interval."""
    return _evaluations(lines, "mean_return", "mean return at the task")[0]


def _evaluations(lines: list[Line], value: str, label: str) -> tuple[Figure, Axes]:
    """A line each, its seeds thin behind it, and its interval: of the return only that over seeds is known."""
    figure, axes = _axes(6.4, 3.0)
    colours = run_colours([line.label for line in lines])
    for line in lines:
        curve, colour = line.curve, colours[line.label]
        for one in line.seeds:
            axes.plot(one["step"], one[value], color=colour, linewidth=0.7, alpha=0.55)
        if line.seeds or value == "success":
            axes.fill_between(curve["step"], curve["low"], curve["high"], color=colour, alpha=0.2, linewidth=0)
            if len(curve["step"]) == 1:  # no area to fill: the interval is a bar
                axes.vlines(curve["step"], curve["low"], curve["high"], color=colour, linewidth=1.6)
        axes.plot(curve["step"], curve[value], color=colour, label=_plain(line.label), linewidth=2.0 if line.seeds else 1.6,
                  marker=_marker(curve))
    axes.set_ylabel(label)
    _finish(axes, legend=len(lines) > 1)
    return figure, axes


def funnel_figure(curve: Curve) -> Figure:
    """Goals in each stage over time, and by itself what is undecided."""
    figure, axes = _axes(6.4, 3.0)
    for stage in (*SEQUENCE, "undecided"):
        axes.plot(curve["step"], np.where(curve[stage] > 0, curve[stage], np.nan), label=stage, linewidth=1.6,
                  color=LIGHT.stages[stage], linestyle=_DASHES[stage], marker=_marker(curve))
    if float(np.max(curve["declared"], initial=0.0)) >= LARGE_SPACE:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: terms.short(value)))
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel("goals")
    _finish(axes, legend=True)
    return figure


def metrics_figure(curves: dict[str, list[Line]], labels: list[str]) -> Figure:
    """Every recorded number in a small picture of its own: metric → lines. `labels`: of all lines, by which they are coloured."""
    columns, colours = 3, run_colours(labels)
    rows = max(1, -(-len(curves) // columns))
    with rc_context(_STYLE):
        figure = Figure(figsize=(9.6, 1.9 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (name, lines) in zip(grid.flat, curves.items(), strict=False):
        for line in lines:
            for one in line.seeds:
                axes.plot(one["step"], one["value"], linewidth=0.5, alpha=0.5, color=colours[line.label])
            axes.plot(line.curve["step"], line.curve["value"], linewidth=1.1, color=colours[line.label], marker=_marker(line.curve))
        axes.set_xlim(left=0)
        axes.set_title(_plain(name), fontsize=9)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: terms.short(value)))
        axes.tick_params(labelsize=7)
    for axes in list(grid.flat)[len(curves):]:
        axes.set_visible(False)
    return figure


def maps_figure(kinds: list[CellMap], measure: Measure) -> Figure:
    """One map of cells for each kind of thing, all on one scale."""
    columns = min(4, len(kinds))
    rows = -(-len(kinds) // columns)
    height = 2.3 * max(each.rows / each.cols for each in kinds) + 0.3
    with rc_context({**_STYLE, "axes.grid": False, "axes.spines.top": True, "axes.spines.right": True}):
        figure = Figure(figsize=(2.4 * columns + 1.2, height * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
    top = max([1.0, *(float(np.nanmax(measure.of(each.goals), initial=0.0)) for each in kinds)])
    colours, norm = _scale(measure, top)
    image = None
    for axes, each in zip(grid.flat, kinds, strict=False):
        image = axes.imshow(each.cells(measure), cmap=colours, norm=norm)
        axes.set_title(_plain(each.kind), fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    for axes in list(grid.flat)[len(kinds):]:
        axes.set_visible(False)
    if image is not None:
        bar = figure.colorbar(image, ax=list(grid.flat), shrink=0.8, pad=0.02)
        if measure.key == "verdict":
            bar.set_ticks(list(terms.VERDICTS), labels=list(terms.VERDICTS.values()))
        else:
            bar.set_label(measure.label)
    return figure


def bars_figure(kind: str, goals: Curve, most: int = 30) -> Figure:
    """Bits without a place: the most counted ones, coloured by verdict."""
    order = np.argsort(-goals["count"], kind="stable")[:most][::-1]
    with rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 0.8 + 0.19 * len(order)), layout="constrained")
        axes = figure.subplots()
    verdicts = goals["verdict"][order].astype(int)
    axes.barh(range(len(order)), np.maximum(goals["count"][order], 0.5), color=[VERDICT[v] for v in verdicts])
    names = [str(goals["name"][i]).removeprefix(f"{kind}: ") for i in order]
    axes.set_yticks(range(len(order)), labels=[_plain(f"{name} · {terms.VERDICTS[v]}")
                                               for name, v in zip(names, verdicts.tolist(), strict=True)], fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("count")
    return figure


def as_svg(figure: Figure) -> str:
    """The figure as SVG inside HTML, its ink that of the page around it."""
    buffer = io.StringIO()
    with rc_context(_STYLE):
        for text in figure.findobj(match=lambda artist: hasattr(artist, "set_color") and type(artist).__name__ == "Text"):
            text.set_color(_INK)  # type: ignore[attr-defined]
        for axes in figure.axes:
            axes.tick_params(colors=_INK, which="both")
            for spine in axes.spines.values():
                spine.set_color(_INK)
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg"):].replace(_INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour in (BLUE, GREEN, VERMILLION):  # the page may lighten these on a dark ground
        svg = svg.replace(f": {colour}", f": var(--c{colour[1:]}, {colour})")
    return svg.replace("fill: #ffffff", "fill: none")  # the white ground of the figure and of each axes


def as_png(figure: Figure, dots_per_inch: int = 150) -> bytes:
    """The figure on white."""
    buffer = io.BytesIO()
    figure.set_dpi(dots_per_inch)
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots()


def _marker(curve: Curve) -> str:
    return "o" if len(curve["step"]) < FEW_POINTS else ""


def _finish(axes: Axes, legend: bool) -> None:
    axes.set_xlabel("environment steps")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: terms.short(value)))
    if legend:
        axes.legend(fontsize=8, ncols=3, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _scale(measure: Measure, top: float) -> tuple[ListedColormap | str, Normalize]:
    if measure.key == "verdict":
        return ListedColormap([LIGHT.line, *(VERDICT[v] for v in VERDICT if v)]), Normalize(-0.5, len(VERDICT) - 0.5)
    if measure.logarithmic:
        return "cividis", LogNorm(1.0, max(2.0, top))
    return "cividis", Normalize(measure.low, measure.high or top)


def _plain(text: str) -> str:
    """matplotlib hides labels that begin with an underscore."""
    return text if not text.startswith("_") else " " + text
