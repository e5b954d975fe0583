"""Pictures of the goal space: a map of cells for every kind of thing on a grid, words and other bits as lists, in time.

The slider goes over the refreshes of the longest of the chosen runs; the other runs are shown as they were at the same
step. At its right end it follows the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dash import ClientsideFunction, Dash, Input, Output, State
from dash.exceptions import PreventUpdate

from protogoal.record import queries, terms
from protogoal.record.inspector import plots
from protogoal.record.inspector.runs import Runs
from protogoal.record.inspector.tree import Node, goal_button, h, nothing, trouble
from protogoal.record.measures import MEASURES, CellMap, Measure
from protogoal.record.palette import Theme, theme
from protogoal.record.queries import Curve
from protogoal.record.reader import StoreReader

MOST_CELLS = 8_000  # in one picture; more kinds are shown when they are asked for
MOST_LISTED = 200  # bits without a place, of one kind
PAGE_WIDTH = 1_300
NARROW = 192  # a run without goals


def register(app: Dash, runs: Runs) -> None:
    @app.callback(Output("time", "max"), Output("time", "value"), Output("picture-kinds", "options"), Input("pulse", "data"),
                  Input("runs", "value"), Input("tab", "value"), State("time", "max"), State("time", "value"))
    def stretch_time(_: list[int], chosen: list[int], tab: str, end: int, value: int) -> Any:
        if tab != "pictures":
            raise PreventUpdate
        last = max(1, len(_longest(runs, chosen)) - 1)
        kinds: list[str] = []
        for index in sorted(chosen or []):
            kinds += [kind["kind"] for kind in runs.ask(index, queries.kinds, []) if kind["kind"] not in kinds]
        return last, last if value is None or value >= end else min(value, last), kinds

    app.clientside_callback(
        ClientsideFunction("page", "play"), Output("time", "value", allow_duplicate=True), Output("play-timer", "disabled"),
        Output("play", "children"), Input("play", "n_clicks"), Input("play-timer", "n_intervals"), State("time", "value"),
        State("time", "max"), State("play-timer", "disabled"), prevent_initial_call=True)

    every = range(len(runs))

    @app.callback(*(Output(f"cells-{index}-figure", "data") for index in every),
                  *(Output(f"lists-{index}-tree", "data") for index in every),
                  *(Output(f"picture-{index}", "hidden") for index in every),
                  *(Output(f"picture-{index}", "className") for index in every), Output("legend-tree", "data"),
                  Output("time-words", "children"), Input("time", "value"), Input("time", "max"), Input("pulse", "data"),
                  Input("measure", "value"), Input("picture-kinds", "value"), Input("theme", "data"), State("runs", "value"),
                  State("tab", "value"))
    def show_pictures(value: int, end: int, _: list[int], measure_key: str, kinds: list[str] | None, theme_name: str,
                      chosen: list[int], tab: str) -> Any:
        if tab != "pictures":
            raise PreventUpdate
        steps, measure, look = _longest(runs, chosen), MEASURES[measure_key], theme(theme_name)
        now = value is None or value >= end or not len(steps)
        step = None if now else int(steps[min(int(value), len(steps) - 1)])
        with_goals = _with_goals(runs, chosen)
        width = (PAGE_WIDTH - NARROW * (len(chosen or []) - len(with_goals))) // max(1, len(with_goals))
        figures: list[Any] = [None for _ in every]
        lists: list[Any] = [[] for _ in every]
        for index in chosen or []:
            try:
                with runs.open(index) as reader:
                    figures[index], lists[index] = _column(reader, index, width, measure, kinds, step, look)
            except ValueError as error:
                lists[index] = [trouble(runs.labels[index], error)]
        hidden = [index not in (chosen or []) for index in every]
        # A run without goals gets little room, and no more height than its words need.
        widths = ["panel" if index in with_goals else "panel narrow" for index in every]
        return *figures, *lists, *hidden, *widths, _legend(measure), _time_words(steps, step, value)


def _time_words(steps: Any, step: int | None, value: int | None) -> str:
    if not len(steps):
        return "no refresh yet"
    if step is None:
        return f"after step {int(steps[-1]):,} (refresh {len(steps):,} of {len(steps):,}, now)"
    return f"after step {step:,} (refresh {int(value or 0) + 1:,} of {len(steps):,})"


def _longest(runs: Runs, chosen: list[int] | None) -> Any:
    """The refresh steps of the chosen run that has gone furthest."""
    none = np.empty(0, np.int64)
    found = [none, *(runs.ask(index, queries.refresh_steps, none) for index in chosen or [])]
    return max(found, key=lambda steps: int(steps[-1]) if len(steps) else -1)


def _with_goals(runs: Runs, chosen: list[int] | None) -> list[int]:
    """The chosen runs that have something to draw; the others get little room."""
    return [index for index in chosen or [] if runs.ask(index, lambda reader: reader.rows("SELECT 1 FROM goals LIMIT 1"), [])]


def _legend(measure: Measure) -> list[Node]:
    if measure.key != "verdict":
        return [h("span", measure.title, class_="label")]
    return [h("span", terms.verdict_words(v), title=terms.MEANINGS[v], class_=f"swatch swatch-{v}")
            for v in sorted(terms.VERDICTS, reverse=True)]


def _column(reader: StoreReader, index: int, width: int, measure: Measure, kinds: list[str] | None, step: int | None,
            look: Theme) -> tuple[plots.Figure | None, list[Any]]:
    """One run: its maps in one figure, about `width` pixels wide, and its lists."""
    maps: list[CellMap] = []
    lists: list[Any] = []
    cells, left_out = 0, []
    for kind in queries.kinds(reader):
        name, size = kind["kind"], kind["rows"] * kind["cols"]
        if kinds and name not in kinds:
            continue
        if size and cells and cells + size > MOST_CELLS:
            left_out.append(name)
            continue
        cells += size
        goals = queries.goals_at(reader, name, step)
        placed = ~np.isnan(goals["row"])
        if placed.any():
            maps.append(CellMap(name, kind["rows"], kind["cols"], {key: column[placed] for key, column in goals.items()}))
        if kind["goals"] > len(placed):
            lists.append(nothing(f"{name}: the {len(placed):,} most counted of {kind['goals']:,}; the table has all"))
        if not placed.all():
            lists.append(_listed(name, {key: column[~placed] for key, column in goals.items()}, measure, index))
    if left_out:
        lists.insert(0, nothing(f"{len(left_out)} more kinds: choose them above."))
    if not maps:
        return None, lists or [nothing("This run has no goals.")]
    columns = min(len(maps), 4 if width > PAGE_WIDTH / 2 else 2)
    return plots.cell_maps(maps, measure, look, columns, width - 24), lists


def _listed(kind: str, goals: Curve, measure: Measure, run: int) -> Node:
    """Bits without a place, by verdict, the largest first; each opens its goal."""
    value = measure.of(goals) if measure.key != "verdict" else np.where(goals["count"] > 0, goals["count"], np.nan)
    show = measure.show if measure.key != "verdict" else terms.whole
    seen = goals["verdict"] > 0
    order = np.lexsort((goals["id"], -np.nan_to_num(value, nan=-1.0)))
    order = order[seen[order]]
    listed = order[:MOST_LISTED]
    share = np.zeros(len(value))  # under the verdict the count stands as a number alone
    if measure.key != "verdict":
        size = np.log1p(np.nan_to_num(value)) if measure.logarithmic else np.nan_to_num(value)
        share = size / (measure.high or max(1.0, float(np.max(size, initial=0.0))))
    groups: list[Node] = []
    for verdict in sorted({*terms.VERDICTS} - {0}, reverse=True):
        chips = [_chip(kind, goals, int(i), show(None if value[i] != value[i] else value[i]), float(share[i]), run)
                 for i in listed if goals["verdict"][i] == verdict]
        if chips:
            many = int(np.sum(goals["verdict"] == verdict))
            heading = h("h3", f"{terms.verdict_words(verdict)} · {many:,}", class_=f"verdict verdict-{verdict}")
            groups.append(h("div", heading, h("div", chips, class_="words"), key=verdict))
    if len(order) > len(listed):
        groups.append(nothing(f"{len(listed):,} of {len(order):,} are listed; the table has all"))
    unseen = len(seen) - len(order)
    rest = h("p", f"○ not observed by then: {unseen:,}", class_="verdict-0 unseen") if unseen else None
    return h("div", h("h3", kind, class_="kind"), groups, rest, class_="list")


def _chip(kind: str, goals: Curve, i: int, shown: str, share: float, run: int) -> Node:
    goal = int(goals["id"][i])
    button = goal_button(str(goals["name"][i]).removeprefix(f"{kind}: ").removeprefix(f"{kind} "), run, goal)
    filled = f"--share: {100 * min(1.0, max(0.0, share)):.0f}%"
    return h("span", button, h("small", shown), class_=f"word verdict-{int(goals['verdict'][i])}", style=filled, key=goal)
