"""The evaluator of the task in a process of its own: takes weights, plays for the task (paper, Appendix C).

`Evaluating`, its desk, asks for an evaluation each `evaluation.every` steps; training goes on meanwhile. Where too many wait
(each keeps its weights) one is left out, which the run's events say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from protogoal.agents.agent57.split import SplitNetwork
from protogoal.agents.making import make_agent_network
from protogoal.agents.parts import EnvSpaces, Seeds
from protogoal.config import DeepConfig
from protogoal.deep.act import Evaluation
from protogoal.deep.network import weights_from_arrays
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.run.environments import make_batch_env
from protogoal.run.local import play_episodes
from protogoal.run.ray.crew import Office, Role, start_role
from protogoal.run.ray.published import Published
from protogoal.run.ray.words import Line, share_words, take_words

EVALUATIONS_AHEAD = 4
"""Evaluations that may wait or be played; one that comes due then is left out."""


class EvaluatorRole(Role):
    """A network, and episodes on environments of its own; with `words`, it reads as the workers do."""

    def __init__(self, config: DeepConfig, spaces: EnvSpaces, words: Line | None = None):
        torch.set_num_threads(1)
        self.config, self.words = config, words
        self.space: ProtoGoalSpace | None = None
        if words is not None:
            env, self.space = make_batch_env(config.env, 1)
            env.close()
            share_words(self.space, words)
        self.network = make_agent_network(config, spaces)
        self._rng = np.random.default_rng(Seeds.of(config.seed).evaluating)
        self._version = 0

    def play(self, weights: Published, episodes: int, task_policy: int | None) -> tuple[Evaluation, Mapping[str, Any]]:
        """Episodes for the task with these weights (Agent57: and this policy); and the state of the generator after them."""
        if weights.version != self._version:
            weights_from_arrays(self.network, weights.fetch())
            self._version = weights.version
        if isinstance(self.network, SplitNetwork) and task_policy is not None:
            self.network.task_policy.fill_(task_policy)
        result = play_episodes(self.config, self.network, episodes, self._rng, self.space)
        return result, self._rng.bit_generator.state

    def load(self, generator: Mapping[str, Any]) -> None:
        """Goes on from the state of the generator."""
        self._rng.bit_generator.state = generator
        if self.space is not None:
            take_words(self.space, self.words)


class Evaluating:
    """The evaluator's desk."""

    def __init__(self, office: Office, words: Line | None = None):
        self.office = office
        self.generator: Mapping[str, Any] = np.random.default_rng(Seeds.of(office.config.seed).evaluating).bit_generator.state
        self.next_step = office.config.evaluation.every
        self.queue: list[tuple[int, int, Published]] = []  # (step, episodes, weights) to be played, oldest first
        self._weights_lost = False
        self.task_policy: int | None = None
        self.member = office.crew.add("evaluator", lambda _: start_role(
            EvaluatorRole, office.config, office.spaces, words, cpus=office.config.ray.evaluator_cpus), self._died)

    def is_due(self) -> bool:
        """Whether it is time; asked once for each evaluation."""
        if self.office.pacing.steps < self.next_step:
            return False
        self.next_step += self.office.config.evaluation.every
        return True

    def add(self, episodes: int, weights: Published) -> None:
        """An evaluation of these weights, if there is room for it."""
        if len(self.queue) >= EVALUATIONS_AHEAD:
            if not self.office.lost["evaluations"]:
                self.office.event(f"the evaluator is {EVALUATIONS_AHEAD} evaluations behind: those that come due are left out "
                                  "until it has caught up; a larger evaluation.every needs fewer")
            self.office.lost["evaluations"] += 1
            return
        self.queue.append((self.office.pacing.steps, episodes, weights))

    def ask(self, newest: Published) -> None:
        """The next of the queue, unless one is being played; with the newest weights if its own were lost."""
        if self.queue and self.member.is_ready and not self.office.crew.waiting(self.member, "play"):
            step, episodes, weights = self.queue[0]
            answer = self.member.handle.play.remote(newest if self._weights_lost else weights, episodes, self.task_policy)
            self._weights_lost = False
            self.office.crew.call(self.member, "play", answer, lambda result: self._played(step, *result), self._lost)

    def _lost(self) -> None:
        self._weights_lost = True

    def _played(self, step: int, result: Evaluation, generator: Mapping[str, Any]) -> None:
        self.queue.pop(0)
        self.generator = generator
        self.office.log.facts["success"] = result.success_rate
        if self.office.store is not None:
            self.office.store.evaluation(step, result.episodes, result.successes, result.mean_return)
            self.office.store.metrics(step, {"success": result.success_rate, "episode_length": result.mean_length})

    def _died(self, why: str) -> None:
        self._weights_lost = False
        self.office.event(f"evaluator died ({why}): {len(self.queue)} evaluations are played again")
        self.load(self.generator)

    def load(self, generator: Mapping[str, Any]) -> None:
        """Goes on from the state of the generator."""
        self.generator = generator
        self.office.crew.call(self.member, "load", self.member.handle.load.remote(generator), lambda _: None)
