"""`protogoal goals DIR [--why ID|NAME] [--json]`: the goal table in the terminal, in the words of the page.

Called by cli.py.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from protogoal.record import queries, words
from protogoal.record.goal_page import goal_page, margin
from protogoal.record.queries import Curve, Record
from protogoal.record.reader import StoreReader
from protogoal.record.run_facts import RunFacts, run_facts

ROWS = 40  # in the terminal; --json has all
POINTS = 12  # of one goal's history, from the first to the last

_STYLE = {0: "dim", 1: "red", 2: "magenta", 3: "cyan", 4: "green"}


def goals_table(run_dir: Path, why: str | None = None, as_json: bool = False) -> str | None:
    """Print the table, or one goal's story (`why`: its id or name). With `as_json` return the JSON text instead."""
    with StoreReader(run_dir) as reader:
        facts = run_facts(reader)
        if why is not None:
            goal_id = queries.find_goal(reader, why)
            record, history = queries.goal(reader, goal_id), queries.goal_history(reader, goal_id)
            story = words.why(record, facts, history)
            if as_json:
                return json.dumps({**_as_json(record, facts), "reason": story[0], "why": story}, ensure_ascii=False)
            return _told(record, story, facts) + _history(history, facts)
        if as_json:
            rows, _ = goal_page(reader, facts, limit=-1)
            goals = [{**_as_json(row, facts), "reason": words.why(row, facts)[0]} for row in rows]
            return json.dumps({"run": facts.label, "step": facts.step, "goals": goals}, ensure_ascii=False)
        rows, total = goal_page(reader, facts, limit=ROWS)
        verdicts = Counter(dict(reader.rows("SELECT verdict, count(*) FROM goals GROUP BY verdict")))
    if not total:
        return f"{facts.label}: no goals were recorded (an agent without goals, or before the first refresh)"
    _show(rows, total, verdicts, facts)
    return None


WIDE = 104  # columns of a terminal that has room for all


def _show(rows: list[Record], total: int, verdicts: Counter[int], facts: RunFacts) -> None:
    console = Console()
    table = Table(title=f"Goals of {facts.label} at step {facts.step:,}", title_justify="left", expand=False)
    table.add_column("id", justify="right", style="dim", no_wrap=True)
    table.add_column("goal", overflow="fold", min_width=16)
    wide = console.width >= WIDE  # a narrow terminal shows what matters most, and the names whole
    for heading in ("count", "success", "V_seek", "V_avoid") if wide else ("count", "success"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for heading in ("margin", "bucket", "age") if wide else ():
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        style = _STYLE[row["verdict"]]
        star = " ★" if row["mastered"] else ""
        parents = " of " + " and ".join(str(parent) for parent, _ in row["parents"]) if row["parents"] else ""
        table.add_row(
            str(row["id"]), Text.assemble(words.printable(row["name"]) + star, (parents, "dim")),
            words.whole(row["count"]), words.percent(words.success_of(row)),
            *((words.decimal(row["seek_max"]), words.decimal(row["avoid_mean"])) if wide else ()),
            Text(words.verdict_words(row["verdict"]), style=style),
            *((words.signed(row["margin"]), words.bucket_words(row["bucket"]), words.short(row["age"])) if wide else ()))
    console.print(table)
    counts = ", ".join(f"{verdicts[v]:,} {words.VERDICTS[v]}" for v in sorted(words.VERDICTS, reverse=True) if verdicts[v])
    more = f"The {len(rows):,} most counted of {total:,} goals" if total > len(rows) else f"{total:,} goals"
    console.print(f"{more}: {counts}. ★ mastered.", highlight=False)
    if facts.funnel:
        stages = " → ".join(f"{name} {number:,}" for name, number in facts.funnel.items())
        console.print(stages, highlight=False, style="dim")
    console.print("One goal's story: protogoal goals DIR --why ID or NAME", highlight=False, style="dim")


def _told(record: Record, story: list[str], facts: RunFacts) -> str:
    head = f"{record['name']}  (goal {record['id']}, {record['kind']}, run {facts.label} at step {facts.step:,})"
    return "\n".join(words.printable(line) for line in (head, *(f"  {sentence}" for sentence in story)))


def _history(history: Curve, facts: RunFacts) -> str:
    """One goal's values where they changed, the newest last; nothing of a goal that was never seen."""
    if not np.any(history["count"] > 0):
        return ""
    table = Table(title="Its history", title_justify="left", expand=False)
    for heading in ("step", "count", "success", "V_seek", "V_avoid", "verdict", "margin"):
        table.add_column(heading, justify="left" if heading == "verdict" else "right", no_wrap=True)
    size = len(history["step"])
    for index in np.unique(np.linspace(0, size - 1, min(size, POINTS)).round().astype(int)).tolist():
        row: Record = {name: None if math.isnan(column[index]) else float(column[index]) for name, column in history.items()}
        verdict = int(history["verdict"][index])
        table.add_row(
            words.whole(row["step"]), words.whole(row["count"]), words.percent(words.success_of(row)),
            words.decimal(row["seek_max"]), words.decimal(row["avoid_mean"]),
            Text(words.verdict_words(verdict), style=_STYLE[verdict]), words.signed(margin({**row, "verdict": verdict}, facts)))
    console = Console()
    with console.capture() as drawn:
        console.print(table)
    return "\n" + drawn.get().rstrip("\n")


def _as_json(row: Record, facts: RunFacts) -> dict[str, Any]:
    def ids(pairs: list[Any]) -> list[int]:
        return [pair[0] if isinstance(pair, (tuple, list)) else pair for pair in pairs]

    return {
        "id": row["id"], "name": row["name"], "kind": row["kind"],
        "cell": None if row["row"] is None else [row["row"], row["col"]],
        "members": ids(row["members"]), "parents": ids(row["parents"]),
        "count": row["count"], "pursuits": row["pursuits"], "success": words.success_of(row),
        "seek_max": row["seek_max"], "seek_mean": row["seek_mean"], "avoid_mean": row["avoid_mean"],
        "verdict": words.VERDICTS[row["verdict"]], "margin": margin(row, facts),
        "bucket": None if row["bucket"] < 0 else row["bucket"],
        "offered": bool(row["offered"]), "mastered": bool(row["mastered"]),
        "created_step": row["created_step"], "observed_step": row["observed_step"],
    }
