"""The writer of a run's SQLite file: metrics, goals and their verdicts, pursuits, evaluations, clips, events.

One writer, readers at any time (WAL). Calls only queue; about once a second what is queued is committed in one
transaction, so a training loop pays well under 1 %. A process killed at any moment leaves a file that opens, short
of what was not yet committed. A full disk does not end a training run: one warning says so, and writing is tried
again. run/training.py hands it what a session tells; record/reader.py reads it.
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from protogoal.files import whole
from protogoal.record import goal_rows
from protogoal.record.connection import check_schema, only_writer, open_to_write, this_process
from protogoal.record.reader import StoreReader
from protogoal.record.schema import SCHEMA_VERSION, STATE, TABLES, WRITE
from protogoal.record.statistics import wilson_interval
from protogoal.record.table_limits import (
    CLIP_BYTES,
    GOAL_ROWS_PER_REFRESH,
    GOALS,
    HISTORY_ROWS_PER_REFRESH,
    NAME_CHARACTERS,
    NAMES_PER_REFRESH,
    PURSUITS_PER_COMMIT,
    QUEUE_ROWS,
    TableLimits,
)

__all__ = ["GoalName", "Store", "StoreReader"]

COMMIT_SECONDS = 1.0

# name, kind, cell (row, col) or None, member bits, parents (the two goals of an AND).
# An AND-goal with an empty name gets "<name of a member> AND <name of a member>".
GoalName = tuple[str, str, "tuple[int, int] | None", Sequence[int], Sequence[int]]
Row = tuple[Any, ...]


class Store:
    """One run's file, open for writing. Safe to call from several threads of the one process that writes."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock_file: IO[str], clock: Callable[[], float] = time.monotonic):
        self.path = path
        self._clock = clock
        self._connection = connection
        self._lock_file = lock_file
        self._lock = threading.RLock()
        self._queue: list[tuple[str, list[Row]]] = []
        self._pursuits: list[Row] = []
        self._refused_before = False
        self._forgotten = self._forgotten_at = 0  # rows, and the step by then
        self._last_commit = clock()
        self._progress: tuple[int, float] | None = None
        self._refreshes = 0
        sql = "SELECT max(seconds) FROM metrics UNION SELECT max(seconds) FROM refreshes"
        elapsed = [row[0] for row in connection.execute(sql) if row[0] is not None]
        self._began = clock() - max(elapsed, default=0.0)
        self._newest: tuple[int, goal_rows.Snapshot, Callable[[int], GoalName]] | None = None
        self._grid: tuple[int, int] | None = None
        self._load_state()

    @classmethod
    def create(cls, path: str | Path, meta: Mapping[str, Any] | None = None, clock: Callable[[], float] = time.monotonic) -> Store:
        """A new file; it must not exist yet. `meta`: JSON values that describe the run (preset, seed, …). `clock`: in seconds."""
        path = Path(path)
        if path.exists():
            raise ValueError(f"{path} exists already; a run's store is created once (Store.open appends to it)")
        facts = {"status": "running", **(meta or {}), "schema": SCHEMA_VERSION, "revision": 0, "started": time.time(),
                 "process": this_process()}
        rows = [(key, json.dumps(value, allow_nan=False)) for key, value in facts.items()]
        lock_file = only_writer(path)
        try:
            with whole(path) as temporary:
                temporary.unlink(missing_ok=True)
                with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                    connection.executescript(f"BEGIN; {TABLES}")
                    connection.executemany(WRITE["meta"], rows)
                    connection.execute("COMMIT")
            return cls(path, open_to_write(path), lock_file, clock)
        except (sqlite3.Error, OSError) as error:
            lock_file.close()
            raise ValueError(f"cannot create {path}: {error}") from None

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """An existing file, to go on writing (after a resume; see truncate_after)."""
        path = Path(path)
        StoreReader(path).close()  # one clear line where it is no store
        lock_file = only_writer(path)
        try:
            connection = open_to_write(path)
            check_schema(connection, path)
            store = cls(path, connection, lock_file)
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            lock_file.close()
            raise ValueError(f"{path} cannot be written, or is damaged ({error}); a run whose record is moved away begins a new "
                             "one when it is resumed") from None
        store.set_meta("status", "running")
        store.set_meta("process", this_process())
        return store

    @staticmethod
    def revision_of(path: Path) -> int:
        """The revision of a record; 0 where there is none."""
        if not path.exists():
            return 0
        with StoreReader(path) as reader:
            return reader.revision()

    def close(self, status: str = "finished") -> None:
        """Commit everything, the last state of every goal included. `status`: what readers say of the run then."""
        with self._lock:
            if self._newest is not None:
                step, snapshot, names = self._newest
                self._describe(step, snapshot, names, GOALS)
                state = snapshot.of_goals(self._ids)
                self._queue_state(step, state, np.flatnonzero(goal_rows.changed(state, self._latest)))
            self.set_meta("status", status)
            self.flush()
            self._connection.close()
            self._lock_file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        self.close("finished" if kind is None else "stopped")

    def set_meta(self, key: str, value: Any) -> None:
        """A fact of the run as a whole, any JSON value."""
        self._add("meta", [(key, json.dumps(value, allow_nan=False))])

    def progress(self, step: int, facts: Mapping[str, Any] | None = None) -> None:
        """How far the run is: what a page shows between two points of the curves."""
        with self._lock:
            self._progress = (int(step), self._seconds())
            self._commit_sometimes()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """A point of each named curve. NaN is kept as unknown."""
        now = self._seconds()
        self._add("metrics", [(_text(name), int(step), now, float(value)) for name, value in values.items()])

    def evaluation(self, step: int, episodes: int, successes: int | None, mean_return: float) -> None:
        """The player played `episodes` of the task; stored with the 95 % Wilson interval, where anything is called success."""
        won = None if successes is None else int(successes)
        low, high = (None, None) if won is None else wilson_interval(won, int(episodes))
        row = (int(step), self._seconds(), int(episodes), won, float(mean_return), low, high)
        self._add("evaluations", [row])

    def event(self, step: int, text: str) -> None:
        """Something worth a line: a checkpoint, a resume, the first win."""
        self._add("events", [(int(step), self._seconds(), _text(text))])

    def pursuits(self, step: int, ids: npt.ArrayLike, success: npt.ArrayLike, lengths: npt.ArrayLike) -> None:
        """Pursuits that have ended by `step`: goal id, attained or not, length in steps; each [n]."""
        columns = [_ints(ids), _ints(success), _ints(lengths)]
        if len({len(column) for column in columns}) != 1:
            raise ValueError(f"pursuits: arrays of different lengths {[len(column) for column in columns]}")
        with self._lock:
            self._pursuits.extend((int(step), *row) for row in zip(*columns, strict=True))
            del self._pursuits[:-PURSUITS_PER_COMMIT]
            self._commit_sometimes()

    def clip(self, step: int, kind: str, goal: int, success: bool | None, gif: bytes) -> None:
        """A moving picture: `kind` "pursuit" (of `goal`) or "player" (at the task; `goal` −1); None: nothing is called success."""
        if gif[:4] != b"GIF8":
            raise ValueError("clip: the bytes are no GIF")
        if len(gif) > CLIP_BYTES:
            self.event(step, f"a clip of {len(gif)} bytes was not kept (at most {CLIP_BYTES})")
            return
        self._add("clips", [(int(step), str(kind), int(goal), -1 if success is None else int(success), len(gif), bytes(gif))])

    def refresh(
        self,
        step: int,
        snapshot: Mapping[str, Any],
        names: Callable[[int], GoalName],
        seconds: float | None = None,
    ) -> None:
        """The evaluator's state of the goals it has observed: ids, arrays [O] named as in schema.STATE, and `declared`.

        `names` is asked for each new goal, and again when it is first observed (a word has its name only then).
        `seconds`: how long the refresh took.
        """
        told, step = goal_rows.Snapshot.of(snapshot), int(step)
        with self._lock:
            if told.grid is not None and told.grid != self._grid:
                self.set_meta("grid", [int(side) for side in told.grid])
                self._grid = told.grid
            self._describe(step, told, names, NAMES_PER_REFRESH)
            state = told.of_goals(self._ids)
            waiting = goal_rows.changed(state, self._latest)
            places = goal_rows.most_urgent(state, self._latest, waiting, GOAL_ROWS_PER_REFRESH, self._refreshes)
            self._queue_state(step, state, places)
            is_material = goal_rows.material(state, self._history)
            kept = goal_rows.most_urgent(state, self._history, is_material, HISTORY_ROWS_PER_REFRESH, self._refreshes)
            pairs = zip(self._ids[kept].tolist(), goal_rows.rows(state, kept), strict=True)
            self._queue.append(("goal_history", [(goal, step, *row) for goal, row in pairs]))
            self._queue.append(("refreshes", [(step, self._seconds(), seconds, *told.funnel().values())]))
            for name in STATE:
                self._history[name][kept] = state[name][kept]
            self._newest = (step, told, names)
            self._refreshes += 1
            self._commit_sometimes()

    def sync(self) -> int:
        """Commit what is queued and have it on disk, whatever happens to the power; returns the revision that this makes.

        A ValueError where the disk refuses: then nothing may be saved that goes on from here.
        """
        with self._lock:
            self._connection.execute("PRAGMA synchronous = FULL")
            try:
                if not self.flush(always=True):
                    raise ValueError(f"{self.path} cannot be written")
                found = self._connection.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
                return int(found[0])
            except sqlite3.Error as error:
                raise ValueError(f"{self.path} cannot be written ({error})") from None
            finally:
                self._connection.execute("PRAGMA synchronous = NORMAL")

    def flush(self, always: bool = False) -> bool:
        """Commit what is queued (`always`: though it be nothing); True where that is done.

        A disk that refuses is told in one warning, and tried again at the next call.
        """
        with self._lock:
            self._last_commit = self._clock()
            queue = [*self._queue, ("pursuits", self._pursuits)]
            if self._forgotten:
                words = f"{self._forgotten:,} rows of the record were forgotten while the disk refused them"
                queue.append(("events", [(self._forgotten_at, self._seconds(), words)]))
            written: Counter[str] = Counter()
            for table, rows in queue:
                written[table] += len(rows)
            if self._progress is not None:
                queue.append(("meta", [("progress", json.dumps(self._progress))]))
                written["meta"] += 1
            if not written.total() and not always:
                return True
            points = Counter(row[0] for table, rows in queue if table == "metrics" for row in rows)
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for table, rows in queue:
                    self._connection.executemany(WRITE[table], rows)
                self._limits.keep(written, points, self._ids.size)
                self._connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
                self._connection.execute(WRITE["meta"], ("updated", json.dumps(time.time())))
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                self._refused(error)
                return False
            self._refused_before = False
            self._queue, self._pursuits, self._progress = [], [], None
            self._forgotten = 0
            return True

    def truncate_after(self, step: int) -> None:
        """Forget everything later than `step`: a run resumed from a checkpoint at `step` lives it again."""
        last = "(SELECT max(step) FROM goal_history WHERE goal = goals.id)"
        restored = ", ".join(
            f"{name} = coalesce((SELECT {name} FROM goal_history WHERE goal = goals.id AND step = {last}), "
            f"{kind.partition('DEFAULT')[2] or 'NULL'})"
            for name, kind in STATE.items()
        )
        tables = ("metrics", "evaluations", "refreshes", "goal_history", "pursuits", "clips", "events")
        statements = [
            *(f"DELETE FROM {table} WHERE step > :step" for table in tables),
            "DELETE FROM meta WHERE key = 'progress' AND json_extract(value, '$[0]') > :step",
            "DELETE FROM goals WHERE created_step > :step",
            f"UPDATE goals SET {restored}, updated_step = coalesce({last}, created_step) WHERE updated_step > :step",
            "UPDATE goals SET observed_step = NULL WHERE observed_step > :step",
            "UPDATE meta SET value = value + 1 WHERE key = 'revision' AND :step = :step",
        ]
        with self._lock:
            self.flush()
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for statement in statements:
                    self._connection.execute(statement, {"step": int(step)})
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise ValueError(f"{self.path} cannot be written, or is damaged ({error})") from None
            self._newest = None
            self._load_state()

    def _seconds(self) -> float:
        return self._clock() - self._began

    def _add(self, table: str, rows: list[Row]) -> None:
        with self._lock:
            self._queue.append((table, rows))
            self._commit_sometimes()

    def _commit_sometimes(self) -> None:
        if self._clock() - self._last_commit >= COMMIT_SECONDS:
            self.flush()

    def _refused(self, error: sqlite3.Error) -> None:
        if not self._refused_before:
            line = f"{self.path} cannot be written ({error}); training goes on, and writing is tried again"
            warnings.warn(line, stacklevel=3)
        self._refused_before = True
        spare = sum(len(rows) for _, rows in self._queue) - QUEUE_ROWS
        while spare > 0 and len(self._queue) > 1:
            forgotten = len(self._queue.pop(0)[1])
            spare -= forgotten
            self._forgotten, self._forgotten_at = self._forgotten + forgotten, self._progress[0] if self._progress else 0
            # Rows of goals may have been among them: all goals are told anew at the next refresh.
            self._ids, self._observed = np.zeros(0, np.int64), np.zeros(0, np.bool_)
            self._latest, self._history = goal_rows.untouched(0), goal_rows.untouched(0)

    def _describe(self, step: int, snapshot: goal_rows.Snapshot, names: Callable[[int], GoalName], most: int) -> None:
        """Queue name, kind, place and parents of at most `most` goals that are new, or observed for the first time.

        The likeliest to be offered come first; the others in time, as far as the table may grow.
        """
        ids, observed = snapshot.ids, snapshot.observed
        place = np.searchsorted(self._ids, ids)
        is_known = np.append(self._ids, -1)[place] == ids
        untold = np.flatnonzero(~is_known | (observed & ~np.append(self._observed, False)[place]))
        untold = untold[np.argsort(-snapshot.state["verdict"][untold], kind="stable")[:most]]
        new = ~is_known[untold]
        untold = np.sort(untold[~new | (np.cumsum(new) <= GOALS - self._ids.size)])
        rows: list[Row] = []
        for goal, is_observed in zip(ids[untold].tolist(), observed[untold].tolist(), strict=True):
            name, kind, cell, members, parents = names(goal)
            bits, made_of = [int(bit) for bit in members], [int(parent) for parent in parents]
            name = _text(name or " AND ".join(str(names(bit)[0]) for bit in bits))[:NAME_CHARACTERS]
            row, col = (None, None) if cell is None else (int(cell[0]), int(cell[1]))
            rows.append((goal, name, _text(kind), row, col, str(bits), str(made_of), step, step if is_observed else None, step))
        if not rows:
            return
        self._queue.append(("goals", rows))
        before, self._ids = self._ids, np.union1d(self._ids, ids[untold])
        self._latest, self._history = (goal_rows.moved(state, before, self._ids) for state in (self._latest, self._history))
        was_observed = np.zeros(self._ids.size, np.bool_)
        was_observed[np.searchsorted(self._ids, before)] = self._observed
        was_observed[np.searchsorted(self._ids, ids[untold])] |= observed[untold]
        self._observed = was_observed

    def _queue_state(self, step: int, state: goal_rows.State, places: npt.NDArray[np.int64]) -> None:
        pairs = zip(self._ids[places].tolist(), goal_rows.rows(state, places), strict=True)
        self._queue.append(("state", [(*row, step, goal) for goal, row in pairs]))
        for name in STATE:
            self._latest[name][places] = state[name][places]

    def _load_state(self) -> None:
        """What `goals` and `goal_history` say, as arrays [O]: what the next snapshot is compared with."""
        columns = ", ".join(STATE)
        stored = self._connection.execute(f"SELECT id, observed_step, {columns} FROM goals ORDER BY id").fetchall()
        self._ids = np.array([row[0] for row in stored], np.int64)
        self._observed = np.array([row[1] is not None for row in stored], np.bool_)
        self._latest = _as_state([row[2:] for row in stored])
        newest = f"SELECT goal, {columns}, max(step) FROM goal_history GROUP BY goal ORDER BY goal"
        last = self._connection.execute(newest).fetchall()
        told = np.array([row[0] for row in last], np.int64)
        self._history = goal_rows.moved(_as_state([row[1:-1] for row in last]), told, self._ids)
        self._limits = TableLimits(self._connection)


def _text(value: Any) -> str:
    """As UTF-8 can hold it: a name may have half a character in it."""
    return str(value).encode("utf-8", "replace").decode()


def _ints(values: npt.ArrayLike) -> list[int]:
    return [int(value) for value in np.asarray(values).astype(np.int64).tolist()]


def _as_state(stored: list[Row]) -> goal_rows.State:
    """Rows of the state columns as arrays."""
    state = goal_rows.untouched(len(stored))
    for name, column in zip(STATE, zip(*stored, strict=True), strict=bool(stored)):
        state[name][:] = [math.nan if value is None else value for value in column]
    return state
