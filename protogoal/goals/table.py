"""The goal table: goals as sets of bits, and what is known of each from experience (paper §3, §4.2, §5.3).

A goal is a set of bits that must all be on. Ids 0…B−1 are the 1-hot goals, id = bit; AND-goals follow in the order in
which recombination made them. An id is never used twice, so it may be stored in replay and in logs. TASK = −1 stands
for the task reward, the paper's **0** vector, which is no row of the table.

A goal is attained by the transition that turns it on: the last of its bits comes on, none goes off. N(g) counts these, not the
transitions on which it merely stays on. Transitions come as lists of the bits that are on, so counting costs what
happens, not what is declared. `ProtoGoalEvaluator` owns the one table of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from protogoal.goals.scale import TaskScale
from protogoal.goals.stored import stored_array, stored_like, stored_number

TASK = -1
RECENT = 10  # S(g) looks at the last 10 on-policy pursuits (Algorithm 5)
FADE_ALL = 0.999  # the same, of any goal
FADE = 0.97  # what a pursuit weighs beside the one after it, in the tallies of `practice`
RECENT_TASK = 100  # pursuits of the task that its success is taken over
RECENT_LENGTHS = 256  # successful pursuits of any goal whose lengths are kept

Some = slice | NDArray[np.int64]  # of the goals


@dataclass(frozen=True)
class Pursuits:
    """Pursuits that ended: of which goal, whether it was attained (of the task: success), after how many steps; [n]."""

    goal: NDArray[np.int64]
    success: NDArray[np.bool_]
    length: NDArray[np.int64]

    @staticmethod
    def join(parts: Iterable[tuple[NDArray[Any], ...]]) -> Pursuits:
        """Such arrays of several moments, one after another."""
        nothing = np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.int64)
        return Pursuits(*(np.concatenate(column) for column in zip(nothing, *parts, strict=True)))


class GoalTable:
    """Goals 0…size−1 with count N(g), reward sum and what pursuits of them did; memory is fixed at `capacity`."""

    def __init__(self, num_bits: int, capacity: int = 20_000, max_members: int = 8):
        if num_bits < 1:
            raise ValueError(f"num_bits must be at least 1; got {num_bits}")
        if capacity < num_bits:
            raise ValueError(f"capacity must hold the {num_bits} single bits; got {capacity}")
        if max_members < 1:
            raise ValueError(f"max_members must be at least 1; got {max_members}")
        self.num_bits, self.capacity, self.max_members = num_bits, capacity, max_members
        self.size = num_bits
        self.transitions = 0  # seen in the table's life
        self._members = np.full((capacity, max_members), -1, np.int32)
        self._members[:num_bits, 0] = np.arange(num_bits)
        self._parents = np.full((capacity, 2), -1, np.int32)
        self._born = np.zeros(capacity, np.int64)  # transitions before it entered the table
        self._observed = np.zeros(capacity, np.bool_)
        self._count = np.zeros(capacity, np.int64)
        self._reward_sum = np.zeros(capacity)
        self.scale = TaskScale()  # what rewards are divided by where they are weighed against novelty
        self._pursuits = np.zeros(capacity, np.int64)
        self._wins = np.zeros(capacity, np.int64)
        self._pursuit_steps = np.zeros(capacity, np.int64)
        self._outcomes = np.zeros((capacity, RECENT), np.bool_)  # ring: pursuit p of g lies at p mod RECENT
        self._lengths = np.zeros((capacity, RECENT), np.int16)  # ring of those that succeeded
        self._tally = np.zeros((capacity, 3))  # fading sums over pursuits: 1, success, length
        self._all_lengths = np.zeros(RECENT_LENGTHS, np.int16)
        self._all_wins = 0
        self._task_outcomes = np.zeros(RECENT_TASK, np.bool_)
        self._task_pursuits = 0
        self._steps_tally = np.zeros((2, 2))  # fading sums over pursuits of goals, and of the task: 1, length
        self._id_of: dict[tuple[int, ...], int] = {}  # AND-goals only
        self._index()

    @staticmethod
    def row_bytes(max_members: int) -> int:
        """Memory of one goal."""
        table = GoalTable(1, 1, max_members)
        return sum(getattr(table, f"_{name}").nbytes for name in GoalTable._ARRAYS)

    def _index(self) -> None:
        """Which AND-goals each bit belongs to, bit b: items[start[b] : start[b + 1]]."""
        members = self._members[self.num_bits : self.size]
        goal, _ = np.nonzero(members >= 0)
        bit = members[members >= 0]
        order = np.argsort(bit, kind="stable")
        self._items = (goal[order] + self.num_bits).astype(np.int32)
        self._start = np.zeros(self.num_bits + 1 if len(bit) else 1, np.int64)
        if len(bit):
            np.cumsum(np.bincount(bit, minlength=self.num_bits), out=self._start[1:])
        # scratch of `observe`: the transition of the last time; taken from the machine as it is used
        self._mark = np.zeros(self.num_bits if len(bit) else 0, np.int64)
        self._done = np.zeros(self.size if len(bit) else 0, np.int64)

    # --- identity -------------------------------------------------------------------------------------------------

    @property
    def member_array(self) -> NDArray[np.int32]:
        """Bits of every goal, int32 [G, max_members], padded with −1."""
        return self._members[: self.size]

    def members(self, goal: int) -> tuple[int, ...]:
        """The bits of one goal, ascending."""
        self._check_id(goal)
        if goal < self.num_bits:
            return (int(goal),)
        row = self._members[goal]
        return tuple(int(i) for i in row[row >= 0])

    def parents(self, goal: int) -> tuple[int, int] | None:
        """The two goals an AND-goal was made of; None for a single bit."""
        self._check_id(goal)
        first, second = self._parents[goal]
        return None if first < 0 else (int(first), int(second))

    def find(self, bits: Sequence[int]) -> int | None:
        """The id of the goal with exactly these bits, or None."""
        key = tuple(sorted({int(i) for i in bits}))
        return key[0] if len(key) == 1 else self._id_of.get(key)

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    def add(self, first: int, second: int) -> int | None:
        """first AND second, the union of their bits, as a goal: its id.

        None where it would not be a new conjunction (it equals one of its parents), has too many bits, or the table is
        full. A conjunction that is known already keeps its id.
        """
        union = tuple(sorted(set(self.members(first)) | set(self.members(second))))
        known = self.find(union)
        if known is not None:
            return None if known in (first, second) else known
        if len(union) > self.max_members or self.is_full:
            return None
        goal = self.size
        self._members[goal, : len(union)] = union
        self._parents[goal] = first, second
        self._id_of[union] = goal
        self._born[goal] = self.transitions
        self.size += 1
        self._index()
        return goal

    def _check_id(self, goal: int) -> None:
        if not 0 <= goal < self.size:
            raise ValueError(f"unknown goal id {goal}; allowed are 0…{self.size - 1}")

    # --- attainment -----------------------------------------------------------------------------------------------

    def check_bits(self, bits: ArrayLike) -> NDArray[np.bool_]:
        """A batch of bit vectors as bool [n, B], or a ValueError that says what is wrong."""
        array = np.asarray(bits)
        if array.ndim != 2 or array.shape[1] != self.num_bits:
            raise ValueError(f"bits must have shape [n, {self.num_bits}]; got {array.shape}")
        if array.dtype != np.bool_:
            if not ((array == 0) | (array == 1)).all():
                raise ValueError("bits must be 0 or 1")
            array = array.astype(np.bool_)
        return array

    def attained_among(self, active: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Counted goals whose bits all occur in lists of ids [n, L], ascending [m]; and which transitions attain each, bool [n, m].

        No other goal is attained.
        """
        occurs = np.zeros(self.num_bits + 1, np.bool_)  # the last one is the padding
        occurs[active], occurs[-1] = True, True
        goals = np.flatnonzero(self.count > 0)
        goals = goals[occurs[self._members[goals]].all(1)]
        return goals, attained_in(active, self._members[goals])

    # --- experience -----------------------------------------------------------------------------------------------

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which goals were ever on, [G]."""
        return self._observed[: self.size]

    @property
    def count(self) -> NDArray[np.int64]:
        """N(g): transitions that attained g since it entered the table, [G].

        # DEVIATION(D4): those that turn it on; the paper counts those on which it is on.
        """
        return self._count[: self.size]

    @property
    def born(self) -> NDArray[np.int64]:
        """Transitions before g entered the table, [G]."""
        return self._born[: self.size]

    @property
    def reward_mean(self) -> NDArray[np.float64]:
        """R(g): mean task reward on the transitions that attained g; 0 where there were none, [G]."""
        return self.reward_mean_of(slice(self.size))

    def reward_mean_of(self, goals: Some) -> NDArray[np.float64]:
        """R(g) of some goals, [n]."""
        mean: NDArray[np.float64] = self._reward_sum[goals] / np.maximum(self._count[goals], 1)
        return mean

    @property
    def pursuits(self) -> NDArray[np.int64]:
        """How often each goal was pursued, [G]."""
        return self._pursuits[: self.size]

    @property
    def wins(self) -> NDArray[np.int64]:
        """How many of these pursuits attained it, [G]."""
        return self._wins[: self.size]

    @property
    def pursuit_steps(self) -> NDArray[np.int64]:
        """Steps of these pursuits, [G]."""
        return self._pursuit_steps[: self.size]

    @property
    def success_rate(self) -> NDArray[np.float64]:
        """S(g): share of the last 10 pursuits that attained g; 0 where there were none, [G]."""
        rate, g = np.zeros(self.size), np.flatnonzero(self.pursuits)
        rate[g] = self.success_rate_of(g)
        return rate

    def success_rate_of(self, goals: Some) -> NDArray[np.float64]:
        """S(g) of some goals, [n]."""
        rate: NDArray[np.float64] = self._outcomes[goals].sum(1) / np.clip(self._pursuits[goals], 1, RECENT)
        return rate

    @property
    def recent_pursuits(self) -> NDArray[np.float64]:
        """Pursuits, old ones fading, [G]."""
        return self._tally[: self.size, 0]

    @property
    def recent_wins(self) -> NDArray[np.float64]:
        """The successful ones among them, [G]."""
        return self._tally[: self.size, 1]

    def mean_length_of(self, goals: Some) -> NDArray[np.float64]:
        """Mean length of recent pursuits of some goals, [n]; 0 where there were none."""
        tally = self._tally[: self.size][goals]
        mean: NDArray[np.float64] = tally[:, 2] / np.maximum(tally[:, 0], 1e-9)
        return mean

    @property
    def task_success(self) -> float:
        """Share of the last pursuits of the task that succeeded; 0 where there were none."""
        return float(self._task_outcomes.sum() / np.clip(self._task_pursuits, 1, RECENT_TASK))

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """Mean length of recent pursuits of goals, and of the task; 1 where there were none."""
        goals, task = (float(steps / number) if number else 1.0 for number, steps in self._steps_tally)
        return goals, task

    @property
    def learning_progress(self) -> NDArray[np.float64]:
        """|S over the last 5 pursuits − S over the 5 before|, [G]; 1 where there were fewer than 10: it must be tried first."""
        half = RECENT // 2
        ages = np.arange(1, RECENT + 1)  # 1 is the last pursuit
        places = (self.pursuits[:, None] - ages) % RECENT
        outcomes = np.take_along_axis(self._outcomes[: self.size], places, 1)
        progress = np.abs(outcomes[:, :half].mean(1) - outcomes[:, half:].mean(1))
        known: NDArray[np.float64] = np.where(self.pursuits >= RECENT, progress, 1.0)
        return known

    def successful_lengths(self, goal: int) -> NDArray[np.int16]:
        """Steps of the last 10 pursuits that attained g."""
        return self._lengths[goal, : min(int(self._wins[goal]), RECENT)]

    @property
    def all_successful_lengths(self) -> NDArray[np.int16]:
        """Steps of the last pursuits that succeeded, of whatever goal."""
        return self._all_lengths[: min(self._all_wins, RECENT_LENGTHS)]

    def observe(self, active: NDArray[np.integer[Any]], turned_on: NDArray[np.bool_], reward: ArrayLike) -> None:
        """Count transitions: ids of the bits that are on [n, L], padded with −1; which of them turned on [n, L]; reward [n]."""
        rewards = np.asarray(reward, np.float64)
        if active.ndim != 2 or turned_on.shape != active.shape:
            raise ValueError(f"active {active.shape} and turned_on {turned_on.shape} must both be [n, L]")
        if rewards.shape != (len(active),):
            raise ValueError(f"reward must have shape [{len(active)}], one for each transition; got {rewards.shape}")
        if not np.isfinite(rewards).all():
            raise ValueError("rewards must be finite numbers; got NaN or infinity")
        if active.size and (active.max() >= self.num_bits or active.min() < -1):
            wrong = active.max() if active.max() >= self.num_bits else active.min()
            raise ValueError(f"bit {wrong} is on, allowed are 0…{self.num_bits - 1}")
        _observe(active, turned_on, rewards, self.transitions, self._observed, self._count, self._reward_sum,
                 self._start, self._items, self._members, self._mark, self._done)
        self.transitions += len(active)
        self.scale.see(rewards)

    def see(self, active: NDArray[np.integer[Any]]) -> None:
        """Bits that are on without a transition, as at the start of an episode; ids padded with −1."""
        self._observed[active[active >= 0]] = True

    def record_pursuits(self, goals: ArrayLike, success: ArrayLike, length: ArrayLike) -> None:
        """Outcomes of finished pursuits, in order: ids [n], bool [n], steps [n]; of the task, TASK, too."""
        columns = (np.atleast_1d(x).tolist() for x in (goals, success, length))
        for goal, won, steps in zip(*columns, strict=True):
            tally = self._steps_tally[int(goal == TASK)]
            tally[:] = FADE_ALL * tally + (1.0, steps)
            if goal == TASK:
                self._task_outcomes[self._task_pursuits % RECENT_TASK] = won
                self._task_pursuits += 1
                continue
            self._check_id(goal)
            self._outcomes[goal, self._pursuits[goal] % RECENT] = won
            self._pursuits[goal] += 1
            self._pursuit_steps[goal] += steps
            self._tally[goal] = FADE * self._tally[goal] + (1.0, float(won), float(steps))
            if won:
                short = min(steps, np.iinfo(np.int16).max)
                self._lengths[goal, self._wins[goal] % RECENT] = short
                self._all_lengths[self._all_wins % RECENT_LENGTHS] = short
                self._wins[goal] += 1
                self._all_wins += 1

    def forget_pursuits(self, goals: NDArray[np.integer[Any]]) -> None:
        """Recent pursuits of these goals count for nothing any more."""
        self._tally[goals] = 0.0

    # --- state ----------------------------------------------------------------------------------------------------

    _ARRAYS = ("members", "parents", "born", "observed", "count", "reward_sum", "pursuits", "wins", "pursuit_steps", "outcomes",
               "lengths", "tally")

    def state_dict(self) -> dict[str, Any]:
        """All of it as plain arrays: of each goal a row, members of AND-goals only."""
        state: dict[str, Any] = {name: getattr(self, f"_{name}")[: self.size].copy() for name in self._ARRAYS}
        state["members"] = state["members"][self.num_bits :]  # those of a single bit are known
        return state | {"transitions": self.transitions, "scale": self.scale.state(),
                        "all_lengths": self._all_lengths.copy(), "all_wins": self._all_wins,
                        "task_outcomes": self._task_outcomes.copy(), "task_pursuits": self._task_pursuits,
                        "steps_tally": self._steps_tally.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        size, members = len(state["count"]), np.asarray(state["members"])
        if not self.num_bits <= size <= self.capacity or members.shape != (size - self.num_bits, self.max_members):
            raise ValueError(f"stored goal table has {size - len(members)} single bits and {len(members)} goals of ≤ "
                             f"{members.shape[-1]}; this one holds {self.num_bits} and up to {self.capacity - self.num_bits} of ≤ "
                             f"{self.max_members}")
        least = {"members": -1, "parents": -1, "reward_sum": None}
        most = {"members": self.num_bits - 1, "parents": size - 1}
        rows = {"members": size - self.num_bits}
        checked = {name: stored_array(state[name], f"table {name}", (rows.get(name, size), *own.shape[1:]), own.dtype.kind,
                                      None if own.dtype.kind == "b" else least.get(name, 0), most.get(name))
                   for name in self._ARRAYS for own in [getattr(self, f"_{name}")]}
        if (checked["members"][:, 0] < 0).any():
            raise ValueError("stored table members has a goal without a bit")
        self.size, self.transitions = size, stored_number(state["transitions"], "table transitions")
        for name, array in checked.items():
            own = getattr(self, f"_{name}")
            first = self.num_bits if name == "members" else 0
            own[first:size], own[size:] = array, -1 if name in ("members", "parents") else 0
        for name in ("all_lengths", "task_outcomes", "steps_tally"):
            getattr(self, f"_{name}")[:] = stored_like(state[name], f"table {name}", getattr(self, f"_{name}"))
        self._all_wins = stored_number(state["all_wins"], "table all_wins")
        self._task_pursuits = stored_number(state["task_pursuits"], "table task_pursuits")
        self.scale.load(state["scale"])
        self._id_of = {self.members(goal): goal for goal in range(self.num_bits, size)}
        self._index()


def attained_by(bits: NDArray[np.bool_], members: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Which transitions attain goals given by their bits: bits [n, B], members [G, L] padded with −1 → bool [n, G]."""
    result = bits[:, members[:, 0]]  # every goal has at least one bit
    for column in members.T[1:]:
        if (column >= 0).any():
            result &= bits[:, column] | (column < 0)
    return result


