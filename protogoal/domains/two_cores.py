"""Settings of the deep agents that learned fastest on two cores (results/, PAPER.md); domains change what they must."""

from __future__ import annotations

from protogoal.config import DeepConfig
from protogoal.deep.settings import (
    ActorSettings,
    EvaluationSettings,
    LearnerSettings,
    NetworkSettings,
    ReplaySettings,
)

# DEVIATION(D11): every observed goal is learned on every transition (relabel = all), half of each batch by
# novelty. DEVIATION(D12): goals have discount 0.95; Adam's ε is 1e-8. DEVIATION(D13): ε from 0.4 to 0.16. Why: PAPER.md.
LEARNER = LearnerSettings(
    learning_rate=1e-3,
    adam_epsilon=1e-8,
    weight_decay=0.0,
    batch_size=16,
    replay_ratio=1.0,
    task_discount=0.97,
    goal_discount=0.95,
    clip_goal_values=True,
    target_period=200,
    relabel="all",
    average_decay=0.999,
)
TWO_CORES = DeepConfig(
    # DEVIATION(D22): no recurrent core; Baba is fully observed, MiniHack is not
    network=NetworkSettings(hidden=256, layers=2, rank=128),
    actor=ActorSettings(num_envs=128, epsilon_exponent=1.0),
    # 1/n instead of 1/√n: the first rewards are then learned from often enough before they leave replay
    replay=ReplaySettings(novelty_share=0.5, novelty_exponent=1.0),
    learner=LEARNER,
    refresh_every=10_000,
    evaluation=EvaluationSettings(every=200_000, episodes=32, epsilon=0.01),
)
