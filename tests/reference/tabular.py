"""The tabular agents in plain numpy, one step at a time; the compiled ones must reach the same tables.

Random numbers are drawn one by one with `rng.random()`, goals are chosen by the evaluator itself.
"""

import numpy as np
from reference.goals import turned_on

from protogoal.goals.selection import select
from protogoal.goals.table import TASK
from protogoal.goals.values import SeekAvoid


def argmax_random(values, rng):
    best = np.flatnonzero(values == values.max())
    return int(best[int(rng.random() * len(best))]) if len(best) > 1 else int(best[0])


def q_learning(tables, settings, rng, steps):
    """ε-greedy Q-learning → Q [S, A]."""
    q = np.zeros((tables.num_states, tables.num_actions))
    s = None
    for _ in range(steps):
        if s is None:
            s, t = tables.initial_states[int(rng.random() * len(tables.initial_states))], 0
        explore = rng.random() < settings.epsilon
        a = int(rng.random() * tables.num_actions) if explore else argmax_random(q[s], rng)
        s_next, r, terminated = tables.next_state[s, a], tables.reward[s, a], tables.terminated[s, a]
        target = r + (0.0 if terminated else settings.discount * q[s_next].max())
        q[s, a] += settings.learning_rate * (target - q[s, a])
        s, t = s_next, t + 1
        if terminated or t == tables.time_limit:
            s = None
    return q


def learn_goals(seek, avoid, s, a, s_next, b, terminated, learning_rate, discount):
    """One transition for every goal; seek, avoid [S, A, G], b float [G]."""
    gamma = (0.0 if terminated else discount) * (1 - b)
    for table, cumulant in ((seek, b), (avoid, -b)):
        target = cumulant + gamma * table[s_next].max(0)
        table[s, a] += learning_rate * (target - table[s, a])


def count(table, bits, left, seen, rewards):
    """Tells the table of transitions between states; there are no trials among them, as goals are pursued greedily."""
    table.observe(*turned_on(bits[left], bits[seen]), np.array(rewards))


def proto_goal(tables, bits, settings, evaluator, rng, steps):
    """Algorithm 1 → Q [S, A], Q_seek [S, A, G], Q_avoid [S, A, G]."""
    num_states, num_actions = tables.num_states, tables.num_actions
    q = np.zeros((num_states, num_actions))
    seek = np.zeros((num_states, num_actions, bits.shape[1]))
    avoid = np.zeros_like(seek)
    visits = np.zeros(num_states, int)
    b = bits.astype(float)
    left, seen, rewards = [], [], []  # since the last end of an episode
    s, goal, since_refresh = None, None, 0
    for _ in range(steps):
        if s is None:
            if since_refresh >= settings.refresh_every:
                since_refresh = 0
                v_seek, v_avoid = seek.max(1)[visits > 0], avoid.max(1)[visits > 0]
                share = visits[visits > 0] / visits.sum()
                evaluator.refresh_values(
                    SeekAvoid(v_seek.max(0), share @ v_seek, share @ v_avoid, evaluator.table.count.copy()))
            s, t, goal = tables.initial_states[int(rng.random() * len(tables.initial_states))], 0, None
        if goal is None:
            values = seek[s, :, evaluator.goal_set.ids].max(1)
            goal, pursued = int(select(evaluator.goal_set, values[None], bits[s][None], rng)[0]), 0
        if goal != TASK:
            a = argmax_random(seek[s, :, goal], rng)
        elif rng.random() < settings.epsilon:
            a = int(rng.random() * num_actions)
        else:
            a = argmax_random(q[s], rng)
        s_next, r, terminated = tables.next_state[s, a], tables.reward[s, a], tables.terminated[s, a]
        target = r + (0.0 if terminated else settings.discount * q[s_next].max())
        q[s, a] += settings.learning_rate * (target - q[s, a])
        learn_goals(seek, avoid, s, a, s_next, b[s_next], terminated, settings.learning_rate, settings.discount)
        visits[s] += 1
        left.append(s)
        seen.append(s_next)
        rewards.append(r)
        s, t, pursued, since_refresh = s_next, t + 1, pursued + 1, since_refresh + 1
        attained = goal != TASK and bits[s, goal]
        episode_over = terminated or t == tables.time_limit
        if attained or episode_over or pursued == settings.max_pursuit:
            evaluator.record_pursuit(goal, attained, pursued)
            goal = None
        if episode_over:
            count(evaluator.table, bits, left, seen, rewards)
            s, left, seen, rewards = None, [], [], []
    if seen:
        count(evaluator.table, bits, left, seen, rewards)
    return q, seek, avoid
