"""The player of the task in a process of its own: takes weights, plays for the task (paper, Appendix C).

`PlayerClient` asks for an evaluation each `evaluation.every` steps; training goes on meanwhile. Where too many wait
(each keeps its weights) one is left out, which the run's events say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from protogoal import registry
from protogoal.agents.blueprint import EnvSpaces, Seeds
from protogoal.config import DeepConfig
from protogoal.deep.act import Evaluation
from protogoal.deep.network import set_buffers, weights_from_arrays
from protogoal.domains.domain import success_rule
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.record.events import Evaluated, Measured
from protogoal.run.local import play_episodes
from protogoal.run.ray.supervisor import Published, Role, RunContext, start_role
from protogoal.run.ray.vocabulary import VocabularyHandle, share_words, take_words

EVALUATIONS_AHEAD = 4
"""Evaluations that may wait or be played; one that comes due then is left out."""


class PlayerRole(Role):
    """A network, and episodes on environments of its own; with the run's `space` and `vocabulary` it reads as the workers do."""

    def __init__(self, config: DeepConfig, spaces: EnvSpaces, space: ProtoGoalSpace, vocabulary: VocabularyHandle | None = None):
        torch.set_num_threads(1)
        self.config, self.vocabulary, self.space = config, vocabulary, space
        share_words(space, vocabulary)
        self.network = registry.agent(config.agent).make_network(config, spaces)
        self._rng = np.random.default_rng(Seeds.of(config.seed).evaluating)
        self._version = 0
        self.success = success_rule(config.env.in_one_process(), config.evaluation.success_return)

    def play(self, weights: Published, episodes: int, buffers: Mapping[str, Any]) -> tuple[Evaluation, Mapping[str, Any]]:
        """Episodes for the task with these weights and buffers; and the state of the generator after them."""
        if weights.version != self._version:
            weights_from_arrays(self.network, weights.fetch())
            self._version = weights.version
        set_buffers(self.network, buffers)
        result = play_episodes(self.config, self.network, episodes, self._rng, self.success, self.space)
        return result, self._rng.bit_generator.state

    def load(self, generator: Mapping[str, Any]) -> None:
        """Goes on from the state of the generator."""
        self._rng.bit_generator.state = generator
        take_words(self.space, self.vocabulary)

    def know(self, space: Mapping[str, Any]) -> None:
        """Takes over what the run's proto-goal space has learned."""
        self.space.load_state_dict(space)


class PlayerClient:
    """What the session knows of the player, and asks of it."""

    def __init__(self, context: RunContext, space: ProtoGoalSpace, vocabulary: VocabularyHandle | None):
        self.context = context
        self.generator: Mapping[str, Any] = np.random.default_rng(Seeds.of(context.config.seed).evaluating).bit_generator.state
        self.next_step = context.config.evaluation.every
        self.queue: list[tuple[int, int, Published]] = []  # (step, episodes, weights) to be played, oldest first
        self._weights_lost = False
        self.buffers: Mapping[str, Any] = {}  # of the network that is played with, which all workers have a part in
        self.process = context.supervisor.add("player", lambda _: start_role(
            PlayerRole, context.config, context.spaces, space, vocabulary, cpus=context.config.ray.player_cpus), self._died)

    def is_due(self) -> bool:
        """Whether it is time; asked once for each evaluation."""
        config = self.context.config
        if not self.next_step <= self.context.pacing.steps < config.steps:  # the last one is the session's
            return False
        self.next_step += config.evaluation.every
        return True

    def add(self, episodes: int, weights: Published) -> None:
        """An evaluation of these weights, if there is room for it."""
        if len(self.queue) >= EVALUATIONS_AHEAD:
            if not self.context.lost["evaluations"]:
                self.context.event(f"the player is {EVALUATIONS_AHEAD} evaluations behind: those that come due are left out "
                                  "until it has caught up; a larger evaluation.every needs fewer")
            self.context.lost["evaluations"] += 1
            return
        self.queue.append((self.context.pacing.steps, episodes, weights))

    def ask(self, newest: Published) -> None:
        """The next of the queue, unless one is being played; with the newest weights if its own were lost."""
        if self.queue and self.process.is_ready and not self.context.supervisor.waiting(self.process, "play"):
            step, episodes, weights = self.queue[0]
            answer = self.process.handle.play.remote(newest if self._weights_lost else weights, episodes, self.buffers)
            self._weights_lost = False
            self.context.supervisor.call(self.process, "play", answer, lambda result: self._played(step, *result), self._lost)

    def _lost(self) -> None:
        self._weights_lost = True

    def _played(self, step: int, result: Evaluation, generator: Mapping[str, Any]) -> None:
        self.queue.pop(0)
        self.generator = generator
        if result.cut:
            self.context.event(result.cut_words)
        self.context.tell(Evaluated(step, result.episodes, result.successes, result.mean_return))
        self.context.tell(Measured(step, self.context.log.evaluated(result)))

    def _died(self, why: str) -> None:
        self._weights_lost = False
        self.context.event(f"player died ({why}): {len(self.queue)} evaluations are played again")
        self.load(self.generator)

    def know(self, space: Mapping[str, Any]) -> None:
        """The player takes over what the run's proto-goal space has learned."""
        self.context.supervisor.call(self.process, "load", self.process.handle.know.remote(space))

    def load(self, generator: Mapping[str, Any]) -> None:
        """Goes on from the state of the generator."""
        self.generator = generator
        self.context.supervisor.call(self.process, "load", self.process.handle.load.remote(generator))
