"""The default estimator of seek and avoid values: chains solved on paper, the plain version, and what noise may not do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.crossfit import crossfit_seek_avoid

from protogoal.goals.crossfit import Crossfit, CrossfitSettings, _contrasts, _reliability, _ridge_map

SETTINGS = CrossfitSettings(
    discount=0.95, ridge=0.01, action_ridge=0.3, trial_iterations=6, iterations=8, significance=2.0, min_evidence=8.0
)


def estimator(features, action, terminated, num_actions, settings=SETTINGS, seed=0):
    order = np.random.default_rng(seed).permutation(len(action))
    return Crossfit(features, action, terminated, num_actions, settings, order), order


def random_problem(seed, n=60, k=4, num_actions=3, goals=6):
    rng = np.random.default_rng(seed)
    features = [(rng.normal(size=(n, k)), rng.normal(size=(n, k))) for _ in range(3)]
    action = rng.integers(num_actions, size=n)
    attained = rng.random((n, goals)) < rng.uniform(0.02, 0.9, goals)
    attained[:, 0] = action == 0  # one goal that actions decide
    return features, action, rng.random(n) < 0.1, attained


def walk(states, copies):
    """A line of states, actions left and right, walls at the ends; every pair `copies` times. Bits: one a state, and static."""
    state, action = (x.ravel() for x in np.meshgrid(np.arange(states), [0, 1], indexing="ij"))
    state, action = np.tile(state, copies), np.tile(action, copies)
    following = np.clip(state + 2 * action - 1, 0, states - 1)
    z = np.concatenate([np.eye(states), np.ones((states, 1))], axis=1)
    attained = np.concatenate([np.eye(states, dtype=bool)[following], np.ones((len(state), 1), bool)], axis=1)
    return [(z[state], z[following])] * 3, action, attained


def test_a_line_of_three_states_has_the_values_found_on_paper():
    # Seeking the right end from states 0, 1, 2 takes 2, 1, 1 steps: V = γ, 1, 1. It is avoided by going left: V = 0 from
    # all, as even at the end the next step can lead away. The middle: 1 step from the ends, 2 from itself (there and back):
    # V = 1, γ, 1; it is avoided by staying at a wall.
    features, action, attained = walk(3, 400)
    values, _ = estimator(features, action, np.zeros(len(action), bool), 2)
    seek_max, seek_mean, avoid_mean = values.values(attained)
    near = (2 + 0.95) / 3
    np.testing.assert_allclose(seek_mean, [near, near, near, 1], atol=0.01)
    np.testing.assert_allclose(seek_max, [1, 1, 1, 1], atol=0.01)
    np.testing.assert_allclose(avoid_mean, [0, 0, 0, -1], atol=0.03)


def test_the_end_of_an_episode_ends_the_way_to_a_goal():
    # The same line, but arriving in the middle ends the episode: from 0 the right end is out of reach now.
    features, action, attained = walk(3, 400)
    values, _ = estimator(features, action, attained[:, 1], 2)
    _, seek_mean, _ = values.values(attained)
    np.testing.assert_allclose(seek_mean[2], (0 + 1 + 1) / 3, atol=0.01)


def test_reliability_follows_its_formula():
    # slope ½ with t = 4: ½·(1 − (2/4)²) = 3/8; slope 2 counts as 1; t = 1 and t < 0 are not significant.
    product, square, error = np.array([4.0, 4, 1, -9]), np.array([8.0, 2, 1, 1]), np.array([1.0, 1, 1, 1])
    np.testing.assert_allclose(_reliability(product, square, error, 2.0), [3 / 8, 3 / 4, 0, 0])
    assert _reliability(np.zeros(1), np.zeros(1), np.zeros(1), 2.0) == 0


@pytest.mark.parametrize("num_actions", [1, 2, 5])
def test_contrasts_sum_to_zero_and_are_orthonormal(num_actions):
    effects = _contrasts(num_actions)[:, 1:]
    np.testing.assert_allclose(effects.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(effects.T @ effects, np.eye(num_actions - 1), atol=1e-12)


def test_the_ridge_map_is_the_same_from_either_side():
    rng = np.random.default_rng(0)
    phi, penalty = rng.normal(size=(12, 7)), rng.uniform(0.1, 2, 7)
    direct = np.linalg.solve(phi.T @ phi + np.diag(penalty), phi.T)
    np.testing.assert_allclose(_ridge_map(phi, penalty), direct, atol=1e-10)
    wide = phi[:4]
    np.testing.assert_allclose(
        _ridge_map(wide, penalty), np.linalg.solve(wide.T @ wide + np.diag(penalty), wide.T), atol=1e-10
    )


@pytest.mark.parametrize("seed", range(5))
def test_values_equal_the_plain_version_goal_by_goal(seed):
    features, action, terminated, attained = random_problem(seed)
    fast, order = estimator(features, action, terminated, 3)
    slow = crossfit_seek_avoid(features, action, terminated, attained, 3, SETTINGS, order)
    for ours, theirs in zip(fast.values(attained), slow, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_values_equal_the_plain_version_with_more_features_than_transitions():
    features, action, terminated, attained = random_problem(3, n=40, k=25)
    fast, order = estimator(features, action, terminated, 3)
    slow = crossfit_seek_avoid(features, action, terminated, attained, 3, SETTINGS, order)
    for ours, theirs in zip(fast.values(attained), slow, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


@given(seed=st.integers(0, 10_000), shuffle=st.permutations(range(6)))
@settings(max_examples=20, deadline=None)
def test_permuting_goals_permutes_values(seed, shuffle):
    features, action, terminated, attained = random_problem(seed)
    fast, _ = estimator(features, action, terminated, 3)
    before, after = fast.values(attained), fast.values(attained[:, shuffle])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one[list(shuffle)], other, atol=1e-5)


@given(seed=st.integers(0, 10_000), num_actions=st.integers(1, 4), n=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_values_are_probabilities_whatever_the_data(seed, num_actions, n):
    features, action, terminated, attained = random_problem(seed, n=n, num_actions=num_actions)
    fast, _ = estimator(features, action, terminated, num_actions)
    seek_max, seek_mean, avoid_mean = fast.values(attained)
    for values in (seek_max, seek_mean, -avoid_mean[~np.isnan(avoid_mean)]):
        assert ((values >= 0) & (values <= 1 + 1e-6)).all()


@pytest.mark.parametrize("seed", range(5))
def test_bits_that_light_up_at_random_are_not_controllable_and_cells_are(seed):
    rng = np.random.default_rng(seed)
    n, cells, noisy = 1024, 6, 20
    place = rng.integers(cells, size=n)
    action = rng.integers(2, size=n)
    following = np.clip(place + 2 * action - 1, 0, cells - 1)
    noise, next_noise = rng.random((2, n, noisy)) < 0.1
    z, z_next = (np.c_[np.eye(cells)[p], lit, np.ones(n)] for p, lit in ((place, noise), (following, next_noise)))
    attained = np.concatenate([np.eye(cells, dtype=bool)[following], next_noise], axis=1)
    fast, _ = estimator([(z, z_next)] * 3, action, np.zeros(n, bool), 2)
    _, seek_mean, avoid_mean = fast.values(attained)
    control = seek_mean + avoid_mean
    assert control[:cells].min() > 0.5
    assert np.mean(control[cells:]) < 0.02
    assert np.mean(control[cells:] > 0.1) <= 0.1


def test_a_clock_is_not_controllable_though_it_is_attained_rarely():
    n, hours = 1000, 50
    hour = np.arange(n) % hours
    z = np.eye(hours)
    features = np.c_[z[hour], np.ones(n)], np.c_[z[(hour + 1) % hours], np.ones(n)]
    action = np.random.default_rng(0).integers(3, size=n)
    fast, _ = estimator([features] * 3, action, np.zeros(n, bool), 3)
    _, seek_mean, avoid_mean = fast.values(z[(hour + 1) % hours] > 0)
    np.testing.assert_allclose(seek_mean + avoid_mean, 0, atol=0.05)


def test_a_goal_with_too_few_events_is_undecided_unless_every_goal_must_be_decided():
    rng = np.random.default_rng(0)
    n = 400
    z = np.c_[rng.random((2, n, 3)) < 0.5].astype(float)
    features, action = (np.c_[z[0], np.ones(n)], np.c_[z[1], np.ones(n)]), rng.integers(2, size=n)
    attained = np.zeros((n, 2), bool)
    attained[rng.choice(n, 3, replace=False), 0] = True  # three events out of the blue
    attained[:, 1] = True  # static
    undecided, _ = estimator([features] * 3, action, np.zeros(n, bool), 2)
    assert np.isnan(undecided.values(attained)[2]).tolist() == [True, False]
    decided, _ = estimator([features] * 3, action, np.zeros(n, bool), 2, CrossfitSettings(0.95, 0.01, 0.3, 6, 8, 2.0, 0.0))
    assert not np.isnan(decided.values(attained)[2]).any()
