"""Replay gives back what was put in, forgets the oldest, and prefers the rare where asked to."""

from dataclasses import replace

import numpy as np
import pytest
from grids import Corridor
from test_segments import play

from protogoal.agents.blueprint import can_learn
from protogoal.config import DeepConfig
from protogoal.deep.replay import OFTEN, REWARD_SHARE, Replay, replay_bytes
from protogoal.deep.segments import Segments, Sizes
from protogoal.deep.settings import ReplaySettings
from protogoal.envs.vector import ArraySpec
from protogoal.goals.active import dense_bits


def filled(env=None, steps=40, settings=None, seed=0):
    env = env or Corridor()
    settings = settings or ReplaySettings(capacity=1000, trace_length=4)
    segments, plain = play(env, steps, settings.trace_length, settings.burn_in, seed)
    replay = Replay(Sizes(env.observation_spec, env.num_bits, env.max_active, (2, 3)), settings)
    for segment in segments:
        replay.add(segment)
    return replay, segments, plain


@pytest.mark.parametrize("kind", ["active", "planes", "vector", "characters"])
def test_segments_come_back_as_they_went_in(kind):
    replay, segments, _ = filled(Corridor(kind=kind))
    for k, segment in enumerate(segments):
        n = segment.size
        back = replay.read(np.arange(k * n, (k + 1) * n), np.ones(n, np.float32))
        for name, array in segment.arrays().items():
            assert back.arrays()[name].dtype == array.dtype
            assert (back.arrays()[name] == array).all(), name


def test_the_oldest_make_room():
    env = Corridor(num_envs=4)
    replay, _segments, _ = filled(env, 40, ReplaySettings(capacity=24, trace_length=4))  # six segments
    assert (replay.capacity, replay.size, replay.added) == (6, 6, 40)
    stored = {tuple(row) for row in np.moveaxis(replay.read(np.arange(6), np.ones(6, np.float32)).goal, 1, 0).tolist()}
    assert stored == {(36, 37, 38, 39), (32, 33, 34, 35)}  # the last two windows; two of the four of the older one


def test_more_segments_than_places_keep_the_last():
    env = Corridor(num_envs=4)
    replay, _, _ = filled(env, 4, ReplaySettings(capacity=12, trace_length=4))
    assert replay.size == 3


@pytest.mark.parametrize("capacity", [12, 13, 15])
def test_a_full_replay_is_enough_to_learn_from(capacity):
    settings = ReplaySettings(capacity=capacity, trace_length=4)
    replay, _, _ = filled(Corridor(num_envs=4), 40, settings)
    config = DeepConfig(replay=settings)
    assert replay.transitions == 12 < config.learner.min_replay
    assert can_learn(config, replay.transitions)
    assert not can_learn(config, replay.transitions - 4)


def test_uniform_sampling_reaches_everything():
    replay, _, _ = filled()
    drawn, weight = replay.draw(4000, np.random.default_rng(0))
    assert (weight == 1).all()
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
    drawn, _ = replay.draw(2000, np.random.default_rng(0))
    uniform, novel = has_rarest[drawn[:1000]].mean(), has_rarest[drawn[1000:]].mean()
    assert novel > 3 * uniform


def rarest_of(replay, segment, n, times, wanted):
    """What turned on in one segment at its rarest among what is wanted: (times, place), or None. The last place is reward."""
    happened = {int(segment.active[t, n, l]) for t, l in np.argwhere(segment.turned_on[:, n])} & wanted
    happened |= {replay.num_bits} if (segment.reward[:, n] != 0).any() else set()
    return min(((times[i], i) for i in happened), default=None)


def times_of(replay, segments):
    times = np.zeros(replay.num_bits + 1)
    for s in segments:
        for t, n, l in np.argwhere(s.turned_on):
            times[s.active[t, n, l]] += 1
        times[-1] += (s.reward != 0).sum()
    return times


def slow_weights(replay, segments, wanted, exponent):
    """Weight of every segment in the draw by novelty, and how often its rarest thing happened; by what is known at the end."""
    times = times_of(replay, segments)
    found = [rarest_of(replay, s, n, times, wanted) for s in segments for n in range(s.size)]
    weight = np.array([0.0 if f is None else f[0] ** -exponent for f in found])
    is_paid = np.array([f is not None and f[1] == replay.num_bits for f in found])
    paid, others = weight[is_paid].sum(), weight[~is_paid].sum()
    if 0 < paid < REWARD_SHARE * (paid + others):
        weight[is_paid] *= REWARD_SHARE / (1 - REWARD_SHARE) * others / paid
    return weight, np.array([0 if f is None else f[0] for f in found])


