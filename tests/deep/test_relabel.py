"""Relabelled goals are attained where they say, and are drawn as the paper draws them."""

from dataclasses import replace

import numpy as np
import pytest
from grids import Corridor
from reference.goal_sets import make_goal_set
from reference.relabel import attains, reward_and_discount
from test_segments import play

from protogoal.deep.relabel import KnownGoals, draw_without_replacement, relabel
from protogoal.deep.settings import LearnerSettings
from protogoal.goals.evaluator import PGESettings, ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict
from protogoal.goals.table import TASK


class TwoBits(Corridor):
    """A corridor whose bits are the cell and whether it is even."""

    max_active = 3

    def __init__(self, **options):
        super().__init__(**options)
        self.num_bits = self.length + 2

    def reset(self, seed=None):
        observation, active = super().reset(seed)
        return observation, self._with_parity(active)

    def step(self, actions):
        step = super().step(actions)
        return step._replace(active=self._with_parity(step.active), final_active=self._with_parity(step.final_active))

    def _with_parity(self, cell):
        return np.concatenate([cell, self.length + cell % 2, np.full_like(cell, -1)], 1)


def segment_and_goals(seed=0, conjunctions=True):
    env = TwoBits(length=5, limit=7)
    segments, _ = play(env, 60, trace_length=6, seed=seed)
    evaluator = ProtoGoalEvaluator(env.num_bits, 2)
    table = evaluator.table
    if conjunctions:
        table.add(1, 6)  # cell 1 and odd: possible
        table.add(0, 6)  # cell 0 and odd: never
        table.add(2, 5)  # cell 2 and even
    for segment in segments:
        table.observe(segment.active.reshape(-1, 3), segment.turned_on.reshape(-1, 3), segment.reward.ravel())
    segment = replace(segments[3], goal=np.where(np.arange(4) % 2 == 0, TASK, 2)[None].repeat(6, 0).astype(np.int32))
    evaluator.goal_set = make_goal_set([1, 2, 3])
    evaluator.verdict = np.full(table.size, Verdict.PLAUSIBLE, np.int8)
    evaluator.verdict[3] = Verdict.UNDECIDED
    evaluator.verdict[4] = Verdict.UNCONTROLLABLE
    evaluator.has_control = evaluator.verdict == Verdict.PLAUSIBLE
    return segment, KnownGoals.of(evaluator), table


ALL = LearnerSettings(relabel="all", task_discount=0.9, goal_discount=0.8)
NOVELTY = LearnerSettings(relabel="novelty", task_discount=0.9, goal_discount=0.8, hindsight_goals=3, unattained_goals=2)


@pytest.mark.parametrize("settings", [ALL, NOVELTY])
def test_rewards_and_discounts_equal_the_slow_version(settings):
    segment, known, _ = segment_and_goals()
    goals = relabel(segment, known, settings, np.random.default_rng(0))
    for n in range(segment.size):
        members = goals.slots if goals.slots.ndim == 2 else goals.slots[n]
        for k, goal in enumerate(members):
            if goals.weight[n, k] == 0:
                continue
            for t in range(segment.steps):
                r, d = reward_and_discount(segment.active[t, n], goal, segment.reward[t, n], segment.terminated[t, n], 0.9, 0.8)
                assert (goals.reward[t, n, k], goals.discount[t, n, k]) == pytest.approx((r, d))


def test_all_learns_the_task_and_every_goal_under_control_or_on_offer_once():
    segment, known, table = segment_and_goals()
    goals = relabel(segment, known, ALL, np.random.default_rng(0))
    learned = [tuple(i for i in row if i >= 0) for row in goals.slots.tolist()]
    assert learned[0] == ()
    attained = [table.members(int(g)) for g in np.flatnonzero(table.count > 0)]
    assert (4,) in attained
    assert sorted(learned[1:]) == sorted(members for members in attained if members != (4,))  # what is pruned is not learned
    assert (3,) in learned  # undecided, and on offer
    assert (0, 6) not in learned  # never attained
    assert (1, 6) in learned
    assert goals.weight[0].tolist() == pytest.approx([1.0] + [1 / (len(learned) - 1)] * (len(learned) - 1))


def test_known_goals_are_those_with_a_slot():
    evaluator = ProtoGoalEvaluator(8, 2, num_slots=3)
    evaluator.table.observe(np.arange(8)[:, None], np.ones((8, 1), bool), np.zeros(8))
    evaluator.verdict[:] = Verdict.PLAUSIBLE
    evaluator.has_control = np.ones_like(evaluator.has_control)
    evaluator.slots.assign(np.array([6, 2, 5]))
    known = KnownGoals.of(evaluator)
    assert known.ids.tolist() == known.bits.tolist() == known.members[:, 0].tolist() == [2, 5, 6]
    assert known.slots.tolist() == evaluator.slots.of(np.array([[2], [5], [6]])).tolist()
    assert known.generation.tolist() == [1, 1, 1]


