"""The controllable embedding f(s): what of a state one needs to tell which action led to the next (NGU §2, inverse dynamics).

    L = −log p(a_t | f(s_t), f(s_{t+1}))

What no action changes, or what changes by itself, does not help to tell, and leaves f. `curiosity` measures episodic
novelty in it; `split` trains it beside the values.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.agents.distillation import Encoder, flat_observation
from protogoal.deep.device import device_of, place
from protogoal.deep.segments import Segments
from protogoal.envs.vector import ArraySpec


class ControllableEmbedding(nn.Module):
    """f, and the classifier of actions by which it is learned."""

    def __init__(self, observation_spec: dict[str, ArraySpec], num_actions: int, settings: Agent57Settings):
        super().__init__()
        self.encoder = Encoder(observation_spec, settings.embedding_size, settings)
        self.classifier = nn.Sequential(
            nn.Linear(2 * settings.embedding_size, settings.curiosity_hidden),
            nn.ReLU(),
            nn.Linear(settings.curiosity_hidden, num_actions),
        )

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """f(s) [M, d]."""
        embedded: Tensor = self.encoder(observation)
        return embedded

    def loss(self, batch: Segments) -> Tensor:
        """Mean of −log p(a | f(s), f(s')) over the transitions whose successor was stored."""
        states, n = batch.is_first.shape
        device = device_of(self)
        f = self.encoder(flat_observation(batch.observation, device)).view(states, n, -1)  # [T+1, N, d]
        goes_on = place(~(batch.terminated | batch.truncated), device)  # else the next state is another episode's
        both = torch.cat([f[:-1], f[1:]], -1)[goes_on]  # [transitions, 2d]
        action = place(batch.action.astype(np.int64), device)[goes_on]
        return F.cross_entropy(self.classifier(both), action, reduction="sum") / max(1, len(action))
