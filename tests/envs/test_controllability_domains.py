"""The three domains of the controllability experiment: dynamics, ground truth, data."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from protogoal.envs.controllability import DOMAINS, ControllabilityEnv, collect, make_dynamics


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


def test_a_destination_never_changes_within_an_episode():
    batch = collect(make_dynamics("static"), 20, np.random.default_rng(0)).batch
    np.testing.assert_array_equal(batch.observation[:, 30:], batch.next_observation[:, 30:])
    assert batch.bits[:, 30:].any(axis=0).all()


def test_the_timer_counts_from_1_to_100_whatever_is_done():
    experience = collect(make_dynamics("timer"), 5, np.random.default_rng(0))
    for episode in range(5):
        batch = experience.batch
        rows = experience.episode == episode
        assert batch.observation[rows, 16:].argmax(axis=1).tolist() == list(range(99))
        assert batch.next_observation[rows, 16:].argmax(axis=1).tolist() == list(range(1, 100))


def test_the_player_moves_and_is_held_by_walls():
    dynamics = make_dynamics("timer")
    cell = np.array([[0, 1], [0, 1], [5, 1], [5, 1], [5, 1], [5, 1], [15, 1]])
    action = np.array([0, 3, 0, 1, 2, 3, 1])
    state, _ = dynamics.step(cell, action, np.random.default_rng(0))
    assert state[:, 0].tolist() == [0, 1, 1, 9, 4, 6, 15]


def test_distracting_pixels_light_up_independently_of_everything():
    batch = collect(make_dynamics("distractor"), 200, np.random.default_rng(0)).batch
    before, after = batch.observation[:, 16:].astype(float), batch.next_observation[:, 16:].astype(float)
    assert abs(after.mean() - 0.1) < 0.005
    assert abs(np.mean([np.corrcoef(before[:, i], after[:, i])[0, 1] for i in range(32)])) < 0.01
    np.testing.assert_array_equal(batch.bits[:, :16].sum(axis=1), 1)


@pytest.mark.parametrize("domain", DOMAINS)
def test_one_step_after_the_other_the_data_is_a_trajectory(domain):
    experience = collect(make_dynamics(domain), 3, np.random.default_rng(1))
    for episode in range(3):
        rows = np.flatnonzero(experience.episode == episode)
        batch = experience.batch
        np.testing.assert_array_equal(batch.observation[rows[1:]], batch.next_observation[rows[:-1]])
        assert not batch.terminated[rows[:-1]].any()
    assert len(experience.first(2).action) == (experience.episode < 2).sum()


def test_an_unknown_domain_is_refused():
    with pytest.raises(ValueError, match="unknown domain 'clock'; allowed are static, timer, distractor"):
        make_dynamics("clock")
