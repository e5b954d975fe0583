"""Exploration by self-chosen goals.

The names below are the public interface; each is loaded when first used, so that `import protogoal` costs nothing.

- `ProtoGoalEvaluator`, `PGESettings`, `select`, `TransitionBatch`, `TASK`, `Verdict`: the evaluator (`protogoal.goals`).
- `ProtoGoalSpace`, `OneHotFactors`, `Factor`, `ObjectGrid`, `BagOfWords`, `CounterThresholds`, `NamedCallables`, `Union`:
  proto-goal spaces (`protogoal.goals.spaces`).
- `train`, `load`, `read_run`, `Agent`, `Run`, `Recorder`: train and use an agent (`protogoal.api`).
- `make_goal_env`, `GoalEnvSettings`: any Gymnasium environment as a goal environment (`protogoal.interop.goal_env`).
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protogoal.api import Agent, Run, load, read_run, train
    from protogoal.goals import (
        TASK,
        BagOfWords,
        CounterThresholds,
        Factor,
        NamedCallables,
        ObjectGrid,
        OneHotFactors,
        PGESettings,
        ProtoGoalEvaluator,
        ProtoGoalSpace,
        TransitionBatch,
        Union,
        Verdict,
        select,
    )
    from protogoal.interop.goal_env import GoalEnvSettings, make_goal_env
    from protogoal.record.events import Recorder

__version__ = "0.1.0"

_HOME = {
    "protogoal.api": ("Agent", "Run", "load", "read_run", "train"),
    "protogoal.goals": ("TASK", "BagOfWords", "CounterThresholds", "Factor", "NamedCallables", "ObjectGrid", "OneHotFactors",
                        "PGESettings", "ProtoGoalEvaluator", "ProtoGoalSpace", "TransitionBatch", "Union", "Verdict", "select"),
    "protogoal.interop.goal_env": ("GoalEnvSettings", "make_goal_env"),
    "protogoal.record.events": ("Recorder",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "TASK", "Agent", "BagOfWords", "CounterThresholds", "Factor", "GoalEnvSettings", "NamedCallables", "ObjectGrid",
    "OneHotFactors", "PGESettings", "ProtoGoalEvaluator", "ProtoGoalSpace", "Recorder", "Run", "TransitionBatch", "Union",
    "Verdict", "__version__", "load", "make_goal_env", "read_run", "select", "train",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'protogoal' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value  # the next use finds it without coming here
    return value


if "gymnasium" in sys.modules:  # else it asks for our environments itself, when it is imported (entry point gymnasium.envs)
    importlib.import_module("protogoal.envs")


def __dir__() -> list[str]:
    return __all__
