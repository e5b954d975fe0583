"""The questions people ask of a run, as SQL: curves, the state of goals at a step, one goal's history, clips, events.

Each function takes a StoreReader and returns plain arrays or records; nothing here draws. The inspector, the report and
the terminal table ask the same functions, so they show the same numbers.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.table import TASK
from protogoal.record.reader import StoreReader
from protogoal.record.schema import FUNNEL, STATE

Curve = dict[str, NDArray[Any]]
Record = dict[str, Any]

HISTORY_POINTS = 2_000  # of one goal; a history has fewer, see table_limits.py
MOST_CELLS = 1_000  # of one side of a map
MOST_OF_A_KIND = 8_000  # goals in one picture: the most counted


def _curve(reader: StoreReader, columns: str, source: str, parameters: tuple[Any, ...] = ()) -> Curve:
    """Columns of a query as arrays; NULL becomes NaN."""
    names = re.split(r",\s*", columns)
    rows = reader.rows(f"SELECT {columns} FROM {source}", parameters)
    values = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {name: np.array([np.nan if v is None else v for v in column], np.float64)
            for name, column in zip(names, values, strict=True)}


def success_curve(reader: StoreReader) -> Curve:
    """Success at the task over the run: step, seconds, success, low, high (95 % Wilson), episodes, mean_return."""
    columns = "step, seconds, successes, episodes, low, high, mean_return"
    curve = _curve(reader, columns, "evaluations ORDER BY step")
    curve["success"] = curve.pop("successes") / np.maximum(curve["episodes"], 1)
    return curve


def funnel_curves(reader: StoreReader) -> Curve:
    """How many goals were in each stage after each refresh: step, seconds, and the stages."""
    return _curve(reader, f"step, seconds, {', '.join(FUNNEL)}", "refreshes ORDER BY step")


def metric_names(reader: StoreReader) -> list[str]:
    """Every metric that was ever written, by name; a skip over the key, not a walk over all points."""
    skip = ("WITH RECURSIVE names(name) AS (SELECT min(name) FROM metrics UNION ALL "
            "SELECT (SELECT min(name) FROM metrics WHERE name > names.name) FROM names WHERE names.name IS NOT NULL) "
            "SELECT name FROM names WHERE name IS NOT NULL")
    return [row[0] for row in reader.rows(skip)]


def metric_curve(reader: StoreReader, name: str) -> Curve:
    """One metric over the run: step, seconds, value."""
    return _curve(reader, "step, seconds, value", "metrics WHERE name = ? ORDER BY step", (name,))


def refresh_steps(reader: StoreReader) -> NDArray[np.int64]:
    """The steps of all refreshes that are still recorded, ascending."""
    return np.array([row[0] for row in reader.rows("SELECT step FROM refreshes ORDER BY step")], np.int64)


def events(reader: StoreReader, limit: int = 50) -> list[Record]:
    """The newest lines of the run's log, newest first: step, seconds, text."""
    return reader.records("SELECT step, seconds, text FROM events ORDER BY id DESC LIMIT ?", (limit,))


def goal(reader: StoreReader, goal_id: int) -> Record:
    """One goal: its row, with members and parents as (id, name), and the newest goals made of it as `children`."""
    found = reader.records("SELECT * FROM goals WHERE id = ?", (goal_id,))
    if not found:
        many = declared(reader)
        known = f"goal {goal_id} was never observed" if goal_id < many else f"there is no goal {goal_id}"
        raise ValueError(f"{known}; the run has declared {many:,} goals, numbered from 0")
    record = found[0]
    record["members"] = named(reader, json.loads(record["members"]))
    record["parents"] = named(reader, json.loads(record["parents"]))
    sql = ("SELECT goals.id, goals.name FROM goals, json_each(goals.parents) AS parent "
           "WHERE goals.parents <> '[]' AND parent.value = ? ORDER BY goals.id DESC LIMIT 12")
    record["children"] = reader.rows(sql, (goal_id,))
    return record


