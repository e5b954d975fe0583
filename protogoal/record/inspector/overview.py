"""The first part of the page: how each run does, in numbers and curves; and the pulse that makes the page follow.

Every three seconds the page asks for the pulse (runs.py); only where a run has committed something since is anything
else asked again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from dash import ClientsideFunction, Dash, Input, Output, State, no_update
from dash.exceptions import PreventUpdate

from protogoal.record import queries, seeds, terms
from protogoal.record.inspector import plots
from protogoal.record.inspector.layout import figures, trees
from protogoal.record.inspector.runs import Runs
from protogoal.record.inspector.tree import Node, h, nothing, trouble
from protogoal.record.palette import theme
from protogoal.record.queries import Curve
from protogoal.record.run_facts import RunFacts, run_facts
from protogoal.record.schema import SEQUENCE


def register(app: Dash, runs: Runs) -> None:
    app.clientside_callback(ClientsideFunction("page", "theme"), Output("theme", "data"), Input("theme-button", "n_clicks"))
    app.clientside_callback(ClientsideFunction("page", "show_tab"), Output("overview", "hidden"), Output("goals", "hidden"),
                            Output("pictures", "hidden"), Output("behaviour", "hidden"), Input("tab", "value"))

    @app.callback(Output("pulse", "data"), Input("poll", "n_intervals"), Input("follow", "value"), State("pulse", "data"))
    def feel_pulse(_: int | None, follow: list[str], before: list[int] | None) -> Any:
        if before is not None and not follow:
            return no_update
        now = runs.pulse()
        return no_update if now == before else now

    for element in figures(runs):
        app.clientside_callback(ClientsideFunction("page", "draw"), Input(f"{element}-figure", "data"), State(element, "id"))
    for element in trees(runs):
        app.clientside_callback(ClientsideFunction("page", "fill"), Input(f"{element}-tree", "data"), State(element, "id"))
    every = range(len(runs))

    @app.callback(
        Output("tiles-tree", "data"), Output("success-figure", "data"), Output("events-tree", "data"), Output("metric", "options"),
        Output("curves", "className"), *(Output(f"funnel-{index}-figure", "data") for index in every),
        *(Output(f"funnel-box-{index}", "hidden") for index in every), Input("pulse", "data"), Input("runs", "value"),
        Input("x", "value"), Input("seeds", "value"), Input("theme", "data"), Input("tab", "value"))
    def show_overview(_: list[int], chosen: list[int], x: str, together: list[str], theme_name: str, tab: str) -> Any:
        if tab != "overview":
            raise PreventUpdate
        look = theme(theme_name)
        tiles: list[Any] = []
        shown: list[tuple[int, RunFacts, Curve]] = []
        events: list[Any] = []
        names: list[str] = []
        funnels: list[Any] = [None] * len(runs)
        for index in sorted(chosen or []):
            label = runs.labels[index]
            try:
                with runs.open(index) as reader:
                    facts = run_facts(reader, label)
                    curve, stages = queries.success_curve(reader), queries.funnel_curves(reader)
                    told = queries.events(reader, 12)
                    names += [name for name in queries.metric_names(reader) if name not in names]
            except ValueError as error:
                tiles.append(trouble(label, error))
                continue
            tiles.append(_tiles(facts, look.run(index)))
            shown.append((index, facts, curve))
            if stages["step"].size:
                funnels[index] = plots.funnel(stages, x, look)
            events += [_event(event, label if len(chosen) > 1 else "") for event in told]
        tiles[:0] = _seed_words([facts for _, facts, _ in shown]) if together else []
        if not chosen:
            tiles.append(nothing("Choose a run above."))
        side_by_side = "columns" if sum(funnel is not None for funnel in funnels) < 2 else "columns stacked"
        told_or_nothing = events or [nothing("Nothing yet.")]
        hidden = [funnel is None for funnel in funnels]
        is_success = not shown or any(np.isfinite(curve["success"]).any() for *_, curve in shown)
        success = plots.success(_lines(shown, "success" if is_success else "mean_return", together), x, look)
        return tiles, success, told_or_nothing, names, side_by_side, *funnels, *hidden

    @app.callback(Output("metric", "value"), Input("metric", "options"), State("metric", "value"))
    def choose_metric(names: list[str] | None, before: str | None) -> Any:
        if before in (names or []) or not names:
            return no_update
        return next((name for name in ("loss", "return", "speed") if name in names), names[0])

    @app.callback(Output("metric-curve-figure", "data"), Input("pulse", "data"), Input("runs", "value"), Input("metric", "value"),
                  Input("x", "value"), Input("seeds", "value"), Input("theme", "data"), State("tab", "value"))
    def show_metric(_: list[int], chosen: list[int], name: str | None, x: str, together: list[str], theme_name: str,
                    tab: str) -> Any:
        if tab != "overview" or name is None:
            raise PreventUpdate
        shown: list[tuple[int, RunFacts, Curve]] = []
        for index in sorted(chosen or []):
            try:
                with runs.open(index) as reader:
                    shown.append((index, run_facts(reader, runs.labels[index]), queries.metric_curve(reader, name)))
            except ValueError:
                continue  # the tiles say so
        return plots.metric(_lines(shown, "value", together), name, x, theme(theme_name))


def _lines(shown: list[tuple[int, RunFacts, Curve]], value: str, together: list[str]) -> list[seeds.Line]:
    """The lines to draw, by the places of their runs on the page."""
    drawn = seeds.lines([curve for *_, curve in shown], [facts for _, facts, _ in shown], value, bool(together))
    return [replace(line, run=shown[line.run][0]) for line in drawn]


def _seed_words(facts: list[RunFacts]) -> list[Node]:
    """What the seeds of one configuration say together, a line each."""
    told = [(group.label, seeds.success_words([facts[place] for place in group.members])) for group in seeds.groups(facts)]
    return [h("p", h("strong", label), f": success {words_of}", class_="seeds", key=f"seeds {label}")
            for label, words_of in told if words_of]


def _tiles(facts: RunFacts, colour: str) -> Node:
    interval = "nothing is called success" if facts.episodes else "not evaluated yet"
    if facts.low is not None and facts.high is not None:
        interval = f"{100 * facts.low:.0f}–{100 * facts.high:.0f} % · {facts.episodes:,} episodes"
    steps = f"of {terms.short(facts.total_steps)}" if facts.total_steps else "environment steps"
    preset = facts.preset + ("" if facts.seed is None else f", seed {facts.seed}")
    says_it_all = facts.label == f"{facts.preset}-{facts.seed}"  # as a run is called where nobody named it
    left = ""
    if facts.status in ("running", "busy") and facts.total_steps and facts.speed:
        left = f"{terms.duration(max(0, facts.total_steps - facts.step) / facts.speed)} left"
    head = h("div", h("strong", facts.label, class_="run-name"),
             h("span", terms.status_words(facts), class_=f"status {facts.status}"),
             h("small", preset) if facts.preset and not says_it_all else None, class_="tile head", style=f"border-color: {colour}")
    stages = None
    if facts.funnel:
        numbers = {stage: h("span", h("b", terms.whole(number)), h("small", stage), title=terms.STAGES[stage], class_="stage")
                   for stage, number in facts.funnel.items()}
        way = [[h("span", "→", class_="arrow"), numbers[stage]] for stage in SEQUENCE[1:]]
        aside = h("span", numbers["undecided"], class_="aside")
        stages = h("div", h("small", "goals"), h("div", numbers[SEQUENCE[0]], way, aside, class_="stages"), class_="tile goals")
    task = None
    if facts.task_tries:
        tries = f"{facts.task_wins:,} of {facts.task_tries:,} tries"
        name = "task, training" if facts.has_success else "task got somewhere"
        task = h("div", h("small", name), h("b", terms.percent(facts.task_wins / facts.task_tries)), h("small", tries),
                 class_="tile task", title=terms.task_words(facts))
    return h(
        "div", head, _tile("success", terms.percent(facts.success), interval, title=facts.rule),
        _tile("return", terms.decimal(facts.mean_return), "mean of the evaluation"), task,
        _tile("steps", terms.whole(facts.step), steps, facts.progress), _tile("speed", terms.short(facts.speed), "steps a second"),
        _tile("time", terms.duration(facts.seconds), left or "of training"), stages, class_="tiles", key=facts.label)


def _tile(name: str, value: str, below: str, share: float | None = None, title: str = "") -> Node:
    bar = None if share is None else h("div", h("div", style=f"width: {100 * share:.1f}%"), class_="bar")
    return h("div", h("small", name), h("b", value), h("small", below), bar, class_=f"tile {name}", title=title)


def _event(event: dict[str, Any], label: str) -> Node:
    return h("div", h("small", f"{label} step {event['step']:,}"), h("span", event["text"]), class_="event")
