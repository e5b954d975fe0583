"""The proto-goal evaluator (paper §3–4): a vast list of binary events in, a small set of goals worth pursuing out.

numpy, scipy and numba only; usable with any agent. Read in this order:
active → spaces → table → trials → practice → plausibility → desirability → goal_set → selection → recombination → evaluator; the
paper's own rule of pruning: values → lspi.

Legend, for the whole package: T time, N batch, A actions, B proto-goals (bits), G goals, K features, H hidden;
arrays over time and batch are time-major, [T, N, …].
"""

from protogoal.goals.evaluator import GoalSet, PGESettings, ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict
from protogoal.goals.selection import select
from protogoal.goals.spaces import (
    BagOfWords,
    CounterThresholds,
    Factor,
    NamedCallables,
    ObjectGrid,
    OneHotFactors,
    ProtoGoalSpace,
    Union,
)
from protogoal.goals.table import TASK, GoalTable
from protogoal.goals.values import EstimatorSettings, SeekAvoid, TransitionBatch

__all__ = [
    "TASK", "BagOfWords", "CounterThresholds", "EstimatorSettings", "Factor", "GoalSet", "GoalTable", "NamedCallables",
    "ObjectGrid", "OneHotFactors", "PGESettings", "ProtoGoalEvaluator", "ProtoGoalSpace", "SeekAvoid", "TransitionBatch",
    "Union", "Verdict", "select",
]
