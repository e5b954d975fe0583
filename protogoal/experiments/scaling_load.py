"""The Ray engine under the load of the paper's 128 actors, without 128 machines: workers that replay recorded windows.

A `SimulatedWorker` returns windows that were recorded once, at a set rate; a `SimulatedLearner` pulls its batches and
publishes weights, but computes nothing. Everything between them is the real engine: messages, replay shards, counting,
refreshes, goal sets, weights. The CPU time of each process, per step, says at what rate it becomes the bottleneck: a
process has one thread, so it is full at one CPU second a second. That holds on a busy machine too.

`experiments.scaling` and `benchmarks/scale.py` call this.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import psutil
import ray

from protogoal.agents.blueprint import make_evaluator
from protogoal.agents.counting import Counted, count
from protogoal.config import DeepConfig, RaySettings
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.segments import Segments
from protogoal.domains.domain import make_batch_env
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.presets import PRESETS, at_paper_scale
from protogoal.run.ray.learner import LearnerClient, LearnerRole
from protogoal.run.ray.session import RaySession
from protogoal.run.ray.supervisor import Published, Role, start_role
from protogoal.run.ray.worker import Report, Worker, WorkerClient
from protogoal.settings import with_fields

ACTORS = 128
STEPS_PER_ACTOR = 260  # a second
NEEDED = ACTORS * STEPS_PER_ACTOR
REFRESHES_PER_SECOND = 10 / 60
CONJUNCTIONS = 2_000  # AND-goals in the table, beside its single bits
RECORDED = 8  # windows, which the simulated workers repeat
SPREAD = 8  # one of so many is kept

Window = tuple[Segments, Counted, Report]


def paper_config() -> DeepConfig:
    """The paper's level and settings, with observations as lists of what is where, the form that all our presets have."""
    preset: DeepConfig = PRESETS["baba-umaze-paper-protogoal"]
    config = at_paper_scale(preset)
    return replace(config, env=with_fields(config.env, {"observation": "active"}), refresh_every=int(NEEDED / REFRESHES_PER_SECOND))


def record(config: DeepConfig, num_envs: int, windows: int = RECORDED) -> list[Window]:
    """Windows of random acting, spread over the first steps of its episodes."""
    one = replace(config, ray=replace(config.ray, workers=1))
    worker = Worker(one, 0, num_envs)
    return [worker.collect(Published(), Published(), None, True, 1) for _ in range(windows * SPREAD)][::SPREAD]


class SimulatedWorker(Role):
    """Returns recorded windows, `rate` steps a second; it reads weights and goal sets as a real one does."""

    def __init__(self, windows: Sequence[Window], rate: float):
        self._windows, self._rate = list(windows), rate
        self._made = 0
        self._due = time.monotonic()
        self._weights_version = self._goals_version = 0

    def collect(self, weights: Published, goals: Published, others: Any, randomly: bool, windows: int) -> Window:
        if weights.version != self._weights_version:
            for array in weights.fetch().values():
                array.copy()
            self._weights_version = weights.version
        if goals.version != self._goals_version:
            goals.fetch()
            self._goals_version = goals.version
        segments, counted, report = self._windows[self._made % len(self._windows)]
        self._made += 1
        self._due = max(self._due + report.steps / self._rate, time.monotonic() - 1.0)
        time.sleep(max(0.0, self._due - time.monotonic()))
        return segments, counted, dataclasses.replace(report, weights_version=self._weights_version)