def declared(reader: StoreReader) -> int:
    """How many goals there are, observed or not."""
    found = reader.rows("SELECT declared FROM refreshes ORDER BY step DESC LIMIT 1")
    return int(found[0][0]) if found else 0


def named(reader: StoreReader, ids: list[int]) -> list[tuple[int, str]]:
    """(id, name) of each goal, in the given order; the task is −1."""
    names = dict(reader.rows("SELECT id, name FROM goals WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)))
    return [(i, "the task" if i == TASK else names.get(i, f"goal {i}")) for i in ids]


def find_goal(reader: StoreReader, text: str) -> int | None:
    """The id of a goal from what a person typed: its id, its name, or a part of its name that only one goal has.

    None where no goal that was ever observed is meant.
    """
    text = text.strip()
    if text.lower() in ("the task", str(TASK)):
        raise ValueError("the task is no goal that is judged; protogoal goals DIR says how it fares")
    if re.fullmatch(r"\d{1,18}", text):
        return int(text) if reader.rows("SELECT 1 FROM goals WHERE id = ?", (int(text),)) else None
    # The word FLAG and the thing flag are two kinds of goals: letter case counts where it decides.
    exact = reader.rows("SELECT id FROM goals WHERE name = ?1 COLLATE NOCASE ORDER BY name <> ?1, id LIMIT 1", (text,))
    if exact:
        return int(exact[0][0])
    like = "FROM goals WHERE instr(lower(name), lower(?)) > 0"
    (many,) = reader.rows(f"SELECT count(*) {like}", (text,))[0]
    some = reader.rows(f"SELECT id, name {like} ORDER BY length(name), id LIMIT 3", (text,))
    if many == 1:
        return int(some[0][0])
    if many:
        examples = ", ".join(f"{i} ({name})" for i, name in some)
        raise ValueError(f"{many:,} goals have {text!r} in their name; say which by id, for example {examples}")
    return None


def goal_history(reader: StoreReader, goal_id: int) -> Curve:
    """One goal's state wherever it changed materially, and as it is now: step and the state columns."""
    columns = f"step, {', '.join(STATE)}"
    past = _curve(reader, columns, f"goal_history WHERE goal = ? ORDER BY step LIMIT {HISTORY_POINTS}", (goal_id,))
    now = reader.rows(f"SELECT (SELECT max(step) FROM refreshes), {', '.join(STATE)} FROM goals WHERE id = ?", (goal_id,))
    if now and now[0][0] is not None and (not past["step"].size or now[0][0] > past["step"][-1]):
        last = [np.nan if value is None else value for value in now[0]]
        past = {name: np.append(past[name], value) for name, value in zip(past, last, strict=True)}
    return past


def goal_pursuits(reader: StoreReader, goal_id: int, limit: int = 50) -> list[Record]:
    """The newest pursuits of a goal (TASK: of the task itself), newest first: step at its end, success, length."""
    return reader.records(
        "SELECT step, success, length FROM pursuits WHERE goal = ? ORDER BY id DESC LIMIT ?", (goal_id, limit))


_CELL = "' (' || row || ',' || col || ')'"
_IS_CELL = f"row IS NOT NULL AND substr(kind, -length({_CELL})) = {_CELL} AND substr(name, 1, length(kind) + 1) = kind || ' '"
_SHOWN = f"substr(kind, 1, length(kind) - length({_CELL})) || substr(name, length(kind) + 1)"
_LAYER = f"CASE WHEN {_IS_CELL} THEN {_SHOWN} ELSE kind END"
"""What is drawn on one map: a kind; or, where a kind is all that a cell can show ("picture (2,3)"), what it shows there."""


def kinds(reader: StoreReader) -> list[Record]:
    """The kinds of observed single-bit goals: kind, goals, rows and cols of their grid (0 where they lie on none).

    Kinds that are a cell each are told by what the cells show, and come first: "picture (2,3)" and the others become "picture
    brightness 5 of 7" and the like, so that a map has one goal in a cell. A space with one grid has said how large it is; else it
    is as large as what was observed.
    """
    has_cells = reader.rows(f"SELECT 1 FROM goals WHERE parents = '[]' AND {_IS_CELL} LIMIT 1")
    group = _LAYER if has_cells else "kind"
    first = f"min(CASE WHEN {_IS_CELL} THEN -1 ELSE id END)" if has_cells else "min(id)"
    found = reader.records(
        f"SELECT {group} AS kind, count(*) AS goals, coalesce(max(row) + 1, 0) AS rows, coalesce(max(col) + 1, 0) AS cols "
        f"FROM goals WHERE parents = '[]' GROUP BY 1 ORDER BY {first}, 1")
    grid = reader.meta().get("grid")
    if isinstance(grid, list) and len(grid) == 2 and all(isinstance(side, int) and 0 < side < MOST_CELLS for side in grid):
        for kind in found:
            if 0 < kind["rows"] <= grid[0] and kind["cols"] <= grid[1]:
                kind |= {"rows": grid[0], "cols": grid[1]}
    return found


def goals_at(reader: StoreReader, kind: str, step: int | None = None) -> Curve:
    """The observed single-bit goals of one of `kinds` as they were after the last refresh up to `step` (None: now).

    Columns id, row, col and the state; and `name`, an array of strings. Before its first change a goal is untouched. Of many
    only those most counted now are given.
    """
    names = ["id", "row", "col", *STATE]
    column = "kind" if reader.rows("SELECT 1 FROM goals WHERE kind = ? LIMIT 1", (kind,)) else _LAYER
    most = f"SELECT id FROM goals WHERE parents = '[]' AND {column} = ? ORDER BY count DESC, id LIMIT {MOST_OF_A_KIND}"
    source = f"goals WHERE id IN ({most}) ORDER BY id"
    if step is None:
        rows = reader.rows(f"SELECT {', '.join(names)}, name FROM {source}", (kind,))
    else:
        default = ", ".join(
            f"coalesce(h.{name}, {sql.partition('DEFAULT')[2] or 'NULL'}) AS {name}" for name, sql in STATE.items())
        then = "SELECT max(step) FROM goal_history WHERE goal = g.id AND step <= ?"
        rows = reader.rows(
            f"SELECT id, row, col, {default}, name FROM (SELECT id, row, col, name FROM {source}) AS g "
            f"LEFT JOIN goal_history AS h ON h.goal = g.id AND h.step = ({then})", (kind, step))
    *values, words = zip(*rows, strict=True) if rows else ((),) * (len(names) + 1)
    curve: Curve = {name: np.array(column, np.float64) for name, column in zip(names, values, strict=True)}  # None → NaN
    curve["name"] = np.array(words, np.object_)
    return curve


_CLIP = ("clips.id, clips.step, clips.kind, goal, clips.success, bytes, "
         f"CASE goal WHEN {TASK} THEN 'the task' ELSE coalesce(goals.name, 'goal ' || goal) END AS name")


def clips(reader: StoreReader, kind: str | None = None, success: bool | None = None, limit: int = 12) -> list[Record]:
    """The newest clips without their pictures, newest first: id, step, kind, goal, name, success, bytes."""
    return reader.records(
        f"SELECT {_CLIP} FROM clips LEFT JOIN goals ON goals.id = clips.goal "
        "WHERE (:kind IS NULL OR clips.kind = :kind) AND (:success IS NULL OR (clips.success = 1) = :success) "
        "ORDER BY clips.id DESC LIMIT :limit",
        {"kind": kind, "success": None if success is None else int(success), "limit": limit})


def goal_clips(reader: StoreReader, goal_id: int, limit: int = 4) -> list[Record]:
    """The newest clips of one goal, as `clips` gives them."""
    return reader.records(
        f"SELECT {_CLIP} FROM clips LEFT JOIN goals ON goals.id = clips.goal WHERE goal = ? ORDER BY clips.id DESC LIMIT ?",
        (goal_id, limit))


def clip_gif(reader: StoreReader, clip_id: int) -> bytes | None:
    """The moving picture of a clip, or None where it is gone."""
    found = reader.rows("SELECT gif FROM clips WHERE id = ?", (clip_id,))
    return bytes(found[0][0]) if found else None
