"""Replay gives back what was put in, forgets the oldest, and prefers the rare where asked to."""

import numpy as np
import pytest
from grids import Corridor
from test_segments import play

from protogoal.deep.replay import Replay, replay_bytes
from protogoal.deep.settings import ReplaySettings
from protogoal.envs.vector import ArraySpec, dense_bits


def filled(env=None, steps=40, settings=None, seed=0):
    env = env or Corridor()
    settings = settings or ReplaySettings(capacity=1000, trace_length=4)
    segments, plain = play(env, steps, settings.trace_length, settings.burn_in, seed)
    replay = Replay(env.observation_spec, env.num_bits, env.max_active, (2, 3), settings)
    for segment in segments:
        replay.add(segment)
    return replay, segments, plain


@pytest.mark.parametrize("kind", ["active", "planes", "vector", "characters"])
def test_segments_come_back_as_they_went_in(kind):
    replay, segments, _ = filled(Corridor(kind=kind))
    for k, segment in enumerate(segments):
        n = segment.size
        back = replay.read(np.arange(k * n, (k + 1) * n))
        for name, array in segment.arrays().items():
            assert back.arrays()[name].dtype == array.dtype
            assert (back.arrays()[name] == array).all(), name


def test_the_oldest_make_room():
    env = Corridor(num_envs=4)
    replay, _segments, _ = filled(env, 40, ReplaySettings(capacity=24, trace_length=4))  # six segments
    assert (replay.capacity, replay.size, replay.added) == (6, 6, 40)
    stored = {tuple(row) for row in np.moveaxis(replay.read(np.arange(6)).goal, 1, 0).tolist()}
    assert stored == {(36, 37, 38, 39), (32, 33, 34, 35)}  # the last two windows; two of the four of the older one


def test_more_segments_than_places_keep_the_last():
    env = Corridor(num_envs=4)
    replay, _, _ = filled(env, 4, ReplaySettings(capacity=12, trace_length=4))
    assert replay.size == 3


def test_uniform_sampling_reaches_everything():
    replay, _, _ = filled()
    drawn = replay.draw(4000, np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=replay.size)
    assert counts.min() > 0.5 * 4000 / replay.size


def test_the_novelty_share_prefers_what_rarely_turned_on():
    env = Corridor(length=12, limit=30)
    share = ReplaySettings(capacity=10_000, trace_length=4, novelty_share=0.5, novelty_exponent=1.0)
    replay, segments, _ = filled(env, 400, share)
    cells = np.concatenate([np.where(s.turned_on, s.active, -1)[..., 0] for s in segments], 1)  # [T, segments]
    times = np.bincount(cells[cells >= 0], minlength=12)
    rarest = int(np.flatnonzero(times > 0)[times[times > 0].argmin()])
    has_rarest = (cells == rarest).any(0)
    drawn = replay.draw(2000, np.random.default_rng(0))
    uniform, novel = has_rarest[drawn[:1000]].mean(), has_rarest[drawn[1000:]].mean()
    assert novel > 3 * uniform


def test_novelty_weights_by_hand():
    replay, segments, _ = filled(settings=ReplaySettings(capacity=1000, trace_length=4, novelty_exponent=0.5))
    weights = replay.novelty_weights()
    times = np.zeros(replay.num_bits + 1)
    for s in segments:
        for t, n in np.argwhere(s.turned_on[..., 0]):
            times[s.active[t, n, 0]] += 1
        times[-1] += (s.reward != 0).sum()
    last = segments[-1]  # chosen with final counts
    for n in range(last.size):
        happened = [last.active[t, n, 0] for t in range(4) if last.turned_on[t, n, 0]]
        happened += [replay.num_bits] * int((last.reward[:, n] != 0).any())
        expected = max((times[i] ** -0.5 for i in happened), default=0.0)
        assert weights[replay.size - last.size + n] == pytest.approx(expected)


def test_transitions_for_the_evaluator_match_the_steps():
    env = Corridor(kind="planes", length=5, limit=7)
    replay, _, _plain = filled(env, 200)
    batch = replay.sample_transitions(300, np.random.default_rng(0))
    assert 200 < len(batch.action) <= 300
    cell, after = batch.observation.argmax(1), batch.bits.argmax(1)
    moved = np.clip(cell + np.where(batch.action == 1, 1, -1), 0, 4)
    assert (after == moved).all()
    assert (batch.terminated == (after == 4)).all()
    goes_on = ~batch.terminated
    assert (batch.next_observation.argmax(1)[goes_on] == after[goes_on]).all()


def test_one_transition_can_be_drawn_though_some_are_truncated():
    replay, _, _plain = filled(Corridor(length=50, limit=4), 200)  # a quarter of them are
    rng = np.random.default_rng(0)
    assert all(len(replay.sample_transitions(1, rng).action) == 1 for _ in range(200))


def test_a_million_transitions_of_the_largest_baba_level_take_less_than_a_gigabyte():
    spec = {"planes": ArraySpec((7, 13, 15), np.dtype(np.uint8), "planes")}
    settings = ReplaySettings(capacity=1_000_000, trace_length=10)
    assert replay_bytes(spec, 1365, 8, (2, 512), settings) < 1e9
    small = ReplaySettings(capacity=10_000, trace_length=10)
    assert Replay(spec, 1365, 8, (2, 512), small).nbytes == replay_bytes(spec, 1365, 8, (2, 512), small)


def test_saving_and_loading_changes_nothing():
    settings = ReplaySettings(capacity=60, trace_length=4, novelty_share=0.5)
    replay, _, _ = filled(settings=settings)
    env = Corridor()
    other = Replay(env.observation_spec, env.num_bits, env.max_active, (2, 3), settings)
    other.load_state_dict(replay.state_dict())
    one, two = (r.sample(8, np.random.default_rng(1)) for r in (replay, other))
    for name, array in one.arrays().items():
        assert (two.arrays()[name] == array).all()
    with pytest.raises(ValueError, match="does not fit"):
        Replay(env.observation_spec, env.num_bits, 1, (2, 3), ReplaySettings(capacity=8, trace_length=4)).load_state_dict(
            replay.state_dict()
        )


def test_an_empty_replay_cannot_be_sampled():
    env = Corridor()
    with pytest.raises(ValueError, match="empty"):
        Replay(env.observation_spec, env.num_bits, 1, (0, 0), ReplaySettings()).sample(1, np.random.default_rng(0))


def test_dense_bits_puts_padding_nowhere():
    assert dense_bits(np.array([[0, 2, -1], [-1, -1, -1]]), 3).tolist() == [[True, False, True], [False] * 3]
