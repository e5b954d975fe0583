"""Multi-step targets, one goal and one segment at a time, straight from the definitions."""

import numpy as np


def greedy_value(q_online, q_target):
    """Q_target(s, argmax_a Q_online(s, a)); both [A]."""
    return q_target[int(np.argmax(q_online))]


def retrace(t, reward, discount, action, is_valid, q_online, q_target, trace_lambda):
    """G_t as a sum of corrected TD errors: Q(s_t, a_t) + Σ_k (Π γ c) δ_k, for one goal (all arrays [T], q [T+1, A])."""
    total = q_target[t, action[t]]
    weight = 1.0
    for k in range(t, len(reward)):
        if k > t:
            if not is_valid[k]:
                break
            is_greedy = int(np.argmax(q_online[k])) == action[k]
            weight *= discount[k - 1] * (trace_lambda if is_greedy else 0.0)
        delta = reward[k] + discount[k] * greedy_value(q_online[k + 1], q_target[k + 1]) - q_target[k, action[k]]
        total += weight * delta
    return total


def n_step(t, n, reward, discount, is_valid, q_online, q_target):
    """G_t = Σ rewards of up to n transitions, then the greedy value of the state after them."""
    total, weight, k = 0.0, 1.0, t
    while True:
        total += weight * reward[k]
        weight *= discount[k]
        k += 1
        if k == len(reward) or k == t + n or not is_valid[k]:
            return total + weight * greedy_value(q_online[k], q_target[k])


def peng(t, reward, discount, is_valid, q_online, q_target, trace_lambda):
    """(1 − λ) Σ_n λ^(n−1) · (n-step target), the rest of the weight on the longest one there is."""
    total, n, left = 0.0, 1, 1.0
    while t + n < len(reward) and is_valid[t + n]:
        total += left * (1 - trace_lambda) * n_step(t, n, reward, discount, is_valid, q_online, q_target)
        left *= trace_lambda
        n += 1
    return total + left * n_step(t, n, reward, discount, is_valid, q_online, q_target)
