"""Reachable in practice: is pursuing a goal any better than waiting for it? (the paper asks max_s V_seek > 0.5, §4.1)

Values say what can be reached in a world as it is believed to be; pursuits say what is reached. With s successes among the last n
pursuits of g (old ones fade), and λ(g) how often a step turns g on while others are pursued,

    chance(g) = 1 − (1 − λ(g))^ℓ        over ℓ steps, the mean length of its pursuits
    P(success > x | s, n) < ⅓ P(success > x),  x = max(chance(g), 1/10),  n ≥ 4,  under Beta(1 + s, 1 + n − s):   not reached now

Nothing is given up for good. Such a goal stays on offer at a low rate (`desirability.draw_rationed`), ever more seldom with every
ten pursuits that fail again; one that passes the test of control stays at its low rate. A success brings it back, and where
chance turns it on more often than before it was given up, it comes back at once, its failures forgotten: with k events in t steps
before, and k' in t' since, k' is Binomial(k + k', t'/(t + t')) if nothing changed, and p = P(at least k') < 1/100. "Before" grows
to now whenever t' reaches t and k'/t' is no more than k/t, so that a dry time does not hide what comes after it.

Pursuits prove control as well: where things have inertia, or effects come late, no single action tells much. An undecided goal
that w of its pursuits attained in T steps, and chance k times in the t steps besides, is plausible if w ≥ 4 and

    P(Binomial(w + k, 2T/(2T + t)) ≥ w) < 1/1000        surely more than twice as often while it is pursued

**Kinds.** A text game shows hundreds of words once or twice, too seldom for trials, and nobody has time to fail eleven times at
each. So pursuits of undecided goals that turned on fewer than 8 times are also added up by kind (the last hundred of them): where
P(success > 1/10) falls to a hundredth, those of the kind that never succeeded themselves are not reached now either. They are still
tried at the low rate, and successes there lift the verdict from all; one that turns on more often is judged for itself.

`GoalTable` keeps the tallies; the evaluator calls `Practice.judge` at each refresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betaincc

from protogoal.goals.stored import stored_array
from protogoal.goals.table import RECENT, GoalTable, Some

LEAST_SUCCESS = 0.1
DOUBT = 1 / 3  # of what was believed before any pursuit: eleven failures and no success, where chance does not help
DOUBT_OF_KIND = 0.01  # the same for a kind's rare goals together: 44 failures and no success
FEWEST = 4.0  # pursuits to judge by
RARE = 8  # a goal that turned on more often is judged for itself
RECENT_OF_KIND = 100.0  # pursuits of a kind's rare goals that are remembered
MORE_OFTEN_P = 0.01  # chance has become better, beyond chance
MORE_OFTEN_EVENTS = 3
PROVEN_WINS = 4
PROVEN_RATIO = 2.0  # a goal on half of the time turns on twice as often in the rest, in which alone it is pursued
PROVEN_P = 1e-3

ALL = slice(None)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def chance(table: GoalTable, goals: Some = ALL) -> Floats:
    """chance(g) over the mean length of g's recent pursuits, [n] of some goals; 0 where it was never pursued."""
    others = np.maximum(table.count[goals] - table.wins[goals], 0)
    steps = np.maximum(table.transitions - table.born[goals] - table.pursuit_steps[goals], 1)
    rate = np.minimum(others / steps, 1.0)
    result: Floats = -np.expm1(table.mean_length_of(goals) * np.log1p(-np.minimum(rate, 1 - 1e-12)))
    return result


def doubt(successes: Floats, pursuits: Floats, chance: Floats) -> Floats:
    """P(success rate > x) given what pursuits did, relative to before, x = max(chance, 1/10), [G]; 1 without pursuits."""
    level = np.clip(np.maximum(chance, LEAST_SUCCESS), 0.0, 1.0 - 1e-9)
    result: Floats = betaincc(1 + successes, 1 + pursuits - successes, level) / (1.0 - level)
    return result


def is_proven(table: GoalTable) -> Bools:
    """Which goals pursuits attain surely more than twice as often, by steps, as they are attained otherwise; [G]."""
    proven = np.zeros(table.size, np.bool_)
    g = np.flatnonzero(table.wins >= PROVEN_WINS)
    wins, steps = table.wins[g], PROVEN_RATIO * table.pursuit_steps[g]
    others, other_steps = np.maximum(table.count[g] - wins, 0), table.transitions - table.born[g] - table.pursuit_steps[g]
    p = bdtrc(wins - 1.0, wins + others, steps / np.maximum(steps + np.maximum(other_steps, 0), 1))
    proven[g] = p < PROVEN_P
    return proven


