"""Named configurations, domain-agent: what `protogoal train` takes.

The deep ones are ours, for two cores (`domains` has the values). `at_paper_scale` turns one of them into the paper's
settings, Tables 1 and 2 value for value, which assume 128 actors and 200 million frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from protogoal import registry
from protogoal.config import DeepConfig
from protogoal.deep.settings import ActorSettings, EvaluationSettings, LearnerSettings, NetworkSettings, ReplaySettings
from protogoal.goals.evaluator import PGESettings
from protogoal.goals.values import EstimatorSettings


def _for_every_agent(tasks: Mapping[str, Any]) -> dict[str, Any]:
    """TASK-AGENT of every task and agent."""
    return {f"{task}-{agent}": config.with_agent(agent) for task, config in tasks.items() for agent in config.agents}


PRESETS: dict[str, Any] = {name: config for kind in registry.DOMAINS
                           for name, config in _for_every_agent(registry.domain(kind).presets()).items()}


def announced_presets() -> dict[str, Any]:
    """The same of every domain that an installed package announces (see envs/user_envs.py)."""
    return _for_every_agent(registry.domain("own").announced())


def catalog() -> list[dict[str, Any]]:
    """What can be trained, as JSON-able rows: each domain with its proto-goals, the extras it needs and lacks, its presets."""
    presets = PRESETS | announced_presets()
    rows = [asdict(row) for kind in registry.DOMAINS for row in registry.domain(kind).rows()]
    return [row | {"presets": [name for name in presets if name.startswith(f"{row['name']}-")]} for row in rows]


def at_paper_scale(config: DeepConfig) -> DeepConfig:
    """The same domain and agent with the paper's settings (Tables 1 and 2; Appendix C)."""
    if config.has_paper_settings:
        raise ValueError(f"--scale paper is for deep agents; {config.env.kind}-{config.agent} has the paper's settings already")
    return replace(
        config,
        env=registry.domain(config.env.kind).at_paper_scale(config.env),
        network=NetworkSettings(hidden=512, channels=(32, 64, 64), core="lstm", join="concat", goal_hidden=512),
        actor=ActorSettings(num_envs=128, epsilon_base=0.4, epsilon_exponent=7.0),
        replay=ReplaySettings(capacity=1_000_000, trace_length=10, burn_in=0, novelty_share=0.0),
        learner=LearnerSettings(
            learning_rate=3e-4,
            adam_epsilon=1e-4,
            weight_decay=1e-4,
            batch_size=64,
            task_discount=0.99,
            goal_discount=0.99,
            returns="retrace",
            trace_lambda=0.95,
            value_transform="h",
            target_period=10_000,
            relabel="novelty",
            hindsight_goals=15,
        ),
        pge=PGESettings(
            pruning="values",
            reachability_threshold=0.5,
            controllability_threshold=0.1,
            estimator=EstimatorSettings(projections=32, whole_up_to=0, discount=0.95),
            batch_size=1024,
            strategy="paper",
            competence=False,
            patience=0.0,
            goal_set_size=100,
            num_buckets=5,
            num_candidates=5,
            p_task=0.1,
            p_task_most=0.1,
            p_task_of="choices",
            mastery_threshold=0.6,
        ),
        exploration=registry.agent(config.agent).paper_settings(),
        refresh_every=50_000,
        evaluation=EvaluationSettings(every=200_000, episodes=32, epsilon=0.01),
        steps=200_000_000,
    )
