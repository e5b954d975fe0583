"""What the estimator sees of an observation: all of it while it is small, else random projections (paper §4.1).

Called by `values.py`. Columns are scaled to at most 1 in size, so that bits stay bits, images of bytes do not drown the
ridge, and no unit of measurement matters. Columns that never change in the batch say no more than the bias and are left out.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def observation_features(
    observation: NDArray[np.generic],
    next_observation: NDArray[np.generic],
    projections: int,
    whole_up_to: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Returns (z(s), z(s')), each [n, K] with a bias as the last column, from observations [n, D].

    An observation of at most `whole_up_to` changing entries is used as it is; a larger one is projected,
    z = x·P/√K with P Gaussian [D, projections].
    """
    first = observation[0]
    changes = (observation != first).any(axis=0) | (next_observation != first).any(axis=0)
    x = observation[:, changes].astype(np.float64)
    x_next = next_observation[:, changes].astype(np.float64)
    size = x.shape[1]
    if size:
        scale = np.maximum(np.abs(x).max(axis=0), np.abs(x_next).max(axis=0))
        x, x_next = x / scale, x_next / scale
    bias = np.ones((len(x), 1))
    if size > whole_up_to:
        projection = rng.normal(size=(size, projections)) / np.sqrt(projections)
        x, x_next = x @ projection, x_next @ projection
    return np.concatenate([x, bias], axis=1), np.concatenate([x_next, bias], axis=1)