class Practice:
    """Which goals are given up for now, how often each was, and how often chance met it until then."""

    def __init__(self, capacity: int):
        self._given_up = np.zeros(capacity, np.bool_)
        self._times = np.zeros(capacity, np.int16)
        self._pursuits_then = np.zeros(capacity, np.int64)
        self._count_then = np.zeros(capacity, np.int64)
        self._steps_then = np.zeros(capacity, np.int64)
        self._was_rare = np.zeros(capacity, np.bool_)  # at the last look; the next two are their pursuits and successes then
        self._rare_pursuits = np.zeros(capacity, np.int64)
        self._rare_wins = np.zeros(capacity, np.int64)
        self._of_kind = np.zeros((0, 2))  # pursuits of each kind's rare goals, and successes

    def judge(self, table: GoalTable) -> Bools:
        """Which goals are not reached in practice now, bool [G]."""
        g = np.flatnonzero(table.pursuits > 0)
        others, steps = table.count[g] - table.wins[g], table.transitions - table.born[g]
        n = table.recent_pursuits[g]
        fails = (n >= FEWEST - 0.5) & (doubt(table.recent_wins[g], n, chance(table, g)) < DOUBT)  # 4 pursuits fade to 3.8
        given_up = self._given_up[g]
        new = fails & ~given_up
        again = fails & given_up & (table.pursuits[g] >= self._pursuits_then[g] + RECENT)  # it was tried ten times more
        for which in (new, again):
            self._times[g[which]] = np.minimum(self._times[g[which]] + 1, 1000)
            self._pursuits_then[g[which]] = table.pursuits[g[which]]
        since = np.maximum(others - self._count_then[g], 0)
        later = np.maximum(steps - self._steps_then[g], 0)
        p = bdtrc(np.maximum(since - 1.0, 0.0), np.maximum(since + self._count_then[g], 1), later / np.maximum(steps, 1))
        more_often = given_up & fails & (since >= MORE_OFTEN_EVENTS) & (p < MORE_OFTEN_P)
        is_dry = (later >= self._steps_then[g]) & (since * self._steps_then[g] <= later * self._count_then[g])
        from_now = new | is_dry
        self._count_then[g[from_now]], self._steps_then[g[from_now]] = others[from_now], steps[from_now]
        table.forget_pursuits(g[more_often])
        self._times[g[more_often]] = 0
        self._given_up[g] = fails & ~more_often
        return self._given_up[: table.size].copy()

    def judge_kinds(self, table: GoalTable, is_rare: Bools, kind: NDArray[np.integer[Any]]) -> Bools:
        """Which of the rare goals are not reached now since such goals of their kind are not, bool [G]; `kind` [G] is from 0 on."""
        g = np.flatnonzero(self._was_rare[: table.size])
        tally = np.zeros((max(int(kind.max(initial=-1)) + 1, len(self._of_kind)), 2))
        tally[: len(self._of_kind)] = self._of_kind
        np.add.at(tally, kind[g], np.stack([table.pursuits[g] - self._rare_pursuits[g], table.wins[g] - self._rare_wins[g]], 1))
        tally *= np.minimum(1.0, RECENT_OF_KIND / np.maximum(tally[:, :1], 1.0))
        self._of_kind, self._was_rare[: table.size] = tally, is_rare
        rare = np.flatnonzero(is_rare)
        self._rare_pursuits[rare], self._rare_wins[rare] = table.pursuits[rare], table.wins[rare]
        in_vain = doubt(tally[:, 1], tally[:, 0], np.zeros(len(tally))) < DOUBT_OF_KIND
        return np.asarray(is_rare & (table.wins == 0) & in_vain[kind])

    def times(self, size: int) -> NDArray[np.int16]:
        """How often each goal was given up, [G]."""
        return self._times[:size]

    _ARRAYS = ("given_up", "times", "pursuits_then", "count_then", "steps_then", "was_rare", "rare_pursuits", "rare_wins")

    def state_dict(self, size: int) -> dict[str, Any]:
        """Of the first `size` goals, as plain arrays."""
        return {name: getattr(self, f"_{name}")[:size].copy() for name in self._ARRAYS} | {"of_kind": self._of_kind.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for name in self._ARRAYS:
            own = getattr(self, f"_{name}")
            stored = stored_array(state[name], name, (None,), own.dtype.kind)
            if len(stored) > len(own):
                raise ValueError(f"stored {name} has shape {stored.shape}, must be one number a goal, at most {len(own)}")
            own[: len(stored)], own[len(stored) :] = stored, 0
        self._of_kind = stored_array(state["of_kind"], "of_kind", (None, 2), "f").astype(np.float64)


LEAST_LIMIT = 10  # steps
FEW = 3  # successes that tell a goal's own length


def limits(table: GoalTable, goals: NDArray[np.int64], patience: float, horizon: int) -> NDArray[np.int64]:
    """Steps after which a pursuit is given up, [k]: patience × the 90th percentile of the goal's last successful pursuits.

    A goal that hardly ever succeeded has that of all goals; `horizon` is the most. Patience 0 gives 0: the end of the episode.
    """
    if patience == 0:
        return np.zeros(len(goals), np.int64)
    everything = table.all_successful_lengths
    common = np.percentile(everything, 90) if len(everything) >= FEW else horizon
    own = (table.successful_lengths(int(goal)) for goal in goals)
    typical = np.array([np.percentile(lengths, 90) if len(lengths) >= FEW else common for lengths in own])
    return np.clip(np.ceil(patience * typical), min(LEAST_LIMIT, horizon), horizon).astype(np.int64)
