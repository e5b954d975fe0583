"""The goal table of the page, and one goal's story beside it."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update
from dash.exceptions import PreventUpdate

from protogoal.record import queries, terms
from protogoal.record.goal_page import GoalFilter, goal_page
from protogoal.record.inspector import plots
from protogoal.record.inspector.layout import COLUMNS, classes
from protogoal.record.inspector.runs import Runs
from protogoal.record.inspector.tree import Node, goal_button, h, nothing, trouble
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
        Output("goal-rows-tree", "data"), Output("goal-total", "children"), Output("back", "disabled"), Output("next", "disabled"),
        Output("goal-table", "className"),
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
            return [h("tr", h("td", str(error), colspan=len(COLUMNS)))], "", True, True, ""
        open_goal = opened[1] if opened and opened[0] == run else None
        first = page * ROWS + 1
        many = f"{first:,}–{first + len(rows) - 1:,} of {total:,} goals" if rows else "No goal matches."
        if rows and chosen == GoalFilter() and facts.funnel:
            many += f" that were observed ({facts.funnel['declared']:,} are declared)"
        shown = [_row(row, run, row["id"] == open_goal) for row in rows]
        return shown, many, page == 0, (page + 1) * ROWS >= total, "by-values" if facts.thresholds else "by-trials"

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
        return [kind["kind"] for kind in runs.ask(run, queries.kinds, [])]

    @app.callback(
        Output("chosen-goal", "data"), Output("tab", "value"), Output("goals-run", "value"), Input("goal-click", "data"),
        State("tab", "value"), State("goals-run", "value"), prevent_initial_call=True)
    def choose_goal(click: dict[str, int], tab: str, run: int) -> Any:
        """A click on a goal anywhere opens it in the table's part."""
        where, goal = int(click["run"]), int(click["goal"])
        if goal < 0:  # an empty cell, or the task
            raise PreventUpdate
        return [where, goal], no_update if tab == "goals" else "goals", no_update if where == run else where

    @app.callback(Output("goal-story-tree", "data"), Output("goal-more-tree", "data"), Output("history-figure", "data"),
                  Output("history-box", "hidden"), Input("chosen-goal", "data"), Input("pulse", "data"),
                  Input("goals-run", "value"), Input("theme", "data"), Input("tab", "value"))
    def show_goal(chosen: list[int] | None, _: list[int], run: int, theme_name: str, tab: str) -> Any:
        if tab != "goals":
            raise PreventUpdate
        if not chosen or chosen[0] != run:
            return [nothing("Open a goal of the table to see its history, and why it was kept or pruned.")], [], None, True
        try:
            with runs.open(run) as reader:
                facts = run_facts(reader, runs.labels[run])
                goal, history = queries.goal(reader, chosen[1]), queries.goal_history(reader, chosen[1])
                pursuits = queries.goal_pursuits(reader, chosen[1], 20)
                clips = queries.goal_clips(reader, chosen[1], CLIPS)
        except ValueError as error:
            return [trouble(runs.labels[run], error)], [], None, True
        told = terms.why(goal, history)
        links = [h("p", h("small", title), [goal_button(name, run, i) for i, name in pairs], class_="links")
                 for title, pairs in (("made of", goal["parents"]), ("part of", goal["children"])) if pairs]
        story = [h("h2", goal["name"]), h("small", f"goal {goal['id']} · {goal['kind']}"),
                 h("div", [h("p", sentence) for sentence in told], class_="why"), *links]
        drawn = plots.history(history, facts, theme(theme_name)) if history["step"].size else None
        return story, _more(run, pursuits, clips), drawn, drawn is None


def _more(run: int, pursuits: list[Record], clips: list[Record]) -> list[Node]:
    """Below a goal's history: how its last pursuits ended, and clips of some."""
    marks = [h("span", "✓" if p["success"] else "✕", class_="won" if p["success"] else "failed",
               title=f"step {p['step']:,}: {'won' if p['success'] else 'failed'} after {p['length']} steps")
             for p in reversed(pursuits)]
    parts = [h("p", h("small", "last pursuits, oldest first "), marks, class_="marks")] if marks else []
    return [*parts, h("div", [clip_card(run, clip) for clip in clips], class_="cards")] if clips else parts


def clip_card(run: int, clip: Record) -> Node:
    """A clip with its caption."""
    end, sign = {1: ("won", "✓ won"), 0: ("failed", "✕ failed")}.get(clip["success"], ("ended", "ended"))
    who = "the player, at the task" if clip["kind"] == "player" else clip["name"]
    picture = h("img", src=f"/clip/{run}/{clip['id']}.gif", alt=f"{end}: {who}, at step {clip['step']:,}")
    large = h("button", picture, class_="clip", type="button", title="larger")
    caption = h("figcaption", h("span", sign, class_=end), h("span", who), h("small", f"step {clip['step']:,}"))
    return h("figure", large, caption, class_="card", key=f"{run}-{clip['id']}")


def _row(row: Record, run: int, opened: bool) -> Node:
    verdict = row["verdict"]
    parents = h("small", "of " + " and ".join(str(parent) for parent, _ in row["parents"])) if row["parents"] else None
    star = h("span", "★", title="mastered", class_="star") if row["mastered"] else None
    numbers = [h("td", terms.figure(row, column),
                 class_=classes(column) + (" decided" if column in terms.DECIDED[verdict] else "")) for column in terms.FIGURES]
    return h(
        "tr", h("td", row["id"], class_="number"), h("td", goal_button(row["name"], run, row["id"]), star, parents, class_="name"),
        numbers, h("td", terms.verdict_words(verdict), class_=f"verdict verdict-{verdict}", title=terms.MEANINGS[verdict]),
        h("td", terms.bucket_words(row["bucket"]), class_="number"), h("td", terms.short(row["age"]), class_="number"),
        key=row["id"], class_="opened" if opened else "")
