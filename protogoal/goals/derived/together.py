"""A derived proto-goal space: its parts side by side, and what the first steps said about numbers.

The moments are kept here because the space is what a checkpoint, an evaluation and a worker on Ray all share: a number then
looks the same to the network wherever it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.spaces import ProtoGoalSpace, Union

Moments = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


class Derived(Union):
    """Spaces side by side. `moments`: name of a part of the observation → mean and deviation of its numbers."""

    def __init__(self, spaces: Sequence[ProtoGoalSpace], moments: Moments | None = None):
        super().__init__(spaces)
        self.moments: Moments = dict(moments or {})

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"moments": {name: [mean.tolist(), deviation.tolist()]
                                                   for name, (mean, deviation) in self.moments.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        stored = state["moments"]
        if set(stored) != set(self.moments):
            raise ValueError(f"stored moments are of {sorted(stored)}, this environment's of {sorted(self.moments)}")
        self.moments = {name: _moments(name, stored[name], len(mean)) for name, (mean, _) in self.moments.items()}


def _moments(name: str, pair: Any, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean, deviation = (np.asarray(row, np.float64) for row in pair)
    if mean.shape != (size,) or deviation.shape != (size,) or not np.isfinite([mean, deviation]).all() or (deviation <= 0).any():
        raise ValueError(f"stored moments of {name!r} are not {size} means and deviations")
    return mean, deviation
