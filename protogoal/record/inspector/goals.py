"""The goal table of the page, and one goal's story beside it."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from protogoal.record import queries, words
from protogoal.record.goal_page import GoalFilter, goal_page
from protogoal.record.inspector import plots
from protogoal.record.inspector.layout import COLUMNS
from protogoal.record.inspector.overview import trouble
from protogoal.record.inspector.runs import Runs
from protogoal.record.palette import theme
from protogoal.record.queries import Record
from protogoal.record.run_facts import run_facts

ROWS = 50  # a page
CLIPS = 4  # of one goal
ASCENDING_FIRST = ("id", "name")  # the other columns begin with their largest


def register(app: Dash, runs: Runs) -> None:
    filters = [Input("goals-run", "value"), Input("search", "value"), Input("verdicts", "value"), Input("which", "value"),
               Input("flags", "value"), Input("kinds", "value")]

    @app.callback(
        Output("goal-rows", "children"), Output("goal-total", "children"), Output("back", "disabled"), Output("next", "disabled"),
        Input("pulse", "data"), Input("tab", "value"), *filters, Input("sort", "data"), Input("page", "data"),
        Input("chosen-goal", "data"))
    def show_rows(_: list[int], tab: str, run: int, search: str | None, verdicts: list[int], which: str, flags: list[str],
                  kinds: list[str] | None, sort: list[Any], page: int, opened: list[int] | None) -> Any:
        if tab != "goals":
            raise PreventUpdate
        chosen = GoalFilter(
            search=search or "", verdicts=tuple(verdicts or ()), kinds=tuple(kinds or ()),
            joined={"and": True, "single": False}.get(which), offered="offered" in flags, mastered="mastered" in flags)
        try:
            with runs.open(run) as reader:
                facts = run_facts(reader, runs.labels[run])
                rows, total = goal_page(reader, facts, chosen, sort[0], sort[1], page * ROWS, ROWS)
        except ValueError as error:
            return html.Tr(html.Td(str(error), colSpan=len(COLUMNS))), "", True, True
        open_goal = opened[1] if opened and opened[0] == run else None
        first = page * ROWS + 1
        many = f"{first:,}–{first + len(rows) - 1:,} of {total:,} goals" if rows else "No goal matches."
        return [_row(row, row["id"] == open_goal) for row in rows], many, page == 0, (page + 1) * ROWS >= total

    @app.callback(Output("page", "data"), *filters, Input("sort", "data"), Input("back", "n_clicks"), Input("next", "n_clicks"),
                  State("page", "data"), prevent_initial_call=True)
    def turn_page(*arguments: Any) -> int:
        page = int(arguments[-1])
        return {"next": page + 1, "back": max(0, page - 1)}.get(str(ctx.triggered_id), 0)

    @app.callback(Output("sort", "data"), Output({"type": "sort", "column": ALL}, "children"),
                  Input({"type": "sort", "column": ALL}, "n_clicks"), State("sort", "data"))
    def choose_sort(_: list[int | None], sort: list[Any]) -> Any:
        column, descending = sort
        if isinstance(ctx.triggered_id, dict):
            clicked = ctx.triggered_id["column"]
            descending = not descending if clicked == column else clicked not in ASCENDING_FIRST
            column = clicked
        heads = [text + (" ▼" if descending else " ▲") if key == column else text for key, (text, _) in COLUMNS.items()]
        return [column, descending], heads

    @app.callback(Output("kinds", "options"), Input("goals-run", "value"), Input("tab", "value"))
    def list_kinds(run: int, tab: str) -> Any:
        if tab != "goals":
            raise PreventUpdate
        try:
            with runs.open(run) as reader:
                return [kind["kind"] for kind in queries.kinds(reader)]
        except ValueError:
            return []

    @app.callback(
        Output("chosen-goal", "data"), Output("tab", "value"), Output("goals-run", "value"),
        Input({"type": "goal", "run": ALL, "goal": ALL, "place": ALL}, "n_clicks"),
        Input("cell-click", "data"), State("tab", "value"), State("goals-run", "value"),
        prevent_initial_call=True)
    def choose_goal(_: list[int | None], cell: dict[str, int] | None, tab: str, run: int) -> Any:
        """A click on a goal anywhere opens it in the table's part; buttons that are merely drawn anew say nothing."""
        source = cell if ctx.triggered_id == "cell-click" else ctx.triggered_id
        if not ctx.triggered[0]["value"] or source is None:
            raise PreventUpdate
        where, goal = run if source["run"] < 0 else int(source["run"]), int(source["goal"])
        if goal < 0:
            raise PreventUpdate
        return [where, goal], no_update if tab == "goals" else "goals", no_update if where == run else where

    @app.callback(Output("goal-story", "children"), Output("goal-more", "children"), Output("history-figure", "data"),
                  Output("history-box", "hidden"), Input("chosen-goal", "data"), Input("pulse", "data"),
                  Input("goals-run", "value"), Input("theme", "data"), Input("tab", "value"))
    def show_goal(chosen: list[int] | None, _: list[int], run: int, theme_name: str, tab: str) -> Any:
        if tab != "goals":
            raise PreventUpdate
        if not chosen or chosen[0] != run:
            hint = html.P("Open a goal of the table to see its history, and why it was kept or pruned.", className="empty")
            return hint, [], None, True
        try:
            with runs.open(run) as reader:
                facts = run_facts(reader, runs.labels[run])
                goal, history = queries.goal(reader, chosen[1]), queries.goal_history(reader, chosen[1])
                pursuits = queries.goal_pursuits(reader, chosen[1], 20)
                clips = queries.goal_clips(reader, chosen[1], CLIPS)
        except ValueError as error:
            return trouble(runs.labels[run], error), [], None, True
        story: list[Any] = [html.H2(goal["name"]), html.Small(f"goal {goal['id']} · {goal['kind']}"),
                            html.Div([html.P(sentence) for sentence in words.why(goal, facts, history)], className="why")]
        for title, links in (("made of", goal["parents"]), ("part of", goal["children"])):
            if links:
                buttons = [goal_button(name, run, i, title) for i, name in links]
                story.append(html.P([html.Small(title), *buttons], className="links"))
        drawn = plots.history(history, facts, theme(theme_name)) if history["step"].size else None
        return story, _more(run, pursuits, clips), drawn, drawn is None


