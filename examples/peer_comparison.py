"""Stable-Baselines3 beside protogoal: DQN with hindsight on the goal environment, and PPO, on two tasks at equal frames.

`python peer_comparison.py --out OUT` makes OUT/curves.csv: every evaluation of every run, with its CPU seconds of training; and a
figure beside the proto-goal agent's own runs, those of `protogoal reproduce baba-small` and of keycorridor_comparison.py, which are
read from ../results. Runs that are finished are skipped.
"""

import argparse
import time
from pathlib import Path

import gymnasium
import minigrid_keycorridor
import numpy as np
import torch
from gymnasium.wrappers import FlattenObservation
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import protogoal.envs  # noqa: F401  (registers Baba)
from protogoal import make_goal_env
from protogoal.experiments.arms_figures import draw_arm
from protogoal.experiments.curves import read_csv, success_curves, write_csv
from protogoal.goals.table import TASK
from protogoal.interop.goal_env import GoalEnvSettings
from protogoal.interop.sb3 import GoalReplayBuffer, use_values

COLUMNS = ("task", "arm", "seed", "step", "cpu_seconds", "episodes", "successes")
STEPS = {"U-Maze small": 400_000, "KeyCorridor": 250_000}
FIRST_SEED = 70
RESULTS = Path(__file__).resolve().parents[1] / "results"
OURS = {"U-Maze small": "baba-small", "KeyCorridor": "keycorridor"}
"""Task → the folder with the proto-goal agent's runs."""


def make_env(task):
    """The environment of a task, with what it shows as it is."""
    if task == "KeyCorridor":
        return minigrid_keycorridor.make_env()
    return gymnasium.make("protogoal/Baba-v0", level="umaze-small", max_episode_steps=200)


def make_space(task, env):
    """The same proto-goals that the proto-goal agent has."""
    return minigrid_keycorridor.proto_goals(env) if task == "KeyCorridor" else env.unwrapped.space


def dqn_with_hindsight(task, seed):
    """DQN on goals that the evaluator chooses, hindsight on four goals a transition."""
    env = make_env(task)
    goals = make_goal_env(env, make_space(task, env), seed=seed)
    model = DQN(
        "MultiInputPolicy", goals, seed=seed, learning_rate=5e-4, buffer_size=200_000, learning_starts=2_000, batch_size=256,
        gamma=0.97, train_freq=8, gradient_steps=4, target_update_interval=1_000, exploration_fraction=0.3,
        exploration_final_eps=0.1, policy_kwargs={"net_arch": [256, 256]}, replay_buffer_class=GoalReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4})
    use_values(model)
    test = make_env(task)
    return model, make_goal_env(test, make_space(task, test), seed=seed + 1000, settings=GoalEnvSettings(trials=0.0))


def ppo(task, seed):
    """PPO on the task's reward alone, with a bonus for entropy."""
    model = PPO("MlpPolicy", DummyVecEnv([lambda: FlattenObservation(make_env(task))] * 16), seed=seed, n_steps=128, batch_size=256,
                ent_coef=0.01, gamma=0.99, learning_rate=2.5e-4, policy_kwargs={"net_arch": [256, 256]})
    return model, FlattenObservation(make_env(task))


ARMS = {"Stable-Baselines3 DQN + HER": dqn_with_hindsight, "Stable-Baselines3 PPO": ppo}


def successes(model, env, episodes, rng):
    """How many episodes of the task are won: the greedy policy, 1 % of the actions at random, as for the other agents."""
    won = 0
    options = {"goal": TASK} if "desired_goal" in getattr(env.observation_space, "spaces", {}) else None
    for episode in range(episodes):
        observation, _ = env.reset(seed=10_000 + episode, options=options)
        over, total = False, 0.0
        while not over:
            action = int(model.predict(observation, deterministic=True)[0])
            action = rng.integers(env.action_space.n) if rng.random() < 0.01 else action
            observation, reward, terminated, truncated, info = env.step(action)
            total += info.get("task_reward", reward)
            over = info.get("task_over", terminated or truncated)
        won += total > 0
    return won


