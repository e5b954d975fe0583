"""The frame of the page: head, tabs, and the controls of each part. What they show is filled in by the parts' callbacks."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from protogoal.record import terms
from protogoal.record.inspector.runs import Runs
from protogoal.record.measures import MEASURES

POLL_MILLISECONDS = 3_000
TABS = {"overview": "Overview", "goals": "Goals", "pictures": "Pictures", "behaviour": "Behaviour"}

# column → heading, explanation
COLUMNS: dict[str, tuple[str, str]] = {
    "id": ("id", "number of the goal"),
    "name": ("goal", "what must be so"),
    **terms.FIGURES,
    "verdict": ("verdict", "what the evaluator thinks of it"),
    "bucket": ("bucket", "timescale: 0 is the slowest; – is not on offer"),
    "age": ("age", "steps since it was first observed"),
}


def classes(column: str) -> str:
    """Of a column's cells (page.css): numbers stand right; and the table shows no column of another rule than the run's."""
    rule = "by-trials" if column in terms.BY_TRIALS else "by-values" if column in terms.BY_VALUES else ""
    return "" if column in ("name", "verdict") else f"number {rule}".strip()


def page() -> str:
    """The HTML around the page; the theme is set before anything is drawn."""
    return """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%favicon%}{%css%}<script defer src="/plotly.js"></script></head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""


def layout(runs: Runs) -> html.Div:
    """The whole page."""
    options = [{"label": label, "value": index} for index, label in enumerate(runs.labels)]
    alone = "alone" if len(runs) == 1 else ""
    return html.Div([
        html.Header([
            html.H1("protogoal"),
            dcc.RadioItems([{"label": text, "value": tab} for tab, text in TABS.items()], "overview", id="tab",
                           className="tabs", inline=True),
            html.Div([
                dcc.Checklist(options, list(range(min(3, len(options)))), id="runs", className=f"chips {alone}", inline=True),
                dcc.Checklist([{"label": "follow", "value": "on"}], ["on"], id="follow", className="chips", inline=True),
                html.Button("theme", id="theme-button", title="light or dark"),
            ], className="controls"),
        ]),
        html.Main([
            html.Section(_overview(runs), id="overview", className="part"),
            html.Section(_goals(options, alone), id="goals", className="part"),
            html.Section(_pictures(runs), id="pictures", className="part"),
            html.Section(_behaviour(), id="behaviour", className="part"),
        ]),
        html.Dialog([html.Img(id="large-clip", alt=""), html.P(id="large-caption"), html.Button("close", id="close-clip")],
                    id="large"),
        dcc.Interval(id="poll", interval=POLL_MILLISECONDS),
        dcc.Interval(id="play-timer", interval=350, disabled=True),
        *(dcc.Store(id=f"{element}-tree") for element in trees(runs)),
        dcc.Store(id="pulse"), dcc.Store(id="theme"), dcc.Store(id="chosen-goal"),
        dcc.Store(id="goal-click"), dcc.Store(id="sort", data=["count", True]), dcc.Store(id="page", data=0),
    ])


def figure(element_id: str, height: int | None = 300) -> html.Div:
    """A place for a figure: what is put into the store beside it, page.js draws.

    Not Dash's own graph: that draws an empty figure first, and all anew when it is moved, and plotly is not quick.
    """
    style = {"height": f"{height}px"} if height else {}
    return html.Div([html.Div(id=element_id, style=style, className="plot"), dcc.Store(id=f"{element_id}-figure")])


def figures(runs: Runs) -> list[str]:
    """The ids of all figures of the page."""
    each = [f"{kind}-{index}" for kind in ("funnel", "cells") for index in range(len(runs))]
    return ["success", "metric-curve", "history", *each]


def trees(runs: Runs) -> list[str]:
    """The ids of all places that are filled with elements (tree.py), as the stores beside them say."""
    lists = [f"lists-{index}" for index in range(len(runs))]
    return ["tiles", "events", "goal-rows", "goal-story", "goal-more", "legend", "clip-columns", *lists]