@pytest.mark.parametrize("burn_in", [0, 3])
@pytest.mark.parametrize("wanted", [set(range(6)), {2, 4}, set()])
def test_what_is_wanted_makes_a_segment_novel_and_what_is_stored_is_looked_at_again(wanted, burn_in):
    settings = ReplaySettings(capacity=1000, trace_length=4, burn_in=burn_in, novelty_exponent=0.5)
    replay, segments, _ = filled(settings=settings, steps=80)
    replay.want(np.array(sorted(wanted), int))
    expected, _ = slow_weights(replay, [s.last(4) for s in segments], wanted, 0.5)
    np.testing.assert_allclose(replay.novelty_weights(), expected)
    assert (expected > 0).any()  # a reward is always wanted
    more, _ = play(Corridor(), 4 + burn_in, 4, burn_in, seed=9)  # and so with what comes later
    replay.add(more[0])
    expected, _ = slow_weights(replay, [s.last(4) for s in [*segments, *more]], wanted, 0.5)
    np.testing.assert_allclose(replay.novelty_weights()[-4:] > 0, expected[-4:] > 0)


def test_a_segment_with_a_reward_keeps_its_share_beside_many_goals():
    settings = ReplaySettings(capacity=10_000, trace_length=4, novelty_share=1.0, novelty_exponent=0.0)
    replay, segments, _ = filled(Corridor(length=9, limit=30), 400, settings)
    replay.want(np.array([], int))
    assert set(np.unique(replay.novelty_weights())) == {0.0, 1.0}  # rewards alone
    replay.want(np.arange(9))
    weight = replay.novelty_weights()
    paid = np.concatenate([(s.reward != 0).any(0) for s in segments])
    is_rarest = replay.state_dict()["rarest"] == replay.num_bits
    assert is_rarest.any()
    assert (paid >= is_rarest).all()
    assert weight[is_rarest].sum() / weight.sum() >= REWARD_SHARE - 1e-9


def test_weights_of_draws_by_hand():
    settings = ReplaySettings(capacity=10_000, trace_length=4, novelty_share=0.25, novelty_exponent=1.0)
    replay, segments, _ = filled(steps=80, settings=settings)
    replay.want(np.arange(6))
    novelty, times = slow_weights(replay, segments, set(range(6)), 1.0)
    places, weight = replay.draw(400, np.random.default_rng(0))
    size = replay.size
    for place, found in zip(places, weight, strict=True):
        probability = 0.75 / size + 0.25 * novelty[place] / novelty.sum()
        beta = times[place] / (times[place] + OFTEN) if novelty[place] else 1.0
        assert found == pytest.approx((size * probability) ** -beta, rel=1e-5)
    uncorrected = Replay(Sizes(Corridor().observation_spec, 6, 1, (2, 3)), replace(settings, correction=0.0))
    for segment in segments:
        uncorrected.add(segment)
    assert (uncorrected.draw(400, np.random.default_rng(0))[1] == 1).all()


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_what_has_happened_often_is_learned_without_bias(share):
    """E[weight · x] over draws is the mean of x, where all that is rarest has happened very often; without correction it is not."""
    settings = ReplaySettings(capacity=10_000, trace_length=4, novelty_share=share, novelty_exponent=1.0)
    replay, _, _ = filled(Corridor(length=9, limit=30), 400, settings)
    replay.want(np.arange(9))
    state = replay.state_dict()
    replay.load_state_dict(state | {"turned_on": state["turned_on"] * 10_000_000})
    replay.want(np.arange(9))
    weight = replay.novelty_weights()
    x = weight / weight.max()  # a loss that is largest for the rare
    places, counts_for = replay.draw(400_000, np.random.default_rng(0))
    assert (counts_for * x[places]).mean() == pytest.approx(x.mean(), rel=0.02)
    assert counts_for.mean() == pytest.approx(1.0, rel=0.02)
    assert x[places].mean() > 1.3 * x.mean()


def test_first_wins_are_learned_from_at_full_weight():
    settings = ReplaySettings(capacity=10_000, trace_length=4, novelty_share=0.5, novelty_exponent=1.0)
    replay, segments, _ = filled(Corridor(length=12, limit=30), 400, settings)
    replay.want(np.array([], int))  # rewards alone
    times = times_of(replay, segments)[-1]
    assert 0 < times < 10
    _, weight = replay.draw(1000, np.random.default_rng(0))
    novel = weight[500:]
    assert (novel > 0.5).all()


