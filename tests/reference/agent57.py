"""Agent57's parts, slow and obvious: one environment, one state, one arm at a time."""

import math

import numpy as np


def episodic_rewards(states, k, kernel_epsilon, cluster_distance, pseudo_count, max_similarity, horizon):
    """NGU's episodic reward of each state of one sequence, with an empty memory at its start."""
    memory, rewards, mean, measured = [], [], 0.0, 0
    for state in states:
        if not memory:
            rewards.append(0.0)
            memory.append(state)
            continue
        nearest = sorted(float(np.sum((state.astype(np.float64) - other) ** 2)) for other in memory)[:k]
        measured += 1
        mean += (sum(nearest) / len(nearest) - mean) / min(measured, horizon)
        kernels = 0.0
        for distance in nearest:
            relative = max(distance / max(mean, 1e-12) - cluster_distance, 0.0)
            kernels += kernel_epsilon / (relative + kernel_epsilon)
        kernels *= k / len(nearest)
        similarity = math.sqrt(kernels) + pseudo_count
        rewards.append(0.0 if similarity > max_similarity else 1.0 / similarity)
        memory.append(state)
    return rewards


def beta(j, n, most):
    """β_j as NGU words it."""
    if n == 1 or j == n - 1:
        return most
    if j == 0:
        return 0.0
    return most / (1.0 + math.exp(-10.0 * (2 * j - (n - 2)) / (n - 2)))


def discount(j, n, most, least):
    """γ_j as NGU words it: logarithms of 1 − γ on a line."""
    if n == 1:
        return most
    return 1.0 - math.exp(((n - 1 - j) * math.log(1.0 - most) + j * math.log(1.0 - least)) / (n - 1))


def ucb_scores(arms, rewards, num_arms, window, bonus):
    """μ_j + b·√(1/n_j) over the last `window` pulls; ∞ for an arm without one."""
    recent = list(zip(arms, rewards, strict=True))[-window:]
    scores = []
    for j in range(num_arms):
        mine = [reward for arm, reward in recent if arm == j]
        scores.append(sum(mine) / len(mine) + bonus * math.sqrt(1.0 / len(mine)) if mine else math.inf)
    return scores


def split_targets(reward_e, reward_i, discount_e, discount_i, action, q_e, q_i, target_e, target_i, beta_j, trace_lambda):
    """Retrace targets of both streams of one sequence, [T] each; q and target [T+1, A]; the greedy action is of the sum."""
    steps = len(action)
    out = []
    for reward, discount_t, target in ((reward_e, discount_e, target_e), (reward_i, discount_i, target_i)):
        g = [0.0] * steps
        for t in range(steps - 1, -1, -1):
            best = int(np.argmax(q_e[t + 1] + beta_j * q_i[t + 1]))
            value = target[t + 1][best]
            if t + 1 < steps and action[t + 1] == best:
                value += trace_lambda * (g[t + 1] - target[t + 1][best])
            g[t] = reward[t] + discount_t[t] * value
        out.append(g)
    return out
