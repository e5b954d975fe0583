"""A deep run of seconds, with everything switched on: recurrent core, burn-in, novelty draws, AND-goals, few slots."""

import dataclasses

import numpy as np

from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.config import (
    ActorSettings,
    DeepConfig,
    EvaluationSettings,
    LearnerSettings,
    NetworkSettings,
    PGESettings,
    ReplaySettings,
)
from protogoal.domains.baba import BabaSettings
from protogoal.domains.deep_sea import DeepSeaSettings
from protogoal.record.events import Progressed

TINY = DeepConfig(
    env=BabaSettings(level="umaze-small", max_steps=40),
    network=NetworkSettings(hidden=16, rank=8, goal_hidden=16, core="lstm", goal_slots=16),
    actor=ActorSettings(num_envs=4),
    replay=ReplaySettings(capacity=600, trace_length=5, burn_in=2, novelty_share=0.25),
    learner=LearnerSettings(batch_size=8, min_replay=200, target_period=7),
    pge=PGESettings(horizon=15, recombinations=3, mastery_pursuits=1, mastery_threshold=0.0, goal_set_size=10),
    refresh_every=100,
    evaluation=EvaluationSettings(every=250, episodes=2, final_episodes=2),
    steps=1200,
)
TINY_AGENT57 = dataclasses.replace(
    TINY, agent="agent57", env=DeepSeaSettings(size=6),
    exploration=Agent57Settings(num_policies=4, memory_capacity=40, curiosity_hidden=16, distillation_size=8, embedding_size=4,
                            meta_episode_length=3, bandit_window=6, episodic_memory_reward_scale=0.1),
)

FEW_CPUS = {f"{role}_cpus": 0.1 for role in ("worker", "learner", "shard", "pge", "player")}  # so that many fit on a small Ray


def steps_of(session, *recorders):
    """Trains; the steps at which the session may be saved. What it tells goes to the recorders."""
    for event in session.train():
        for recorder in recorders:
            event.to(recorder)
        if isinstance(event, Progressed):
            yield event.step


def differences(a, b, place=""):
    """Where two states differ; empty where they are equal to the bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return [f"{place}: {sorted(a.keys() ^ b.keys())}"]
        return [line for key in a for line in differences(a[key], b[key], f"{place}/{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i in range(len(a)) for line in differences(a[i], b[i], f"{place}/{i}")]
    if isinstance(a, np.ndarray):
        return [] if a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() else [place]
    return [] if a == b else [f"{place}: {a!r} and {b!r}"]
