"""Stable-Baselines3's DQN with hindsight replay, on goals that the proto-goal evaluator chooses. Run: python examples/sb3_her.py

SparseTaxi pays only for a delivered passenger, which random actions hardly ever achieve. Wrapped into a goal environment it
has 34 proto-goals; the evaluator drops those that nothing can be done about (the destination) and offers the rest.
"""

import argparse
import sys

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation
from stable_baselines3 import DQN

import protogoal.envs  # noqa: F401  (registers SparseTaxi)
from protogoal import OneHotFactors, make_goal_env
from protogoal.envs.taxi import TaxiSpace, decode
from protogoal.interop.goal_env import GoalEnvSettings
from protogoal.interop.sb3 import GoalReplayBuffer, use_values


def make_env(seed=0, **more):
    """SparseTaxi as (taxi cell, passenger's place, destination), with goals."""
    taxi = TransformObservation(
        gymnasium.make("protogoal/SparseTaxi-v0"), lambda state: decode([state])[0], spaces.MultiDiscrete([25, 5, 4]))
    return make_goal_env(taxi, OneHotFactors(TaxiSpace().factors, grid=(5, 5)), seed=seed, **more)


def make_model(env, seed=0, replay=GoalReplayBuffer, **more):
    """DQN; with hindsight replay every transition is also learned for goals attained later in its pursuit."""
    settings = {
        "learning_rate": 1e-3, "buffer_size": 50_000, "learning_starts": 1_000, "batch_size": 128, "gamma": 0.95,
        "train_freq": 4, "gradient_steps": 2, "target_update_interval": 500, "exploration_fraction": 0.3,
        "exploration_final_eps": 0.1, "policy_kwargs": {"net_arch": [128, 128]},
    }
    if replay is not None:
        settings |= {"replay_buffer_class": replay, "replay_buffer_kwargs": {"n_sampled_goal": 4}}
    model = DQN("MultiInputPolicy", env, seed=seed, **(settings | more))
    use_values(model)
    return model


def success(model, env, goals, episodes=4):
    """Share of greedy pursuits, from fresh starts, that attain their goal; `env` should make no trials."""
    won = []
    for goal in goals:
        for episode in range(episodes):
            observation, _ = env.reset(seed=episode, options={"goal": goal})
            over = False
            while not over:
                action, _ = model.predict(observation, deterministic=True)
                observation, _, terminated, truncated, info = env.step(int(action))
                over = terminated or truncated
            won.append(info["is_success"])
    return float(np.mean(won))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-episodes", type=int, default=4)
    parser.add_argument("--no-hindsight", action="store_true")
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=sys.stderr.isatty())
    options = parser.parse_args()
    torch.set_num_threads(1)  # for networks of this size more are slower
    env = make_env(options.seed)
    model = make_model(env, options.seed, None if options.no_hindsight else GoalReplayBuffer)
    model.learn(options.steps, progress_bar=options.progress)
    for goal in env.evaluator.goal_set.ids[:3]:
        print(env.evaluator.explain(int(goal)))
    test_env = make_env(1, settings=GoalEnvSettings(trials=0.0))
    print(f"drive to a cell: {success(model, test_env, range(0, 25, 3), options.test_episodes):.2f}")


if __name__ == "__main__":
    main()
