import importlib.util
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("stable_baselines3")
import torch
from stable_baselines3 import DQN, HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv

from protogoal import Factor, OneHotFactors
from protogoal.interop.goal_env import GoalEnvSettings, make_goal_env
from protogoal.interop.sb3 import GoalReplayBuffer, goal_values

sys.path.insert(0, str(Path(__file__).parents[1] / "envs"))
import own_corridor

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example():
    torch.set_num_threads(1)
    return load("sb3_her")


@pytest.fixture(scope="module", params=[HerReplayBuffer, GoalReplayBuffer])
def trained(request, example):
    env = example.make_env()
    model = example.make_model(env, replay=request.param, learning_starts=400)
    model.learn(1_500)
    return env, model


def test_dqn_with_hindsight_replay_trains_on_the_evaluators_goals(trained):
    env, model = trained
    assert model.num_timesteps >= 1_500
    assert env.evaluator.goal_set.version == 1
    assert env.evaluator.table.transitions >= 1_000
    kinds = {env.evaluator.kind(int(g)) for g in env.evaluator.goal_set.ids}
    assert "taxi" in kinds
    assert "destination" not in kinds  # static: nothing can be done about it


def test_replayed_rewards_agree_with_the_replayed_goals(trained):
    env, model = trained
    batch = model.replay_buffer.sample(500)
    achieved, desired = (batch.next_observations[key].numpy() for key in ("achieved_goal", "desired_goal"))
    np.testing.assert_array_equal(env.compute_reward(achieved, desired), batch.rewards[:, 0].numpy())
    assert batch.rewards.mean() > 0.05  # hindsight: something is attained


def test_goal_replay_ends_a_transition_exactly_where_its_goal_is_attained_and_the_librarys_own_does_not(trained):
    env, model = trained
    batch = model.replay_buffer.sample(500)
    achieved, desired = (batch.next_observations[key].numpy() for key in ("achieved_goal", "desired_goal"))
    agree = env.compute_terminated(achieved, desired) == (batch.dones[:, 0].numpy() > 0)
    assert agree.all() == (type(model.replay_buffer) is GoalReplayBuffer)


def test_goal_replay_stores_the_action_that_was_taken_where_the_environment_made_a_trial_of_another(example):
    env = example.make_env()
    model = example.make_model(env, replay=GoalReplayBuffer, learning_starts=10_000)
    taken = []
    step = env.env.step
    env.env.step = lambda action: (taken.append(int(action)), step(action))[1]
    model.learn(600)
    np.testing.assert_array_equal(model.replay_buffer.actions[:600].ravel(), taken[:600])


def test_goals_are_chosen_by_the_models_values(trained):
    env, model = trained
    assert env.values is not None
    observation, _ = env.reset()
    batch = {key: np.stack([value] * 3) for key, value in observation.items()}
    assert goal_values(model)(batch).shape == (3,)


def test_several_environments_of_one_model_share_an_evaluator(example):
    first = example.make_env(0)
    others = [lambda: first, lambda: example.make_env(1, evaluator=first.evaluator)]
    model = example.make_model(DummyVecEnv(others), learning_starts=10_000)
    model.learn(1_200)
    assert first.evaluator.table.transitions >= 1_000
    assert [env.unwrapped.evaluator is first.evaluator for env in model.env.envs] == [True, True]
    assert all(env.unwrapped.values is not None for env in model.env.envs)


@pytest.mark.learning
@pytest.mark.parametrize("seed", [0, 1])
def test_hindsight_on_proto_goals_learns_what_plain_dqn_does_not(example, seed):
    reached = {}
    for replay in (GoalReplayBuffer, None):
        model = example.make_model(example.make_env(seed), seed, replay)
        model.learn(14_000)
        test_env = example.make_env(1, settings=GoalEnvSettings(trials=0.0))
        reached[replay] = example.success(model, test_env, range(25), episodes=2)
    assert reached[GoalReplayBuffer] > 0.6
    assert reached[None] < 0.4


def test_a_dictionary_observation_is_flattened_for_the_library():
    class Two(gymnasium.ObservationWrapper):
        observation_space = spaces.Dict({"place": spaces.MultiDiscrete([6]), "time": spaces.Box(0, 1, (1,), np.float32)})

        def observation(self, place):
            return {"place": place, "time": np.zeros(1, np.float32)}

    env = make_goal_env(Two(own_corridor.make()), OneHotFactors([Factor("cell", tuple("abcdef"))], key="place"))
    model = DQN("MultiInputPolicy", env, learning_starts=50, replay_buffer_class=GoalReplayBuffer, buffer_size=500)
    model.learn(100)
    assert model.observation_space["observation"].shape == (7,)
