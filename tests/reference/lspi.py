"""Least-squares policy iteration for one goal at a time, as a textbook has it: the slow, obvious version of goals/lspi.py."""

import numpy as np


def state_action_features(features, action, num_actions):
    """φ(s, a): one copy of the features z(s) per action, zero but for the copy of a; [n, A·K]."""
    n, k = features.shape
    phi = np.zeros((n, num_actions, k))
    phi[np.arange(n), action] = features
    return phi.reshape(n, num_actions * k)


def action_values(features, weights, num_actions):
    """Q(s, a) = φ(s, a)·w for every action, [n, A]."""
    every = [state_action_features(features, np.full(len(features), a), num_actions) for a in range(num_actions)]
    return np.stack([phi @ weights for phi in every], axis=1)


def lstdq(phi, phi_next, reward, discount, ridge):
    """Solves Φᵀ(Φ − γΦ')w + ridge·w = Φᵀr, where γ is the discount of each transition, [n]."""
    matrix = phi.T @ (phi - discount[:, None] * phi_next) + ridge * np.eye(phi.shape[1])
    return np.linalg.solve(matrix, phi.T @ reward)


def lspi(features, action, next_features, terminated, attained, num_actions, discount, policy_iterations, ridge, sign):
    """V(s) = max_a Q(s, a) of one goal after LSPI from the uniform policy; attained bool[n], sign +1 seek, −1 avoid; [n]."""
    reward = sign * attained.astype(float)
    continuation = discount * (1.0 - attained) * (1.0 - terminated)
    phi = state_action_features(features, action, num_actions)
    every = [state_action_features(next_features, np.full(len(action), a), num_actions) for a in range(num_actions)]
    phi_next = np.mean(every, axis=0)  # the uniform policy
    weights = lstdq(phi, phi_next, reward, continuation, ridge)
    for _ in range(policy_iterations - 1):
        greedy = action_values(next_features, weights, num_actions).argmax(axis=1)
        phi_next = state_action_features(next_features, greedy, num_actions)
        weights = lstdq(phi, phi_next, reward, continuation, ridge)
    return action_values(features, weights, num_actions).max(axis=1)


def lspi_seek_avoid(features, action, next_features, terminated, attained, num_actions, discount, policy_iterations, ridge):
    """(max V_seek, mean V_seek, mean V_avoid), each [G], goal by goal; attained bool[n, G]."""
    rows = []
    for g in range(attained.shape[1]):
        seek, avoid = (
            lspi(features, action, next_features, terminated, attained[:, g], num_actions, discount,
                 policy_iterations, ridge, sign)
            for sign in (+1, -1)
        )  # fmt: skip
        rows.append((seek.max(), seek.mean(), avoid.mean()))
    return tuple(np.array(rows).reshape(-1, 3).T)
