"""The deep agent's speed: what learning every goal at once buys, how fast it acts, and where the time goes.

`learned` counts transitions × goals: a batch of n transitions learned for k goals each is n·k. The reference is the paper's
way, hindsight goals drawn by novelty and a network that takes state and goal together, on the same data in the same run.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from protogoal.agents.proto_r2d2 import ProtoR2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import Actor
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.replay import Replay
from protogoal.domains.domain import make_batch_env
from protogoal.envs.vector import BatchEnv
from protogoal.goals.goal_set import GoalSet
from protogoal.presets import PRESETS

PARTS = ("relabel", "_features", "_values", "all_values", "_targets")


def _setup(config: DeepConfig, steps: int) -> ProtoR2D2:
    """An agent with the experience of a random policy, and goals to pursue."""
    env, space = make_batch_env(config.env, config.actor.num_envs)
    agent = ProtoR2D2(config, env, space)
    while agent.replay.transitions < steps:
        agent.remember(agent.act(randomly=True))
    agent.refresh()
    return agent


def _learning(config: DeepConfig, env: BatchEnv, replay: Replay, known: KnownGoals, seconds: float) -> dict[str, float]:
    """Transitions × goals a second, and seconds of each part per update."""
    online, target = (ProtoR2D2.make_network(config, env) for _ in range(2))
    learner = ProtoR2D2.make_learner(config, online, target)
    rng = np.random.default_rng(0)
    pairs = updates = 0
    for _ in range(3):
        learner.update(replay.sample(config.learner.batch_size, rng), known)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        batch = replay.sample(config.learner.batch_size, rng)
        pairs += batch.action.size * int(learner.update(batch, known)["goals_learned"])
        updates += 1
    spent = time.perf_counter() - start
    return {"pairs": pairs / spent, "updates": updates / spent}


def _acting(actor: Actor, goals: GoalSet, seconds: float) -> float:
    """Steps a second of all environments together, with goal selection."""
    actor.collect(goals)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        steps += actor.collect(goals).segments.action.size
    return steps / (time.perf_counter() - start)


def _shares(config: DeepConfig, seconds: float) -> dict[str, float]:
    """Share of a run's time spent in each part, of a short run without overlap."""
    env, space = make_batch_env(config.env, config.actor.num_envs)
    agent = ProtoR2D2(config, env, space)
    spent: dict[str, float] = defaultdict(float)

    def timed(part: str, call: Any, *arguments: Any) -> Any:
        start = time.perf_counter()
        result = call(*arguments)
        spent[part] += time.perf_counter() - start
        return result

    next_refresh = 0
    start = None
    while start is None or time.perf_counter() - start < seconds:
        if start is None and agent.learner.updates > 3:
            start = time.perf_counter()
            spent.clear()
        for _ in range(agent.updates_due()):
            timed("learn", agent.learn)
        experience = timed("act", agent.act, agent.learner.updates == 0)
        timed("remember", agent.remember, experience)
        timed("publish", agent.publish)
        if agent.can_learn and agent.steps >= next_refresh:
            next_refresh = agent.steps + config.refresh_every
            timed("pge", agent.refresh)
    total = sum(spent.values())
    return {part: value / total for part, value in spent.items()}


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows of the benchmark; `quick` takes seconds, else about a minute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(0.5 if quick else 8.0, 20_000 if quick else 100_000)
    finally:
        torch.set_num_threads(threads)


def _run(seconds: float, steps: int) -> list[dict[str, Any]]:
    config: DeepConfig = PRESETS["baba-umaze-medium-protogoal"]
    agent = _setup(config, steps)
    known = agent.known
    ours = _learning(config, agent.env, agent.replay, known, seconds)
    paper = replace(
        config,
        network=replace(config.network, join="concat"),
        learner=replace(config.learner, relabel="novelty", hindsight_goals=15, unattained_goals=0),
    )
    reference = _learning(paper, agent.env, agent.replay, known, seconds)
    rows = [
        {
            "case": f"learned: all {len(known)} goals + bilinear, against novelty + concat",
            "value": ours["pairs"],
            "unit": "transitions x goals/s",
            "reference": reference["pairs"],
            "ratio": ours["pairs"] / reference["pairs"],
        },
        {
            "case": "updates (the same two)",
            "value": ours["updates"],
            "unit": "updates/s",
            "reference": reference["updates"],
            "ratio": ours["updates"] / reference["updates"],
        },
        {
            "case": f"acting, {config.actor.num_envs} environments, goals selected",
            "value": _acting(agent.actor, agent.goal_set, seconds),
            "unit": "steps/s",
            "reference": None,
            "ratio": None,
        },
    ]
    for part, share in sorted(_shares(config, seconds).items(), key=lambda item: -item[1]):
        rows.append({"case": f"share of time: {part}", "value": share, "unit": "", "reference": None, "ratio": None})
    return rows
