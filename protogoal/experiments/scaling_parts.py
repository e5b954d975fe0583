"""What each part of the engine costs alone: CPU time of one thread, bytes on the wire, arithmetic of an update.

`experiments.scaling` writes them to components.csv, sizes.csv; docs/scaling.md multiplies them out for 128 actors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import ray
import torch
from torch.utils.flop_counter import FlopCounterMode

from protogoal import registry
from protogoal.agents.blueprint import EnvSpaces
from protogoal.agents.counting import count
from protogoal.config import DeepConfig
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.replay import replay_bytes
from protogoal.domains.domain import make_batch_env
from protogoal.experiments.scaling_load import CONJUNCTIONS, crowded, record
from protogoal.run.ray.learner import LearnerRole
from protogoal.run.ray.shard import Shard
from protogoal.run.ray.worker import Worker

ENVS = 16
"""Environments of one worker."""


class Parts:
    """One of each part, filled as in a run under way."""

    def __init__(self, config: DeepConfig, conjunctions: int = CONJUNCTIONS):
        torch.set_num_threads(1)
        self.config = config
        self.env, _ = make_batch_env(config.env, ENVS)
        self.env.reset(seed=0)
        self.spaces = EnvSpaces.of(self.env)
        self.windows = record(config, ENVS)
        self.worker = Worker(replace(config, ray=replace(config.ray, workers=1)), 0, ENVS)
        self.evaluator = crowded(config, self.windows, conjunctions)
        self.shard = Shard(replace(config, replay=replace(config.replay, capacity=100_000)), self.spaces, 0)
        for recorded, _, _ in self.windows * 8:
            self.shard.add(recorded)
        self.goals = self.refresh()
        self.known = KnownGoals.of(self.evaluator)
        self.learner = LearnerRole(config, self.spaces)
        self.batch = self.shard.sample(config.learner.batch_size, 1)

    def refresh(self) -> Any:
        return self.evaluator.refresh(self.shard.sample_transitions(self.config.pge.batch_size))

    def update(self) -> None:
        self.learner.learner.update(self.batch, self.known)


def components(parts: Parts, least: float = 0.5) -> dict[str, float]:
    """CPU seconds of one thread: to act (in it: the environment alone), count and insert a step, to sample a learned
    transition; for a whole update, refresh, and publication of a goal set and of weights."""
    segments, counted, report = parts.windows[0]
    batch_size, evaluator = parts.config.learner.batch_size, parts.evaluator
    rng = np.random.default_rng(0)
    return {
        "act": cpu_seconds(lambda: parts.worker.actor.collect(parts.goals), least) / report.steps,
        "environment": cpu_seconds(lambda: parts.env.step(rng.integers(parts.spaces.num_actions, size=ENVS)), least) / ENVS,
        "count": cpu_seconds(partial(count, evaluator, counted), least) / report.steps,
        "insert": cpu_seconds(partial(parts.shard.add, segments), least) / report.steps,
        "sample": cpu_seconds(partial(parts.shard.sample, batch_size, 1), least) / (batch_size * parts.config.replay.trace_length),
        "update": cpu_seconds(parts.update, least),
        "refresh": cpu_seconds(parts.refresh, least),
        "goal set": cpu_seconds(lambda: ray.cloudpickle.dumps(
            (evaluator.goal_set, KnownGoals.of(evaluator)), protocol=5), least),
        "weights": cpu_seconds(lambda: ray.cloudpickle.dumps(parts.learner.weights(), protocol=5), least),
    }


def sizes(parts: Parts) -> dict[str, float]:
    """Bytes: a step on its way to replay and to counting, a learned transition, weights, a goal set, the whole replay; and the
    floating-point operations of an update."""
    segments, counted, report = parts.windows[0]
    config, spaces = parts.config, parts.spaces
    learned = config.learner.batch_size * config.replay.trace_length
    with FlopCounterMode(display=False) as flops:
        parts.update()
    return {
        "step to replay": _bytes(segments) / report.steps,
        "step to counting": _bytes(counted) / report.steps,
        "learned transition": _bytes(parts.batch) / learned,
        "weights": _bytes(parts.learner.weights()),
        "goal set": _bytes((parts.goals, parts.known)),
        "replay": replay_bytes(registry.agent(config.agent).stored(config, spaces), config.replay),
        "operations of an update": flops.get_total_flops(),
    }


def _bytes(thing: Any) -> int:
    return len(ray.cloudpickle.dumps(thing, protocol=5))


def cpu_seconds(work: Callable[[], Any], least: float = 0.5) -> float:
    """CPU time of one call, the mean over at least `least` seconds of calls."""
    work()
    calls, start = 0, time.process_time()
    while calls == 0 or time.process_time() - start < least:
        work()
        calls += 1
    return (time.process_time() - start) / calls
