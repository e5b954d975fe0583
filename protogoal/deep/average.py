"""The weights the player plays with: a running mean of the learner's.

    θ̄ ← θ̄ + (1 − d_n)(θ − θ̄),   d_n = min(d, (1 + n)/(10 + n)) after n updates

# DEVIATION(D19): the paper evaluates the newest weights. A greedy policy follows the largest of a few nearly equal
# values, so with a constant step size one update is enough to turn a policy that always wins into one that walks in
# circles, and back. The mean over the last updates is steady. Acting and learning use the newest weights; d = 0 is the paper's.

Learners update it after each step; `run.local` and `run.ray` evaluate and play with it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Generic

import torch

from protogoal.deep.network import Network, weights_from_arrays, weights_to_arrays
from protogoal.deep.optimizer import Rows, pieces


class AverageWeights(Generic[Network]):
    """A network that follows another; with decay 0 it is the other."""

    def __init__(self, network: Network, decay: float):
        self.decay, self.updates = decay, 0
        self.network: Network = copy.deepcopy(network).requires_grad_(False) if decay else network
        self._followed = network
        self.look_at({})
        self._buffers = list(zip(self.network.buffers(), network.buffers(), strict=True))

    @torch.no_grad()
    def look_at(self, rows: Rows) -> None:
        """From now on others are passed over: they do not change; `rows` of the network that is followed."""
        parts = [rows.get(weight, ()) for weight in self._followed.parameters()]
        self._weights, self._newest = (pieces(network.parameters(), parts) for network in (self.network, self._followed))

    @torch.no_grad()
    def update(self) -> None:
        """Takes the newest weights in; what is not a weight, such as a counter, is copied."""
        if not self.decay:
            return
        self.updates += 1
        keep = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self._weights, self._newest, 1.0 - keep)
        for mine, newest in self._buffers:
            mine.copy_(newest)

    def state_dict(self) -> dict[str, Any]:
        """The mean, as plain arrays; nothing where it is the newest weights."""
        return {"weights": weights_to_arrays(self.network), "updates": self.updates} if self.decay else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        if self.decay:
            weights_from_arrays(self.network, state["weights"])
            self.updates = int(state["updates"])
