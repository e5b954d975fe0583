"""DQN with hindsight on self-chosen goals in one file, without any agent library. Run: python examples/cleanrl_style.py

Two things differ from a plain DQN script: the environment is wrapped with its proto-goals, and a sampled transition is
learned for a goal that was attained later in the same pursuit (`relabel`). The evaluator does the rest.
"""

import time
from dataclasses import dataclass

import gymnasium
import numpy as np
import torch
import tyro
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation
from torch import nn

import protogoal.envs  # noqa: F401  (registers SparseTaxi)
from protogoal import TASK, OneHotFactors, make_goal_env
from protogoal.envs.taxi import TaxiSpace, decode


@dataclass
class Args:
    total_steps: int = 30_000
    seed: int = 0
    learning_rate: float = 1e-3
    buffer_size: int = 50_000
    gamma: float = 0.95
    batch_size: int = 128
    hidden: int = 128
    learning_starts: int = 1_000
    train_every: int = 2
    target_every: int = 500
    """Updates between two copies to the target network."""
    epsilon_end: float = 0.1
    epsilon_fraction: float = 0.3
    """Share of the run over which ε falls from 1 to its end."""
    hindsight: float = 0.8
    """Share of a batch that is relabelled; 0 is plain DQN on the same goals."""
    test_episodes: int = 4
    """Greedy pursuits of each goal at the end."""


def make_env(seed):
    bits = OneHotFactors(TaxiSpace().factors, grid=(5, 5))
    taxi = gymnasium.make("protogoal/SparseTaxi-v0")
    taxi = TransformObservation(taxi, lambda state: decode([state])[0], spaces.MultiDiscrete([25, 5, 4]))
    env = make_goal_env(taxi, bits, seed=seed)
    return env, lambda factors: bits.bits(None, None, np.atleast_2d(factors)).astype(np.float32)  # one-hot, [n, 34]


class QNetwork(nn.Module):
    def __init__(self, num_inputs, num_actions, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(num_inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_actions))

    def forward(self, observation, goal):
        return self.layers(torch.cat([torch.as_tensor(observation), torch.as_tensor(goal)], dim=1))


class Replay:
    """A ring of transitions, each with the number of its pursuit's last transition, once that is known."""

    def __init__(self, size, num_inputs, num_channels):
        self.size, self.added = size, 0
        self.observation, self.next_observation = (np.zeros((size, num_inputs), np.float32) for _ in range(2))
        self.achieved, self.desired = (np.zeros((size, num_channels), np.float32) for _ in range(2))
        self.action, self.last = np.zeros(size, np.int64), np.full(size, -1, np.int64)
        self.pursuit_start = 0

    def add(self, observation, action, next_observation, achieved, desired, pursuit_over):
        i = self.added % self.size
        self.observation[i], self.next_observation[i], self.action[i] = observation, next_observation, action
        self.achieved[i], self.desired[i], self.last[i] = achieved, desired, -1
        self.added += 1
        if pursuit_over:
            self.last[np.arange(self.pursuit_start, self.added) % self.size] = self.added - 1
            self.pursuit_start = self.added

    def sample(self, n, hindsight, rng):
        """Numbers of transitions [n], and the goal to learn on each [n, channels]."""
        oldest = max(0, self.added - self.size)
        number = rng.integers(oldest, self.pursuit_start, n)  # of finished pursuits only
        later = rng.integers(number, self.last[number % self.size] + 1)
        relabel = rng.random(n) < hindsight
        goal = np.where(relabel[:, None], self.achieved[later % self.size], self.desired[number % self.size])
        return number % self.size, goal


def success(env, act, goals, episodes):
    """Share of greedy pursuits, from fresh starts, that attain their goal."""
    won = []
    for goal in goals:
        for episode in range(episodes):
            state, _ = env.reset(seed=episode, options={"goal": goal})
            terminated = truncated = False
            while not (terminated or truncated):
                state, _, terminated, truncated, info = env.step(act(state))
            won.append(info["is_success"])
    return float(np.mean(won))


def train(args):
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    env, encode = make_env(args.seed)
    num_inputs, num_channels, num_actions = env.space.size, env.space.size + 2, int(env.action_space.n)
    network, target = (QNetwork(num_inputs + num_channels, num_actions, args.hidden) for _ in range(2))
    target.load_state_dict(network.state_dict())
    optimiser = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    replay = Replay(args.buffer_size, num_inputs, num_channels)

    @torch.no_grad()
    def values(batch):  # V(s, g), by which the evaluator prefers goals that can be reached from here
        return network(encode(batch["observation"]), batch["desired_goal"]).max(dim=1).values.numpy()

    @torch.no_grad()
    def act(state):
        return int(network(encode(state["observation"]), state["desired_goal"][None]).argmax(dim=1))

    env.values = values
    state, _ = env.reset(seed=args.seed)
    updates, started = 0, time.time()
    for step in range(args.total_steps):
        epsilon = max(args.epsilon_end, 1 - (1 - args.epsilon_end) * step / (args.epsilon_fraction * args.total_steps))
        action = int(rng.integers(num_actions)) if rng.random() < epsilon else act(state)
        following, _, terminated, truncated, info = env.step(action)
        action = info["action"]  # a random one, where the environment made a trial of it
        replay.add(encode(state["observation"])[0], action, encode(following["observation"])[0], following["achieved_goal"],
                   state["desired_goal"], terminated or truncated)
        state = env.reset()[0] if terminated or truncated else following

        if step >= args.learning_starts and step % args.train_every == 0 and replay.pursuit_start > 0:
            rows, goal = replay.sample(args.batch_size, args.hindsight, rng)
            achieved = replay.achieved[rows]
            reward = torch.as_tensor(env.compute_reward(achieved, goal, {}))
            ended = torch.as_tensor(env.compute_terminated(achieved, goal, {}).astype(np.float32))
            with torch.no_grad():
                best = network(replay.next_observation[rows], goal).argmax(dim=1, keepdim=True)  # double Q-learning
                following_value = target(replay.next_observation[rows], goal).gather(1, best)[:, 0]
                wanted = reward + args.gamma * (1 - ended) * following_value
            q = network(replay.observation[rows], goal).gather(1, torch.as_tensor(replay.action[rows])[:, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(q, wanted)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            updates += 1
            if updates % args.target_every == 0:
                target.load_state_dict(network.state_dict())
        if (step + 1) % 5_000 == 0:
            offered = len(env.evaluator.goal_set)
            print(f"step {step + 1:,}: {(step + 1) / (time.time() - started):.0f} steps/s, {offered} goals offered", flush=True)
    return env, act


if __name__ == "__main__":
    args = tyro.cli(Args)
    _, act = train(args)
    test_env, _ = make_env(1)
    print(f"drive to a cell: {success(test_env, act, range(0, 25, 3), args.test_episodes):.2f}")
    print(f"the task: {success(test_env, act, [TASK], 4 * args.test_episodes):.2f}")