def _more(run: int, pursuits: list[Record], clips: list[Record]) -> list[Any]:
    """Below a goal's history: how its last pursuits ended, and clips of some."""
    parts: list[Any] = []
    if pursuits:
        marks = [html.Span("✓" if p["success"] else "✕", className="won" if p["success"] else "failed",
                           title=f"step {p['step']:,}: {'won' if p['success'] else 'failed'} after {p['length']} steps")
                 for p in reversed(pursuits)]
        parts.append(html.P([html.Small("last pursuits, oldest first "), *marks], className="marks"))
    if clips:
        parts.append(html.Div([clip_card(run, clip) for clip in clips], className="cards"))
    return parts


def goal_button(name: str, run: int, goal: int, place: str) -> html.Button:
    """A goal's name that opens it; `place` tells apart the buttons of one goal."""
    return html.Button(name, id={"type": "goal", "run": run, "goal": goal, "place": place}, className="goal")


def clip_card(run: int, clip: Record) -> html.Figure:
    """A clip with its caption."""
    end = "won" if clip["success"] else "failed"
    who = "the evaluator, for the task" if clip["kind"] == "evaluator" else clip["name"]
    return html.Figure([
        html.Img(src=f"/clip/{run}/{clip['id']}.gif", alt=f"{end}: {who}, at step {clip['step']:,}"),
        html.Figcaption([html.Span("✓ won" if clip["success"] else "✕ failed", className=end), html.Span(who),
                         html.Small(f"step {clip['step']:,}")]),
    ], className="card", key=f"{run}-{clip['id']}")


def _row(row: Record, opened: bool) -> html.Tr:
    verdict = row["verdict"]
    parents = [html.Small("of " + " and ".join(str(parent) for parent, _ in row["parents"]))] if row["parents"] else []
    star = [html.Span("★", title="mastered", className="star")] if row["mastered"] else []
    numbers = [
        words.whole(row["count"]), words.percent(words.success_of(row)), words.decimal(row["seek_max"]),
        words.decimal(row["avoid_mean"])]
    return html.Tr([
        html.Td(str(row["id"]), className="number"),
        html.Td([goal_button(row["name"], -1, row["id"], "table"), *star, *parents], className="name"),
        *(html.Td(number, className="number") for number in numbers),
        html.Td(words.verdict_words(verdict), className=f"verdict verdict-{verdict}", title=words.MEANINGS[verdict]),
        html.Td(words.signed(row["margin"]), className="number"),
        html.Td(words.bucket_words(row["bucket"]), className="number"),
        html.Td(words.short(row["age"]), className="number"),
    ], key=str(row["id"]), className="opened" if opened else "")
