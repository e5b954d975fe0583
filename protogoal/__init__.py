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
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

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

__version__ = "0.2.0"

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


class _AfterGymnasium:
    """Registers our environments as soon as Gymnasium is imported, which `import protogoal` does not do itself."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                importlib.import_module("protogoal.envs")

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    importlib.import_module("protogoal.envs")
else:
    sys.meta_path.insert(0, _AfterGymnasium())


def __dir__() -> list[str]:
    return __all__