@pytest.mark.parametrize("settings", [ALL, NOVELTY])
def test_a_goal_pursued_in_vain_is_learned_too(settings):
    segment, _, _ = segment_and_goals()
    evaluator = ProtoGoalEvaluator(8, 2, PGESettings(pruning="off", goal_set_size=1))  # bit 7 is never on
    evaluator.table.observe(np.arange(7)[:, None], np.ones((7, 1), bool), np.zeros(7))
    evaluator.table.record_pursuits([7], [False], [5])
    evaluator.refresh()
    own = replace(segment, goal=np.full_like(segment.goal, 7))
    goals = relabel(own, KnownGoals.of(evaluator), settings, np.random.default_rng(0))
    members = goals.slots if goals.slots.ndim == 2 else goals.slots[0]
    place = [row[0] for row in members.tolist()].index(7)
    assert (goals.weight[:, place] > 0).all()
    assert (goals.reward[:, :, place] == 0).all()


def test_all_draws_a_sample_where_there_are_too_many():
    segment, known, _ = segment_and_goals()
    few = replace(ALL, max_goals=3, conjunctions=1)
    seen = set()
    for seed in range(30):
        goals = relabel(segment, known, few, np.random.default_rng(seed))
        assert len(goals.slots) == 1 + 3 + 1
        seen |= {tuple(row) for row in goals.slots.tolist()}
    assert len(seen) == 1 + len(known)


def test_novelty_learns_the_task_the_own_goal_and_goals_attained_in_the_segment():
    segment, known, _ = segment_and_goals()
    goals = relabel(segment, known, NOVELTY, np.random.default_rng(1))
    assert goals.slots.shape[:2] == (segment.size, 2 + 3 + 2)
    for n in range(segment.size):
        rows = [tuple(row) for row in goals.slots[n].tolist()]
        assert all(i < 0 for i in rows[0])
        if segment.goal[0, n] == TASK:
            assert goals.weight[n, 1] == 0
        else:
            assert [i for i in rows[1] if i >= 0] == [2]
        hindsight = [row for row, w in zip(rows[2:5], goals.weight[n, 2:5], strict=True) if w]
        assert len(set(hindsight)) == len(hindsight) > 0
        assert all(any(attains(segment.active[t, n], row) for t in range(6)) for row in hindsight)
        assert all(row[0] != 3 for row in hindsight)  # pruned
        others = [row for row, w in zip(rows[5:], goals.weight[n, 5:], strict=True) if w]
        for row in others:
            assert not any(attains(segment.active[t, n], row) for t in range(6))
            assert row[0] in (1, 2, 3)
        assert goals.weight[n].sum() == pytest.approx(1.0)


def test_a_burn_in_is_not_relabelled():
    segment, known, _ = segment_and_goals()
    goals = relabel(segment, known, ALL, np.random.default_rng(0), burn_in=2)
    whole = relabel(segment, known, ALL, np.random.default_rng(0))
    assert goals.reward.shape[0] == 4
    assert (goals.reward == whole.reward[2:]).all()


def test_without_goals_only_the_task_is_learned():
    segment, _, _ = segment_and_goals()
    none = KnownGoals.none(7)
    for settings in (ALL, NOVELTY):
        goals = relabel(segment, none, settings, np.random.default_rng(0))
        assert (goals.weight[:, 0] > 0).all()
        assert (goals.weight[:, 1:] == 0).all()
        assert (goals.reward[..., 0] == segment.reward).all()


def test_the_draw_without_replacement_follows_the_weights():
    weight = np.array([1.0, 2.0, 4.0, 8.0])
    allowed = np.tile([True, True, False, True], (20_000, 1))
    drawn = draw_without_replacement(allowed, weight, 2, np.random.default_rng(0))
    assert not (drawn == 2).any()
    assert (drawn[:, 0] != drawn[:, 1]).all()
    first = np.bincount(drawn[:, 0], minlength=4) / len(drawn)
    assert first == pytest.approx([1 / 11, 2 / 11, 0, 8 / 11], abs=0.02)


def test_a_draw_of_more_than_there_are_says_so_by_the_column_count():
    drawn = draw_without_replacement(np.array([[True, False]]), np.ones(2), 3, np.random.default_rng(0))
    assert drawn.tolist() == [[0, 2, 2]]
