"""The goals of an evaluator as a table, for Python."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.plausibility import WORDS, Verdict

NAMES_SUGGESTED = 3  # where a goal's name is not known


def columns_of(evaluator: ProtoGoalEvaluator) -> dict[str, NDArray[Any]]:
    """What an evaluator knows of every goal ever observed."""
    state = evaluator.snapshot()
    told = state["verdict"] != Verdict.UNOBSERVED
    ids = state["id"][told]
    names = {"id": ids, "name": np.array([evaluator.name(int(goal)) for goal in ids], dtype=object),
             "kind": np.array([evaluator.kind(int(goal)) for goal in ids], dtype=object)}
    chosen = {name: state[name][told] for name in ("count", "pursuits", "success", "offered", "mastered")}
    verdict = np.array([WORDS[Verdict(int(value))] for value in state["verdict"][told]], dtype=object)
    return names | chosen | {"verdict": verdict}


def goal_id(columns: Mapping[str, NDArray[Any]], name: str) -> int:
    """The id of the goal of this name; a ValueError says which names come closest where there is none."""
    names = columns["name"].tolist()
    if name in names:
        return int(columns["id"][names.index(name)])
    close = difflib.get_close_matches(name, names, NAMES_SUGGESTED, 0.5)
    words = "; did you mean " + " or ".join(map(repr, close)) + "?" if close else "; protogoal goals lists them all"
    raise ValueError(f"no goal is named {name!r}{words}")
