"""The eight domains of the controllability experiment: dynamics, ground truth, names."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from protogoal.envs.controllability import DOMAINS, PRESS, ControllabilityEnv, make_dynamics


def played(domain, steps, episodes=1, seed=0, action=None):
    """Actions [steps, N] and observations [steps + 1, N, B] of actions that are random, or always the same."""
    dynamics, rng = make_dynamics(domain), np.random.default_rng(seed)
    state = dynamics.start(episodes, rng)
    actions, frames = [], [dynamics.observe(state)]
    for _ in range(steps):
        actions.append(rng.integers(dynamics.num_actions, size=episodes) if action is None else np.full(episodes, action))
        state, _ = dynamics.step(state, actions[-1], rng)
        frames.append(dynamics.observe(state))
    return np.array(actions), np.array(frames)


@pytest.mark.parametrize("domain", DOMAINS)
def test_gymnasium_finds_nothing_to_complain_about(domain, recwarn):
    check_env(ControllabilityEnv(domain), skip_render_check=True)
    assert [str(w.message) for w in recwarn if "WARN" in str(w.message)] == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_same_seed_plays_the_same_episode(domain):
    def play():
        env = ControllabilityEnv(domain)
        env.action_space.seed(3)
        frames = [env.reset(seed=7)[0]]
        for _ in range(20):
            frames.append(env.step(env.action_space.sample())[0])
        return np.array(frames)

    np.testing.assert_array_equal(play(), play())


@pytest.mark.parametrize("domain", DOMAINS)
def test_an_episode_ends_by_its_limit_at_the_latest(domain):
    env = ControllabilityEnv(domain)
    env.reset(seed=0)
    for step in range(1, env.dynamics.max_steps + 1):
        _, reward, terminated, truncated, _ = env.step(0)
        assert reward == 0
        assert not terminated  # to drive north forever ends nothing
        assert truncated == (step == env.dynamics.max_steps)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_bit_has_a_name_of_its_own_and_a_kind_and_the_space_reads_the_observation(domain):
    dynamics = make_dynamics(domain)
    names = {dynamics.space.name(i) for i in range(dynamics.space.size)}
    assert len(names) == dynamics.space.size == len(dynamics.controllable) == np.prod(dynamics.shape)
    assert all(dynamics.space.kind(i) for i in range(dynamics.space.size))
    observation = ControllabilityEnv(domain).reset(seed=0)[0]
    np.testing.assert_array_equal(dynamics.space.bits(None, None, observation[None])[0], observation.ravel() > 0)


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_tabular_state_is_one_of_as_many_as_it_says(domain):
    dynamics, rng = make_dynamics(domain), np.random.default_rng(0)
    state = dynamics.start(50, rng)
    for _ in range(30):
        assert dynamics.table_state(state).min() >= 0
        assert dynamics.table_state(state).max() < dynamics.table_size
        state, _ = dynamics.step(state, rng.integers(dynamics.num_actions, size=50), rng)


def test_static_is_gymnasiums_taxi_told_in_bits():
    dynamics = make_dynamics("static")
    taxi = gymnasium.make("Taxi-v3")
    rng = np.random.default_rng(0)
    for episode in range(20):
        number, _ = taxi.reset(seed=episode)
        state = np.array([number])
        for _ in range(50):
            row, column, passenger, destination = taxi.unwrapped.decode(int(state[0]))
            assert np.flatnonzero(dynamics.observe(state)[0]).tolist() == [5 * row + column, 25 + passenger, 30 + destination]
            action = int(rng.integers(6))
            number, _, terminated, _, _ = taxi.step(action)
            state, ended = dynamics.step(state, np.array([action]), rng)
            assert (state[0], ended[0]) == (number, terminated)
            if terminated:
                break
    assert [dynamics.space.name(i) for i in (7, 26, 29, 33)] == ["taxi at (1,2)", "passenger at Green", "passenger in taxi",
                                                                  "destination Blue"]


@pytest.mark.parametrize(("domain", "last"), [("timer", 100), ("long-timer", 1000)])
def test_the_timer_counts_to_its_end_whatever_is_done(domain, last):
    _, frames = played(domain, last - 1, episodes=3)
    for episode in range(3):
        assert frames[:, episode, 16:].argmax(axis=1).tolist() == list(range(last))
    assert make_dynamics(domain).max_steps == last - 1


def test_the_player_moves_and_is_held_by_walls():
    dynamics = make_dynamics("timer")
    cell = np.array([[0, 1], [0, 1], [5, 1], [5, 1], [5, 1], [5, 1], [15, 1]])
    action = np.array([0, 3, 0, 1, 2, 3, 1])
    state, _ = dynamics.step(cell, action, np.random.default_rng(0))
    assert state[:, 0].tolist() == [0, 1, 1, 9, 4, 6, 15]


@pytest.mark.parametrize("domain", [domain for domain in DOMAINS if domain != "static"])
def test_the_player_is_in_one_cell_always(domain):
    _, frames = played(domain, 20, episodes=5)
    np.testing.assert_array_equal(frames[:, :, :16].sum(2), 1)


def test_distracting_pixels_light_up_independently_of_everything():
    _, frames = played("distractor", 99, episodes=200)
    pixels = frames[:, :, 16:].astype(float)
    assert abs(pixels.mean() - 0.1) < 0.005
    before, after = pixels[:-1].reshape(-1, 32), pixels[1:].reshape(-1, 32)
    assert abs(np.mean([np.corrcoef(before[:, i], after[:, i])[0, 1] for i in range(32)])) < 0.01


def test_each_screen_shows_one_picture_and_pictures_are_rare():
    _, frames = played("television", 50, episodes=20)
    pictures = frames[:, :, 16:].reshape(51, 20, 8, 1000)
    np.testing.assert_array_equal(pictures.sum(3), 1)
    assert pictures.mean((0, 1)).max() < 0.02


def test_drops_fall_in_rain_only_and_the_weather_changes_by_itself():
    _, frames = played("weather", 99, episodes=200, action=0)
    sun, rain, drops = frames[:, :, 16], frames[:, :, 17], frames[:, :, 18:]
    np.testing.assert_array_equal(sun, ~rain)
    assert not drops[sun].any()
    assert abs(drops[rain].mean() - 0.1) < 0.005
    assert abs((rain[1:] != rain[:-1]).mean() - 0.1) < 0.01


def test_a_press_lights_the_weak_lamp_three_times_in_ten_and_nothing_else_does():
    actions, frames = played("weak", 99, episodes=200)
    lit = frames[1:, :, 16]
    assert not lit[actions != PRESS].any()
    assert abs(lit[actions == PRESS].mean() - 0.3) < 0.02


def test_the_delayed_lamp_is_lit_three_steps_after_every_press():
    actions, frames = played("delayed", 50, episodes=20)
    np.testing.assert_array_equal(frames[4:, :, 16], actions[:-3] == PRESS)
    assert not frames[:4, :, 16].any()


@pytest.mark.parametrize("domain", ["weak", "delayed"])
def test_flickering_lamps_do_not_care_about_presses(domain):
    actions, frames = played(domain, 99, episodes=200)
    flickering = frames[1:, :, 17:]
    assert flickering.shape[2] == 4
    assert abs(flickering[actions == PRESS].mean() - flickering[actions != PRESS].mean()) < 0.01
    assert not make_dynamics(domain).controllable[17:].any()


def test_an_unknown_domain_is_refused():
    with pytest.raises(ValueError, match="unknown domain 'clock'; allowed are static, timer, distractor, television"):
        make_dynamics("clock")
