"""What the agent does: recorded clips of pursuits and of the player at the task, won and failed, runs side by side."""

from __future__ import annotations

from typing import Any

from dash import Dash, Input, Output
from dash.exceptions import PreventUpdate

from protogoal.record import queries
from protogoal.record.inspector.goals import clip_card
from protogoal.record.inspector.runs import Runs
from protogoal.record.inspector.tree import h, nothing, trouble

CLIPS = 18  # a run


def register(app: Dash, runs: Runs) -> None:
    @app.callback(Output("clip-columns-tree", "data"), Input("pulse", "data"), Input("runs", "value"), Input("clip-kind", "value"),
                  Input("clip-end", "value"), Input("tab", "value"))
    def show_clips(_: list[int], chosen: list[int], kind: str, end: str, tab: str) -> Any:
        if tab != "behaviour":
            raise PreventUpdate
        columns = []
        for index in sorted(chosen or []):
            try:
                with runs.open(index) as reader:
                    found = queries.clips(reader, None if kind == "all" else kind, {"won": True, "failed": False}.get(end), CLIPS)
            except ValueError as error:
                columns.append(trouble(runs.labels[index], error))
                continue
            cards = h("div", [clip_card(index, clip) for clip in found], class_="cards")
            head = h("h2", runs.labels[index]) if len(runs) > 1 else None
            columns.append(h("div", head, cards if found else nothing("No such clip was recorded yet."),
                             class_="panel" if found else "panel narrow", key=index))
        return columns
