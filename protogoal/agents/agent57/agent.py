"""Agent57: R2D2 with another network, learner and actor (the wiring; the parts are in the files beside it).

`run.local` calls act → remember → learn in a loop, as for its parent.
"""

from __future__ import annotations

import torch

from protogoal.agents.agent57.act import Agent57Actor
from protogoal.agents.agent57.split import SplitLearner, SplitNetwork, make_split_network
from protogoal.agents.r2d2 import R2D2
from protogoal.deep.act import Experience


class Agent57(R2D2):
    """R2D2 that seeks what it has not seen."""

    network: SplitNetwork  # type: ignore[assignment]
    acting_network: SplitNetwork  # type: ignore[assignment]
    learner: SplitLearner  # type: ignore[assignment]
    actor: Agent57Actor

    def _make_network(self) -> SplitNetwork:  # type: ignore[override]
        return make_split_network(self.env.observation_spec, self.env.num_actions, self.config, self._seeds.weights)

    def _make_learner(self, target: SplitNetwork) -> SplitLearner:  # type: ignore[override]
        return SplitLearner(self.network, target, self.config, self._seeds.learning)

    def _make_actor(self) -> Agent57Actor:
        return Agent57Actor(self.env, self.acting_network, self.config, self._seeds.acting)

    def remember(self, experience: Experience) -> None:
        super().remember(experience)
        best = self.actor.bandit.greedy_arm()
        self.network.task_policy.copy_(torch.tensor(best))  # what the evaluator plays
