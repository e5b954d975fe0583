import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.goals import candidate_probabilities

from protogoal.goals.selection import GoalSet, draw_candidates, make_goal_set, select, timescale_buckets
from protogoal.goals.table import TASK

NOBODY = np.zeros((1, 10), bool)


def goal_set(count, timescale, num_buckets=5, ids=None):
    count = np.asarray(count)
    ids = np.arange(len(count)) if ids is None else np.asarray(ids)
    members = np.stack([ids, np.full(len(ids), -1)], 1).astype(np.int32)
    return make_goal_set(1, ids, count, np.asarray(timescale, float), members, num_buckets)


def test_buckets_are_quantiles_of_the_timescale():
    assert timescale_buckets(np.array([0.9, 0.1, 0.5, 0.2, 0.6, 0.7]), 3).tolist() == [2, 0, 1, 0, 1, 2]


def test_goals_without_an_estimate_fall_into_the_slowest_bucket():
    assert timescale_buckets(np.array([0.3, np.nan, 0.1]), 3).tolist() == [2, 0, 1]


@given(st.integers(1, 40), st.integers(1, 8))
def test_bucket_sizes_differ_by_at_most_one_and_no_bucket_is_empty(k, buckets):
    sizes = np.bincount(timescale_buckets(np.random.default_rng(k).random(k), buckets))
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1


def test_candidates_are_drawn_bucket_by_bucket_in_proportion_to_novelty():
    goals = goal_set([1, 4, 9, 16, 25, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], num_buckets=3)
    drawn = draw_candidates(goals, 40_000, 3, np.random.default_rng(0))
    shares = np.bincount(drawn.ravel(), minlength=7) / drawn.size
    np.testing.assert_allclose(shares, candidate_probabilities(goals.novelty.tolist(), goals.bucket.tolist()), atol=0.01)
    assert (goals.bucket[drawn] == goals.bucket[drawn[:, :1]]).all()  # one bucket a state


def test_the_most_reachable_of_the_candidates_is_chosen():
    goals = goal_set([1, 1, 1], [0.5, 0.5, 0.5], num_buckets=1)
    value = np.array([0.2, 0.9, 0.4])
    chosen = select(goals, lambda rows, p: value[p], np.zeros((500, 10), bool), np.random.default_rng(0),
                    num_candidates=50, p_task=0.0)
    assert set(chosen.tolist()) == {1}


def test_goals_attained_where_the_agent_stands_are_not_offered():
    goals = goal_set([1, 1, 1], [0.5, 0.5, 0.5], num_buckets=1)
    bits = np.zeros((200, 10), bool)
    bits[:, 1] = True
    chosen = select(goals, lambda rows, p: np.array([0.2, 0.9, 0.4])[p], bits, np.random.default_rng(0),
                    num_candidates=50, p_task=0.0)
    assert set(chosen.tolist()) == {2}
    bits[:, :3] = True
    assert set(select(goals, lambda rows, p: np.ones(p.shape), bits, np.random.default_rng(0), p_task=0.0).tolist()) == {TASK}


@given(p_task=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
@settings(deadline=None)
def test_the_task_is_followed_with_its_probability(p_task):
    goals = goal_set([1, 2, 3, 4, 5], [0.1, 0.2, 0.3, 0.4, 0.5])
    chosen = select(goals, lambda rows, p: np.zeros(p.shape), np.zeros((20_000, 10), bool), np.random.default_rng(1), p_task=p_task)
    assert (chosen == TASK).mean() == pytest.approx(p_task, abs=0.02)


def test_an_empty_goal_set_means_the_task():
    assert select(GoalSet.empty(), lambda rows, p: np.zeros(p.shape), NOBODY, np.random.default_rng(0)).tolist() == [TASK]


def test_redraws_leave_buckets_that_cannot_be_reached_from_here():
    goals = goal_set([1, 1], [0.1, 0.9], num_buckets=2)  # two buckets; only the second goal can be reached
    value = np.array([0.0, 0.8])

    def share(redraws):
        bits = np.zeros((4000, 10), bool)
        chosen = select(goals, lambda rows, p: value[p], bits, np.random.default_rng(0), p_task=0.0,
                        value_floor=0.05, redraws=redraws)
        return (chosen == 1).mean()

    assert share(0) == pytest.approx(1 / 2, abs=0.03)
    assert share(2) == pytest.approx(7 / 8, abs=0.03)


def test_values_are_asked_only_for_the_rows_that_need_them():
    goals = goal_set([1, 1], [0.1, 0.9])
    seen = []

    def values(rows, positions):
        seen.append((len(rows), positions.shape))
        return np.ones(positions.shape)

    select(goals, values, np.zeros((8, 10), bool), np.random.default_rng(0), num_candidates=4, p_task=0.0)
    assert seen == [(8, (8, 4))]


def test_a_goal_set_cannot_be_changed():
    goals = goal_set([1, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="read-only"):
        goals.ids[0] = 5
