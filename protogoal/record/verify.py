"""Whether a run's record holds what a run writes: asked after something in it could not be used, so that the line names it.

A record that somebody sent may have text where numbers belong. Checking all of it would take as long as reading it, so it is
done only when a page or a table of it has failed; where the record is right, the mistake was ours.
"""

from __future__ import annotations

from pathlib import Path

from protogoal.goals.plausibility import Verdict
from protogoal.record.reader import StoreReader
from protogoal.record.schema import FUNNEL, STATE

INTEGERS = {
    "evaluations": ("step", "episodes"),
    "metrics": ("step",),
    "refreshes": ("step", *FUNNEL),
    "goals": ("id", "created_step", *(name for name, kind in STATE.items() if kind.startswith("INTEGER"))),
    "goal_history": ("goal", "step"),
    "pursuits": ("step", "goal", "success", "length"),
    "clips": ("step", "goal", "success", "bytes"),
    "events": ("step",),
}
REALS = {
    "evaluations": ("seconds", "successes", "mean_return", "low", "high"),
    "metrics": ("seconds", "value"),
    "goals": tuple(name for name, kind in STATE.items() if kind.startswith("REAL")),
}
PLACES = {"goals": ("row", "col")}
TEXTS = {"metrics": ("name",), "goals": ("name", "kind", "members", "parents"), "events": ("text",), "clips": ("kind",)}


def check_record(path: Path) -> None:
    """A ValueError that names what SQLite finds wrong, the first column with a value of the wrong type, or an entry of `meta`."""
    with StoreReader(path) as reader:
        found = reader.rows("PRAGMA integrity_check(1)")
        if found != [("ok",)]:
            raise ValueError(f"{reader.path} is damaged: {' '.join(str(found[0][0]).split())}")
        for columns, allowed in ((INTEGERS, "'integer'"), (PLACES, "'integer', 'null'"), (REALS, "'real', 'integer', 'null'"),
                                 (TEXTS, "'text'")):
            for table, names in columns.items():
                for name in names:
                    found = reader.rows(f"SELECT typeof({name}) FROM {table} WHERE typeof({name}) NOT IN ({allowed}) LIMIT 1")
                    if found:
                        raise ValueError(f"{reader.path} is damaged: {table}.{name} holds {found[0][0]}, a run writes {allowed}")
        for table in ("goals", "goal_history"):
            wild = reader.rows(f"SELECT verdict FROM {table} WHERE verdict NOT BETWEEN 0 AND {max(Verdict)} LIMIT 1")
            if wild:
                raise ValueError(f"{reader.path} is damaged: {table}.verdict holds {wild[0][0]}, allowed are 0…{max(Verdict)}")
        outside = reader.rows("SELECT row, col FROM goals WHERE row < 0 OR col < 0 OR (row IS NULL) <> (col IS NULL) LIMIT 1")
        if outside:
            raise ValueError(f"{reader.path} is damaged: a goal lies in row {outside[0][0]}, column {outside[0][1]} of its grid")
        try:
            reader.meta()
        except (ValueError, TypeError):
            raise ValueError(f"{reader.path} is damaged: an entry of its table meta is no JSON") from None
