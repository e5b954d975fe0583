"""`protogoal goals DIR [--why ID|NAME] [--json]`: the goal table in the terminal, in the words of the page.

Called by cli.py.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.record import queries, terms
from protogoal.record.goal_page import goal_page
from protogoal.record.queries import Curve, Record
from protogoal.record.reader import StoreReader
from protogoal.record.run_facts import RunFacts, run_facts

ROWS = 40  # in the terminal; --json has all
POINTS = 12  # of one goal's history, from the first to the last

_STYLE = {0: "dim", 1: "dim", 2: "magenta", 3: "magenta", 4: "red", 5: "cyan", 6: "green"}


def goals_table(
    run_dir: Path, why: str | None = None, as_json: bool = False, space: Callable[[], ProtoGoalSpace] | None = None
) -> str | None:
    """Print the table, or one goal's story (`why`: its id or name). With `as_json` return the JSON text instead.

    `space` makes the run's proto-goal space: asked for the name of a goal that was never observed, which the record does not have.
    """
    with StoreReader(run_dir) as reader:
        facts = run_facts(reader)
        if why is not None:
            goal_id = queries.find_goal(reader, why)
            if goal_id is None:
                return _never_observed(why.strip(), queries.declared(reader), facts, as_json, space)
            record, history = queries.goal(reader, goal_id), queries.goal_history(reader, goal_id)
            story = terms.why(record, history)
            if as_json:
                return json.dumps({**_as_json(record), "reason": story[0], "why": story}, ensure_ascii=False)
            return _told(record, story, facts) + _history(history, facts)
        if as_json:
            rows, _ = goal_page(reader, facts, limit=-1)
            goals = [{**_as_json(row), "reason": terms.why(row)[0]} for row in rows]
            told = {"run": facts.label, "step": facts.step, "funnel": facts.funnel, "goals": goals}
            return json.dumps(told, ensure_ascii=False)
        rows, total = goal_page(reader, facts, limit=ROWS)
        verdicts = Counter(dict(reader.rows("SELECT verdict, count(*) FROM goals GROUP BY verdict")))
    if not total:
        return f"{facts.label}: " + (
            f"none of its {facts.funnel['declared']:,} declared goals was observed" if facts.funnel else
            "no goals were recorded (an agent without goals, or a run of fewer steps than refresh_every, 10,000 by default)")
    _show(rows, total, verdicts, facts)
    return None


def _never_observed(
    text: str, declared: int, facts: RunFacts, as_json: bool, space: Callable[[], ProtoGoalSpace] | None
) -> str:
    """The short story of a goal that was declared and never observed; a ValueError where none is meant."""
    is_number = re.fullmatch(r"\d{1,18}", text) is not None
    if is_number and int(text) >= declared:
        raise ValueError(f"there is no goal {text}; the run has declared {declared:,} goals, numbered from 0")
    goal, name, kind = (int(text), f"goal {text}", "declared") if is_number else (None, text, "not known whether declared")
    story = [f"Unobserved: it was not on in any of the {facts.step:,} steps."]
    try:
        known = space() if space is not None else None
    except ValueError as error:
        known = None
        story.append(f"Its name is not looked up in the run's proto-goal space: {error}.")
    if known is not None:
        goal = _declared_goal(known, text) if goal is None else goal
        name, kind = (known.name(goal), known.kind(goal)) if goal < known.size else (name, "AND-goal")
    if as_json:
        return json.dumps({"id": goal, "name": name, "kind": kind, "verdict": terms.VERDICTS[0], "reason": story[0], "why": story},
                          ensure_ascii=False)
    return _told({"id": goal if goal is not None else "?", "name": name, "kind": kind}, story, facts)


def _declared_goal(space: ProtoGoalSpace, text: str) -> int:
    """The bit that is called so, or the only one that has it in its name."""
    wanted, within = text.casefold(), []
    for bit in range(space.size):
        name = space.name(bit).casefold()
        if name == wanted:
            return bit
        if wanted in name:
            within.append(bit)
    if len(within) == 1:
        return within[0]
    if within:
        examples = ", ".join(f"{bit} ({space.name(bit)})" for bit in within[:3])
        raise ValueError(f"{len(within):,} goals have {text!r} in their name, none of them observed; say which by id, for "
                         f"example {examples}")
    raise ValueError(f"no goal is called {text!r}, observed or not; protogoal goals DIR lists those observed")


ALL, WIDE = 132, 116  # columns of a terminal that has room for all, and for all figures
MOST_OF_ALL = ("count", "success", "nats", "control")  # a narrow terminal shows these, and the names whole


def _show(rows: list[Record], total: int, verdicts: Counter[int], facts: RunFacts) -> None:
    console = Console()
    table = Table(title=f"Goals of {facts.label} at step {facts.step:,}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("id", justify="right", style="dim", no_wrap=True)
    table.add_column("goal", overflow="fold", min_width=16)
    figures = _columns(console, facts)
    more = ("bucket", "age") if console.width >= ALL else ()
    for column in figures:
        table.add_column(terms.FIGURES[column][0], justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for heading in more:
        table.add_column(heading, justify="right", no_wrap=True, style="dim")
    for row in rows:
        star = " ★" if row["mastered"] else ""
        parents = " of " + " and ".join(str(parent) for parent, _ in row["parents"]) if row["parents"] else ""
        table.add_row(
            str(row["id"]), Text.assemble(terms.printable(row["name"]) + star, (parents, "dim")), *_figures(row, figures),
            Text(terms.verdict_words(row["verdict"]), style=_STYLE[row["verdict"]]),
            *((terms.bucket_words(row["bucket"]), terms.short(row["age"])) if more else ()))
    console.print(table)
    counts = ", ".join(f"{verdicts[v]:,} {terms.VERDICTS[v]}" for v in sorted(terms.VERDICTS, reverse=True) if verdicts[v])
    shown = f"The {len(rows):,} most counted of {total:,} goals" if total > len(rows) else f"{total:,} goals"
    shown += " that were observed"
    bright = " Bright figures decided the verdict." if console.color_system else ""
    console.print(f"{shown}: {counts}. ★ mastered.{bright}", highlight=False)
    if facts.funnel:
        console.print(terms.stages_words(facts.funnel), highlight=False, style="dim")
    if facts.task_tries:
        console.print(terms.task_words(facts), highlight=False, style="dim")
    console.print("One goal's story: protogoal goals DIR --why ID or NAME", highlight=False, style="dim")


def _columns(console: Console, facts: RunFacts) -> list[str]:
    return [column for column in terms.figures_of(facts) if console.width >= WIDE or column in MOST_OF_ALL]


def _figures(row: Record, columns: list[str]) -> list[Text]:
    """A row's numbers, those that did not decide the verdict pale."""
    decided = ("count", *terms.DECIDED[row["verdict"]])
    return [Text(terms.figure(row, column), style="" if column in decided else "dim") for column in columns]


