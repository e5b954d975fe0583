"""One function for seek and avoid values: equal columns once, goals that were never attained, chunks, bad input."""

import numpy as np
import pytest

from protogoal.goals import values as module
from protogoal.goals.features import observation_features
from protogoal.goals.values import EstimatorSettings, SeekAvoid, TransitionBatch, seek_avoid_values

SETTINGS = EstimatorSettings(ridge=1.0)


def grid_batch(seed=0, n=200):
    """A random walk on a line of five cells, one-hot; and a sixth bit that is never on."""
    rng = np.random.default_rng(seed)
    place, action = rng.integers(5, size=n), rng.integers(3, size=n)
    following = np.clip(place + action - 1, 0, 4)
    observation, next_observation = np.eye(6)[place], np.eye(6)[following]
    return TransitionBatch(observation, action, next_observation, np.zeros(n, bool), next_observation > 0)


def fields_of(found):
    return found.seek_max, found.seek_mean, found.avoid_mean, found.hits


def test_goals_that_the_batch_never_attains_have_no_values():
    found = seek_avoid_values(grid_batch(), grid_batch().bits, 3, SETTINGS, 0)
    assert found.hits[5] == 0
    assert np.isnan([found.seek_max[5], found.seek_mean[5], found.avoid_mean[5]]).all()
    assert np.isfinite(found.controllability[:5]).all()


def test_equal_columns_have_equal_values_and_are_solved_once(monkeypatch):
    batch = grid_batch()
    solved = []

    class Counting(module.LSPI):
        def values(self, attained):
            solved.append(attained.shape[1])
            return super().values(attained)

    monkeypatch.setattr(module, "LSPI", Counting)
    found = seek_avoid_values(batch, batch.bits[:, [0, 1, 0, 2, 1, 0, 5]], 3, SETTINGS, 0)
    assert sum(solved) == 3
    for values in fields_of(found):
        np.testing.assert_array_equal(values[[0, 0, 1]], values[[2, 5, 4]])


def test_chunks_do_not_change_the_values():
    batch = grid_batch()
    whole = seek_avoid_values(batch, batch.bits, 3, SETTINGS, 0)
    pieces = seek_avoid_values(batch, batch.bits, 3, module.EstimatorSettings(**{**vars(SETTINGS), "goals_at_once": 2}), 0)
    for ours, theirs in zip(fields_of(pieces), fields_of(whole), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_the_same_seed_gives_the_same_values():
    batch = grid_batch()
    one, other = (seek_avoid_values(batch, batch.bits, 3, SETTINGS, 7) for _ in range(2))
    for ours, theirs in zip(fields_of(one), fields_of(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_system_without_a_finite_solution_leaves_its_goal_unknown(monkeypatch):
    class Broken:
        def values(self, attained):
            good = np.full(attained.shape[1], 0.5)
            return good, np.array([np.inf, *good[1:]]), -good

    monkeypatch.setattr(module, "LSPI", lambda *_: Broken())
    batch = grid_batch()
    found = seek_avoid_values(batch, batch.bits, 3, EstimatorSettings(), 0)
    unknown = np.isnan(found.controllability[:5])
    assert unknown.sum() == 1
    assert np.isnan(found.seek_max[:5][unknown]).all()


def test_scatter_puts_values_where_they_belong_and_knows_nothing_of_the_others():
    some = SeekAvoid(np.array([0.9]), np.array([0.8]), np.array([-0.1]), np.array([3]))
    whole = some.scatter(np.array([2]), 4)
    assert whole.hits.tolist() == [0, 0, 3, 0]
    np.testing.assert_array_equal(np.isnan(whole.seek_mean), [True, True, False, True])
    np.testing.assert_allclose(whole.controllability[2], 0.7)


# --- features -----------------------------------------------------------------------------------------------------


def test_a_small_observation_is_used_whole_without_what_never_changes():
    observation = np.array([[0, 7, 1.0], [1, 7, 0]])
    z, z_next = observation_features(observation, observation[::-1], 2, 10, np.random.default_rng(0))
    np.testing.assert_array_equal(z, [[0, 1, 1], [1, 0, 1]])
    np.testing.assert_array_equal(z_next, z[::-1])


def test_the_unit_of_an_observation_does_not_matter():
    observation = np.random.default_rng(0).integers(0, 200, size=(20, 6))
    for whole_up_to in (0, 10):
        bytes_, _ = observation_features(observation, observation, 3, whole_up_to, np.random.default_rng(1))
        floats, _ = observation_features(observation / 7.0, observation / 7.0, 3, whole_up_to, np.random.default_rng(1))
        np.testing.assert_allclose(bytes_, floats)


def test_a_large_observation_is_projected_by_chance():
    observation = np.random.default_rng(0).normal(size=(30, 50))
    first, second = (observation_features(observation, observation[::-1], 8, 49, np.random.default_rng(seed)) for seed in (1, 2))
    assert first[0].shape == (30, 9)
    np.testing.assert_array_equal(first[0][:, -1], 1)
    np.testing.assert_allclose(first[0], first[1][::-1])
    assert not np.allclose(first[0], second[0])


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observation": np.full((200, 6), np.nan)}, "observation has NaN"),
        ({"observation": np.zeros((200, 5))}, r"must both be \[n, D\]"),
        ({"action": np.zeros(3, int)}, r"action has shape \(3,\), must be \(200,\)"),
        ({"terminated": np.zeros((200, 1), bool)}, "terminated has shape"),
        ({"bits": np.zeros((5, 6), bool)}, r"bits has shape \(5, 6\), must be \[200, B\]"),
        ({"bits": None, "active": np.zeros((5, 6), int)}, r"active has shape \(5, 6\), must be \[200, L\]"),
        ({"bits": None}, "either bits or active"),
    ],
)
def test_a_batch_that_does_not_fit_together_is_refused(change, message):
    batch = grid_batch()
    arrays = {name: getattr(batch, name) for name in ("observation", "action", "next_observation", "terminated", "bits")}
    with pytest.raises(ValueError, match=message):
        TransitionBatch(**{**arrays, **change})


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="at least one transition"):
        TransitionBatch(np.zeros((0, 2)), np.zeros(0, int), np.zeros((0, 2)), np.zeros(0, bool), np.zeros((0, 2), bool))


def test_actions_and_attainments_that_do_not_fit_are_refused():
    batch = grid_batch()
    with pytest.raises(ValueError, match=r"actions reach from 0 to 2, must be in \[0, 2\)"):
        seek_avoid_values(batch, batch.bits, 2, EstimatorSettings(), 0)
    with pytest.raises(ValueError, match=r"attained is bool\[3, 2\], must be bool\[200, G\]"):
        seek_avoid_values(batch, np.zeros((3, 2), bool), 3, EstimatorSettings(), 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [("discount", 1.0), ("projections", 0), ("ridge", 0.0), ("policy_iterations", 0), ("whole_up_to", -1), ("goals_at_once", 0)],
)
def test_settings_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"EstimatorSettings.{field} must be"):
        EstimatorSettings(**{field: value})