class Evaluate(BaseCallback):
    """Plays the task every so many steps; its CPU seconds are not counted as training."""

    def __init__(self, env, every, episodes, add):
        super().__init__()
        self.env, self.every, self.episodes, self.add = env, every, episodes, add
        self.next, self.spent, self.rng = every, 0.0, np.random.default_rng(0)

    def _on_step(self):
        if self.num_timesteps >= self.next:
            before = time.process_time()
            won = successes(self.model, self.env, self.episodes, self.rng)
            self.spent += time.process_time() - before
            self.add(self.num_timesteps, round(before - self.spent, 1), self.episodes, won)
            self.next += self.every
        return True


def train(task, arm, seed, steps, every, episodes, file):
    """One run; its evaluations are in `file`, which is there only when it is finished."""
    rows, start = [], time.process_time()
    model, test = ARMS[arm](task, seed)

    def add(step, seconds, number, won):
        rows.append((task, arm, seed, step, round(seconds - start, 1), number, won))
        print(f"{task}, {arm}, seed {seed}: {won} of {number} at {step:,} steps", flush=True)

    model.learn(steps, callback=Evaluate(test, every, episodes, add))
    write_csv(file, COLUMNS, rows)


def plot(out):
    """learning.png: success against steps, a panel for each task that was run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = read_csv(out / "curves.csv")
    tasks = [task for task in STEPS if any(row["task"] == task for row in rows)]
    figure, axes = plt.subplots(1, len(tasks), figsize=(4.2 * len(tasks), 3.6), sharey=True, squeeze=False, constrained_layout=True)
    for axis, task in zip(axes[0], tasks, strict=True):
        ours = success_curves(read_csv(RESULTS / OURS[task] / "curves.csv"))
        theirs = success_curves([row for row in rows if row["task"] == task])
        arms = {"proto-goal R2D2": ours["proto-goal R2D2"]} | {arm: theirs[arm] for arm in ARMS if arm in theirs}
        for place, (arm, seeds) in enumerate(arms.items()):
            draw_arm(axis, seeds, 1e6, place, arm, shade=0.12)
        axis.set(ylim=(-0.03, 1.03), xlim=(0, None), title=task, xlabel="million steps")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8)
    axes[0][0].set_ylabel("success at the task")
    figure.savefig(out / "learning.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/peers"), help="where to write (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default %(default)s)")
    parser.add_argument("--steps", type=int, help="steps of each run (default: the task's own)")
    parser.add_argument("--every", type=int, default=25_000, help="steps between evaluations (default %(default)s)")
    parser.add_argument("--episodes", type=int, default=32, help="episodes of an evaluation (default %(default)s)")
    parser.add_argument("--task", choices=list(STEPS), help="one task alone")
    parser.add_argument("--arm", choices=list(ARMS), help="one arm alone")
    parser.add_argument("--redraw", action="store_true", help="only draw the figure again, from the CSV in OUT")
    options = parser.parse_args()
    out = options.out.resolve()
    if options.redraw:
        plot(out)
        return
    (out / "runs").mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    tasks, arms = [options.task] if options.task else STEPS, [options.arm] if options.arm else ARMS
    for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
        for task in tasks:
            for arm in arms:
                file = out / "runs" / f"{task}-{arm}-{seed}.csv".replace(" ", "-").replace("+-", "")
                if not file.exists():
                    train(task, arm, seed, options.steps or STEPS[task], options.every, options.episodes, file)
    rows = [tuple(row[name] for name in COLUMNS) for file in sorted((out / "runs").glob("*.csv")) for row in read_csv(file)]
    write_csv(out / "curves.csv", COLUMNS, rows)
    plot(out)


if __name__ == "__main__":
    main()
