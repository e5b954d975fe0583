import json

import numpy as np
import pytest

from protogoal.goals import TASK, CounterThresholds, PGESettings, ProtoGoalEvaluator, SeekAvoid, TransitionBatch, Verdict
from protogoal.goals.desirability import desirability


def corridor(n=1500, cells=6, seed=0):
    """A walk in a corridor beside a lamp that flickers: bits are the cells, the lamp, and one bit that never lights."""
    rng = np.random.default_rng(seed)
    state = np.zeros((n + 1, cells + 2), bool)
    place, action = 0, rng.integers(2, size=n)
    state[0, 0] = True
    for t in range(n):
        place = int(np.clip(place + 2 * action[t] - 1, 0, cells - 1))
        state[t + 1, place] = True
        state[t + 1, cells] = rng.random() < 0.5
    return TransitionBatch(state[:-1].astype(np.float32), action, state[1:].astype(np.float32), np.zeros(n, bool), state[1:])


@pytest.fixture
def evaluator():
    pge = ProtoGoalEvaluator(8, num_actions=2, seed=3)
    batch = corridor()
    pge.observe(batch.bits, np.zeros(len(batch.action)))
    return pge, batch


def test_cells_are_offered_and_the_lamp_and_the_unseen_are_pruned(evaluator):
    pge, batch = evaluator
    goals = pge.refresh(batch)
    assert set(goals.ids.tolist()) == set(range(6))
    assert [Verdict(v) for v in pge.verdict] == [Verdict.PLAUSIBLE] * 6 + [Verdict.UNCONTROLLABLE, Verdict.UNOBSERVED]
    assert goals.version == 1
    assert "not controllable" in pge.explain(6)
    assert "never observed" in pge.explain(7)


def test_with_pruning_off_the_draw_is_desirability_alone(evaluator):
    _pge, batch = evaluator
    reward = np.zeros(len(batch.action))
    other = ProtoGoalEvaluator(8, 2, PGESettings(prune=False, goal_set_size=100_000), seed=3)
    other.observe(batch.bits, reward)
    other.refresh(batch)
    assert set(other.goal_set.ids.tolist()) == set(range(8))  # what was never seen too
    wanted = desirability(other.table.count, other.table.reward_mean)
    np.testing.assert_allclose(np.sort(other.goal_set.novelty), np.sort(wanted))


def test_a_goal_absent_from_the_batch_stays_plausible_once_it_was_observed(evaluator):
    pge, batch = evaluator
    pge.observe(np.eye(8, dtype=bool)[7:], [0.0])
    pge.refresh(batch)
    assert pge.verdict[7] == Verdict.UNSAMPLED
    assert 7 in pge.goal_set.ids
    assert "optimism" in pge.explain(7)


def test_mastered_goals_are_recombined_and_face_the_same_test(evaluator):
    pge, batch = evaluator
    pge.refresh(batch)
    pge.record_pursuit(np.repeat(np.arange(6), 10), np.ones(60, bool))
    assert pge.mastered[:6].all()
    for _ in range(10):
        pge.refresh(batch)
    assert pge.table.size > 8
    assert len(pge.verdict) == len(pge.values.hits) == pge.table.size
    assert (pge.verdict[8:] == Verdict.UNOBSERVED).all()  # nobody is in two cells at once
    assert pge.name(8) == " AND ".join(f"bit {i}" for i in pge.table.members(8))


def test_tabular_values_take_the_same_path():
    pge = ProtoGoalEvaluator(CounterThresholds({"gold": [1, 2, 3]}), 4)
    pge.observe(np.ones((4, 3), bool), np.zeros(4))
    values = SeekAvoid(np.array([0.9, 0.4, 0.9]), np.array([0.8, 0.3, 0.5]), np.array([-0.1, -0.1, -0.45]), np.array([5, 5, 5]))
    pge.refresh_values(values)
    assert [Verdict(v).name for v in pge.verdict] == ["PLAUSIBLE", "UNREACHABLE", "UNCONTROLLABLE"]
    assert pge.name(0) == "gold ≥ 1"
    with pytest.raises(ValueError, match="the table has 3"):
        pge.refresh_values(SeekAvoid(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2, int)))


def test_select_takes_a_matrix_or_a_function(evaluator):
    pge, batch = evaluator
    rng = np.random.default_rng(0)
    assert pge.select(np.empty((2, 0)), rng).tolist() == [TASK, TASK]  # before the first refresh
    k = len(pge.refresh(batch))
    assert pge.select(np.ones((50, k)), rng).shape == (50,)
    chosen = pge.select(lambda rows, positions: np.ones(positions.shape), rng, batch.bits[:50])
    on = chosen != TASK
    assert not batch.bits[:50][on, chosen[on]].any()
    with pytest.raises(ValueError, match="one column for each"):
        pge.select(np.ones((2, k + 1)), rng)
    with pytest.raises(ValueError, match="needs the states' bits"):
        pge.select(lambda rows, positions: np.ones(positions.shape), rng)


def test_state_round_trip_continues_to_the_bit(evaluator):
    pge, batch = evaluator
    pge.refresh(batch)
    pge.record_pursuit(np.repeat(np.arange(6), 10), np.ones(60, bool))
    pge.refresh(batch)
    state = pge.state_dict()
    json.dumps(state, default=lambda x: x.tolist())  # plain arrays and JSON, nothing else
    other = ProtoGoalEvaluator(8, num_actions=2, seed=99)
    other.load_state_dict(state)
    for _ in range(3):
        pge.refresh(batch)
        other.refresh(batch)
    np.testing.assert_array_equal(pge.goal_set.ids, other.goal_set.ids)
    np.testing.assert_array_equal(pge.verdict, other.verdict)
    for name, array in pge.snapshot().items():
        np.testing.assert_array_equal(array, other.snapshot()[name])


@pytest.mark.parametrize(("field", "value"), [
    ("reachability_threshold", 1.5), ("controllability_threshold", -0.1), ("p_task", 2.0), ("goal_set_size", 0),
    ("num_buckets", 0), ("mastery_threshold", 1.1), ("batch_size", 1), ("recombinations", -1),
])
def test_settings_out_of_range_name_the_field(field, value):
    with pytest.raises(ValueError, match=field):
        PGESettings(**{field: value})
