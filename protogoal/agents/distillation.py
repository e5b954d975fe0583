"""Lifelong novelty: the error of a network that learns to copy a random one (random network distillation; NGU §2).

    err(s) = mean (ĝ(s) − g(s))²      α = 1 + (err − mean err) / std err,  clipped to [1, L]

g never learns; ĝ learns on what is replayed, so the error falls with visits. Centring matters: without it α sits at one of
its ends. The moments follow the error, which falls by orders of magnitude. `rnd` pays α − 1; other novelty may be multiplied by α.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from protogoal.deep.device import device_of, place
from protogoal.deep.network import make_torsos, module_name
from protogoal.deep.segments import Segments
from protogoal.deep.settings import NetworkSettings
from protogoal.envs.vector import ArraySpec, Observation

MOMENTS_HORIZON = 1000
"""Steps of all environments over which mean and deviation of the error are taken."""


class CuriositySettings(Protocol):
    """Of an agent's settings those that shape the networks of its curiosity."""

    @property
    def distillation_size(self) -> int: ...
    @property
    def curiosity_hidden(self) -> int: ...
    @property
    def curiosity_channels(self) -> tuple[int, ...]: ...


class Encoder(nn.Module):
    """An observation, name → [M, …], as a vector [M, size]: the torsos of the value network, smaller, and a linear layer."""

    def __init__(self, observation_spec: dict[str, ArraySpec], size: int, settings: CuriositySettings):
        super().__init__()
        shape = NetworkSettings(hidden=settings.curiosity_hidden, channels=settings.curiosity_channels)
        self.torsos, self.parts = make_torsos(observation_spec, shape), tuple(observation_spec)
        self.out = nn.Linear(settings.curiosity_hidden * len(observation_spec), size)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        encoded: Tensor = self.out(torch.cat([self.torsos[module_name(name)](observation[name]) for name in self.parts], -1))
        return encoded


class RandomDistillation(nn.Module):
    """g, fixed, and ĝ, which learns to copy it."""

    def __init__(self, observation_spec: dict[str, ArraySpec], settings: CuriositySettings):
        super().__init__()
        size = settings.distillation_size
        self.fixed = Encoder(observation_spec, size, settings)
        self.fixed.requires_grad_(False)
        self.learned = nn.Sequential(Encoder(observation_spec, size, settings), nn.ReLU(), nn.Linear(size, size))

    def error(self, observation: dict[str, Tensor]) -> Tensor:
        """err(s) [M]."""
        with torch.no_grad():
            wanted = self.fixed(observation)
        squared: Tensor = (self.learned(observation) - wanted).square().mean(-1)
        return squared

    def loss(self, batch: Segments) -> Tensor:
        """Mean error over the states of a batch that transitions led to."""
        return self.error(flat_observation({name: a[1:] for name, a in batch.observation.items()}, device_of(self))).mean()


class RunningMoments:
    """Mean and standard deviation of a stream of batches, exponentially forgotten."""

    def __init__(self) -> None:
        self.batches = 0
        self.mean = self.square = 0.0

    def update(self, values: NDArray[np.floating[Any]]) -> None:
        """Takes in the values of one step, [n]; none changes nothing."""
        if len(values) == 0:
            return
        self.batches += 1
        rate = 1.0 / min(self.batches, MOMENTS_HORIZON)
        values = values.astype(np.float64)
        self.mean += rate * (float(values.mean()) - self.mean)
        self.square += rate * (float(np.square(values).mean()) - self.square)

    @property
    def deviation(self) -> float:
        return float(np.sqrt(max(self.square - self.mean**2, 0.0)))

    def novelty(self, error: NDArray[np.floating[Any]], most: float) -> NDArray[np.float32]:
        """α = 1 + (err − mean) / std, clipped to [1, most], [n]."""
        alpha = 1.0 + (error.astype(np.float64) - self.mean) / max(self.deviation, 1e-12)
        clipped: NDArray[np.float32] = np.clip(alpha, 1.0, most).astype(np.float32)
        return clipped

    def state_dict(self) -> dict[str, float | int]:
        return {"batches": self.batches, "mean": self.mean, "square": self.square}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.batches, self.mean, self.square = int(state["batches"]), float(state["mean"]), float(state["square"])


def flat_observation(observation: Observation, device: torch.device) -> dict[str, Tensor]:
    """A batch of observations, name → [T, N, …], as tensors [T·N, …]."""
    return {name: place(array, device).flatten(0, 1) for name, array in observation.items()}
