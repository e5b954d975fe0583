"""What the evaluator publishes: in buckets, read-only, and the same after a round trip."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.goal_sets import make_goal_set

from protogoal.goals.goal_set import GoalSet, timescale_buckets


def test_buckets_are_quantiles_of_the_timescale():
    assert timescale_buckets(np.array([0.9, 0.1, 0.5, 0.2, 0.6, 0.7]), 3).tolist() == [2, 0, 1, 0, 1, 2]


def test_goals_without_an_estimate_fall_into_the_slowest_bucket():
    assert timescale_buckets(np.array([0.3, np.nan, 0.1]), 3).tolist() == [2, 0, 1]


@given(st.integers(1, 40), st.integers(1, 8))
def test_bucket_sizes_differ_by_at_most_one_and_no_bucket_is_empty(k, buckets):
    sizes = np.bincount(timescale_buckets(np.random.default_rng(k).random(k), buckets))
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1


def test_in_buckets_every_array_keeps_to_its_goal():
    goals = make_goal_set([4, 7, 2, 9], count=[1, 4, 9, 16], timescale=[0.9, 0.1, np.nan, 0.5], num_buckets=2,
                          limit=np.array([40, 70, 20, 90]))
    assert goals.bucket.tolist() == [0, 0, 1, 1]
    assert goals.ids.tolist() == [7, 2, 4, 9]
    assert goals.members[:, 0].tolist() == goals.slots[:, 0].tolist() == [7, 2, 4, 9]
    assert goals.limit.tolist() == [70, 20, 40, 90]
    np.testing.assert_allclose(goals.novelty, [1 / 2, 1 / 3, 1, 1 / 4])


def test_state_survives_a_round_trip_and_an_empty_set_does_too():
    for goals in (make_goal_set([3, 1], strategy="paper", p_task=0.3), GoalSet.empty(7)):
        state = goals.state_dict()
        json.dumps(state, default=lambda x: x.tolist())
        again = GoalSet.from_state(state, num_goals=10, num_bits=10, num_slots=10)
        assert len(again) == len(goals)
        for name, value in vars(goals).items():
            np.testing.assert_array_equal(getattr(again, name), value)


def test_a_goal_set_cannot_be_changed():
    goals = make_goal_set([1, 2])
    for name, value in vars(goals).items():
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                getattr(goals, name)[:1] = 5
