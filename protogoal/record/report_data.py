"""What a report carries with it besides its figures: the goals, how the maps changed, and clips, as JSON.

Bounded, so that a report of 100,000 goals is still a page: `ROWS` goals, `STORIES` of them with their history, `FRAMES`
moments of the maps, `CELLS` cells. The CSV files beside the report have all goals. Called by record/report.py.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.record import queries, terms
from protogoal.record.goal_page import goal_page
from protogoal.record.measures import MEASURES
from protogoal.record.panels import panels
from protogoal.record.queries import Curve
from protogoal.record.reader import StoreReader
from protogoal.record.run_facts import RunFacts

ROWS = 1_000
STORIES = 300
POINTS = 40  # of one goal's history
FRAMES = 24
CELLS = 6_000
LISTED = 300  # bits without a place, of one kind
CLIP_BYTES = 6_000_000  # of all clips of a run
CLIPS = 2  # of each kind and end


def goal_rows(reader: StoreReader, facts: RunFacts) -> list[dict[str, Any]]:
    """The most counted goals, as the table shows them, with their story in words."""
    rows, _ = goal_page(reader, facts, limit=ROWS)
    told = []
    for index, row in enumerate(rows):
        history = queries.goal_history(reader, row["id"]) if index < STORIES else None
        told.append({
            "id": row["id"], "name": row["name"], "kind": row["kind"], "verdict": row["verdict"], "bucket": row["bucket"],
            "age": row["age"], "mastered": row["mastered"], "offered": row["offered"],
            **{column: _rounded(row[column]) for column in terms.figures_of(facts)},
            "parents": [parent for parent, _ in row["parents"]], "why": terms.why(row, history),
            "history": None if history is None else _panels(history, facts)})
    return told


def pictures(reader: StoreReader) -> dict[str, Any]:
    """The state of every single-bit goal at up to FRAMES moments: steps, and for each kind its places and numbers."""
    steps = queries.refresh_steps(reader)
    if not len(steps):
        return {"steps": [], "kinds": []}
    chosen = np.unique(steps[np.linspace(0, len(steps) - 1, FRAMES).round().astype(int)])
    told: list[dict[str, Any]] = []
    cells = left_out = 0
    for kind in queries.kinds(reader):
        if cells + kind["goals"] > CELLS and told:
            left_out += 1
            continue
        cells += min(kind["goals"], CELLS if kind["rows"] else LISTED)
        moments = [queries.goals_at(reader, kind["kind"], None if step == chosen[-1] else int(step)) for step in chosen]
        last = moments[-1]
        order = np.argsort(-last["count"], kind="stable")
        on_the_grid = ~np.isnan(last["row"][order])
        # A kind may have both: the passenger stands somewhere, or sits in the taxi.
        parts = ((order[on_the_grid], CELLS, kind["rows"], kind["cols"]), (order[~on_the_grid], LISTED, 0, 0))
        for keep, most, rows, cols in parts:
            if len(keep):
                told.append({**_kind(moments, keep[:most]), "kind": kind["kind"], "rows": rows, "cols": cols})
    return {"steps": chosen.tolist(), "kinds": told, "left_out": left_out}


def _kind(moments: list[Curve], keep: NDArray[np.intp]) -> dict[str, Any]:
    """The kept goals of one kind: what they are, and their numbers at each moment."""
    last = moments[-1]
    return {
        "names": [str(last["name"][i]) for i in keep], "ids": _whole(last["id"][keep]),
        "row": _whole(last["row"][keep]), "col": _whole(last["col"][keep]),
        "verdict": [_whole(m["verdict"][keep]) for m in moments], "count": [_whole(m["count"][keep]) for m in moments],
        **{key: [_whole(100 * MEASURES[key].of(m)[keep]) for m in moments] for key in ("success", "control")}}  # hundredths


def clips(reader: StoreReader) -> list[dict[str, Any]]:
    """A few clips of each kind, won and failed, as data URLs."""
    found: list[dict[str, Any]] = []
    spent = 0
    for kind in ("player", "pursuit"):
        for success in (True, False):
            for clip in queries.clips(reader, kind, success, CLIPS):
                spent += clip["bytes"]
                gif = queries.clip_gif(reader, clip["id"]) if spent <= CLIP_BYTES else None
                if gif is not None:
                    found.append({**clip, "url": "data:image/gif;base64," + base64.b64encode(gif).decode()})
    return found


def _rounded(number: float | None) -> float | None:
    """Three digits that count: a p may be tiny."""
    return None if number is None or number != number else number if isinstance(number, int) else float(f"{number:.3g}")


def _whole(values: Any) -> list[int | None]:
    return [None if v != v else round(v) for v in np.asarray(values, np.float64).tolist()]


def _panels(history: Curve, facts: RunFacts) -> dict[str, Any]:
    """A goal's history for the script: steps, verdicts, and the lines of each panel; at most POINTS moments."""
    size = len(history["step"])
    keep = np.unique(np.linspace(0, size - 1, min(size, POINTS)).round().astype(int)) if size else np.empty(0, int)
    drawn = [{"top": panel.top, "share": panel.is_share, "lines": [
        {"name": line.name, "colour": line.colour, "dash": line.dash.replace("px", ""), "level": line.level,
         "values": [_rounded(v) for v in line.values[keep].tolist()]} for line in panel.lines]}
        for panel in panels(history, facts)]
    return {"step": _whole(history["step"][keep]), "verdict": _whole(history["verdict"][keep]), "panels": drawn}