class SimulatedLearner(LearnerRole):
    """Fetches its batches and publishes weights; an update takes no time."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.learner.update = self._pretend  # type: ignore[method-assign]

    def _pretend(self, batch: Segments, known: KnownGoals) -> dict[str, float]:
        self.learner.updates += 1  # type: ignore[misc]
        return {"goals_learned": float(len(known))}


class SimulatedLearnerClient(LearnerClient):
    """Its client."""

    def start(self, life: int) -> Any:
        return start_role(SimulatedLearner, self.context.config, self.context.spaces, cpus=self.context.config.ray.learner_cpus)


def simulated_session(config: DeepConfig, windows: Sequence[Window], rate: float) -> RaySession:
    """A session whose workers together make `rate` steps a second."""
    class SimulatedWorkerClient(WorkerClient):
        recorded: Any = None

        def start(self, index: int, life: int) -> Any:
            self.recorded = self.recorded or ray.put(list(windows))  # once, for all workers
            s = self.context.config.ray
            return start_role(SimulatedWorker, self.recorded, rate / s.workers, cpus=s.worker_cpus)

    class SimulatedSession(RaySession):
        worker_client = SimulatedWorkerClient
        learner_client = SimulatedLearnerClient

    return SimulatedSession(config)


@dataclass(frozen=True)
class Measured:
    """One run under load: steps a second asked for and made, and CPU seconds per second of each process."""

    offered: float
    achieved: float
    seconds: float
    load: dict[str, float]
    held: dict[str, float]
    """What made acting wait → share of the time."""
    goal_sets: int
    """Published meanwhile."""
    goal_sets_due: float
    """How many of them `refresh_every` asks for."""
    uncounted: int
    """Most transitions that waited to be counted at one time."""


def drive(rate: float, seconds: float, workers: int = 8, envs_per_worker: int = 16, conjunctions: int = CONJUNCTIONS) -> Measured:
    """Runs the engine under a load for some seconds, after a warm-up."""
    settings = RaySettings(workers=workers, envs_per_worker=envs_per_worker, updates_per_call=16, prefetch=16, max_lag=256)
    config = replace(paper_config(), ray=settings, steps=10**12)
    config = replace(config, replay=replace(config.replay, capacity=200_000), learner=replace(config.learner, min_replay=5_000))
    windows = record(config, envs_per_worker)
    session = simulated_session(config, windows, rate)
    try:
        if conjunctions:
            assert session.pge is not None
            session.pge.load(crowded(config, windows, conjunctions).state_dict())
        return _measure(session, rate, seconds)
    finally:
        session.close()


def _measure(session: RaySession, rate: float, seconds: float) -> Measured:
    assert session.pge is not None
    training = session.train()
    deadline = time.monotonic() + 20.0
    while session.pge.goals.version < 3 or session.context.pacing.updates == 0:  # past the first refresh and update
        next(training)
        if time.monotonic() > deadline:
            break
    session.context.log.metrics(session.step)
    before = cpu_by_process(session)
    start, first, version, uncounted = time.monotonic(), session.step, session.pge.goals.version, 0
    while time.monotonic() - start < seconds:
        next(training)
        uncounted = max(uncounted, session.pge.uncounted)
    elapsed, steps = time.monotonic() - start, session.step - first
    load = {name: (spent - before.get(name, 0.0)) / elapsed for name, spent in cpu_by_process(session).items()}
    load["workers"] /= session.config.ray.workers
    figures = session.context.log.metrics(session.step)
    held = {name.removeprefix("time/held_by_"): share for name, share in figures.items() if name.startswith("time/held_by_")}
    published = session.pge.goals.version - version
    return Measured(rate, steps / elapsed, elapsed, load, held, published, steps / session.config.refresh_every, uncounted)


def cpu_by_process(session: RaySession) -> dict[str, float]:
    """CPU seconds spent so far by the session, each role (workers and shards added up) and Ray itself."""
    names = {process.whereabouts["pid"]: process.name.rstrip(" 0123456789") for process in session.context.supervisor.processes}
    names = {pid: {"worker": "workers"}.get(name, name) for pid, name in names.items()} | {os.getpid(): "session"}
    spent: dict[str, float] = defaultdict(float)
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent[names.get(process.pid, "Ray itself")] += float(times.user + times.system)
    return dict(spent)


def crowded(config: DeepConfig, windows: Sequence[Window], conjunctions: int) -> ProtoGoalEvaluator:
    """An evaluator that has counted the windows and holds some AND-goals of bits it saw."""
    env, space = make_batch_env(config.env, 1)
    evaluator = make_evaluator(config, space, env.num_actions)
    env.close()
    for _, counted, _ in windows:
        count(evaluator, counted)
    rng = np.random.default_rng(0)
    seen = np.flatnonzero(evaluator.table.count)
    most = min(conjunctions, len(seen) * (len(seen) - 1) // 2)
    while evaluator.table.size - evaluator.num_bits < most:
        first, second = rng.choice(seen, 2, replace=False)
        evaluator.table.add(int(first), int(second))
    for _, counted, _ in windows:
        count(evaluator, counted)
    evaluator.grow()
    return evaluator
