"""The compiled loops, against hand-worked cases and plain numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import tabular as reference
from reference.goal_sets import make_goal_set

from protogoal.goals.selection import select
from protogoal.goals.table import TASK
from protogoal.tabular import kernels


def test_greedy_ties_break_at_random_and_evenly():
    rng = np.random.default_rng(0)
    values = np.array([0.0, 1.0, 0.5, 1.0, 1.0, -2.0])
    picks = np.bincount([kernels.argmax_random(values, rng) for _ in range(6_000)], minlength=6)
    assert picks[[0, 2, 5]].sum() == 0
    assert (abs(picks[[1, 3, 4]] - 2_000) < 200).all()


def test_a_clear_maximum_draws_nothing():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert kernels.argmax_random(np.array([0.0, 0.1, 3.0]), rng) == 2
    assert rng.bit_generator.state == before


def test_a_transition_teaches_seek_and_avoid_worked_by_hand():
    seek, avoid = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))  # 2 states, 2 actions, goals: bit 0 on in state 1, bit 1 nowhere
    v_seek, v_avoid = np.zeros((2, 2)), np.zeros((2, 2))
    seek[1, 0] = v_seek[1] = [0.8, 0.6]
    avoid[1] = v_avoid[1] = [-0.8, -0.2]
    kernels.learn_goals(seek, avoid, v_seek, v_avoid, 0, 1, 1, np.array([1.0, 0.0]), False, 0.5, 0.9)
    # goal 0 is attained: ±1 and no continuation; goal 1 is not: γ·V(s')
    np.testing.assert_allclose(seek[0, 1], [0.5 * 1, 0.5 * 0.9 * 0.6])
    np.testing.assert_allclose(avoid[0, 1], [0.5 * -1, 0.5 * 0.9 * -0.2])
    np.testing.assert_allclose(v_seek[0], [0.5, 0.27])
    np.testing.assert_allclose(v_avoid[0], [0.0, 0.0])  # the other action was never tried, and looks like a way out


def test_termination_of_the_environment_ends_a_goals_continuation():
    tables = [np.full((2, 2, 1), 0.5), np.full((2, 2, 1), -0.5), np.full((2, 1), 0.5), np.full((2, 1), -0.5)]
    kernels.learn_goals(*tables, 0, 0, 1, np.array([0.0]), True, 1.0, 0.9)
    assert tables[0][0, 0, 0] == 0.0
    assert tables[1][0, 0, 0] == 0.0


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_all_goals_learn_what_plain_numpy_computes(seed):
    rng = np.random.default_rng(seed)
    num_states, num_actions, num_goals = rng.integers(1, 6, size=3)
    seek, avoid = rng.random((num_states, num_actions, num_goals)), -rng.random((num_states, num_actions, num_goals))
    expected = seek.copy(), avoid.copy()
    v_seek, v_avoid = seek.max(1), avoid.max(1)
    for _ in range(20):
        s, s_next, a = rng.integers(num_states), rng.integers(num_states), rng.integers(num_actions)
        b, terminated = (rng.random(num_goals) < 0.4).astype(float), bool(rng.random() < 0.2)
        kernels.learn_goals(seek, avoid, v_seek, v_avoid, s, a, s_next, b, terminated, 0.3, 0.95)
        reference.learn_goals(*expected, s, a, s_next, b, terminated, 0.3, 0.95)
    np.testing.assert_allclose(seek, expected[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(avoid, expected[1], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(v_seek, seek.max(1))
    np.testing.assert_array_equal(v_avoid, avoid.max(1))


@given(st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_the_kernel_chooses_the_goal_that_selection_chooses(seed):
    rng = np.random.default_rng(seed)
    num_goals = int(rng.integers(1, 12))
    offered = np.flatnonzero(rng.random(num_goals) < 0.7)
    rule = {"num_candidates": int(rng.integers(1, 6)), "p_task": float(rng.random() * 0.4)}
    goals = make_goal_set(offered, rng.integers(1, 50, num_goals)[offered], rng.random(num_goals)[offered], int(rng.integers(1, 6)),
                          strategy="paper", **rule)
    values, bits = rng.random(num_goals).round(1), rng.random(num_goals) < 0.3
    active = np.where(bits, np.arange(num_goals), -1)[None]
    cumulative = np.concatenate([[0.0], np.cumsum(goals.novelty)])
    edges = np.searchsorted(goals.bucket, np.arange(goals.bucket.max(initial=-1) + 2))
    ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(5):
        chosen = kernels.select_goal(np.array(goals.ids), cumulative, edges, values, bits.astype(float), *rule.values(), ours)
        expected = select(goals, lambda rows, positions: values[goals.ids[positions]], active, theirs)[0]
        assert chosen == expected
        assert chosen == TASK or not bits[chosen]
    assert ours.bit_generator.state == theirs.bit_generator.state


def test_values_are_summed_up_as_often_as_states_were_visited():
    v_seek, v_avoid = np.array([[0.9], [0.1], [7.0]]), np.array([[-0.5], [-0.1], [7.0]])
    seek_max, seek_mean, avoid_mean = kernels.summarise_values(v_seek, v_avoid, np.array([1, 3, 0]))
    np.testing.assert_allclose([seek_max[0], seek_mean[0], avoid_mean[0]], [0.9, 1.2 / 4, -0.8 / 4])


CHAIN = {  # 0 → 1 → 2, where action 1 ends the episode with reward; action 0 stays
    "next_state": np.array([[0, 1], [1, 2], [2, 2]]),
    "reward": np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]),
    "terminated": np.array([[False, False], [False, False], [False, True]]),
}


def test_greedy_episodes_end_with_termination_or_at_the_limit():
    q = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    returns, lengths = kernels.greedy_episodes(*CHAIN.values(), np.array([0, 2]), 10, q, np.random.default_rng(0))
    assert returns.tolist() == [1.0, 1.0]
    assert lengths.tolist() == [3, 1]
    returns, lengths = kernels.greedy_episodes(*CHAIN.values(), np.array([0]), 10, -q, np.random.default_rng(0))
    assert (returns[0], lengths[0]) == (0.0, 10)


def test_a_time_limit_cuts_the_episode_and_not_the_bootstrap():
    """With a limit of 2 steps the reward in state 2 is never reached from 0, but values flow through the cut."""
    q = np.zeros((3, 2))
    carry = np.array([-1, 0, kernels.NO_GOAL, 0, 0, 0])
    starts = np.array([0, 2])
    kernels.q_learning_steps(*CHAIN.values(), starts, 2, q, carry, 4_000, 0.5, 0.9, 0.5, np.random.default_rng(0))
    np.testing.assert_allclose(q[:, 1], [0.81, 0.9, 1.0], atol=1e-6)
