"""Seek and avoid values by LSPI: a chain solved on paper, and the plain version goal by goal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.lspi import lspi_seek_avoid

from protogoal.goals.lspi import LSPI, solve

DISCOUNT = 0.95


def chain():
    """Two states; action 0 stays, action 1 changes over; every pair once. The goal: to be in state 1."""
    state, action = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    following = np.where(action == 0, state, 1 - state)
    z = np.eye(2)
    return (z[state], z[following]), action, following[:, None] == 1


def random_problem(seed, n=80, k=5, num_actions=3, goals=7):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, k)), rng.normal(size=(n, k))
    attained = rng.random((n, goals)) < rng.uniform(0.02, 0.9, goals)
    return features, rng.integers(num_actions, size=n), rng.random(n) < 0.1, attained


def test_the_uniform_policy_on_a_two_state_chain_has_the_value_found_on_paper():
    # Under the uniform policy V(0) = (1 + γV(0))/2, so V(0) = 1/(2 − γ). Avoiding: the better action reaches the goal from
    # state 0 only, −γV(0).
    features, action, attained = chain()
    estimator = LSPI(features, action, np.zeros(4, bool), 2, DISCOUNT, 1, 1e-12)
    seek_max, seek_mean, avoid_mean = estimator.values(attained)
    np.testing.assert_allclose([seek_max[0], seek_mean[0], avoid_mean[0]], [1, 1, -DISCOUNT / (2 - DISCOUNT)], atol=1e-9)


def test_the_second_iteration_finds_that_the_chain_can_be_sought_and_avoided_for_certain():
    features, action, attained = chain()
    estimator = LSPI(features, action, np.zeros(4, bool), 2, DISCOUNT, 2, 1e-12)
    seek_max, seek_mean, avoid_mean = estimator.values(attained)
    np.testing.assert_allclose([seek_max[0], seek_mean[0], avoid_mean[0]], [1, 1, 0], atol=1e-9)


def test_a_static_bit_is_sought_and_avoided_alike():
    features, action, _ = chain()
    estimator = LSPI(features, action, np.zeros(4, bool), 2, DISCOUNT, 2, 1e-12)
    _, seek_mean, avoid_mean = estimator.values(np.ones((4, 1), bool))
    np.testing.assert_allclose([seek_mean[0], avoid_mean[0]], [1, -1], atol=1e-9)


@pytest.mark.parametrize("policy_iterations", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_values_equal_the_plain_version_goal_by_goal(seed, policy_iterations):
    features, action, terminated, attained = random_problem(seed)
    fast = LSPI(features, action, terminated, 3, DISCOUNT, policy_iterations, 0.1).values(attained)
    slow = lspi_seek_avoid(features[0], action, features[1], terminated, attained, 3, DISCOUNT, policy_iterations, 0.1)
    for ours, theirs in zip(fast, slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_values_equal_the_plain_version_when_an_action_was_never_taken():
    features, action, terminated, attained = random_problem(1)
    fast = LSPI(features, action, terminated, 5, DISCOUNT, 2, 0.1).values(attained)
    slow = lspi_seek_avoid(features[0], action, features[1], terminated, attained, 5, DISCOUNT, 2, 0.1)
    for ours, theirs in zip(fast, slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


@given(seed=st.integers(0, 10_000), shuffle=st.permutations(range(7)))
@settings(max_examples=20, deadline=None)
def test_permuting_goals_permutes_values(seed, shuffle):
    features, action, terminated, attained = random_problem(seed)
    estimator = LSPI(features, action, terminated, 3, DISCOUNT, 2, 0.1)
    before, after = estimator.values(attained), estimator.values(attained[:, shuffle])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one[list(shuffle)], other, rtol=1e-6, atol=1e-9)


def test_a_singular_system_gives_nan_instead_of_an_error():
    assert np.isnan(solve(np.zeros((2, 2)), np.ones(2))).all()
