"""Agent57: R2D2 whose parts are those of the files beside this one (`agents.making` chooses them by the configuration).

`run.local` calls act → remember → learn in a loop, as for its parent.
"""

from __future__ import annotations

import torch

from protogoal.agents.agent57.act import Agent57Actor
from protogoal.agents.agent57.split import SplitLearner, SplitNetwork
from protogoal.agents.r2d2 import R2D2
from protogoal.deep.act import Experience


class Agent57(R2D2):
    """R2D2 that seeks what it has not seen."""

    network: SplitNetwork
    acting_network: SplitNetwork
    actor: Agent57Actor
    learner: SplitLearner

    def remember(self, experience: Experience) -> None:
        super().remember(experience)
        policy = torch.tensor(self.actor.bandit.greedy_arm())  # what the evaluator plays
        self.network.task_policy.copy_(policy)
        self.learner.average.network.task_policy.copy_(policy)
