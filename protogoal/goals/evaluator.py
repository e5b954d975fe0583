"""The proto-goal evaluator, PGE (paper §4): the one stateful class, composed of the other files of this folder.

observe → counts and rewards;   refresh → plausibility, desirability, recombination → an immutable `GoalSet`;
select → the goal to pursue;   record_pursuit → mastery.

It knows nothing of networks or environments: feed it transitions with bits, and ask it for goals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protogoal.goals import plausibility
from protogoal.goals.desirability import draw_goals
from protogoal.goals.recombination import is_mastered, recombine
from protogoal.goals.selection import STRATEGIES, GoalSet, Values, make_goal_set, select
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.strategies import StrategyName
from protogoal.goals.table import TASK, GoalTable
from protogoal.goals.values import EstimatorSettings, SeekAvoid, TransitionBatch, seek_avoid_values

__all__ = ["GoalSet", "PGESettings", "ProtoGoalEvaluator"]


@dataclass(frozen=True)
class PGESettings:
    """Settings of the proto-goal evaluator; the defaults are the paper's (Table 2)."""

    reachability_threshold: float = 0.5
    """A goal is reachable if max_s V_seek exceeds this; between 0 and 1."""
    controllability_threshold: float = 0.1
    """A goal is controllable if mean_s (V_seek + V_avoid) exceeds this; between 0 and 1."""
    estimator: EstimatorSettings = field(default_factory=EstimatorSettings)
    """How seek and avoid values are estimated."""
    min_hits: int = 1
    """Goals attained by fewer transitions of the batch than this are not judged: plausible, by optimism."""
    batch_size: int = 1024
    """Transitions drawn from replay for one refresh."""
    strategy: StrategyName = "paper"
    """How goals are chosen; the others than the paper's are for comparison (see goals/strategies.py)."""
    goal_set_size: int = 100
    """K: goals drawn with replacement, ∝ desirability, at each refresh."""
    num_buckets: int = 5
    """k: timescale buckets; 1 turns stratification off (strategy paper)."""
    num_candidates: int = 5
    """m: goals drawn by novelty, of which the most reachable from here is pursued (strategy paper)."""
    p_task: float = 0.1
    """Probability of following the task reward instead of a goal."""
    value_floor: float = 0.0
    """Draw another bucket where the best candidate's value lies below this (see redraws; strategy paper)."""
    redraws: int = 0
    """How often to draw another bucket; 0 is the paper's rule (strategy paper)."""
    mastery_threshold: float = 0.6
    """κ: a goal is mastered if its success rate over the last 10 pursuits exceeds this."""
    mastery_pursuits: int = 10
    """Pursuits needed before a goal can be mastered."""
    recombinations: int = 1
    """AND-goals tried at each refresh; 0 turns recombination off."""
    max_goals: int = 20_000
    """Most goals the table may hold beyond the single bits; then recombination stops."""
    max_members: int = 8
    """Most bits an AND-goal may have."""
    prune: bool = True
    """Off: every goal of the table counts as plausible, those never observed too (an ablation)."""
    weigh: bool = True
    """Off: plausible goals are drawn uniformly instead of ∝ desirability (an ablation)."""

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {self.strategy!r}")
        for name in ("reachability_threshold", "controllability_threshold", "p_task", "value_floor", "mastery_threshold"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, got {value}")
        minimum = {"batch_size": 2, "min_hits": 1, "goal_set_size": 1, "num_buckets": 1, "num_candidates": 1, "redraws": 0,
                   "mastery_pursuits": 1, "recombinations": 0, "max_goals": 0, "max_members": 1}
        for name, least in minimum.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")


class ProtoGoalEvaluator:
    """Turns a vast proto-goal space into a small set of goals worth pursuing.

    `space` is a `ProtoGoalSpace`, or just the number of bits; `num_actions` is A of the discrete action space.
    """

    def __init__(
        self, space: ProtoGoalSpace | int, num_actions: int, settings: PGESettings | None = None, seed: int = 0
    ):
        if num_actions < 1:
            raise ValueError(f"num_actions must be at least 1, got {num_actions}")
        self.space = None if isinstance(space, int) else space
        self.num_bits = space if isinstance(space, int) else space.size
        self.num_actions = num_actions
        self.settings = settings or PGESettings()
        self.table = GoalTable(self.num_bits, self.num_bits + self.settings.max_goals, self.settings.max_members)
        self.goal_set = GoalSet.empty()
        self.values = SeekAvoid.unknown(self.num_bits)
        self.verdict: NDArray[np.int8] = np.full(self.num_bits, plausibility.Verdict.UNOBSERVED, np.int8)
        self._rng = np.random.default_rng(seed)
        self._seed = seed

    # --- experience -----------------------------------------------------------------------------------------------

    def observe(self, bits: ArrayLike, reward: ArrayLike) -> None:
        """Count transitions: bits [n, B] of what they attained, task reward [n]."""
        self.table.observe(bits, reward)

    def record_pursuit(self, goals: ArrayLike, success: ArrayLike) -> None:
        """Finished pursuits: goal ids [n] (or one), whether each was attained."""
        self.table.record_pursuits(goals, success)

    # --- refresh --------------------------------------------------------------------------------------------------

    def refresh(self, batch: TransitionBatch) -> GoalSet:
        """Judge every goal on a batch from replay, draw K of the plausible ones, recombine; publishes a new goal set.

        # DEVIATION(D5): the paper says that any pair of mastered goals is joined; a pair is drawn from the mastered goals
        # that are plausible now, so that nothing pruned is built upon.
        """
        packed = self.table.attained_packed(batch.bits)
        # DEVIATION(D6): goals never observed are pruned whatever their values, so none are computed for them.
        observed = np.flatnonzero(self.table.count > 0)
        some = seek_avoid_values(batch, packed[observed], self.num_actions, self.settings.estimator,
                                 np.random.default_rng(self._seed))  # chance in it is not chance between refreshes
        return self.refresh_values(some.scatter(observed, self.table.size))

    def refresh_values(self, values: SeekAvoid) -> GoalSet:
        """The same with seek and avoid values known already, [G], as a tabular agent has them."""
        if len(values.hits) != self.table.size:
            raise ValueError(f"values are for {len(values.hits)} goals, the table has {self.table.size}")
        settings, table = self.settings, self.table
        self.values = values
        self.verdict = plausibility.judge(
            table.count, values, settings.reachability_threshold, settings.controllability_threshold, settings.min_hits)
        strategy = STRATEGIES[settings.strategy]
        utility = strategy.utility(table) if settings.weigh else np.ones(table.size)
        # DEVIATION(D23): a goal drawn twice is offered once
        ids = np.unique(draw_goals(utility, self.plausible, settings.goal_set_size, self._rng))
        self.goal_set = make_goal_set(
            self.goal_set.version + 1, ids, table.count[ids], values.seek_mean[ids], table.member_array[ids], settings.num_buckets,
            settings.strategy, None if strategy.weight is None else strategy.weight(table)[ids])
        mastered = np.flatnonzero(self.mastered & self.plausible)
        for _ in range(settings.recombinations):
            recombine(table, mastered, table.success_rate, self._rng)
        self._grow()
        return self.goal_set

    def _grow(self) -> None:
        """Goals that recombination has just made have no verdict yet."""
        new = self.table.size - len(self.verdict)
        if new:
            self.verdict = np.append(self.verdict, np.full(new, plausibility.Verdict.UNOBSERVED, np.int8))
            self.values = self.values.scatter(np.arange(len(self.values.hits)), self.table.size)

    # --- goals ----------------------------------------------------------------------------------------------------

    @property
    def plausible(self) -> NDArray[np.bool_]:
        """Which goals may be offered, learned in hindsight and recombined, [G]; none before the first refresh."""
        if not self.settings.prune:
            return np.ones(len(self.verdict), np.bool_)
        return plausibility.is_plausible(self.verdict)

    @property
    def mastered(self) -> NDArray[np.bool_]:
        """Which goals are mastered, [G]."""
        return is_mastered(
            self.table.pursuits, self.table.success_rate, self.settings.mastery_threshold, self.settings.mastery_pursuits)

    def select(self, values: Values | ArrayLike, rng: np.random.Generator, bits: ArrayLike | None = None) -> NDArray[np.int64]:
        """The goal to pursue in each of n states → ids [n], TASK (−1) for the task.

        `values` is V(s, g) for every goal of `goal_set`, [n, k], or a function that gives it for candidates only, see
        `selection.Values`. `bits` [n, B] are the states' own, so that nothing attained already is offered.
        """
        lookup: Values
        if callable(values):
            if bits is None:
                raise ValueError("a function of values needs the states' bits, [n, B], to know how many states there are")
            n, lookup = len(np.asarray(bits)), values
        else:
            matrix = np.atleast_2d(np.asarray(values, np.float64))
            if matrix.shape[1] != len(self.goal_set):
                raise ValueError(f"values must have one column for each of the {len(self.goal_set)} goals on offer, "
                                 f"got shape {matrix.shape}")
            n, lookup = len(matrix), lambda rows, positions: np.take_along_axis(matrix[rows], positions, 1)
        state_bits = np.zeros((n, self.num_bits), np.bool_) if bits is None else self.table.check_bits(bits)
        s = self.settings
        return select(self.goal_set, lookup, state_bits, rng, num_candidates=s.num_candidates, p_task=s.p_task,
                      value_floor=s.value_floor, redraws=s.redraws)

    # --- words ----------------------------------------------------------------------------------------------------

    def name(self, goal: int) -> str:
        """A goal for people: "baba at (1,2) AND FLAG at (3,3)"."""
        if goal == TASK:
            return "the task"
        bits = self.table.members(goal)
        return " AND ".join(self.space.name(i) if self.space else f"bit {i}" for i in bits)

    def kind(self, goal: int) -> str:
        """The kinds of a goal's bits: "baba", "FLAG", "baba AND FLAG"."""
        bits = self.table.members(goal)
        return " AND ".join(sorted({self.space.kind(i) if self.space else "bit" for i in bits}))

    def describe(self, goal: int) -> tuple[str, str, tuple[int, int] | None, tuple[int, ...], tuple[int, ...]]:
        """What does not change about a goal: name, kind, cell (of a single bit), members, parents (of an AND-goal)."""
        bits = self.table.members(goal)
        cell = self.space.cell(bits[0]) if self.space and len(bits) == 1 else None
        return self.name(goal), self.kind(goal), cell, bits, self.table.parents(goal) or ()

    def explain(self, goal: int) -> str:
        """One sentence: kept or pruned, why, and by how much."""
        self.table._check_id(goal)
        v, s = self.values, self.settings
        return f"{self.name(goal)}: " + plausibility.reason(
            plausibility.Verdict(int(self.verdict[goal])), float(v.seek_max[goal]), float(v.seek_mean[goal]),
            float(v.avoid_mean[goal]), int(self.table.count[goal]), s.reachability_threshold, s.controllability_threshold)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The state of every goal, arrays [G], for the store."""
        bucket = np.full(self.table.size, -1, np.int64)
        bucket[self.goal_set.ids] = self.goal_set.bucket
        return {"count": self.table.count.copy(), "reward_mean": self.table.reward_mean,
                "pursuits": self.table.pursuits.copy(), "success": self.table.success_rate,
                "seek_max": self.values.seek_max, "seek_mean": self.values.seek_mean, "avoid_mean": self.values.avoid_mean,
                "verdict": self.verdict, "bucket": bucket, "offered": bucket >= 0, "mastered": self.mastered}

    # --- state ----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain arrays and JSON-able values; loading it continues to the bit."""
        g = self.goal_set
        return {
            "table": self.table.state_dict(),
            "values": {"seek_max": self.values.seek_max, "seek_mean": self.values.seek_mean,
                       "avoid_mean": self.values.avoid_mean, "hits": self.values.hits},
            "verdict": self.verdict.copy(),
            "goal_set": {"version": g.version, "ids": g.ids, "novelty": g.novelty, "timescale": g.timescale,
                         "bucket": g.bucket, "members": g.members, "strategy": g.strategy, "weight": g.weight},
            "rng": self._rng.bit_generator.state,
            "seed": self._seed,
            "space": self.space.state_dict() if self.space else {},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.table.load_state_dict(state["table"])
        self.values = SeekAvoid(**{name: np.asarray(array) for name, array in state["values"].items()})
        self.verdict = np.asarray(state["verdict"], np.int8)
        parts = dict(state["goal_set"])
        version, strategy = int(parts.pop("version")), str(parts.pop("strategy", "paper"))
        self.goal_set = GoalSet(version, strategy=strategy, **{name: np.array(array) for name, array in parts.items()})
        self._rng.bit_generator.state = state["rng"]
        self._seed = int(state["seed"])
        if self.space:
            self.space.load_state_dict(state["space"])
