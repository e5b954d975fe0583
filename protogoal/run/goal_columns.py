"""The goals of an evaluator as a table, for Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict


def columns_of(evaluator: ProtoGoalEvaluator) -> dict[str, NDArray[Any]]:
    """What an evaluator knows of every goal ever observed."""
    state = evaluator.snapshot()
    ids = np.flatnonzero(state["count"] > 0)
    names = {"id": ids, "name": np.array([evaluator.name(int(goal)) for goal in ids], dtype=object),
             "kind": np.array([evaluator.kind(int(goal)) for goal in ids], dtype=object)}
    chosen = {name: state[name][ids] for name in ("count", "pursuits", "success", "offered", "mastered")}
    verdict = np.array([Verdict(int(value)).name.lower().replace("_", " ") for value in state["verdict"][ids]], dtype=object)
    return names | chosen | {"verdict": verdict}