def _told(record: Record, story: list[str], facts: RunFacts) -> str:
    head = f"{record['name']}  (goal {record['id']}, {record['kind']}, run {facts.label} at step {facts.step:,})"
    return "\n".join(terms.printable(line) for line in (head, *(f"  {sentence}" for sentence in story)))


def _history(history: Curve, facts: RunFacts) -> str:
    """One goal's values where they changed, the newest last; nothing of a goal that was never seen."""
    if not np.any(history["count"] > 0):
        return ""
    console = Console()
    table = Table(title="Its history", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    figures = _columns(console, facts)
    for heading in ("step", *(terms.FIGURES[column][0] for column in figures), "verdict"):
        table.add_column(heading, justify="left" if heading == "verdict" else "right", no_wrap=True)
    history = {**history, "control": history["seek_mean"] + history["avoid_mean"]}
    size = len(history["step"])
    for index in np.unique(np.linspace(0, size - 1, min(size, POINTS)).round().astype(int)).tolist():
        row: Record = {name: float(column[index]) for name, column in history.items()}
        row["verdict"] = verdict = int(row["verdict"])
        table.add_row(terms.whole(row["step"]), *_figures(row, figures), Text(terms.verdict_words(verdict), style=_STYLE[verdict]))
    with console.capture() as drawn:
        console.print(table)
    return "\n" + drawn.get().rstrip("\n")


def _as_json(row: Record) -> dict[str, Any]:
    def ids(pairs: list[Any]) -> list[int]:
        return [pair[0] if isinstance(pair, (tuple, list)) else pair for pair in pairs]

    return {
        "id": row["id"], "name": row["name"], "kind": row["kind"],
        "cell": None if row["row"] is None else [row["row"], row["col"]],
        "members": ids(row["members"]), "parents": ids(row["parents"]),
        "verdict": terms.VERDICTS[row["verdict"]],
        **{name: row[name] for name in ("count", "pursuits", "success", "chance", "events", "nats", "p",
                                        "seek_max", "seek_mean", "avoid_mean")},
        "bucket": None if row["bucket"] < 0 else row["bucket"],
        "offered": bool(row["offered"]), "mastered": bool(row["mastered"]),
        "created_step": row["created_step"], "observed_step": row["observed_step"],
    }
