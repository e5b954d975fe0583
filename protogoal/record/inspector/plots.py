"""Figures of the page as plain dicts that plotly.js draws: curves of runs, the funnel, one goal's history, cell maps.

Plain dicts rather than plotly's Python classes: those check every number, which costs more than the query. Called by
the parts of the page (overview, goals, pictures).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.record import terms
from protogoal.record.measures import CellMap, Measure
from protogoal.record.palette import CIVIDIS, DASH, LARGE_SPACE, VERDICT, Theme
from protogoal.record.panels import panels
from protogoal.record.queries import Curve
from protogoal.record.run_facts import RunFacts
from protogoal.record.schema import SEQUENCE
from protogoal.record.seeds import Line

Figure = dict[str, Any]

X_TITLES = {"step": "environment steps", "minutes": "minutes of training"}
MOST_POINTS = 500  # of a curve
FEW_POINTS = 60  # so few are also marked, else a curve of one point is not seen
SIGN_CELLS = 2_000  # of one picture; more carry no sign: they would be too small, and slow to draw


def _numbers(values: NDArray[Any], digits: int = 5) -> list[float | None]:
    """As JSON: NaN → null, no more digits than a screen shows."""
    return [None if v != v else float(f"{v:.{digits}g}") for v in np.asarray(values, np.float64).tolist()]


def _x(curve: Curve, x: str) -> list[float | None]:
    return _numbers(curve["step"], 12) if x == "step" else _numbers(curve["seconds"] / 60)


def _layout(theme: Theme, height: int | None = None, **more: Any) -> dict[str, Any]:
    grid = {"gridcolor": theme.line, "linecolor": theme.line, "zerolinecolor": theme.line, "automargin": True,
            "tickfont": {"color": theme.muted}}
    layout: dict[str, Any] = {
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "uirevision": "keep",
        "font": {"color": theme.text, "size": 12, "family": "system-ui, sans-serif"},
        "margin": {"l": 48, "r": 12, "t": 8, "b": 40}, "hovermode": "x unified",
        "hoverlabel": {"bgcolor": theme.panel, "bordercolor": theme.line, "font": {"color": theme.text}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
        "xaxis": dict(grid), "yaxis": dict(grid),
    }
    if height:
        layout["height"] = height
    for key, value in more.items():
        layout[key] = {**layout[key], **value} if isinstance(layout.get(key), dict) else value
    return layout


def _faint(colour: str, share: float = 0.18) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


def _thinned(curve: Curve) -> Curve:
    """No more points than a screen shows, the first and the last among them."""
    size = len(curve["step"])
    if size <= MOST_POINTS:
        return curve
    keep = np.linspace(0, size - 1, MOST_POINTS).round().astype(int)
    return {name: column[keep] for name, column in curve.items()}


def _mode(curve: Curve) -> str:
    return "lines+markers" if len(curve["step"]) < FEW_POINTS else "lines"


def _time_axis(x: str) -> dict[str, Any]:
    return {"title": _title(X_TITLES[x]), "rangemode": "tozero"}


def _title(text: str) -> dict[str, Any]:
    return {"text": text, "standoff": 6}


def success(lines: list[Line], x: str, theme: Theme) -> Figure:
    """Success at the task with its 95 % interval, one line a run, or one for the seeds of a configuration.

    Where nothing is called success, its return.
    """
    if lines and not any(np.isfinite(line.curve["success"]).any() for line in lines if "success" in line.curve):
        def paid(curve: Curve) -> Curve:
            return curve | {"value": curve["mean_return"]}

        returns = [replace(line, curve=paid(line.curve), seeds=[paid(one) for one in line.seeds]) for line in lines]
        return metric(returns, "mean return", x, theme)
    traces: list[Figure] = []
    for line in lines:
        label, colour, curve = line.label, theme.run(line.run), line.curve
        traces += [_thin(one, "success", x, colour, label) for one in line.seeds]
        xs = _x(curve, x)
        low, high = _numbers(curve["low"]), _numbers(curve["high"])
        if len(xs) == 1:  # no area to fill: the interval is a bar
            traces.append({"type": "scatter", "mode": "lines", "x": xs * 2, "y": [low[0], high[0]], "hoverinfo": "skip",
                           "line": {"color": colour, "width": 2}, "showlegend": False, "legendgroup": label})
        traces += [
            {"type": "scatter", "mode": "lines", "x": xs + xs[::-1], "y": high + low[::-1], "fill": "toself",
             "fillcolor": _faint(colour), "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, "legendgroup": label},
            {"type": "scatter", "mode": _mode(curve), "x": xs,
             "y": _numbers(curve["success"]), "name": _plain(label), "legendgroup": label, "line": {"color": colour, "width": 2},
             "marker": {"size": 5}, "customdata": _behind(curve, len(line.seeds)),
             "hovertemplate": "%{y:.0%} (%{customdata})"}]
    return {"data": traces, "layout": _layout(
        theme, showlegend=len(lines) > 1, xaxis=_time_axis(x),
        yaxis={"title": _title("success"), "range": [-0.02, 1.02], "tickformat": ".0%"})}


def _behind(curve: Curve, seeds: int) -> list[str]:
    """What each point rests on: 21–80 %, 50 episodes; or 3 seeds."""
    many = [f"{seeds} seeds"] * len(curve["step"]) if seeds else [f"{n:.0f} episodes" for n in curve["episodes"]]
    return [f"{100 * a:.0f}–{100 * b:.0f} %, {words_of}" for a, b, words_of in zip(curve["low"], curve["high"], many, strict=True)]


def _thin(curve: Curve, value: str, x: str, colour: str, label: str) -> Figure:
    """One seed behind the mean of several."""
    curve = _thinned(curve)
    return {"type": "scatter", "mode": "lines", "x": _x(curve, x), "y": _numbers(curve[value]), "hoverinfo": "skip",
            "line": {"color": _faint(colour, 0.5), "width": 1}, "showlegend": False, "legendgroup": label}


def funnel(curve: Curve, x: str, theme: Theme) -> Figure:
    """Goals in each stage over time, and by itself what is undecided.

    A logarithmic axis for large spaces, where the stages differ by orders of magnitude.
    """
    curve = _thinned(curve)
    logarithmic = float(np.max(curve["declared"], initial=0.0)) >= LARGE_SPACE
    axis = {"type": "log", "dtick": 1} if logarithmic else {"rangemode": "tozero"}
    traces: list[Figure] = [
        {"type": "scatter", "mode": _mode(curve), "x": _x(curve, x), "name": stage, "marker": {"size": 4},
         "y": _numbers(np.where(curve[stage] > 0, curve[stage], np.nan), 9), "hovertemplate": "%{y:,}",
         "line": {"color": theme.stages[stage], "width": 2, "dash": DASH[stage]}}
        for stage in (*SEQUENCE, "undecided")]
    return {"data": traces, "layout": _layout(
        theme, xaxis=_time_axis(x), yaxis={"title": _title("goals"), **axis})}


def metric(lines: list[Line], name: str, x: str, theme: Theme) -> Figure:
    """Any recorded number over time, one line a run, or one for the seeds of a configuration."""
    traces: list[Figure] = []
    for line in lines:
        label, colour, curve = line.label, theme.run(line.run), _thinned(line.curve)
        traces += [_thin(one, "value", x, colour, label) for one in line.seeds]
        traces.append({"type": "scatter", "mode": _mode(curve), "x": _x(curve, x), "y": _numbers(curve["value"]),
                       "name": _plain(label), "legendgroup": label, "line": {"color": colour, "width": 2.4 if line.seeds else 1.8},
                       "marker": {"size": 5}, "hovertemplate": "%{y:.4g}"})
    return {"data": traces, "layout": _layout(
        theme, showlegend=len(lines) > 1, xaxis=_time_axis(x), yaxis={"title": _title(_plain(name))})}


def history(curve: Curve, facts: RunFacts, theme: Theme) -> Figure:
    """One goal: what was thought of it (bottom), what that rests on (middle), how often it was attained (top)."""
    steps = _numbers(curve["step"], 12)

    def line(values: NDArray[Any], name: str, colour: str, axis: str, form: str, **more: Any) -> Figure:
        return {"type": "scatter", "mode": _mode(curve), "x": steps, "y": _numbers(values, 9), "name": name, "xaxis": "x",
                "yaxis": axis, "line": {"color": colour, "width": 2, **more}, "marker": {"size": 5}, "hovertemplate": form,
                "connectgaps": True}

    counts = curve["count"][curve["count"] > 0]
    ends = sorted({float(counts[0]), float(counts[-1])}) if counts.size else []
    traces = [line(np.where(curve["count"] > 0, curve["count"], np.nan), "count", theme.muted, "y", "%{y:,}")]
    base = _layout(theme, height=440, margin={"l": 40, "r": 8, "t": 8, "b": 36})
    axis, drawn = base["yaxis"], panels(curve, facts)
    share = 0.5 / len(drawn)
    base["yaxis"] = {**axis, "domain": [0.86, 1.0], "type": "log", "tickvals": ends, "ticktext": [terms.short(end) for end in ends],
                     "title": _title("count")}
    shapes = []
    for index, panel in enumerate(drawn):
        name, top = f"y{index + 2}", 0.82 - index * (share + 0.03)
        form = {"tickformat": ".0%", "dtick": 0.5} if panel.is_share else {"nticks": 4}
        base[f"yaxis{index + 2}"] = {
            **axis, "domain": [top - share + 0.03, top], "range": [-0.04 * panel.top, 1.04 * panel.top], **form}
        for told in panel.lines:
            colour = theme.ink(told.colour)
            traces.append(line(told.values, told.name, colour, name, "%{y:.0%}" if panel.is_share else "%{y:.2f}",
                               dash=told.dash or "solid"))
            if told.level is not None:
                shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": name, "y0": told.level, "y1": told.level,
                               "opacity": 0.7, "line": {"color": colour, "width": 1, "dash": "dot"}})
    verdicts = curve["verdict"].astype(int)
    passed = sorted(set(verdicts.tolist()))  # a level for each that it ever had
    last = f"y{len(drawn) + 2}"
    traces.append({**line(np.searchsorted(passed, verdicts), "verdict", theme.muted, last, "%{text}", shape="hv", width=1.5),
                   "mode": "lines+markers", "showlegend": False, "text": [terms.verdict_words(v) for v in verdicts],
                   "marker": {"size": 7, "color": [VERDICT[v] for v in verdicts], "line": {"color": theme.muted, "width": 1}}})
    base |= {
        "xaxis": {**base["xaxis"], "anchor": last, **_time_axis("step")}, "shapes": shapes,
        f"yaxis{last[1:]}": {**axis, "domain": [0, 0.26], "range": [-0.5, len(passed) - 0.5], "tickvals": list(range(len(passed))),
                             "ticktext": [_in_two_lines(terms.verdict_words(v)) for v in passed]},
        "legend": {**base["legend"], "y": 1.01}}
    return {"data": traces, "layout": base}


def _in_two_lines(verdict: str) -> str:
    """The longest verdicts, for a narrow axis."""
    return verdict.replace(" (", "<br>(").replace(" in ", "<br>in ")


def cell_maps(kinds: list[CellMap], measure: Measure, theme: Theme, columns: int, width: int) -> Figure:
    """One map of cells for each kind of thing, all on one colour scale; `width` is that of the figure in pixels, about."""
    tops = [float(np.nanmax(measure.of(each.goals), initial=0.0)) for each in kinds]
    scale = _colour_axis(measure, max([1.0, *tops]), theme)
    rows = -(-len(kinds) // columns)
    tallest = max(each.rows / each.cols for each in kinds)
    panel = width / columns - 16
    head, height = 26, int(min(panel * tallest, 400))
    total = rows * (height + head)
    bar = 0 if measure.key == "verdict" else 34  # verdicts are explained beside the figure
    layout = _layout(theme, height=total + bar + 12, hovermode="closest", coloraxis=scale,
                     margin={"l": 4, "r": 4, "t": bar, "b": 12})
    signed = measure.key == "verdict" and sum(each.rows * each.cols for each in kinds) <= SIGN_CELLS
    layout["annotations"], traces = [], []
    for index, each in enumerate(kinds):
        row, col = divmod(index, columns)
        left, right = col / columns + 0.008, (col + 1) / columns - 0.008
        top = 1 - (row * (height + head) + head) / total
        bottom = top - height / total
        suffix = "" if index == 0 else str(index + 1)
        axis = {"showgrid": False, "zeroline": False, "ticks": "", "showticklabels": False, "fixedrange": True,
                "showline": True, "mirror": True, "linecolor": theme.line}
        layout[f"xaxis{suffix}"] = {**axis, "domain": [left, right], "anchor": f"y{suffix}", "constrain": "domain",
                                    "range": [-0.5, each.cols - 0.5]}
        layout[f"yaxis{suffix}"] = {**axis, "domain": [max(0.0, bottom), top], "anchor": f"x{suffix}", "constrain": "domain",
                                    "constraintoward": "top", "scaleanchor": f"x{suffix}", "range": [each.rows - 0.5, -0.5]}
        layout["annotations"].append({
            "text": f"<b>{_plain(each.kind)}</b>", "showarrow": False, "xref": "paper", "yref": "paper", "x": (left + right) / 2,
            "y": top, "yanchor": "bottom", "xanchor": "center", "font": {"size": 13}})
        cell = min(panel / each.cols, height / each.rows)  # pixels, about
        traces.append(_cell_map(each, measure, suffix, int(min(24, max(8, 0.35 * cell))) if signed else 0))
    return {"data": traces, "layout": layout}


def _cell_map(one: CellMap, measure: Measure, suffix: str, sign_size: int) -> Figure:
    value = one.cells(measure)
    z = np.log10(value) if measure.logarithmic else value
    ids = np.full(value.shape, -1, np.int64)
    ids[one.goals["row"].astype(int), one.goals["col"].astype(int)] = one.goals["id"].astype(np.int64)
    shown = [[measure.show(None if v != v else v) for v in line] for line in value.tolist()]
    trace: Figure = {
        "type": "heatmap", "z": [_numbers(line, 4) for line in z], "customdata": ids.tolist(), "text": shown,
        "xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "coloraxis": "coloraxis", "xgap": 1, "ygap": 1,
        "hoverongaps": False, "hovertemplate": "row %{y}, column %{x}: %{text}<extra></extra>"}
    if sign_size:
        signs = [[terms.SIGNS[int(v)] if v else "" for v in line] for line in value.tolist()]
        trace |= {"text": signs, "texttemplate": "%{text}", "textfont": {"size": sign_size, "color": "#10151b"},
                  "hovertext": shown, "hovertemplate": "row %{y}, column %{x}: %{hovertext}<extra></extra>"}
    return trace


def _colour_axis(measure: Measure, top: float, theme: Theme) -> dict[str, Any]:
    if measure.key == "verdict":
        colours = {**VERDICT, 0: theme.line}
        many = len(colours)
        edges = [[edge / many, colours[v]] for v in range(many) for edge in (v, v + 1)]
        return {"colorscale": edges, "cmin": -0.5, "cmax": many - 0.5, "showscale": False}
    bar: dict[str, Any] = {"orientation": "h", "thickness": 10, "outlinewidth": 0, "y": 1, "yanchor": "bottom", "x": 0,
                           "xanchor": "left", "len": 0.5, "lenmode": "fraction", "xpad": 8, "ypad": 2,
                           "tickfont": {"color": theme.muted, "size": 11}}
    if measure.logarithmic:
        powers = list(range(int(np.ceil(np.log10(max(top, 1.0)))) + 1))
        bar |= {"tickvals": powers, "ticktext": [terms.short(10.0**p) for p in powers]}
        return {"colorscale": CIVIDIS, "cmin": 0, "cmax": max(1.0, float(np.log10(max(top, 1.0)))), "colorbar": bar}
    bar["tickformat"] = ".0%" if measure.key == "success" else ".1f"
    return {"colorscale": CIVIDIS, "cmin": measure.low, "cmax": measure.high or top, "colorbar": bar}


def _plain(text: str) -> str:
    """plotly.js reads some HTML in titles: names are data, so what could be read as a tag is shown as text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
