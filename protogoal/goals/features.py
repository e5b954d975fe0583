"""What the estimators see of an observation: all of it while it is small, else random projections (paper §4.1)."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class FeatureSettings(Protocol):
    @property
    def projections(self) -> int: ...
    @property
    def whole_up_to(self) -> int: ...


def observation_features(
    observation: NDArray[np.generic],
    next_observation: NDArray[np.generic],
    settings: FeatureSettings,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns z(s) and z(s'), each [n, K] with a bias as the last column."""
    x = observation.astype(np.float64)
    x_next = next_observation.astype(np.float64)
    size = x.shape[1]
    if size > settings.whole_up_to:
        projection = rng.normal(size=(size, settings.projections)) / np.sqrt(settings.projections)
        x, x_next = x @ projection, x_next @ projection
    bias = np.ones((len(x), 1))
    return np.concatenate([x, bias], axis=1), np.concatenate([x_next, bias], axis=1)
