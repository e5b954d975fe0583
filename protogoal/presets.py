"""Named configurations, domain-agent: what `protogoal train` takes.

The deep ones are ours, for two cores: what learned fastest (results/, PAPER.md). `at_paper_scale` turns one
of them into the paper's settings, Tables 1 and 2 value for value, which assume 128 actors and 200 million frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from protogoal.config import BabaSettings, DeepConfig, DeepSeaSettings, OwnSettings, RiverSettings, TabularConfig
from protogoal.deep.settings import (
    ActorSettings,
    EvaluationSettings,
    LearnerSettings,
    NetworkSettings,
    ReplaySettings,
)
from protogoal.deep.settings_agent57 import Agent57Settings
from protogoal.goals.evaluator import PGESettings
from protogoal.goals.values import EstimatorSettings

TABULAR: dict[str, Any] = {
    "taxi-protogoal": TabularConfig(agent="protogoal"),
    "taxi-qlearning": TabularConfig(agent="qlearning"),
}

# Two cores. DEVIATION(D11): every observed goal is learned on every transition (relabel = all), half of each batch by
# novelty. DEVIATION(D12): goals have discount 0.95; Adam's ε is 1e-8. DEVIATION(D13): ε from 0.4 to 0.16. Why: PAPER.md.
_LEARNER = LearnerSettings(
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
_BABA = DeepConfig(
    env=BabaSettings(max_steps=200),
    # DEVIATION(D22): no recurrent core; Baba is fully observed, MiniHack is not
    network=NetworkSettings(hidden=256, layers=2, rank=128),
    actor=ActorSettings(num_envs=128, epsilon_exponent=1.0, max_pursuit_steps=40),
    # 1/n instead of 1/√n: the first rewards are then learned from often enough before they leave replay
    replay=ReplaySettings(novelty_share=0.5, novelty_exponent=1.0),
    learner=_LEARNER,
    pge=PGESettings(
        value_floor=0.05,
        redraws=2,
        # DEVIATION(D15): a word block can be brought to a cell from few of the states in replay, so the mean over states of
        # what can be gained is small: with the paper's thresholds nearly every FLAG-at-cell goal was pruned.
        reachability_threshold=0.3,
        controllability_threshold=0.002,
        estimator=EstimatorSettings(whole_up_to=64, projections=64),
    ),
    refresh_every=50_000,
    evaluation=EvaluationSettings(every=200_000, episodes=32, epsilon=0.01),
)
_STEPS = {"small": 1_500_000, "medium": 4_000_000, "paper": 10_000_000}

_RIVER = replace(
    _BABA,
    env=RiverSettings(),
    network=NetworkSettings(hidden=256, rank=96, goal_hidden=128),
    # ε down to 0.01: beside lava a random move is often the last; with 0.16 there were half as many wins
    actor=ActorSettings(num_envs=32, epsilon_exponent=4.0, max_pursuit_steps=100),
    replay=ReplaySettings(capacity=500_000, novelty_share=0.5),
    learner=replace(_LEARNER, learning_rate=5e-4, replay_ratio=2.0, task_discount=0.97, target_period=300),
    pge=PGESettings(
        p_task=0.3,
        value_floor=0.05,
        redraws=2,
        # the words that matter are rare and far from most states: their mean values are small
        reachability_threshold=0.3,
        controllability_threshold=0.02,
        min_hits=20,
        estimator=EstimatorSettings(whole_up_to=64, projections=64),
    ),
    refresh_every=20_000,
    evaluation=EvaluationSettings(every=200_000, episodes=32, epsilon=0.02),
    steps=3_000_000,
)

# NGU's gridworld constants and N = 16, the fewest policies that keep hard exploration; every policy is learned on every
# transition, as every goal is by the proto-goal agent.
_AGENT57 = Agent57Settings(
    num_policies=16,
    discount_max=0.99,
    discount_min=0.97,
    learn_policies="all",
    reads_intrinsic=False,
    intrinsic_return_ends=False,  # else curious policies shun what ends an episode, and that is to win
    kernel_epsilon=0.01,
    episodic_memory_reward_scale=0.1,
)
_DEEP_SEA = replace(
    _BABA,
    env=DeepSeaSettings(),
    network=NetworkSettings(hidden=128, rank=32, goal_hidden=32),
    actor=ActorSettings(num_envs=32, epsilon_exponent=3.0, max_pursuit_steps=0),
    replay=ReplaySettings(capacity=200_000),
    learner=replace(_LEARNER, replay_ratio=8.0, task_discount=0.99, min_replay=2_000, target_period=50, average_decay=0.0),
    pge=PGESettings(estimator=EstimatorSettings(whole_up_to=256)),
    refresh_every=10_000,
    evaluation=EvaluationSettings(every=2_000, episodes=16),
    steps=50_000,
)


def _deep() -> dict[str, Any]:
    presets: dict[str, Any] = {}
    for size, steps in _STEPS.items():
        env = BabaSettings(level=f"umaze-{size}", max_steps=200)
        # DEVIATION(D21): the best of m candidates by value is always a near one, and in the larger mazes the two things to be
        # done lie far apart.
        pge = replace(_BABA.pge, strategy="paper" if size == "small" else "product")
        evaluation = replace(_BABA.evaluation, every=100_000 if size == "small" else 200_000)
        config = replace(_BABA, env=env, pge=pge, evaluation=evaluation, steps=steps)
        if size == "paper":  # its shortest win has 47 steps, and the first wins are rare: both limits are wider
            config = replace(config, actor=replace(config.actor, max_pursuit_steps=60),
                             replay=replace(config.replay, capacity=2_000_000))
        presets[f"baba-umaze-{size}"] = config
    for scenario in ("narrow-river", "wide-river-lava"):
        presets[f"minihack-{scenario}"] = replace(_RIVER, env=RiverSettings(scenario=scenario))  # type: ignore[arg-type]
    presets["deep-sea"] = _DEEP_SEA
    agents = ("protogoal", "r2d2")
    made = {f"{name}-{agent}": replace(config, agent=agent) for name, config in presets.items() for agent in agents}
    return made | {f"{name}-agent57": _with_agent57(config) for name, config in presets.items()}


def _with_agent57(config: DeepConfig) -> DeepConfig:
    """The same task for Agent57."""
    network = replace(config.network, rank=32, goal_hidden=32)  # 16 policies need less than a thousand goals
    has_one_length = isinstance(config.env, DeepSeaSettings)  # then no end of an episode is shunned
    return replace(config, agent="agent57", network=network, agent57=replace(_AGENT57, intrinsic_return_ends=has_one_length))


DEEP = _deep()

PRESETS: dict[str, Any] = {**TABULAR, **DEEP}


def at_paper_scale(config: DeepConfig) -> DeepConfig:
    """The same domain and agent with the paper's settings (Tables 1 and 2; Appendix C)."""
    env = config.env
    if isinstance(env, BabaSettings):
        env = replace(env, max_steps=1000, observation="planes")
    elif isinstance(env, RiverSettings):
        env = replace(env, max_steps=350, observation="characters")
    return replace(
        config,
        env=env,
        network=NetworkSettings(hidden=512, channels=(32, 64, 64), core="lstm", join="concat", goal_hidden=512),
        actor=ActorSettings(num_envs=128, epsilon_base=0.4, epsilon_exponent=7.0, max_pursuit_steps=0),
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
            reachability_threshold=0.5,
            controllability_threshold=0.1,
            estimator=EstimatorSettings(method="lspi", projections=32, whole_up_to=0, discount=0.95),
            batch_size=1024,
            goal_set_size=100,
            num_buckets=5,
            num_candidates=5,
            p_task=0.1,
            mastery_threshold=0.6,
        ),
        agent57=Agent57Settings(memory_capacity=10_000),  # ten episodes of 1000 steps
        refresh_every=50_000,
        evaluation=EvaluationSettings(every=200_000, episodes=32, epsilon=0.01),
        steps=200_000_000,
    )


