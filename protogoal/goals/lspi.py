"""Seek and avoid values by least-squares policy iteration, as the paper words it (§4.1). Called by `values.py`."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def lspi_values(
    features: Floats,
    action: NDArray[np.integer],
    next_features: Floats,
    terminated: NDArray[np.bool_],
    attained: NDArray[np.bool_],
    num_actions: int,
    discount: float,
    policy_iterations: int,
    ridge: float,
) -> tuple[Floats, Floats, Floats]:
    """Returns (max V_seek, mean V_seek, mean V_avoid), each [G], from features [n, K] and attained bool[n, G]."""
    n, k = features.shape
    d = k * num_actions
    rows = np.arange(n)
    per_action = np.zeros((n, num_actions, k))
    per_action[rows, action] = features
    phi = per_action.reshape(n, d)
    uniform = np.repeat(next_features[:, None, :] / num_actions, num_actions, axis=1).reshape(n, d)
    gram = phi.T @ phi + ridge * np.eye(d)
    out = []
    for g in range(attained.shape[1]):
        go_on = discount * ~(attained[:, g] | terminated)
        values = []
        for sign in (1.0, -1.0):
            w = np.zeros(d)
            for iteration in range(policy_iterations):
                if iteration == 0:
                    phi_next = uniform
                else:
                    best = (next_features @ w.reshape(num_actions, k).T).argmax(axis=1)
                    blocks = np.zeros((n, num_actions, k))
                    blocks[rows, best] = next_features
                    phi_next = blocks.reshape(n, d)
                matrix = gram - phi.T @ (go_on[:, None] * phi_next)
                w = np.linalg.solve(matrix, phi.T @ (sign * attained[:, g]))
            values.append((features @ w.reshape(num_actions, k).T).max(axis=1))
        out.append((values[0].max(), values[0].mean(), values[1].mean()))
    seek_max, seek_mean, avoid_mean = np.array(out).T
    return seek_max, seek_mean, avoid_mean