def test_transitions_for_the_evaluator_match_the_steps():
    env = Corridor(kind="planes", length=5, limit=7)
    replay, _, _plain = filled(env, 200)
    batch = replay.sample_transitions(300, np.random.default_rng(0))
    assert 200 < len(batch.action) <= 300
    cell, after = batch.observation.argmax(1), batch.active[:, 0]
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
    assert replay_bytes(Sizes(spec, 1365, 8, (2, 512)), settings) < 1e9
    small = ReplaySettings(capacity=10_000, trace_length=10)
    assert Replay(Sizes(spec, 1365, 8, (2, 512)), small).nbytes == replay_bytes(Sizes(spec, 1365, 8, (2, 512)), small)


def test_saving_and_loading_changes_nothing():
    settings = ReplaySettings(capacity=60, trace_length=4, novelty_share=0.5)
    replay, _, _ = filled(settings=settings)
    env = Corridor()
    other = Replay(Sizes(env.observation_spec, env.num_bits, env.max_active, (2, 3)), settings)
    other.load_state_dict(replay.state_dict())
    one, two = (r.sample(8, np.random.default_rng(1)) for r in (replay, other))
    for name, array in one.arrays().items():
        assert (two.arrays()[name] == array).all()
    with pytest.raises(ValueError, match="does not fit"):
        Replay(Sizes(env.observation_spec, env.num_bits, 1, (2, 3)), ReplaySettings(capacity=8, trace_length=4)).load_state_dict(
            replay.state_dict()
        )


def test_an_empty_replay_cannot_be_sampled():
    env = Corridor()
    with pytest.raises(ValueError, match="empty"):
        Replay(Sizes(env.observation_spec, env.num_bits, 1, (0, 0)), ReplaySettings()).sample(1, np.random.default_rng(0))


def test_dense_bits_puts_padding_nowhere():
    assert dense_bits(np.array([[0, 2, -1], [-1, -1, -1]]), 3).tolist() == [[True, False, True], [False] * 3]


def crowded(segments, width, first=0):
    """The same segments with bits first … first + width − 1 on in every transition, half of them just turned on."""
    shape = (*segments.active.shape[:-1], width)
    active = np.broadcast_to(np.arange(first, first + width, dtype=segments.active.dtype), shape).copy()
    return replace(segments, active=active, turned_on=active % 2 == 0)


def test_room_for_bits_grows_with_what_is_on_and_nothing_is_lost():
    env = Corridor(num_envs=4)
    _, segments, _ = filled(env)
    replay = Replay(Sizes(env.observation_spec, env.num_bits, 1, (2, 3)), ReplaySettings(capacity=1000, trace_length=4))
    for width, segment in zip((1, 3, 2, 5), segments, strict=False):
        replay.add(crowded(segment, width))
    back = replay.read(np.arange(16), np.ones(16, np.float32))
    assert back.active.shape[-1] == 5
    assert (back.active >= 0).sum(-1)[0].tolist() == [1] * 4 + [3] * 4 + [2] * 4 + [5] * 4
    assert (back.turned_on == (back.active >= 0) & (back.active % 2 == 0)).all()
    other = Replay(Sizes(env.observation_spec, env.num_bits, 1, (2, 3)), replay.settings)
    other.load_state_dict(replay.state_dict())
    again = other.read(np.arange(16), np.ones(16, np.float32)).arrays()
    assert all((again[name] == array).all() for name, array in back.arrays().items())


def test_what_memory_has_no_room_for_is_what_is_not_wanted_and_is_counted():
    env = Corridor(num_envs=4)
    _, segments, _ = filled(env)
    sizes = Sizes(env.observation_spec, env.num_bits, 1, (2, 3))
    replay = Replay(sizes, ReplaySettings(capacity=1000, trace_length=4), most_active=3)
    replay.want(np.array([4, 2]))
    replay.add(crowded(segments[0], 5))
    back = replay.read(np.arange(4), np.ones(4, np.float32))
    assert (back.active == [2, 4, 0]).all()
    assert (back.turned_on == [True, True, True]).all()
    assert replay.dropped == 4 * 4 * 2


def test_segments_of_different_width_are_joined():
    _, segments, _ = filled(Corridor(num_envs=4))
    joined = Segments.join([crowded(segments[0], 2), crowded(segments[1], 4)])
    assert (joined.active >= 0).sum(-1)[0].tolist() == [2] * 4 + [4] * 4
