"""One page of the goal table: filter, search and sort in SQL, so that 100,000 goals cost as much as a hundred to show.

Called by the inspector's goal table, the report and the terminal table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from protogoal.record.queries import Record, named
from protogoal.record.reader import StoreReader
from protogoal.record.run_facts import RunFacts

_CONTROL = "seek_mean + avoid_mean"

_SORTED_BY = {"name": "name COLLATE NOCASE", "kind": "kind COLLATE NOCASE", "control": _CONTROL,
              "bucket": "CASE WHEN bucket >= 0 THEN bucket END", "age": "-observed_step"}
SORTS: dict[str, str] = {column: _SORTED_BY.get(column, column) for column in (
    "id", "name", "kind", "count", "pursuits", "success", "chance", "events", "nats", "p", "seek_max", "avoid_mean", "control",
    "verdict", "bucket", "age")}


@dataclass(frozen=True)
class GoalFilter:
    """Which goals to list; empty means all."""

    search: str = ""  # a part of the name; several words must all be in it
    verdicts: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    joined: bool | None = None  # True: AND-goals only, False: single bits only
    offered: bool = False
    mastered: bool = False


def goal_page(
    reader: StoreReader,
    facts: RunFacts,
    chosen: GoalFilter | None = None,
    sort: str = "count",
    descending: bool = True,
    offset: int = 0,
    limit: int = 50,
) -> tuple[list[Record], int]:
    """(rows of the page, number of goals that match). A row: the goal's columns, `control`, `age` and `parents` [(id, name)]."""
    if sort not in SORTS:
        raise ValueError(f"cannot sort by {sort!r}; allowed are {', '.join(SORTS)}")
    where, parameters = _where(chosen or GoalFilter())
    order = f"({SORTS[sort]}) IS NULL, {SORTS[sort]} {'DESC' if descending else 'ASC'}, id"
    (total,) = reader.rows(f"SELECT count(*) FROM goals WHERE {where}", parameters)[0]
    # Ids alone are sorted much more quickly than whole rows.
    sql = f"SELECT id FROM goals WHERE {where} ORDER BY {order} LIMIT :limit OFFSET :offset"
    shown = [row[0] for row in reader.rows(sql, {**parameters, "limit": limit, "offset": max(0, offset)})]
    page = _rows(reader, shown)
    for row in page:
        row["members"], row["parents"] = json.loads(row["members"]), json.loads(row["parents"])
        row["age"] = None if row["observed_step"] is None else max(0, facts.step - row["observed_step"])
    parents = sorted({parent for row in page for parent in row["parents"]})
    names = dict(named(reader, parents)) if parents else {}
    for row in page:
        row["parents"] = [(parent, names[parent]) for parent in row["parents"]]
    return page, int(total)


def _rows(reader: StoreReader, ids: list[int]) -> list[Record]:
    """The goals of these ids, in this order. The ids go in as JSON: there may be more than SQLite takes as parameters."""
    found = reader.records(
        f"SELECT *, {_CONTROL} AS control FROM goals WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))
    by_id = {row["id"]: row for row in found}
    return [by_id[goal] for goal in ids if goal in by_id]  # a goal may go between the two questions, after a resume


def _where(chosen: GoalFilter) -> tuple[str, dict[str, Any]]:
    terms, parameters = ["1"], {}
    for index, word in enumerate(chosen.search.lower().split()):
        terms.append(f"instr(lower(name), :word{index}) > 0")
        parameters[f"word{index}"] = word
    for column, values in (("verdict", chosen.verdicts), ("kind", chosen.kinds)):
        if values:
            terms.append(_among(column, values, parameters))
    if chosen.joined is not None:
        terms.append("parents <> '[]'" if chosen.joined else "parents = '[]'")
    terms += [column for column in ("offered", "mastered") if getattr(chosen, column)]
    return " AND ".join(terms), parameters


def _among(column: str, values: Sequence[Any], parameters: dict[str, Any]) -> str:
    marks = [f":{column}{index}" for index in range(len(values))]
    parameters.update({mark[1:]: value for mark, value in zip(marks, values, strict=True)})
    return f"{column} IN ({', '.join(marks)})"
