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

from protogoal.deep.network import TORSOS
from protogoal.deep.segments import Segments
from protogoal.deep.settings import NetworkSettings
from protogoal.deep.settings_agent57 import Agent57Settings
from protogoal.envs.vector import ArraySpec, Observation


class Encoder(nn.Module):
    """An observation, name → [M, …], as a vector [M, size]: the torsos of the value network, smaller, and a linear layer."""

    def __init__(self, observation_spec: dict[str, ArraySpec], size: int, settings: Agent57Settings):
        super().__init__()
        shape = NetworkSettings(hidden=settings.curiosity_hidden, channels=settings.curiosity_channels)
        self.torsos = nn.ModuleDict({name: TORSOS[spec.kind](spec, shape) for name, spec in observation_spec.items()})
        self.out = nn.Linear(settings.curiosity_hidden * len(observation_spec), size)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        encoded: Tensor = self.out(torch.cat([torso(observation[name]) for name, torso in self.torsos.items()], -1))
        return encoded


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
        f = self.encoder(flat_observation(batch.observation)).view(states, n, -1)  # [T+1, N, d]
        goes_on = torch.from_numpy(~(batch.terminated | batch.truncated))  # else the next state is another episode's
        both = torch.cat([f[:-1], f[1:]], -1)[goes_on]  # [transitions, 2d]
        action = torch.from_numpy(batch.action.astype(np.int64))[goes_on]
        return F.cross_entropy(self.classifier(both), action, reduction="sum") / max(1, len(action))


def flat_observation(observation: Observation) -> dict[str, Tensor]:
    """A batch of observations, name → [T, N, …], as tensors [T·N, …]."""
    return {name: torch.from_numpy(np.ascontiguousarray(a)).flatten(0, 1) for name, a in observation.items()}
