"""The tables of a run's SQLite file, and how large each may grow.

One file a run (`run.db`). A proto-goal space may declare millions: `goals` has rows for those that were observed, and `refreshes`
the number of all. A row a goal a refresh would be 10⁸ rows for 100,000 goals and 1,000 refreshes, so
`goals` holds the latest state of each goal, and `goal_history` a row only where that state changed materially
(record/goal_rows.py). Every table has a bound (kept by record/table_limits.py), so a run of any length leaves a file
of a few hundred megabytes at most. Written by record/store.py, read by record/reader.py.
"""

from __future__ import annotations

SCHEMA_VERSION = 2

# The state of a goal at a refresh: the same columns in `goals` (the latest) and in `goal_history`.
# NULL = not known (NaN).
STATE: dict[str, str] = {
    "count": "INTEGER NOT NULL DEFAULT 0",  # N(g)
    "reward_mean": "REAL",  # R(g)
    "pursuits": "INTEGER NOT NULL DEFAULT 0",
    "success": "REAL",  # S(g) over the last pursuits
    "chance": "REAL",  # success of such a pursuit by chance
    "events": "REAL",  # trials on which it turned on
    "nats": "REAL",  # what the action tells about it
    "p": "REAL",  # of its trials, if actions did not matter
    "seek_max": "REAL",  # max_s V_seek; this and the next two by the paper's rule only
    "seek_mean": "REAL",  # mean_s V_seek = h(g)
    "avoid_mean": "REAL",  # mean_s V_avoid
    "verdict": "INTEGER NOT NULL DEFAULT 0",  # goals/plausibility.py: 0 unobserved … 6 plausible
    "bucket": "INTEGER NOT NULL DEFAULT -1",  # timescale bucket, −1 where the goal has none
    "offered": "INTEGER NOT NULL DEFAULT 0",
    "mastered": "INTEGER NOT NULL DEFAULT 0",
}
FUNNEL = ("declared", "observed", "undecided", "controllable", "plausible", "offered", "mastered")
SEQUENCE = tuple(stage for stage in FUNNEL if stage != "undecided")  # each a step on the way; undecided stands by itself

_state = ", ".join(f"{name} {kind}" for name, kind in STATE.items())
_funnel = ", ".join(f"{name} INTEGER NOT NULL" for name in FUNNEL)

# `step` counts environment steps; `seconds` counts seconds of training, the pause between a stop and its resume
# left out. The values of `meta` are JSON.
TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE metrics (
    name TEXT NOT NULL, step INTEGER NOT NULL, seconds REAL NOT NULL, value REAL,
    PRIMARY KEY (name, step)) WITHOUT ROWID;
CREATE TABLE evaluations (
    step INTEGER PRIMARY KEY, seconds REAL NOT NULL, episodes INTEGER NOT NULL, successes INTEGER,
    mean_return REAL, low REAL, high REAL);
CREATE TABLE goals (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, row INTEGER, col INTEGER,
    members TEXT NOT NULL, parents TEXT NOT NULL,
    created_step INTEGER NOT NULL, observed_step INTEGER, updated_step INTEGER NOT NULL, {_state});
CREATE INDEX goals_by_kind ON goals (kind, parents, row, col);
CREATE INDEX goals_by_values ON goals (id) WHERE seek_max IS NOT NULL;
CREATE TABLE goal_history (
    goal INTEGER NOT NULL, step INTEGER NOT NULL, {_state},
    PRIMARY KEY (goal, step)) WITHOUT ROWID;
CREATE TABLE refreshes (
    step INTEGER PRIMARY KEY, seconds REAL NOT NULL, took REAL, {_funnel});
CREATE TABLE pursuits (
    id INTEGER PRIMARY KEY AUTOINCREMENT, step INTEGER NOT NULL, goal INTEGER NOT NULL,
    success INTEGER NOT NULL, length INTEGER NOT NULL);
CREATE INDEX pursuits_by_goal ON pursuits (goal);
CREATE TABLE clips (
    id INTEGER PRIMARY KEY AUTOINCREMENT, step INTEGER NOT NULL, kind TEXT NOT NULL, goal INTEGER NOT NULL,
    success INTEGER NOT NULL, bytes INTEGER NOT NULL, gif BLOB NOT NULL);
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, step INTEGER NOT NULL, seconds REAL NOT NULL, text TEXT NOT NULL);
"""

_COLUMNS = {
    "meta": "key, value",
    "metrics": "name, step, seconds, value",
    "evaluations": "step, seconds, episodes, successes, mean_return, low, high",
    "goals": "id, name, kind, row, col, members, parents, created_step, observed_step, updated_step",
    "goal_history": f"goal, step, {', '.join(STATE)}",
    "refreshes": f"step, seconds, took, {', '.join(FUNNEL)}",
    "pursuits": "step, goal, success, length",
    "clips": "step, kind, goal, success, bytes, gif",
    "events": "step, seconds, text",
}
WRITE = {
    table: f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({', '.join('?' * len(columns.split(',')))})"
    for table, columns in _COLUMNS.items()
}
_description = ("name", "kind", "row", "col", "members", "parents")
# A goal is described when it is new and again when it is first observed: its state and its age stay.
WRITE["goals"] = (
    WRITE["goals"].replace(" OR REPLACE", "")
    + f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in _description)},"
    + " observed_step = coalesce(observed_step, excluded.observed_step)"
)
WRITE["state"] = f"UPDATE goals SET {', '.join(f'{name} = ?' for name in STATE)}, updated_step = ? WHERE id = ?"