def _overview(runs: Runs) -> list[Any]:
    funnels = [html.Figure([html.Figcaption("Goals by stage" + (f", {label}" if len(runs) > 1 else "")), figure(f"funnel-{index}")],
                           id=f"funnel-box-{index}", hidden=True) for index, label in enumerate(runs.labels)]
    return [
        html.Div(id="tiles"),
        html.Div([
            html.Span("along", className="label"),
            dcc.RadioItems([{"label": "steps", "value": "step"}, {"label": "time", "value": "minutes"}], "step", id="x",
                           className="chips", inline=True),
            dcc.Checklist([{"label": "seeds together", "value": "on"}], ["on"], id="seeds",
                          className="chips" if len(runs) > 1 else "chips alone", inline=True),
        ], className="controls"),
        html.Div([
            html.Figure([html.Figcaption("At the task: success with its 95 % interval; where nothing is called that, return"),
                         figure("success")]),
            html.Div(funnels, className="columns"),
        ], id="curves", className="columns"),
        html.Div([
            html.Figure([
                html.Div([html.Label("Any other number", htmlFor="metric"),
                          dcc.Dropdown(id="metric", clearable=False, className="metric")], className="controls"),
                figure("metric-curve", 240)]),
            html.Div([html.H2("Events"), html.Div(id="events")], className="panel"),
        ], className="columns"),
    ]


def _goals(options: list[dict[str, Any]], alone: str) -> list[Any]:
    verdicts = [{"label": terms.verdict_words(v), "value": int(v)} for v in sorted(terms.VERDICTS, reverse=True) if v]
    which = [{"label": text, "value": value} for value, text in (("all", "all"), ("single", "single bits"), ("and", "AND-goals"))]
    head = [html.Th(html.Button(text, id={"type": "sort", "column": column}, title=f"{words_for}; click to sort"),
                    className=classes(column)) for column, (text, words_for) in COLUMNS.items()]
    return [
        html.Div([
            dcc.RadioItems(options, 0, id="goals-run", className=f"chips {alone}", inline=True),
            html.Div(dcc.Input(id="search", type="search", placeholder="search by name", debounce=0.25, value=""),
                     className="search"),
            dcc.Checklist(verdicts, [], id="verdicts", className="chips", inline=True),
            dcc.RadioItems(which, "all", id="which", className="chips", inline=True),
            dcc.Checklist([{"label": "offered", "value": "offered"}, {"label": "★ mastered", "value": "mastered"}], [],
                          id="flags", className="chips", inline=True),
        ], className="controls"),
        html.Div([
            html.Div([
                html.Div([html.Span(id="goal-total", role="status"), html.Button("‹ back", id="back"),
                          html.Button("next ›", id="next"),
                          dcc.Dropdown(id="kinds", multi=True, placeholder="every kind", className="kinds last")],
                         className="controls"),
                html.Div(html.Table([html.Thead(html.Tr(head)), html.Tbody(id="goal-rows")], id="goal-table"),
                         className="scroll", tabIndex="0"),
            ], className="table"),
            html.Div([html.Div(id="goal-story"), html.Div(figure("history", 440), id="history-box", hidden=True),
                      html.Div(id="goal-more")], id="goal-detail", className="panel detail"),
        ], className="columns wide-left"),
    ]


def _pictures(runs: Runs) -> list[Any]:
    heads = [[html.H2(label)] if len(runs) > 1 else [] for label in runs.labels]
    columns = [html.Div([*head, figure(f"cells-{index}", None), html.Div(id=f"lists-{index}")],
                        id=f"picture-{index}", className="panel", hidden=True) for index, head in enumerate(heads)]
    measures = [{"label": measure.label, "value": key} for key, measure in MEASURES.items()]
    return [
        html.Div([
            html.Span("show", className="label"),
            dcc.RadioItems(measures, "verdict", id="measure", className="chips", inline=True),
            html.Span(id="legend", className="legend"),
            dcc.Dropdown(id="picture-kinds", multi=True, placeholder="every kind", className="kinds"),
        ], className="controls"),
        html.Div([
            html.Button("▶ play", id="play"),
            html.Div(dcc.Slider(0, 1, 1, value=1, id="time", marks=None, included=False, updatemode="drag",
                                allow_direct_input=False), className="slider"),
            html.Span(id="time-words", role="status"),
        ], className="controls time"),
        html.Div(columns, id="picture-columns", className="columns"),
    ]


def _behaviour() -> list[Any]:
    shown = [{"label": text, "value": value}
             for value, text in (("all", "all"), ("player", "the player"), ("pursuit", "pursuits"))]
    ends = [{"label": text, "value": value} for value, text in (("all", "all"), ("won", "✓ won"), ("failed", "✕ failed"))]
    return [
        html.Div([
            html.Span("clips of", className="label"),
            dcc.RadioItems(shown, "all", id="clip-kind", className="chips", inline=True),
            html.Span("that", className="label"),
            dcc.RadioItems(ends, "all", id="clip-end", className="chips", inline=True),
        ], className="controls"),
        html.Div(id="clip-columns", className="columns"),
    ]
