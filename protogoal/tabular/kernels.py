"""Compiled loops of the tabular agents (paper appendix A, Algorithm 1). Called by `agent`.

Tables of goals are laid out [S, A, G] and their maxima V [S, G], so that one transition updates every goal in straight
runs of memory. V is kept beside Q and renewed for the one state that changed: an update then reads one row of V
instead of the whole of Q[s'].

Randomness comes from a `np.random.Generator` and is drawn exactly as numpy code in the same order would draw it, which
is how tests/reference/tabular.py reaches the same tables.
"""

from __future__ import annotations

import numba as nb
import numpy as np

TASK = -1  # as in goals.table; numba freezes it
NO_GOAL = -2  # a new pursuit begins: a goal is to be selected

# What is carried from one call to the next, int64 [6]: a call may stop anywhere, also within an episode.
STATE, TIME, GOAL, PURSUIT_TIME, EPISODES, SINCE_REFRESH = range(6)
NO_STATE = -1  # an episode is to begin


@nb.njit(cache=True)
def argmax_random(values, rng):
    """argmax with ties broken at random; values [A]. Draws only if there is a tie."""
    best, ties = values[0], 1
    for i in range(1, values.shape[0]):
        if values[i] > best:
            best, ties = values[i], 1
        elif values[i] == best:
            ties += 1
    k = int(rng.random() * ties) if ties > 1 else 0
    for i in range(values.shape[0]):
        if values[i] == best:
            if k == 0:
                return i
            k -= 1
    return 0


@nb.njit(cache=True)
def learn_task(q, s, a, r, s_next, terminated, learning_rate, discount):
    """Q(s,a) += α [r + γ max_a' Q(s',a') − Q(s,a)], without the maximum after termination; q [S, A]."""
    target = r
    if not terminated:
        target += discount * q[s_next].max()
    q[s, a] += learning_rate * (target - q[s, a])


@nb.njit(cache=True)
def learn_goals(seek, avoid, v_seek, v_avoid, s, a, s_next, bits, terminated, learning_rate, discount):
    """Q_g(s,a) += α [c_g + γ_g max_a' Q_g(s',a') − Q_g(s,a)] for every goal; c = ±b, γ_g = γ(1 − b), 0 after termination.

    seek, avoid [S, A, G]; v_seek, v_avoid [S, G] their maxima over A; bits float [G] of this transition.
    """
    num_actions, num_goals = seek.shape[1], seek.shape[2]
    continuation = 0.0 if terminated else discount
    seek_s, avoid_s = seek[s], avoid[s]
    seek_sa, avoid_sa = seek_s[a], avoid_s[a]
    v_seek_next, v_avoid_next = v_seek[s_next], v_avoid[s_next]
    for g in range(num_goals):
        b = bits[g]
        gamma = continuation * (1.0 - b)
        seek_sa[g] += learning_rate * (b + gamma * v_seek_next[g] - seek_sa[g])
        avoid_sa[g] += learning_rate * (gamma * v_avoid_next[g] - b - avoid_sa[g])
    # The loop over actions stands outside, so that the inner one runs along memory.
    v_seek_s, v_avoid_s = v_seek[s], v_avoid[s]
    for g in range(num_goals):
        v_seek_s[g] = seek_s[0, g]
        v_avoid_s[g] = avoid_s[0, g]
    for i in range(1, num_actions):
        seek_si, avoid_si = seek_s[i], avoid_s[i]
        for g in range(num_goals):
            v_seek_s[g] = seek_si[g] if seek_si[g] > v_seek_s[g] else v_seek_s[g]
            v_avoid_s[g] = avoid_si[g] if avoid_si[g] > v_avoid_s[g] else v_avoid_s[g]


@nb.njit(cache=True)
def select_goal(ids, cumulative, edges, values, bits, num_candidates, p_task, rng):
    """`goals.selection.select` for one state, draw for draw; a test holds the two together.

    ids [k] in order of bucket, cumulative [k+1] of their novelty, edges: first position of each bucket, and k; values
    V_seek(s, ·) [G] and bits [G] of the state.
    """
    if ids.shape[0] == 0:
        return TASK
    if rng.random() < p_task:
        return TASK
    bucket = rng.integers(0, edges.shape[0] - 1)
    first, end = edges[bucket], edges[bucket + 1]
    low, high = cumulative[first], cumulative[end]
    best, best_value = TASK, -np.inf
    for _ in range(num_candidates):
        point = low + rng.random() * (high - low)
        position = first
        while position < end - 1 and cumulative[position + 1] <= point:
            position += 1
        goal = ids[position]
        if bits[goal] == 0.0 and values[goal] > best_value:
            best, best_value = goal, values[goal]
    return best


