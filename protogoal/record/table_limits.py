"""How large each table of a run's file may grow, and what is forgotten then.

Curves lose every second point, so that the whole run stays visible at a coarser grain; logs lose their oldest
rows. Called by record/store.py inside the transaction that wrote the rows.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

METRIC_POINTS = 4_096  # a metric name: thinned to every second point
EVALUATIONS = 4_096  # likewise
REFRESHES = 2_048  # likewise
GOALS = 200_000  # rows of `goals`: observed ones; the likeliest to be offered are told first, the others stay a number
NAMES_PER_REFRESH = 5_000  # new goals told at one refresh; the rest at the next ones, and at the end
GOAL_ROWS_PER_REFRESH = 3_000  # rows of `goals` rewritten at one refresh; the rest waits, material changes first
HISTORY_ROWS_PER_REFRESH = 1_000  # likewise for `goal_history`
HISTORY_ROWS = 1_000_000  # each goal's history: thinned to every second row, its first and last kept
PURSUITS = 50_000  # the newest
PURSUITS_PER_COMMIT = 2_000  # the newest of what came since the last commit
CLIPS_PER_KIND = 24  # the newest of each kind, won and failed apart
CLIP_BYTES = 4_000_000  # a larger clip is not kept
EVENTS = 2_000  # the newest
NAME_CHARACTERS = 400  # a longer name is cut
QUEUE_ROWS = 20_000  # kept in memory while the disk refuses; then the oldest are forgotten

CURVES = {"evaluations": EVALUATIONS, "refreshes": REFRESHES}


class TableLimits:
    """Counts what is in the bounded tables, so that nothing is counted by SQL on the way."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection
        self._points = Counter(dict(self._all("SELECT name, count(*) FROM metrics GROUP BY name")))
        self._rows = Counter({table: self._size(table) for table in (*CURVES, "goal_history")})

    def keep(self, written: Counter[str], points: Counter[str], num_goals: int) -> None:
        """Thin what is over its bound. `written`: new rows by table; `points`: new points by metric name."""
        self._points += points
        self._rows += written
        for name in [name for name in points if self._points[name] > METRIC_POINTS]:
            self._thin("metrics", "name", "step", only="name = ?", parameters=(name,))
            self._points[name] = self._all("SELECT count(*) FROM metrics WHERE name = ?", (name,))[0][0]
        for table, bound in CURVES.items():
            if self._rows[table] > bound:
                self._thin(table, "step")
                self._rows[table] = self._size(table)
        # Four rows a goal at least, so that thinning always makes room.
        if self._rows["goal_history"] > max(HISTORY_ROWS, 4 * num_goals):
            self._thin("goal_history", "goal", "step")
            self._rows["goal_history"] = self._size("goal_history")
        for table, bound in (("pursuits", PURSUITS), ("events", EVENTS)):
            if written[table]:
                self._all(f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?", (bound,))
        if written["clips"]:
            ordered = "SELECT id, row_number() OVER (PARTITION BY kind, success ORDER BY id DESC) AS n FROM clips"
            self._all(f"DELETE FROM clips WHERE id IN (SELECT id FROM ({ordered}) WHERE n > ?)", (CLIPS_PER_KIND,))

    def _thin(self, table: str, *key: str, only: str = "1", parameters: tuple[object, ...] = ()) -> None:
        """Every second row of each curve goes, its first and last stay. `key`: the table's, a curve's own columns and then step."""
        columns, curve = ", ".join(key), f"PARTITION BY {', '.join(key[:-1])}" if key[:-1] else ""
        ordered = (f"SELECT {columns}, row_number() OVER ({curve} ORDER BY {key[-1]}) AS n, count(*) OVER ({curve}) AS total "
                   f"FROM {table} WHERE {only}")
        inner = f"SELECT {columns} FROM ({ordered}) WHERE n % 2 = 0 AND n < total"
        self._all(f"DELETE FROM {table} WHERE ({columns}) IN ({inner})", parameters)

    def _all(self, sql: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, parameters).fetchall()

    def _size(self, table: str) -> int:
        return int(self._all(f"SELECT count(*) FROM {table}")[0][0])
