"""The way here: what is counted from the views alone is what the grid says; its levels are goals, and the network reads it."""

import gymnasium
import numpy as np
import pytest

from protogoal.envs.user_envs import EnvReference, own_batch, space_of
from protogoal.envs.way import MOST, WAY, Reckoning, Way, forgets, reckoned

wrappers = pytest.importorskip("minigrid.wrappers")

ROOMS = "MiniGrid-MultiRoom-N4-S5-v0"


def visible_cells(world):
    """Places of the grid that the view shows, by MiniGrid's own account."""
    _, visible = world.gen_obs_grid()
    size = world.agent_view_size
    ahead, right = world.dir_vec, world.right_vec
    return {tuple(world.agent_pos + ahead * (size - 1 - y) + right * (x - size // 2)) for x, y in np.argwhere(visible)}


@pytest.mark.parametrize("name", [ROOMS, "MiniGrid-KeyCorridorS3R3-v0", "MiniGrid-LockedRoom-v0"])
def test_dead_reckoning_counts_what_the_grid_says(name):
    env = Way(gymnasium.make(name))
    world = env.unwrapped
    rng = np.random.default_rng(0)
    most = np.zeros(2)
    observation, _ = env.reset(seed=0)
    doorways, seen = set(), visible_cells(world)
    for _ in range(3_000):
        ahead = world.grid.get(*world.front_pos)
        is_closed = ahead is not None and ahead.type == "door" and not ahead.is_open
        action = 5 if is_closed and rng.random() < 0.9 else rng.choice([0, 1, 2, 2, 2, 3, 4, 5])  # 5 opens, 2 walks
        observation, _, terminated, truncated, _ = env.step(action)
        here = world.grid.get(*world.agent_pos)
        if here is not None and here.type == "door":
            doorways.add(tuple(world.agent_pos))
        seen |= visible_cells(world)
        assert observation[WAY].tolist() == np.minimum([len(doorways), len(seen) // 10], MOST).tolist()
        assert env.observation_space[WAY].contains(observation[WAY])
        most = np.maximum(most, observation[WAY])
        if terminated or truncated:
            observation, _ = env.reset()
            doorways, seen = set(), visible_cells(world)
            assert observation[WAY].tolist() == [0, len(seen) // 10]
    assert most[0] >= 1
    assert most[1] >= 4


def test_its_levels_are_goals_of_a_moving_view_and_the_network_reads_it():
    goals = space_of(ROOMS).space
    names = [goals.name(i) for i in range(goals.size)]
    assert {"doorways passed ≥ 1", "doorways passed rises", "tens of cells seen ≥ 15", "a doorway entered"} <= set(names)
    assert [name for name in names if name.startswith("doorways passed ≥")][-1] == "doorways passed ≥ 10"
    batch = own_batch(ROOMS, "", 2)
    assert batch.observation_spec[WAY].kind == "active"
    batch.close()


def test_a_whole_grid_and_other_environments_forget_nothing():
    assert forgets(gymnasium.make(ROOMS))
    assert not forgets(Way(gymnasium.make(ROOMS)))
    assert not forgets(wrappers.FullyObsWrapper(gymnasium.make(ROOMS)))
    assert not forgets(gymnasium.make("CartPole-v1"))
    assert not forgets(gymnasium.make("Blackjack-v1"))  # observes a tuple
    assert not isinstance(EnvReference("CartPole-v1")(), Way)


def test_who_asks_with_minigrids_own_observations_has_the_way_reckoned():
    envs = [gymnasium.make(ROOMS), gymnasium.make(ROOMS)]
    wrapped = [Way(gymnasium.make(ROOMS)) for _ in envs]
    rng = np.random.default_rng(0)
    raw = [env.reset(seed=seed)[0] for seed, env in enumerate(envs)]
    told = [env.reset(seed=seed)[0][WAY] for seed, env in enumerate(wrapped)]
    ways, actions, is_first = [Reckoning(), Reckoning()], np.zeros(2, int), np.ones(2, bool)
    for step in range(300):
        together, ways = reckoned({"image": np.stack([one["image"] for one in raw])}, ways, actions, is_first)
        assert together[WAY].tolist() == [list(numbers) for numbers in told]
        actions, is_first = rng.choice([0, 1, 2, 2, 5], 2), np.array([False, step % 50 == 49])
        raw = [env.step(action)[0] for env, action in zip(envs, actions, strict=True)]
        told = [env.step(action)[0][WAY] for env, action in zip(wrapped, actions, strict=True)]
        if is_first[1]:
            raw[1], told[1] = envs[1].reset(seed=step)[0], wrapped[1].reset(seed=step)[0][WAY]


def test_a_trained_agent_is_asked_with_minigrids_own_observations(tmp_path):
    pytest.importorskip("torch")
    import protogoal

    trained = protogoal.train(ROOMS, steps=300, record=(), actor__num_envs=4, network__hidden=16, evaluation__final_episodes=1)
    trained.save(tmp_path / "agent.npz")
    agent = protogoal.load(tmp_path / "agent.npz")
    env, wrapped = gymnasium.make(ROOMS), Way(gymnasium.make(ROOMS))
    (own, _), (full, _) = env.reset(seed=0), wrapped.reset(seed=0)
    for _ in range(20):
        action = agent.predict(own)
        assert trained.predict(full) == action
        own, full = env.step(action)[0], wrapped.step(action)[0]