_OWN = replace(
    _BABA,
    env=OwnSettings(),
    actor=ActorSettings(num_envs=32, epsilon_exponent=1.0, max_pursuit_steps=50),
    replay=ReplaySettings(capacity=300_000, novelty_share=0.5, novelty_exponent=1.0),
    agent57=_AGENT57,
    learner=replace(_LEARNER, learning_rate=5e-4, replay_ratio=8.0),  # steps cost more than in Baba, so more is learned of each
    pge=replace(
        _BABA.pge,
        controllability_threshold=0.02,
        strategy="product",  # D21
        # worlds that differ from episode to episode need more to be judged by
        batch_size=4096,
        estimator=EstimatorSettings(whole_up_to=64, projections=128),
    ),
    refresh_every=20_000,
    evaluation=EvaluationSettings(every=50_000, episodes=32, epsilon=0.01),
    steps=1_000_000,
)


def own_environment(factory: str, space: str) -> DeepConfig:
    """The configuration of `protogoal train --env module:factory --space module:function`."""
    for option, name in (("--env", factory), ("--space", space)):
        if not name:
            raise ValueError(f"an environment of your own needs {option} module:function")
    return replace(_OWN, env=OwnSettings(factory, space))


def announced_presets() -> dict[str, Any]:
    """NAME-protogoal and NAME-r2d2 of every domain that an installed package announces (see envs/own.py)."""
    from protogoal.envs.own import announced_domains

    presets: dict[str, Any] = {}
    for name, domain in announced_domains().items():
        config = with_fields(own_environment(domain.env, domain.space), domain.fields, f"domain {name}: ")
        for agent in ("protogoal", "r2d2"):
            presets[f"{name}-{agent}"] = replace(config, agent=agent)
    return presets


def with_fields(config: Any, fields: Mapping[str, Any], words: str = "") -> Any:
    """The configuration with fields changed, by their dotted names; `words` come before the name of one that does not exist."""
    for dotted, value in fields.items():
        config = _replace_field(config, dotted.split("."), value, words + dotted)
    return config


def _replace_field(config: Any, path: list[str], value: Any, words: str) -> Any:
    if not hasattr(config, path[0]):
        raise ValueError(f"{words} is not a field of the configuration")
    inner = value if len(path) == 1 else _replace_field(getattr(config, path[0]), path[1:], value, words)
    return replace(config, **{path[0]: inner})
