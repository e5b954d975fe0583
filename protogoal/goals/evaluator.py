"""The proto-goal evaluator, PGE (paper §4): the one stateful class, composed of the other files of this folder.

observe → counts, rewards, trials;   refresh → plausibility, desirability, recombination → an immutable `GoalSet`;
`selection.select` from it → the goal to pursue;   record_pursuit → reachability in practice, mastery.

It knows nothing of networks or environments: feed it transitions with bits, and ask it for goals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protogoal.goals.active import sparse_bits
from protogoal.goals.desirability import CRITERIA, CriterionName, draw_rationed, novelty, shares
from protogoal.goals.goal_set import GoalSet
from protogoal.goals.plausibility import Verdict, judge_trials, judge_values, reason
from protogoal.goals.practice import RARE, Practice, chance, is_proven, limits
from protogoal.goals.recombination import is_mastered, recombine
from protogoal.goals.slots import Slots
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.stored import stored_array, stored_number
from protogoal.goals.strategies import STRATEGIES, StrategyName, competence
from protogoal.goals.table import TASK, GoalTable
from protogoal.goals.trials import LAGS, Sums, Tested, TrialEvents, Trials, taken_before
from protogoal.goals.values import EstimatorSettings, SeekAvoid, TransitionBatch, seek_avoid_values
from protogoal.settings import Settings, ranged, refuse

__all__ = ["GoalSet", "PGESettings", "ProtoGoalEvaluator"]

GOAL_ROW = 137  # bytes of a goal beside the table's: verdict, tests, values, what practice remembers, and where replay counts it
TRIAL_BIT = 8  # bytes of a bit that has no trials: its kind and its row
GOOD_SUCCESS = 0.25  # at the task; from here on it is mostly followed

Pruning = Literal["trials", "values", "observed", "off"]


@dataclass(frozen=True)
class PGESettings(Settings):
    """Settings of the proto-goal evaluator. Where the paper gives a number (Table 2), it is the default."""

    # DEVIATION(D1): the paper judges by the values of one batch, `values`; it fails the paper's own checks and judges nothing rare.
    pruning: Pruning = "trials"
    """trials: by randomised trials and pursuits. values: the paper's rule. observed: only what was never on. off: nothing."""
    kinds: bool = True
    """What is too rare to be judged alone is judged by its kind (pruning = trials)."""
    optimism: float = ranged(0.2, 0.0, 1.0)
    """Share of the goals drawn, and of choices, that may be undecided (pruning = trials)."""
    retry: float = ranged(0.1, 0.0, 1.0)
    """Share of the goals drawn, and of choices, that may be such as pursuits have not reached (pruning = trials)."""
    competence: bool = True
    """Success of real pursuits stands beside values in the choice of goals."""
    patience: float = ranged(3.0, 0.0)
    """A pursuit is given up after so many times the length of the goal's successful ones; 0: with the episode, as in the paper."""
    horizon: int = ranged(60, 1)
    """Most steps of a pursuit, if it is given up at all: three times the horizon 1/(1 − γ) of goals' values, as far as they see."""
    reachability_threshold: float = ranged(0.5, 0.0, 1.0)
    """A goal is reachable if max_s V_seek exceeds this; between 0 and 1 (pruning = values)."""
    controllability_threshold: float = ranged(0.1, 0.0, 1.0)
    """A goal is controllable if mean_s (V_seek + V_avoid) exceeds this; between 0 and 1 (pruning = values)."""
    estimator: EstimatorSettings = field(default_factory=EstimatorSettings)
    """How seek and avoid values are estimated (pruning = values)."""
    batch_size: int = ranged(1024, 2, 1_000_000)
    """Transitions drawn from replay for one refresh (pruning = values)."""
    desirability: CriterionName = "paper"
    """By what goals are drawn to be on offer (see goals/desirability.py)."""
    strategy: StrategyName = "product"
    """How a state chooses among those on offer (see goals/strategies.py)."""
    goal_set_size: int = ranged(100, 1, 1_000_000)
    """K: goals drawn with replacement, ∝ desirability, at each refresh."""
    num_buckets: int = ranged(5, 1, 10_000)
    """k: timescale buckets; 1 turns stratification off (strategy paper)."""
    num_candidates: int = ranged(5, 1, 10_000)
    """m: goals drawn by novelty, of which the most reachable from here is pursued (strategy paper)."""
    p_task: float = ranged(0.1, 0.0, 1.0)
    """Share of following the task reward instead of goals, while the task never succeeds."""
    p_task_most: float = ranged(0.5, 0.0, 1.0)
    """The same when the task succeeds in a quarter of its pursuits or more; in between it rises with success."""
    p_task_of: Literal["steps", "choices"] = "choices"
    """What p_task is a share of: choices, as in the paper, or steps (a pursuit of the task lasts to the end of the episode)."""
    mastery_threshold: float = ranged(0.6, 0.0, 1.0)
    """κ: a goal is mastered if its success rate over the last 10 pursuits exceeds this."""
    mastery_pursuits: int = ranged(10, 1)
    """Pursuits needed before a goal can be mastered."""
    recombinations: int = ranged(1, 0, 1_000_000)
    """AND-goals tried at each refresh; 0 turns recombination off."""
    max_goals: int = ranged(20_000, 0, 10_000_000)
    """Most goals the table may hold beyond the single bits; then recombination stops."""
    max_members: int = ranged(8, 1, 256)
    """Most bits an AND-goal may have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimism + self.retry > 1.0:
            raise refuse("optimism + retry", "at most 1", self.optimism + self.retry)


def evaluator_bytes(num_bits: int, num_actions: int, settings: PGESettings, seen: float = 0.5) -> dict[str, int]:
    """Memory of an evaluator by part, if that share of the bits is ever on; its rows grow by doubling."""
    rows = num_bits + settings.max_goals
    return {"goals": rows * (GoalTable.row_bytes(settings.max_members) + GOAL_ROW),
            "trials": int(2 * seen * num_bits) * Sums.row_bytes(num_actions) + TRIAL_BIT * num_bits}


class ProtoGoalEvaluator:
    """Turns a vast proto-goal space into a small set of goals worth pursuing.

    `space` is a `ProtoGoalSpace`, or just the number of bits; `num_actions` is A of the discrete action space; `num_slots` are
    the rows that a network has for bits.
    """

    def __init__(
        self, space: ProtoGoalSpace | int, num_actions: int, settings: PGESettings | None = None, seed: int = 0,
        num_slots: int = 2**31,
    ):
        if num_actions < 1:
            raise ValueError(f"num_actions must be at least 1; got {num_actions}")
        self.space = None if isinstance(space, int) else space
        self.num_bits = space if isinstance(space, int) else space.size
        self.num_actions = num_actions
        self.settings = settings or PGESettings()
        capacity = self.num_bits + self.settings.max_goals
        self.table = GoalTable(self.num_bits, capacity, self.settings.max_members)
        self.trials = Trials(self.num_bits, num_actions, self._kinds_of_bits)
        self.practice = Practice(capacity)
        self.slots = Slots(self.num_bits, num_slots)
        self.goal_set = GoalSet.empty(p_task=self.settings.p_task)
        self.values = SeekAvoid.unknown(self.num_bits)
        self.tested = Tested.nothing(self.num_bits)
        self.verdict: NDArray[np.int8] = np.full(self.num_bits, Verdict.UNOBSERVED, np.int8)
        self.has_control = np.zeros(self.num_bits, np.bool_)
        self._controlled = self.has_control, np.empty(0, np.int64)
        self._timescale = np.full(capacity, np.nan)  # h(g) as acting last saw it
        self._past_action = np.full(LAGS - 1, -1, np.int16)  # the last actions that `observe` was told of, oldest first
        self._past_policy = np.zeros((LAGS - 1, num_actions), np.float32)  # and μ of each
        self._rng = np.random.default_rng(seed)
        self._seed = seed

    # --- experience -----------------------------------------------------------------------------------------------

    def observe(
        self, before: ArrayLike, action: ArrayLike, after: ArrayLike, reward: ArrayLike | None = None,
        probability: ArrayLike | None = None, first: ArrayLike | None = None,
    ) -> None:
        """Transitions in order: bits [n, B] of the states before and after, actions [n], task rewards [n] (none: 0).

        `probability` [n, A] is the policy's, μ(·|s); without it actions were uniformly random. `first` [n] marks those that begin
        an episode; without it all go on from the last call's.
        """
        old, new = self.table.check_bits(before), self.table.check_bits(after)
        actions = np.asarray(action)
        if actions.shape != (len(old),) or new.shape != old.shape:
            raise ValueError(f"before {old.shape}, action {actions.shape} and after {new.shape} must be of the same n transitions")
        if len(actions) and not 0 <= actions.min() <= actions.max() < self.num_actions:
            raise ValueError(f"actions reach from {actions.min()} to {actions.max()}, must be in [0, {self.num_actions})")
        starts = np.zeros(len(old), np.bool_) if first is None else np.asarray(first, np.bool_)
        if starts.shape != (len(old),):
            raise ValueError(f"first must have shape [{len(old)}], one for each transition; got {starts.shape}")
        policy = None if probability is None else np.asarray(probability, np.float32)
        if policy is not None and policy.shape != (len(old), self.num_actions):
            raise ValueError(f"probability must have shape [{len(old)}, {self.num_actions}]; got {policy.shape}")
        if policy is not None and not ((policy >= 0).all() and np.allclose(policy.sum(1), 1.0, atol=1e-3)):
            raise ValueError("probability must be at least 0 and sum to 1 in each state")
        active = sparse_bits(new)
        turned_on = (active >= 0) & ~np.take_along_axis(old, np.maximum(active, 0), 1)
        self.table.see(sparse_bits(old))
        row, place = np.nonzero(turned_on)
        action_of, mu = self._with_past(actions, policy, starts)
        events = TrialEvents(sparse_bits(old), action_of, row.astype(np.int32), active[row, place], mu,
                             taken_before(action_of, mu, self.num_actions))
        self.count(active, turned_on, np.zeros(len(old)) if reward is None else reward, events)

    def _with_past(
        self, action: NDArray[Any], policy: NDArray[np.float32] | None, starts: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int16], NDArray[np.float32] | None]:
        """Each action with those before it in its episode, [n, D], and their μ, [n, D, A] or None; −1 where there is none."""
        known = LAGS - 1
        everything = np.concatenate([self._past_action, action.astype(np.int16)])
        index = np.arange(known, len(everything))
        lag = index[:, None] - np.arange(LAGS)
        begin = np.maximum.accumulate(np.where(starts, index, 0))  # of each one's episode
        uniform = np.full((len(action), self.num_actions), 1.0 / self.num_actions, np.float32)
        mu = np.concatenate([self._past_policy, uniform if policy is None else policy])
        if len(action):
            last = np.where(np.arange(len(everything)) >= begin[-1], everything, -1)
            self._past_action, self._past_policy = last[-known:].astype(np.int16), mu[-known:]
        return np.where(lag >= begin[:, None], everything[lag], -1).astype(np.int16), None if policy is None else mu[lag]

    def count(
        self, active: NDArray[np.integer[Any]], turned_on: NDArray[np.bool_], reward: ArrayLike, events: TrialEvents
    ) -> None:
        """The same in sparse form: what is on [n, L], which of it turned on [n, L], rewards [n]; and the trials among them."""
        self.table.observe(active, turned_on, reward)
        self.trials.update(events)

    def record_pursuit(self, goals: ArrayLike, success: ArrayLike, length: ArrayLike) -> None:
        """Finished pursuits: goal ids [n] (or one), whether each was attained, and its steps. TASK: whether it succeeded."""
        self.table.record_pursuits(goals, success, length)

    def record_values(self, goals: NDArray[np.integer[Any]], value: NDArray[np.floating[Any]]) -> None:
        """What a network says of goals where the agent stands, mean_s V(s, g): their timescales h(g)."""
        self._timescale[goals] = value

    # --- refresh --------------------------------------------------------------------------------------------------

    def refresh(self, batch: TransitionBatch | None = None) -> GoalSet:
        """Judge every goal, draw K of the plausible ones, recombine; publishes a new goal set.

        The paper's rule (pruning = values) judges by a batch from replay; the others need none.
        """
        table = self.table
        if self.settings.pruning == "values":
            if batch is None:
                raise ValueError("pruning by values needs a batch of transitions")
            # DEVIATION(D6): goals never observed are pruned whatever their values, so none are computed for them.
            active = sparse_bits(table.check_bits(np.asarray(batch.bits))) if batch.active is None else batch.active
            goals, attained = table.attained_among(active)
            some = seek_avoid_values(batch, attained, self.num_actions, self.settings.estimator,
                                     np.random.default_rng(self._seed))  # chance in it is not chance between refreshes
            return self.refresh_values(some.scatter(goals, table.size))
        if self.settings.pruning == "trials":
            self._judge()
        else:
            everything = self.settings.pruning == "off"
            self.verdict = np.where(everything | table.observed, Verdict.PLAUSIBLE, Verdict.UNOBSERVED).astype(np.int8)
            self.has_control = self.verdict == Verdict.PLAUSIBLE
        return self._publish()

    def refresh_values(self, values: SeekAvoid) -> GoalSet:
        """The same by the paper's rule with seek and avoid values known already, [G], as a tabular agent has them."""
        if len(values.hits) != self.table.size:
            raise ValueError(f"values are for {len(values.hits)} goals, the table has {self.table.size}")
        s = self.settings
        if s.pruning == "trials":
            raise ValueError("values judge by pruning = values, observed or off; got trials")
        self.values, self._timescale[: self.table.size] = values, values.seek_mean
        self.verdict = judge_values(
            self.table.count, values, s.reachability_threshold, s.controllability_threshold, self.table.observed)
        # by optimism, without a ration
        self.verdict[self.verdict == Verdict.UNDECIDED] = Verdict.PLAUSIBLE
        if s.pruning != "values":
            self.verdict[self.table.observed | (s.pruning == "off")] = Verdict.PLAUSIBLE
        self.has_control = self.verdict == Verdict.PLAUSIBLE
        return self._publish()

    def _judge(self) -> None:
        """Verdicts by trials and pursuits. An AND-goal is as plausible as the least of its bits."""
        table, b = self.table, self.num_bits
        self.trials.name_kinds(np.flatnonzero(table.observed[:b]))
        rows, found = self.trials.bits, self.trials.test()
        self.tested = Tested.nothing(table.size)
        for name, array in vars(self.tested).items():
            array[rows] = getattr(found, name)
        kinds = self.trials.test_kinds() if self.settings.kinds else None
        bits = Tested(*(array[:b] for array in vars(self.tested).values()))
        verdict = judge_trials(table.observed[:b], table.count[:b], bits, self.trials.kind_of, kinds)
        verdict[(verdict == Verdict.UNDECIDED) & is_proven(table)[:b]] = Verdict.PLAUSIBLE
        members = table.member_array[b:]
        least = np.append(verdict, np.int8(Verdict.PLAUSIBLE))[members].min(1) if len(members) else np.empty(0, np.int8)
        least[table.count[b:] == 0] = Verdict.UNOBSERVED
        self.verdict = np.concatenate([verdict, least]).astype(np.int8)
        self.has_control = self.verdict == Verdict.PLAUSIBLE
        self.verdict[self.practice.judge(table) & (self.verdict > Verdict.UNREACHED)] = Verdict.UNREACHED
        if self.settings.kinds:
            is_rare = (self.verdict == Verdict.UNDECIDED) & (table.count < RARE)
            of_kind = np.append(self.trials.kind_of + 1, np.zeros(table.size - b, np.int32))  # all AND-goals are of one
            self.verdict[self.practice.judge_kinds(table, is_rare, of_kind)] = Verdict.UNREACHED

    def _publish(self) -> GoalSet:
        """Draws K goals, and joins what is mastered.

        # DEVIATION(D5): the paper says that any pair of mastered goals is joined; a pair is drawn from the mastered goals
        # that are plausible now, so that nothing pruned is built upon.
        """
        s, table = self.settings, self.table
        can = competence(table, self._kinds()) if s.competence else np.ones(table.size)
        utility = CRITERIA[s.desirability](table)
        given_up = np.where(self.has_control, 0, self.practice.times(table.size))
        share = shares(self.verdict, s.optimism, s.retry)
        # DEVIATION(D23): a goal drawn twice is offered once
        ids = np.unique(draw_rationed(utility * can, self.verdict, given_up, s.goal_set_size, share, self._rng))
        self._assign_slots(ids)
        ids = ids[self.slots.has(table.member_array[ids])]
        members = table.member_array[ids]
        longest = max(1, int((members >= 0).sum(1).max(initial=1)))
        self.goal_set = GoalSet(
            self.goal_set.version + 1, ids, members[:, :longest].copy(), self.slots.of(members[:, :longest]),
            novelty(table.count[ids]), can[ids], utility[ids], self._timescale[ids],
            np.zeros(len(ids), np.int64), self.verdict[ids], np.array([share[Verdict(v)] for v in self.verdict[ids]]),
            limits(table, ids, s.patience, s.horizon), s.strategy, self.p_task, s.num_candidates,
        ).in_buckets(s.num_buckets)
        mastered = np.flatnonzero(self.mastered & self.plausible)
        for _ in range(s.recombinations):
            recombine(table, mastered, table.success_rate, self._rng)
        self.grow()
        return self.goal_set

    def _kinds(self) -> NDArray[np.int32]:
        """The number of every goal's kind, [G]; all AND-goals are of one."""
        self.trials.name_kinds(np.flatnonzero(self.table.observed[: self.num_bits]))  # the same ones after loading
        return np.append(self.trials.kind_of, np.full(self.table.size - self.num_bits, len(self.trials.kinds), np.int32))

    def _assign_slots(self, offered: NDArray[np.int64]) -> None:
        """Slots for the bits of goals on offer, then for those under control, the rarest first."""
        if self.slots.is_identity:
            return
        controlled = np.flatnonzero(self.has_control & (self.table.count > 0))
        controlled = controlled[np.argsort(self.table.count[controlled], kind="stable")]
        bits = self.table.member_array[np.concatenate([offered, controlled])].ravel()
        bits = bits[bits >= 0]
        self.slots.assign(bits[np.sort(np.unique(bits, return_index=True)[1])])

    def grow(self) -> None:
        """Goals that the table has got since, as by recombination, have no verdict yet."""
        new = self.table.size - len(self.verdict)
        if new:
            self.verdict = np.append(self.verdict, np.full(new, Verdict.UNOBSERVED, np.int8))
            self.has_control = np.append(self.has_control, np.zeros(new, np.bool_))
        old = len(self.values.hits)
        if old < self.table.size:
            self.values = self.values.scatter(np.arange(old), self.table.size)
        if len(self.tested.p) < self.table.size:
            self.tested = self.tested.padded(self.table.size)

    # --- goals ----------------------------------------------------------------------------------------------------

    @property
    def p_task(self) -> float:
        """Probability of choosing the task, by how often that succeeded of late (`envs.success`).

        With shares x of the steps and pursuits of length ℓ (goals) and ℓ₀ (the task):  p = x ℓ / (x ℓ + (1 − x) ℓ₀).

        # DEVIATION(D9): in the paper it is one number.
        """
        low, high = self.settings.p_task, self.settings.p_task_most
        share = low + max(0.0, high - low) * min(1.0, self.table.task_success / GOOD_SUCCESS)
        if self.settings.p_task_of == "choices":
            return share
        goals, task = self.table.mean_lengths
        return share * goals / max(share * goals + (1.0 - share) * task, 1e-9)

    @property
    def plausible(self) -> NDArray[np.bool_]:
        """Which goals are learned in hindsight, replayed for, and recombined, [G]; none before the first refresh."""
        return np.asarray(self.verdict == Verdict.PLAUSIBLE)

    @property
    def controlled(self) -> NDArray[np.int64]:
        """Ids of the goals under control, found anew only where a refresh has judged since."""
        if self._controlled[0] is not self.has_control:
            self._controlled = self.has_control, np.flatnonzero(self.has_control)
        return self._controlled[1]

    @property
    def mastered(self) -> NDArray[np.bool_]:
        """Which goals are mastered, [G]."""
        return is_mastered(
            self.table.pursuits, self.table.success_rate, self.settings.mastery_threshold, self.settings.mastery_pursuits)

    # --- words ----------------------------------------------------------------------------------------------------

    def _kinds_of_bits(self, bits: NDArray[np.integer[Any]]) -> Sequence[str]:
        return self.space.kinds_of(bits) if self.space else ["bit"] * len(bits)

    def name(self, goal: int) -> str:
        """A goal for people: "baba at (1,2) AND FLAG at (3,3)"."""
        if goal == TASK:
            return "the task"
        return self._name(self.table.members(goal))

    def kind(self, goal: int) -> str:
        """The kinds of a goal's bits: "baba", "FLAG", "baba AND FLAG"."""
        return self._kind(self.table.members(goal))

    def _name(self, bits: tuple[int, ...]) -> str:
        return " AND ".join(self.space.name(i) if self.space else f"bit {i}" for i in bits)

    def _kind(self, bits: tuple[int, ...]) -> str:
        return " AND ".join(sorted({self.space.kind(i) if self.space else "bit" for i in bits}))

    def describe(self, goal: int) -> tuple[str, str, tuple[int, int] | None, tuple[int, ...], tuple[int, ...]]:
        """What does not change about a goal: name, kind, cell (of a single bit), members, parents (of an AND-goal)."""
        bits = self.table.members(goal)
        cell = self.space.cell(bits[0]) if self.space and len(bits) == 1 else None
        return self._name(bits), self._kind(bits), cell, bits, self.table.parents(goal) or ()

    def explain(self, goal: int) -> str:
        """One sentence: the verdict, and the figures that decided it."""
        members = self.table.members(goal)  # refuses what is no goal
        known = {name: array.item() for name, array in self._state_of(np.array([goal])).items()}
        figures = ("count", "events", "nats", "p", "pursuits", "success", "chance", "seek_max", "seek_mean", "avoid_mean")
        return f"{self.name(goal)}: " + reason(
            known["verdict"], **{name: known[name] for name in figures}, is_joined=len(members) > 1)

    def snapshot(self) -> dict[str, Any]:
        """For the store: the state of goals that were ever observed, offered or pursued, arrays [O] beside their ids, `id`.

        The others are numbers: how many goals are `declared`, and how many of all are `plausible` (without pruning the unobserved
        are). `grid`: rows and columns of the grid that cells lie on, or None.
        """
        worth_telling = self.table.observed | (self.table.pursuits > 0)
        worth_telling[self.goal_set.ids] = True
        ids = np.flatnonzero(worth_telling)
        return {"id": ids, **self._state_of(ids), "declared": self.table.size, "plausible": int(self.plausible.sum()),
                "grid": self.space.grid if self.space else None}

    def _state_of(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """What is known of some goals, ids ascending; arrays [n]."""
        s, table = self.settings, self.table
        bucket = np.full(len(ids), -1, np.int64)
        place = np.minimum(np.searchsorted(ids, self.goal_set.ids), len(ids) - 1)
        is_here = ids[place] == self.goal_set.ids
        bucket[place[is_here]] = self.goal_set.bucket[is_here]
        success = table.success_rate_of(ids)
        return {"count": table.count[ids], "reward_mean": table.reward_mean_of(ids), "pursuits": table.pursuits[ids],
                "success": success, "chance": chance(table, ids),
                "events": self.tested.events[ids], "nats": self.tested.nats[ids], "p": self.tested.p[ids],
                "seek_max": self.values.seek_max[ids], "seek_mean": self.values.seek_mean[ids],
                "avoid_mean": self.values.avoid_mean[ids], "verdict": self.verdict[ids],
                "bucket": bucket, "offered": bucket >= 0,
                "mastered": is_mastered(table.pursuits[ids], success, s.mastery_threshold, s.mastery_pursuits)}

    # --- state ----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain arrays and JSON-able values; loading it continues to the bit."""
        return {
            "table": self.table.state_dict(),
            "trials": self.trials.state_dict(),
            "practice": self.practice.state_dict(self.table.size),
            "slots": self.slots.state_dict(),
            "values": dict(vars(self.values)),
            "tested": dict(vars(self.tested)),
            "verdict": self.verdict.copy(),
            "has_control": self.has_control.copy(),
            "timescale": self._timescale[: self.table.size].copy(),
            "past_action": self._past_action.copy(),
            "past_policy": self._past_policy.copy(),
            "goal_set": self.goal_set.state_dict(),
            "rng": self._rng.bit_generator.state,
            "seed": self._seed,
            "space": self.space.state_dict() if self.space else {},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.table.load_state_dict(state["table"])
        if self.space:
            self.space.load_state_dict(state["space"])
        self.trials.load_state_dict(state["trials"])
        self.practice.load_state_dict(state["practice"])
        self.slots.load_state_dict(state["slots"])
        size = self.table.size

        def goals(part: Any, own: NDArray[Any], name: str) -> NDArray[Any]:
            return stored_array(part, name, (size,), own.dtype.kind)

        self.values = SeekAvoid(**{name: goals(state["values"][name], own, name) for name, own in vars(self.values).items()})
        self.tested = Tested(**{name: goals(state["tested"][name], own, name) for name, own in vars(self.tested).items()})
        verdicts = [int(verdict) for verdict in Verdict]
        self.verdict = stored_array(state["verdict"], "verdict", (size,), "i", min(verdicts), max(verdicts)).astype(np.int8)
        self.has_control = np.array(goals(state["has_control"], self.has_control, "has_control"), np.bool_)
        self._timescale[:size], self._timescale[size:] = goals(state["timescale"], self._timescale, "timescale"), np.nan
        self._past_action = stored_array(
            state["past_action"], "past_action", self._past_action.shape, "i", -1, self.num_actions - 1).astype(np.int16)
        self._past_policy = stored_array(state["past_policy"], "past_policy", self._past_policy.shape, "f").astype(np.float32)
        self.goal_set = GoalSet.from_state(state["goal_set"], size, self.num_bits, self.slots.capacity)
        if self.goal_set.strategy not in STRATEGIES:
            raise ValueError(f"stored strategy is {self.goal_set.strategy[:40]}; allowed are {', '.join(STRATEGIES)}")
        self._rng.bit_generator.state = state["rng"]
        self._seed = stored_number(state["seed"], "seed")
