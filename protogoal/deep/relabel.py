"""Relabelling: which goals a batch of segments is learned for, and what each of them was worth (paper §5.2).

Nothing about goals is stored with a segment but its bits, so a goal invented today can be learned from yesterday's
experience. Two ways:

  novelty  for each segment its own goal, the task, and up to M_her plausible goals it attained, drawn without replacement ∝ 1/√N
  all      for every segment the task, every known single-bit goal, and a sample of the AND-goals

Known are the goals that trials show to be controllable, and those on offer: what is pruned is not learned either.

A goal g has reward b_g and discount γ(1 − b_g)(1 − terminated); the task has the environment's reward
and γ(1 − terminated). Goals that were not attained matter as much: without them every value creeps to 1. `deep.learn` calls
this for each batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.deep.segments import Segments
from protogoal.deep.settings import LearnerSettings
from protogoal.envs.vector import PAD
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict
from protogoal.goals.table import TASK, attained_in

Array = NDArray[Any]


@dataclass(frozen=True)
class KnownGoals:
    """The goals worth learning, as the learner needs them; published with each goal set."""

    ids: NDArray[np.int64]  # [G], ascending: single bits first
    members: NDArray[np.int32]  # [G, L], padded with -1
    slots: NDArray[np.int32]  # [G, L]: the network's rows for them
    generation: NDArray[np.int32]  # [slots]: rises where a row belongs to another bit than before
    count: NDArray[np.int64]  # [G]
    is_offered: NDArray[np.bool_]  # [G]: in the current goal set
    is_plausible: NDArray[np.bool_]  # [G]: by the last refresh
    num_bits: int

    @staticmethod
    def of(evaluator: ProtoGoalEvaluator) -> KnownGoals:
        """The goals under control, reached in practice or not, and those on offer; nothing that was never attained nor pursued."""
        table = evaluator.table
        some = evaluator.controlled
        some = some[(table.count[some] > 0) | (table.pursuits[some] > 0)]
        ids = np.union1d(some, evaluator.goal_set.ids)
        ids = ids[evaluator.slots.has(table.member_array[ids])]
        members = table.member_array[ids]
        longest = max(1, int((members >= 0).sum(1).max(initial=1)))
        members = members[:, :longest].copy()
        return KnownGoals(ids, members, evaluator.slots.of(members), evaluator.slots.generation.copy(), table.count[ids].copy(),
                          np.isin(ids, evaluator.goal_set.ids), evaluator.verdict[ids] == Verdict.PLAUSIBLE, table.num_bits)

    @staticmethod
    def none(num_bits: int) -> KnownGoals:
        """No goals: the agent is plain R2D2."""
        nothing = np.empty(0, np.int64)
        no_bits = np.empty((0, 1), np.int32)
        return KnownGoals(nothing, no_bits, no_bits, np.empty(0, np.int32), nothing, np.empty(0, bool), np.empty(0, bool), num_bits)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bits(self) -> NDArray[np.int64]:
        """The single bits among them."""
        return self.ids[: np.searchsorted(self.ids, self.num_bits)]


@dataclass(frozen=True)
class BatchGoals:
    """The goals a batch is learned for; column 0 is the task.

    slots: [G, L] where all segments share the goals, [N, K, L] where each has its own; none = the task.
    reward, discount: [T, N, G or K]. weight: [N, G or K], 0 where a segment has no such goal.
    """

    slots: Array
    reward: NDArray[np.float32]
    discount: NDArray[np.float32]
    weight: NDArray[np.float32]


def relabel(
    batch: Segments, known: KnownGoals, settings: LearnerSettings, rng: np.random.Generator, burn_in: int = 0
) -> BatchGoals:
    """The goals of a batch, by `settings.relabel`, with their rewards and discounts after the burn-in."""
    learned = batch.last(batch.steps - burn_in)
    if settings.relabel == "all":
        return relabel_all(learned, known, settings, rng)
    return relabel_novelty(learned, known, settings, rng)


def relabel_all(batch: Segments, known: KnownGoals, settings: LearnerSettings, rng: np.random.Generator) -> BatchGoals:
    """The task, and the known goals (at most `max_goals` single bits and `conjunctions` AND-goals)."""
    rows = shared_goals(known, settings, rng)
    slots = np.concatenate([np.full((1, known.slots.shape[1]), PAD, np.int32), known.slots[rows]])
    attained = attained_in(batch.active.reshape(-1, batch.active.shape[-1]), known.members[rows])
    attained = attained.reshape(batch.steps, batch.size, len(rows))
    reward, discount = _rewards(batch, attained, settings)
    weight = np.full(1 + len(rows), 1.0 / max(1, len(rows)), np.float32)
    weight[0] = settings.task_weight
    return BatchGoals(slots, reward, discount, np.tile(weight, (batch.size, 1)))


def shared_goals(known: KnownGoals, settings: LearnerSettings, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of the known goals that one batch learns."""
    singles = len(known.bits)
    parts = []
    for first, last, most in ((0, singles, settings.max_goals), (singles, len(known), settings.conjunctions)):
        some = np.arange(first, last)
        parts.append(some if len(some) <= most else np.sort(rng.choice(some, most, replace=False)))
    return np.concatenate(parts)


