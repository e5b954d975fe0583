"""The local engine: act → learn → remember → refresh → evaluate, one process, one readable loop (paper, Figure 8).

This is the executable specification; `run.ray` puts the same pieces behind Ray actors. A window of acting uses the
weights from before the updates made beside it, so the two can run on two cores at the same time, and whether they do
changes nothing in the result: a run is a function of its configuration, and a saved one goes on to the bit.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from protogoal.agents.proto_r2d2 import ProtoR2D2
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import Evaluation, Experience, evaluate
from protogoal.goals.plausibility import Verdict
from protogoal.record.store import Store
from protogoal.run.environments import make_batch_env
from protogoal.run.limits import check_memory


class LocalSession:
    """A run of the deep agent: made of a configuration, trained into a store, saved, loaded, shown."""

    def __init__(self, config: DeepConfig):
        self.config = config
        torch.set_num_threads(1)  # one for acting, one for learning; more than one each was slower
        self.env, self.space = make_batch_env(config.env, config.actor.num_envs, on_event=self._event)
        check_memory(config, self.env)
        self._events: list[str] = []
        self.agent = ProtoR2D2(config, self.env, self.space) if config.agent == "protogoal" else R2D2(config, self.env, self.space)
        self._evaluations = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(99,)))
        self._next_refresh = self._next_evaluation = 0
        self.log = RunLog()

    @property
    def step(self) -> int:
        return self.agent.steps

    def train(self, store: Store) -> Iterator[tuple[int, dict[str, Any]]]:
        """Trains to the end; yields (step, facts for people) after each window, where the state may be saved."""
        log, agent = self.log, self.agent
        self._next_evaluation = self._next_evaluation or self.config.evaluation.every
        with ThreadPoolExecutor(1) as beside:
            while agent.steps < self.config.steps:
                with log.timing("loop"):
                    self._window(store, beside)
                yield agent.steps, log.facts
        self._evaluate(store, self.config.evaluation.final_episodes)

    def _window(self, store: Store, beside: ThreadPoolExecutor) -> None:
        agent, log, config = self.agent, self.log, self.config
        updates = agent.updates_due()
        acting: Future[Experience] | None = beside.submit(self._act) if config.threads > 1 and updates else None
        with log.timing("learn"):
            for _ in range(updates):
                log.learned(agent.learn())
        experience = acting.result() if acting else self._act()
        with log.timing("remember"):
            agent.remember(experience)
            agent.publish()
        log.acted(experience)
        if isinstance(agent, ProtoR2D2):
            store.pursuits(agent.steps, *_columns(experience))
            log.pursued(experience, agent.evaluator)
            if agent.can_learn and agent.steps >= self._next_refresh:
                self._refresh(store, agent)
        for text in self._events:
            store.event(agent.steps, text)
        self._events.clear()
        if agent.steps >= self._next_evaluation:
            self._next_evaluation += config.evaluation.every
            self._evaluate(store, config.evaluation.episodes)

    def _act(self) -> Experience:
        with self.log.timing("act"):
            return self.agent.act()

    def _refresh(self, store: Store, agent: ProtoR2D2) -> None:
        self._next_refresh = agent.steps + self.config.refresh_every
        start = time.perf_counter()
        with self.log.timing("pge"):
            agent.refresh()
        store.refresh(agent.steps, agent.evaluator.snapshot(), agent.evaluator.describe, time.perf_counter() - start)
        self.log.facts["goals"] = len(agent.goal_set)

    def _evaluate(self, store: Store, episodes: int) -> Evaluation:
        with self.log.timing("evaluate"):
            result = self._play_episodes(episodes, self._evaluations)
        store.evaluation(self.step, result.episodes, result.successes, result.mean_return)
        store.metrics(self.step, {"success": result.success_rate, "episode_length": result.mean_length})
        store.metrics(self.step, self.log.metrics(self.step))
        if isinstance(self.agent, ProtoR2D2):
            store.metrics(self.step, goal_metrics(self.agent))
        self.log.facts["success"] = result.success_rate
        return result

    def _play_episodes(self, episodes: int, rng: np.random.Generator) -> Evaluation:
        env, _ = make_batch_env(self.config.env, min(episodes, 32), self.space)
        try:
            return evaluate(self.agent.network, env, episodes, self.config.evaluation.epsilon, rng)
        finally:
            env.close()

    def evaluate(self, episodes: int, seed: int) -> int:
        """Episodes for the task: how many succeeded."""
        return self._play_episodes(episodes, np.random.default_rng(seed)).successes

    def close(self) -> None:
        self.env.close()

    def _event(self, text: str) -> None:
        self._events.append(text)

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain arrays and JSON-able values."""
        return {
            "agent": self.agent.state_dict(),
            "evaluations": self._evaluations.bit_generator.state,
            "next_refresh": self._next_refresh,
            "next_evaluation": self._next_evaluation,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.agent.load_state_dict(state["agent"])
        self._evaluations.bit_generator.state = state["evaluations"]
        self._next_refresh, self._next_evaluation = int(state["next_refresh"]), int(state["next_evaluation"])


class RunLog:
    """Figures of a run between two reports: rates, losses, success by kind of goal, and where the time went."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._losses: list[dict[str, float]] = []
        self._kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])  # pursuits, successes
        self._kind_of: dict[int, str] = {}
        self._returns: list[float] = []
        self._episodes = self._wins = 0
        self._last_step = 0

    def timing(self, part: str) -> Timing:
        return Timing(self._seconds, part)

    def learned(self, figures: dict[str, float]) -> None:
        self._losses.append(figures)

    def acted(self, experience: Experience) -> None:
        self._returns.extend(experience.episode_return.tolist())
        self._episodes += len(experience.episode_return)
        self._wins += int((experience.episode_return > 0).sum())

    def pursued(self, experience: Experience, evaluator: Any) -> None:
        ended = experience.pursuits
        for goal, success in zip(ended.goal.tolist(), ended.success.tolist(), strict=True):
            kind = self._kind_of.setdefault(goal, "") or evaluator.kind(goal)
            self._kind_of[goal] = kind
            tally = self._kinds[kind]
            tally[0] += 1
            tally[1] += success

    def metrics(self, step: int) -> dict[str, float]:
        """The figures since the last call, which starts them anew."""
        seconds = self._seconds
        loop = max(seconds["loop"] + seconds["evaluate"] * 0, 1e-9)
        values = {
            "steps_per_second": (step - self._last_step) / loop,
            "updates_per_second": len(self._losses) / loop,
            "train_episodes": float(self._episodes),
            "train_wins": float(self._wins),
        }
        values |= {f"time/{part}": spent / loop for part, spent in seconds.items() if part != "loop"}
        if self._returns:
            values["train_return"] = float(np.mean(self._returns))
        if self._losses:
            values |= {name: float(np.mean([f[name] for f in self._losses])) for name in self._losses[0]}
        for kind, (pursuits, successes) in self._kinds.items():
            values[f"pursuits/{kind}"] = float(pursuits)
            values[f"success/{kind}"] = successes / pursuits
        self._seconds.clear()
        self._losses, self._returns, self._last_step = [], [], step
        self._kinds.clear()
        return values


class Timing:
    """Adds the time spent in a with-block to one entry of a dict."""

    def __init__(self, seconds: dict[str, float], part: str):
        self._seconds, self._part = seconds, part

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._part] += time.perf_counter() - self._start


def goal_metrics(agent: ProtoR2D2) -> dict[str, float]:
    """How many goals there are by kind, and what share of those observed is pruned and why."""
    evaluator = agent.evaluator
    table, verdict = evaluator.table, evaluator.verdict
    observed = table.count[: len(verdict)] > 0
    total = max(1, int(observed.sum()))
    values = {
        "goals/observed": float(observed.sum()),
        "goals/offered": float(len(agent.goal_set)),
        "goals/conjunctions": float(table.size - table.num_bits),
        "goals/mastered": float(evaluator.mastered.sum()),
    }
    for reason in (Verdict.UNREACHABLE, Verdict.UNCONTROLLABLE, Verdict.UNSAMPLED, Verdict.PLAUSIBLE):
        values[f"share/{reason.name.lower()}"] = float((verdict[observed] == reason).sum()) / total
    by_kind: dict[str, int] = defaultdict(int)
    for goal in np.flatnonzero(observed[: table.num_bits]):
        by_kind[evaluator.kind(int(goal))] += 1
    return values | {f"observed/{kind}": float(count) for kind, count in by_kind.items()}


def _columns(experience: Experience) -> tuple[Any, Any, Any]:
    ended = experience.pursuits
    return ended.goal, ended.success, ended.length