@nb.njit(cache=True)
def _observe(active, turned_on, reward, before, observed, count, reward_sum, start, items, members, mark, done):  # type: ignore[no-untyped-def]
    """Adds transitions to the counts of single bits and of AND-goals; `before` is the number of transitions counted before."""
    has_conjunctions = len(items) > 0
    for t in range(active.shape[0]):
        now = before + t + 1
        for l in range(active.shape[1]):
            bit = active[t, l]
            if bit < 0:
                continue
            observed[bit] = True
            if has_conjunctions:
                mark[bit] = now
            if turned_on[t, l]:
                count[bit] += 1
                reward_sum[bit] += reward[t]
        if not has_conjunctions:
            continue
        for l in range(active.shape[1]):
            bit = active[t, l]
            if bit < 0 or not turned_on[t, l]:
                continue
            for place in range(start[bit], start[bit + 1]):
                goal = items[place]
                if done[goal] == now:
                    continue
                done[goal] = now
                is_on = True
                for k in range(members.shape[1]):
                    if members[goal, k] < 0:
                        break
                    if mark[members[goal, k]] != now:
                        is_on = False
                        break
                if is_on:
                    observed[goal] = True
                    count[goal] += 1
                    reward_sum[goal] += reward[t]


def attained_in(active: NDArray[np.integer[Any]], members: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Which goals are on in which states: ids of bits [n, L] and of goals' bits [G, M], both padded with −1 → bool [n, G]."""
    result = np.ones((len(active), len(members)), np.bool_)
    for column in members.T:
        some = np.flatnonzero(column >= 0)
        order = some[np.argsort(column[some], kind="stable")]
        if len(order) == 0:
            continue
        on = np.zeros((len(active), len(members)), np.bool_)
        _switch_on(active, column[order], order, on)
        if len(order) < len(column):
            on[:, column < 0] = True
        result &= on
    return result


@nb.njit(cache=True)
def _switch_on(active, sorted_bits, order, on):  # type: ignore[no-untyped-def]
    """Every place of `active` [n, L] that holds one of the bits switches on all goals that want it, in on [n, G]."""
    for t in range(active.shape[0]):
        for l in range(active.shape[1]):
            bit = active[t, l]
            place = np.searchsorted(sorted_bits, bit)
            while place < len(sorted_bits) and sorted_bits[place] == bit:
                on[t, order[place]] = True
                place += 1
