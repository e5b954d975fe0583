"""The one set of settings that all domains share, for two cores; a preset changes the environment, the number of steps, and how
often and how long the task is played, and nothing else. docs/settings.md has each value beside the paper's."""

from __future__ import annotations

from protogoal.config import DeepConfig
from protogoal.deep.settings import ActorSettings, EvaluationSettings, LearnerSettings, NetworkSettings, ReplaySettings

# DEVIATION(D11): every goal worth learning is learned on every transition (relabel = all), half of each batch by novelty.
# DEVIATION(D12): goals have discount 0.95; Adam's ε is 1e-8. DEVIATION(D13): ε from 0.4 to 0.064. Why: PAPER.md.
DEFAULT = DeepConfig(
    # DEVIATION(D22): a recurrent core only where an environment of one's own shows a part of its state
    network=NetworkSettings(hidden=256, layers=2, rank=128, core="auto"),
    actor=ActorSettings(num_envs=32, epsilon_exponent=2.0),
    # 1/n instead of 1/√n: the first rewards are then learned from often enough before they leave replay
    replay=ReplaySettings(most_gigabytes=3.0, novelty_share=0.5, novelty_exponent=1.0),
    learner=LearnerSettings(
        learning_rate=5e-4,
        adam_epsilon=1e-8,
        weight_decay=0.0,
        batch_size=16,
        replay_ratio=8.0,
        task_discount=0.98,
        goal_discount=0.95,
        clip_goal_values=True,
        target_period=200,
        relabel="all",
        average_decay=0.9997,
    ),
    refresh_every=10_000,
    evaluation=EvaluationSettings(every=50_000, episodes=32, epsilon=0.01),
    steps=1_000_000,
)