def relabel_novelty(
    batch: Segments, known: KnownGoals, settings: LearnerSettings, rng: np.random.Generator
) -> BatchGoals:
    """Per segment: the task, its own goal, plausible goals it attained ∝ 1/√N, and offered goals that it did not.

    The own goal is the one pursued at the segment's first step; where that is the task, the place stays empty. A
    segment that attained fewer than M_her goals has empty places too (weight 0).
    """
    n, length = batch.size, known.members.shape[1]
    attained = attained_in(batch.active.reshape(-1, batch.active.shape[-1]), known.members)
    attained = attained.reshape(batch.steps, n, len(known))
    own = np.searchsorted(known.ids, batch.goal[0])
    is_known = np.append(known.ids, TASK)[own] == batch.goal[0]  # what was forgotten, or not published yet, is not
    own = np.where(is_known & (batch.goal[0] != TASK), own, len(known))
    happened: NDArray[np.bool_] = np.asarray(attained.any(0))  # [N, G]
    rarity = np.maximum(known.count, 1).astype(np.float64) ** -0.5
    hindsight = draw_without_replacement(happened & known.is_plausible, rarity, settings.hindsight_goals, rng)
    missed: NDArray[np.bool_] = np.logical_and(np.logical_not(happened), known.is_offered)
    others = draw_without_replacement(missed, np.ones(len(known)), settings.unattained_goals, rng)
    chosen = np.concatenate([np.full((n, 1), len(known)), own[:, None], hindsight, others], 1)  # [N, K]; G = no goal
    padded = np.concatenate([known.slots, np.full((1, length), PAD, np.int32)])
    extended = np.concatenate([attained, np.zeros((batch.steps, n, 1), bool)], -1)  # column G: never attained
    reward, discount = _rewards(batch, np.take_along_axis(extended, chosen[None, :, 1:], 2), settings)
    weight = (chosen < len(known)).astype(np.float32)
    weight[:, 0] = 1.0
    return BatchGoals(padded[chosen], reward, discount, weight / weight.sum(1, keepdims=True))


def draw_without_replacement(
    allowed: NDArray[np.bool_], weight: NDArray[np.float64], k: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each row up to k allowed columns, different ones, each draw ∝ weight → [N, k]; the column count where none is left.

    The k largest of log w + Gumbel noise are such a draw.
    """
    n, columns = allowed.shape
    if k == 0 or columns == 0:
        return np.full((n, k), columns)
    key = np.where(allowed, np.log(weight) + rng.gumbel(size=allowed.shape), -np.inf)
    order = np.argsort(-key, axis=1)[:, :k]
    drawn = np.where(np.take_along_axis(key, order, 1) > -np.inf, order, columns)
    return np.pad(drawn, ((0, 0), (0, k - drawn.shape[1])), constant_values=columns)


def _rewards(
    batch: Segments, attained: NDArray[np.bool_], settings: LearnerSettings
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rewards and discounts [T, N, 1 + G] of the task (column 0) and of goals attained as given [T, N, G]."""
    goes_on = (~batch.terminated).astype(np.float32)[..., None]  # [T, N, 1]
    reward = np.concatenate([batch.reward[..., None], attained], -1, dtype=np.float32)
    discount = np.empty_like(reward)
    discount[..., :1] = settings.task_discount * goes_on
    np.multiply(settings.goal_discount * goes_on, ~attained, out=discount[..., 1:])
    return reward, discount
