"""Segments say what happened, window after window."""

import numpy as np
import pytest
from grids import Corridor

from protogoal.deep.segments import SegmentBuilder, Segments, Sizes, bit_dtype
from protogoal.goals.active import turned_on


def play(env, steps, trace_length, burn_in=0, seed=0, core_shape=(2, 3)):
    """Random actions; returns the segments and the plain list of steps (state, action, BatchStep copied)."""
    rng = np.random.default_rng(seed)
    sizes = Sizes(env.observation_spec, env.num_bits, env.max_active, core_shape)
    builder = SegmentBuilder(sizes, env.num_envs, trace_length, burn_in)
    observation, active = env.reset()
    core = np.zeros((env.num_envs, *core_shape), np.float32)
    builder.start(observation, core)
    segments, plain = [], []
    for t in range(steps):
        action = rng.integers(env.num_actions, size=env.num_envs)
        before = {k: v.copy() for k, v in observation.items()}
        step = env.step(action)
        core = np.full_like(core, t + 1)  # the core's state names the step before which it was
        goal = np.full(env.num_envs, t)
        full = builder.append(action, goal, turned_on(step.final_active, active), step, core)
        plain.append((before, action.copy(), step.reward.copy(), step.terminated.copy(), step.truncated.copy(),
                      step.final_active.copy(), active.copy()))
        observation, active = {k: v.copy() for k, v in step.observation.items()}, step.active.copy()
        if full is not None:
            segments.append(full)
    return segments, plain


@pytest.mark.parametrize("burn_in", [0, 2, 7])
def test_windows_hold_every_transition_in_order(burn_in):
    segments, plain = play(Corridor(length=4, limit=5), 40, trace_length=4, burn_in=burn_in)
    assert len(segments) == (40 - burn_in) // 4
    for k, segment in enumerate(segments):
        assert segment.steps == 4 + burn_in
        for t in range(segment.steps):
            observation, action, reward, terminated, truncated, active, before = plain[4 * k + t]
            assert (segment.observation["cell"][t] == observation["cell"]).all()
            assert (segment.action[t] == action).all()
            assert (segment.reward[t] == reward).all()
            assert (segment.terminated[t] == terminated).all()
            assert (segment.truncated[t] == truncated).all()
            assert (segment.active[t] == active).all()
            assert (segment.turned_on[t] == turned_on(active, before)).all()
            assert (segment.goal[t] == 4 * k + t).all()
            ended = terminated | truncated
            assert (segment.is_first[t + 1] == ended).all()


@pytest.mark.parametrize("burn_in", [0, 3])
def test_a_window_starts_with_the_core_state_and_the_action_of_its_first_state(burn_in):
    segments, plain = play(Corridor(), 30, trace_length=5, burn_in=burn_in)
    for k, segment in enumerate(segments):
        assert (segment.core == 5 * k).all()
        if k:
            assert (segment.previous_action == plain[5 * k - 1][1]).all()
            assert (segment.previous_reward == plain[5 * k - 1][2]).all()


def test_bits_turned_on_are_those_that_were_off_before():
    active = np.array([[3, 5, -1], [1, -1, -1]])
    before = np.array([[5, 9], [2, -1]])
    assert turned_on(active, before).tolist() == [[True, False, False], [True, False, False]]


def test_a_truncated_transition_is_not_valid_and_a_terminated_one_is():
    segments, _plain = play(Corridor(length=3, limit=3), 30, trace_length=10)
    truncated = np.concatenate([s.truncated for s in segments])
    assert truncated.any()
    assert (np.concatenate([s.is_valid for s in segments]) == ~truncated).all()


def test_the_last_steps_of_a_window_begin_after_the_ones_before():
    segment = play(Corridor(), 12, trace_length=4, burn_in=4)[0][0]
    last = segment.last(4)
    assert last.steps == 4
    assert (last.action == segment.action[4:]).all()
    assert last.observation["cell"].shape[0] == 5
    assert (last.previous_action == segment.action[3]).all()
    assert segment.last(8).action is not None
    assert (segment.last(8).previous_action == segment.previous_action).all()


def test_arrays_and_back_is_the_same():
    segment = play(Corridor(), 4, trace_length=4)[0][0]
    again = Segments.from_arrays(segment.arrays())
    for name, array in segment.arrays().items():
        assert (again.arrays()[name] == array).all()


def test_an_unfinished_window_survives_saving():
    env = Corridor()
    one, other = (
        SegmentBuilder(Sizes(env.observation_spec, env.num_bits, 1, (0, 0)), 4, 4) for _ in range(2)
    )
    observation, active = env.reset()
    one.start(observation, np.zeros((4, 0, 0)))
    for t in range(6):
        if t == 2:
            other.load_state_dict(one.state_dict())
        step = env.step(np.ones(4, int))
        came_on = turned_on(step.final_active, active)
        results = [b.append(np.ones(4, int), np.zeros(4, int), came_on, step, np.zeros((4, 0, 0)))
                   for b in ([one, other] if t >= 2 else [one])]
        active = step.active.copy()
        if results[0] is not None:
            for name, array in results[0].arrays().items():
                assert (results[1].arrays()[name] == array).all()


def test_ids_take_16_bits_where_they_can():
    assert bit_dtype(1365) == np.int16
    assert bit_dtype(40_000) == np.int32
