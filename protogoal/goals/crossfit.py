"""Robust seek and avoid values: cross-fitted, bounded, action effects shrunk. Called by `values.py`."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def crossfit_values(
    features: Floats,
    action: NDArray[np.integer],
    next_features: Floats,
    terminated: NDArray[np.bool_],
    attained: NDArray[np.bool_],
    num_actions: int,
    discount: float,
    iterations: int,
    ridge: float,
    action_ridge: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Returns (max V_seek, mean V_seek, mean V_avoid), each [G], from features [n, K] and attained bool[n, G]."""
    n, k = features.shape
    goals = attained.shape[1]
    effect = np.eye(num_actions) - 1.0 / num_actions
    phi = np.concatenate([features, (effect[action][:, :, None] * features[:, None, :]).reshape(n, -1)], axis=1)
    penalty = np.concatenate([np.full(k, ridge), np.full(num_actions * k, action_ridge)]) * n / 2000.0
    order = rng.permutation(n)
    folds = [order[: n // 2], order[n // 2 :]]
    solve = [np.linalg.solve(phi[f].T @ phi[f] + np.diag(penalty), phi[f].T) for f in folds]
    bits = attained.astype(np.float64)
    carry = discount * (1.0 - bits) * (1.0 - terminated.astype(np.float64))[:, None]

    def action_values(z: Floats, w: Floats) -> Floats:
        shared = z @ w[:k]
        effects = np.einsum("nk,akg->nag", z, w[k:].reshape(num_actions, k, goals))
        q: Floats = shared[:, None] + effects - effects.mean(axis=1, keepdims=True)
        return q

    def value(z: Floats, chooser: Floats, judge: Floats, sign: int) -> Floats:
        best = action_values(z, chooser).argmax(axis=1)
        v = np.take_along_axis(action_values(z, judge), best[:, None], axis=1)[:, 0]
        bounded: Floats = np.clip(v, 0, 1) if sign > 0 else np.clip(v, -1, 0)
        return bounded

    result = []
    for sign in (1, -1):
        weights = [np.zeros((phi.shape[1], goals)) for _ in folds]
        for _ in range(iterations):
            weights = [
                solve[j] @ (sign * bits[f] + carry[f] * value(next_features[f], weights[j], weights[1 - j], sign))
                for j, f in enumerate(folds)
            ]
        both = [value(features, weights[j], weights[1 - j], sign) for j in (0, 1)]
        result.append((both[0] + both[1]) / 2)
    seek, avoid = result
    return seek.max(axis=0), seek.mean(axis=0), avoid.mean(axis=0)