@nb.njit(cache=True)
def q_learning_steps(
    next_state, reward, terminated, initial_states, time_limit, q, carry, num_steps, learning_rate, discount, epsilon, rng
):
    """ε-greedy Q-learning for `num_steps` steps; q [S, A] and carry are changed in place."""
    num_actions = q.shape[1]
    for _ in range(num_steps):
        if carry[STATE] == NO_STATE:
            carry[STATE] = initial_states[int(rng.random() * initial_states.shape[0])]
            carry[TIME] = 0
        s = carry[STATE]
        a = int(rng.random() * num_actions) if rng.random() < epsilon else argmax_random(q[s], rng)
        s_next = next_state[s, a]
        learn_task(q, s, a, reward[s, a], s_next, terminated[s, a], learning_rate, discount)
        carry[STATE] = s_next
        carry[TIME] += 1
        if terminated[s, a] or carry[TIME] >= time_limit:
            carry[STATE] = NO_STATE
            carry[EPISODES] += 1


@nb.njit(cache=True)
def proto_goal_steps(
    next_state, reward, terminated, initial_states, time_limit,
    bits, q, seek, avoid, v_seek, v_avoid, visits,
    ids, cumulative, edges, num_candidates, p_task, selects_itself,
    carry, num_steps, refresh_every, max_pursuit, learning_rate, discount, epsilon, rng,
    trace_before, trace_state, trace_reward, pursuit_goal, pursuit_attained, pursuit_length,
):  # fmt: skip
    """Algorithm 1 between two determinations of the goal space → (steps done, pursuits ended).

    Stops after `num_steps`, or at the end of an episode once a refresh is due, or, unless `selects_itself`, where a goal
    is wanted. Writes for the evaluator: the states left and reached, and rewards [steps], and the pursuits that ended.
    """
    num_actions = q.shape[1]
    steps, pursuits = 0, 0
    while steps < num_steps:
        if carry[STATE] == NO_STATE:
            carry[STATE] = initial_states[int(rng.random() * initial_states.shape[0])]
            carry[TIME], carry[GOAL] = 0, NO_GOAL
        s = carry[STATE]
        if carry[GOAL] == NO_GOAL:
            if not selects_itself:
                break
            carry[GOAL] = select_goal(
                ids, cumulative, edges, v_seek[s], bits[s], num_candidates, p_task, rng)
            carry[PURSUIT_TIME] = 0
        goal = carry[GOAL]

        if goal != TASK:
            a = argmax_random(seek[s, :, goal], rng)  # greedy, line 7 of the algorithm
        elif rng.random() < epsilon:
            a = int(rng.random() * num_actions)
        else:
            a = argmax_random(q[s], rng)
        s_next = next_state[s, a]
        learn_task(q, s, a, reward[s, a], s_next, terminated[s, a], learning_rate, discount)
        learn_goals(seek, avoid, v_seek, v_avoid, s, a, s_next, bits[s_next], terminated[s, a], learning_rate, discount)
        visits[s] += 1
        trace_before[steps], trace_state[steps], trace_reward[steps] = s, s_next, reward[s, a]
        steps += 1
        carry[STATE] = s_next
        carry[TIME] += 1
        carry[PURSUIT_TIME] += 1
        carry[SINCE_REFRESH] += 1

        attained = goal != TASK and bits[s_next, goal] != 0.0
        episode_over = terminated[s, a] or carry[TIME] >= time_limit
        if attained or episode_over or carry[PURSUIT_TIME] >= max_pursuit:
            pursuit_goal[pursuits], pursuit_attained[pursuits] = goal, attained
            pursuit_length[pursuits] = carry[PURSUIT_TIME]
            pursuits += 1
            carry[GOAL] = NO_GOAL
        if episode_over:
            carry[STATE] = NO_STATE
            carry[EPISODES] += 1
            if carry[SINCE_REFRESH] >= refresh_every:
                break
    return steps, pursuits


@nb.njit(cache=True)
def summarise_values(v_seek, v_avoid, visits):
    """max_s V_seek, E_s V_seek, E_s V_avoid over the agent's experience; v [S, G], visits [S] → three [G].

    s ~ B in the paper: a state counts as often as it was visited. A mean over distinct states would be led astray by
    the many that were seen once or twice, where an action never tried, with value 0, looks like a way to avoid anything.
    """
    num_goals = v_seek.shape[1]
    seek_max, seek_mean, avoid_mean = np.full(num_goals, -np.inf), np.zeros(num_goals), np.zeros(num_goals)
    for s in range(v_seek.shape[0]):
        if visits[s] > 0:
            for g in range(num_goals):
                seek_max[g] = v_seek[s, g] if v_seek[s, g] > seek_max[g] else seek_max[g]
                seek_mean[g] += visits[s] * v_seek[s, g]
                avoid_mean[g] += visits[s] * v_avoid[s, g]
    n = visits.sum()
    return seek_max, seek_mean / n, avoid_mean / n


@nb.njit(cache=True)
def greedy_episodes(next_state, reward, terminated, starts, time_limit, q, rng):
    """One episode of the greedy policy from each start → return [n], length [n]; nothing is learned."""
    returns, lengths = np.zeros(starts.shape[0]), np.zeros(starts.shape[0], np.int64)
    for i in range(starts.shape[0]):
        s = starts[i]
        while lengths[i] < time_limit:
            a = argmax_random(q[s], rng)
            returns[i] += reward[s, a]
            lengths[i] += 1
            if terminated[s, a]:
                break
            s = next_state[s, a]
    return returns, lengths
