import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.goal_sets import make_goal_set
from reference.goals import candidate_probabilities

from protogoal.goals.goal_set import GoalSet
from protogoal.goals.selection import select
from protogoal.goals.strategies import STRATEGIES, draw_candidates
from protogoal.goals.table import TASK

NOWHERE = np.full((500, 1), -1)  # states in which nothing is on


def paper(k, num_candidates=50, **fields):
    plain = {"strategy": "paper", "p_task": 0.0, "num_candidates": num_candidates}
    return make_goal_set(np.arange(k), timescale=np.full(k, 0.5), num_buckets=1, **plain | fields)


def test_candidates_are_drawn_bucket_by_bucket_in_proportion_to_novelty():
    goals = make_goal_set(np.arange(7), [1, 4, 9, 16, 25, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], num_buckets=3)
    drawn = draw_candidates(goals, 40_000, 3, np.random.default_rng(0))
    shares = np.bincount(drawn.ravel(), minlength=7) / drawn.size
    np.testing.assert_allclose(shares, candidate_probabilities(goals.novelty.tolist(), goals.bucket.tolist()), atol=0.01)
    assert (goals.bucket[drawn] == goals.bucket[drawn[:, :1]]).all()  # one bucket a state


def test_the_most_reachable_of_the_candidates_is_chosen():
    value = np.array([0.2, 0.9, 0.4])
    chosen = select(paper(3), lambda rows, p: value[p], NOWHERE, np.random.default_rng(0))
    assert set(chosen.tolist()) == {1}


def test_competence_stands_beside_values():
    value = np.array([0.2, 0.9, 0.4])  # 0.2, 0.09, 0.12
    goals = paper(3, competence=np.array([1.0, 0.1, 0.3]))
    assert set(select(goals, lambda rows, p: value[p], NOWHERE, np.random.default_rng(0)).tolist()) == {0}


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_goals_attained_where_the_agent_stands_are_not_offered(strategy):
    members = np.array([[0, -1], [1, -1], [2, 5]], np.int32)
    goals = paper(3, members=members, slots=members, strategy=strategy)

    def chosen(*on):
        active = np.tile([*on, -1], (200, 1))
        return set(select(goals, lambda rows, p: np.ones(p.shape), active, np.random.default_rng(0)).tolist())

    assert chosen(7) <= {0, 1, 2}
    assert 1 not in chosen(1)
    assert 2 not in chosen(5, 2)  # both of its bits are on
    assert chosen(0, 1, 5) == {2}  # one of them only
    assert chosen(5, 0, 2, 1) == {TASK}


@given(p_task=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
@settings(deadline=None)
def test_the_task_is_followed_with_its_probability(p_task):
    goals = make_goal_set(np.arange(5), p_task=p_task)
    chosen = select(goals, lambda rows, p: np.zeros(p.shape), np.full((20_000, 1), -1), np.random.default_rng(1))
    assert (chosen == TASK).mean() == pytest.approx(p_task, abs=0.02)


def test_an_empty_goal_set_means_the_task():
    chosen = select(GoalSet.empty(), lambda rows, p: np.zeros(p.shape), NOWHERE[:1], np.random.default_rng(0))
    assert chosen.tolist() == [TASK]


def test_values_are_asked_only_for_the_rows_that_need_them():
    seen = []

    def values(rows, positions):
        seen.append((len(rows), positions.shape))
        return np.ones(positions.shape)

    select(paper(2, num_candidates=4), values, NOWHERE[:8], np.random.default_rng(0))
    assert seen == [(8, (8, 4))]
    seen.clear()
    chosen = select(paper(2, num_candidates=4, p_task=0.5), values, NOWHERE, np.random.default_rng(0))
    assert seen[0][0] == (chosen != TASK).sum()


def test_values_may_be_a_matrix_and_bits_dense():
    value, bits = np.array([[0.2, 0.9, 0.4]] * 500), np.zeros((500, 3), bool)
    bits[:250, 1] = True
    chosen = select(paper(3), value, bits, np.random.default_rng(0))
    assert set(chosen[:250].tolist()) == {2}
    assert set(chosen[250:].tolist()) == {1}
    with pytest.raises(ValueError, match=r"a column for each of the 3 goals on offer; got shape \(500, 2\)"):
        select(paper(3), value[:, :2], bits, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"ids \[n, L\]; got float64"):
        select(paper(3), value, bits.astype(float), np.random.default_rng(0))
