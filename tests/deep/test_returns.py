"""Targets against the slow versions, hand-worked cases and the reductions between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.returns import n_step, peng, retrace

from protogoal.deep import returns
from protogoal.deep.returns import h, h_inverse


def multi_step_targets(kind, q_online, q_target, **rest):
    """Targets from values of all T + 1 states."""
    return returns.multi_step_targets(kind, q_online=q_online[1:], q_target=q_target[1:], **rest)


def random_segment(seed, steps=7, batch=3, actions=4, goals=5, invalid=0.15):
    rng = np.random.default_rng(seed)
    return {
        "reward": rng.random((steps, batch, goals), np.float32),
        "discount": (rng.random((steps, batch, goals)) * (rng.random((steps, batch, goals)) > 0.2)).astype(np.float32),
        "action": rng.integers(0, actions, (steps, batch)),
        "is_valid": rng.random((steps, batch)) > invalid,
        "q_online": rng.normal(size=(steps + 1, batch, actions, goals)).astype(np.float32),
        "q_target": rng.normal(size=(steps + 1, batch, actions, goals)).astype(np.float32),
    }


def each_goal(segment):
    _, batch, goals = segment["reward"].shape
    for n in range(batch):
        for g in range(goals):
            yield n, g, {
                "reward": segment["reward"][:, n, g],
                "discount": segment["discount"][:, n, g],
                "is_valid": segment["is_valid"][:, n],
                "q_online": segment["q_online"][:, n, :, g],
                "q_target": segment["q_target"][:, n, :, g],
            }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["retrace", "peng", "nstep"])
def test_targets_equal_the_slow_version_on_random_segments(kind, seed):
    segment = random_segment(seed)
    targets = multi_step_targets(kind, **segment, trace_lambda=0.8, n_steps=3)
    for n, g, one in each_goal(segment):
        for t in np.flatnonzero(one["is_valid"]):
            if kind == "retrace":
                slow = retrace(t, action=segment["action"][:, n], trace_lambda=0.8, **one)
            elif kind == "peng":
                slow = peng(t, trace_lambda=0.8, **one)
            else:
                slow = n_step(t, 3, **one)
            assert targets[t, n, g] == pytest.approx(slow, abs=1e-5)


def test_retrace_of_a_greedy_segment_worked_by_hand():
    # Two steps to the goal, γ = 0.5, all values 0 but Q(s_2, ·); the second action is greedy, so λ = 1 looks through.
    shape = (2, 1, 1)
    q = np.zeros((3, 1, 2, 1), np.float32)
    q[1, 0, 1, 0] = 0.1  # action 1 is greedy in s_1
    arguments = {
        "reward": np.array([0.0, 1.0], np.float32).reshape(shape),
        "discount": np.array([0.5, 0.0], np.float32).reshape(shape),
        "is_valid": np.ones((2, 1), bool),
        "q_online": q,
        "q_target": q,
    }
    greedy = multi_step_targets("retrace", action=np.array([[0], [1]]), trace_lambda=1.0, **arguments)
    other = multi_step_targets("retrace", action=np.array([[0], [0]]), trace_lambda=1.0, **arguments)
    assert greedy[:, 0, 0] == pytest.approx([0.5, 1.0])  # 0 + 0.5·1
    assert other[:, 0, 0] == pytest.approx([0.05, 1.0])  # cut: 0 + 0.5·0.1


@pytest.mark.parametrize("kind", ["retrace", "peng"])
def test_lambda_zero_is_one_step_double_q_learning(kind):
    segment = random_segment(5)
    assert multi_step_targets(kind, **segment, trace_lambda=0.0) == pytest.approx(
        multi_step_targets("nstep", **segment, n_steps=1), abs=1e-6
    )


def test_no_reward_passes_an_invalid_transition():
    segment = random_segment(1, invalid=0.0)
    segment["is_valid"][3] = False
    for kind in ("retrace", "peng", "nstep"):
        before = multi_step_targets(kind, **segment)
        changed = dict(segment, reward=segment["reward"].copy())
        changed["reward"][3:] += 100.0
        assert (multi_step_targets(kind, **changed)[:3] == before[:3]).all()


def test_nothing_flows_past_a_discount_of_zero():
    segment = random_segment(2, invalid=0.0)
    segment["discount"][2] = 0.0
    for kind in ("retrace", "peng", "nstep"):
        assert (multi_step_targets(kind, **segment)[2] == segment["reward"][2]).all()


def test_an_unknown_kind_and_wrong_shapes_are_refused():
    segment = random_segment(0)
    with pytest.raises(ValueError, match="retrace, peng, nstep"):
        multi_step_targets("td", **segment)
    with pytest.raises(ValueError, match="q_online must have shape"):
        multi_step_targets("peng", **dict(segment, q_online=segment["q_online"][:-1]))


@pytest.mark.parametrize("kind", ["retrace", "peng", "nstep"])
def test_squashed_values_are_stretched_where_they_are_used(kind):
    segment = random_segment(4)
    stretched = dict(segment, q_target=h_inverse(segment["q_target"]))
    assert (multi_step_targets(kind, **segment, is_squashed=True) == multi_step_targets(kind, **stretched)).all()


@given(st.floats(-1e4, 1e4))
def test_h_inverse_undoes_h(x):
    assert h_inverse(h(np.array([x])))[0] == pytest.approx(x, abs=1e-6, rel=1e-6)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_h_keeps_order_and_is_odd(x, y):
    hx, hy = h(np.array([x, y]))
    assert (hx < hy) == (x < y) or abs(x - y) < 1e-9
    assert h(np.array([-x]))[0] == -hx


def test_h_by_hand():
    assert h(np.array([3.0]))[0] == pytest.approx(1.003)  # √4 − 1 + 0.003
    assert h_inverse(np.array([1.003]))[0] == pytest.approx(3.0)
