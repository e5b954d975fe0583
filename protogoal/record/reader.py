"""Reading a run's SQLite file, at any time, beside the process that writes it.

Read-only, short queries, no lock that a writer would wait for. What is not a run's file, or damaged, or of another
schema, raises ValueError with one line. The questions themselves are in record/queries.py.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from protogoal.record.connection import check_schema, lives, open_to_read

Parameters = Sequence[Any] | dict[str, Any]
Answer = TypeVar("Answer")
PAUSES = (0.02, 0.1)  # seconds


def _patiently(ask: Callable[[], Answer]) -> Answer:
    """An answer that the writer stands in the way of for a moment is asked for again, a few times."""
    for pause in PAUSES:
        try:
            return ask()
        except sqlite3.OperationalError:
            time.sleep(pause)
    return ask()


class StoreReader:
    """One run's file, open for reading. `path`: the file, or the run directory that holds it."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if self.path.is_dir():
            self.path = self.path / "run.db"
        if not self.path.is_file():
            raise ValueError(f"{self.path} does not exist: not a run directory, or nothing was recorded yet")
        try:
            self._connection = _patiently(lambda: open_to_read(self.path))
        except (sqlite3.DatabaseError, OSError) as error:
            raise ValueError(f"{self.path} is not a run's store, or is damaged ({error})") from None
        try:
            check_schema(self._connection, self.path)
        except ValueError:
            self._connection.close()
            raise

    def rows(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """All rows of a query; ValueError with one line where the file is damaged."""
        return self._ask(sql, parameters)[1]

    def records(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        """All rows of a query, as dicts by column name."""
        names, rows = self._ask(sql, parameters)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def columns(self, sql: str, parameters: Parameters = ()) -> dict[str, npt.NDArray[Any]]:
        """The columns of a query by name; each is empty where there are no rows."""
        names, rows = self._ask(sql, parameters)
        return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}

    def _ask(self, sql: str, parameters: Parameters) -> tuple[list[str], list[tuple[Any, ...]]]:
        try:
            cursor = _patiently(lambda: self._connection.execute(sql, parameters))
            return [column[0] for column in cursor.description], cursor.fetchall()
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} cannot be read, it may be damaged ({error})") from None

    def meta(self) -> dict[str, Any]:
        """What the run said of itself (preset, seed, …), with schema, status, started and updated."""
        facts = {key: json.loads(value) for key, value in self.rows("SELECT key, value FROM meta")}
        if facts.get("status") == "running" and lives(facts.get("process")) is False:
            facts["status"] = "stopped"  # killed before it could say so
        return facts

    def revision(self) -> int:
        """A number that grows with every commit of the writer: cheap to ask, equal means nothing is new."""
        found = self.rows("SELECT value FROM meta WHERE key = 'revision'")
        return int(found[0][0]) if found else 0

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> StoreReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
