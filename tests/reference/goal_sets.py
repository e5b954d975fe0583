"""Goal sets for tests: as the evaluator would publish them, with what a test does not care for left at its plainest."""

import numpy as np

from protogoal.goals.goal_set import GoalSet
from protogoal.goals.plausibility import Verdict


def make_goal_set(ids, count=None, timescale=None, num_buckets=2, **fields):
    """Single bits, all plausible and never pursued, without a limit; fields of `GoalSet` by name instead."""
    ids = np.asarray(ids, np.int64)
    k = len(ids)
    count = np.ones(k) if count is None else np.asarray(count)
    plain = {
        "version": 1, "ids": ids, "members": ids[:, None].astype(np.int32), "slots": ids[:, None].astype(np.int32),
        "novelty": np.maximum(count, 1) ** -0.5, "competence": np.ones(k), "desirability": np.ones(k),
        "timescale": np.linspace(0.1, 0.9, k) if timescale is None else np.asarray(timescale, float),
        "bucket": np.zeros(k, np.int64), "verdict": np.full(k, Verdict.PLAUSIBLE, np.int8), "share": np.ones(k),
        "limit": np.zeros(k, np.int64),
    }
    return GoalSet(**plain | fields).in_buckets(num_buckets)
