"""Multi-step targets for many goals at once (paper, Table 1: trace λ; R2D2's value transform).

For each goal g a segment of T transitions has a reward r_t, a discount γ_t (0 where the goal was attained or the
environment ended the episode) and values Q(s, a, g) at its T + 1 states. All three targets choose the next action
a* = argmax_a Q_online(s', a) and value it by the target network ("double"):

  retrace  G_t = r_t + γ_t ( Q(s_{t+1}, a*) + c_{t+1} (G_{t+1} − Q(s_{t+1}, a_{t+1})) ),  c = λ·1[a_{t+1} = a*]
  peng     G_t = r_t + γ_t ( (1 − λ) Q(s_{t+1}, a*) + λ G_{t+1} )
  nstep    G_t = r_t + γ_t r_{t+1} + … + γ_t⋯γ_{t+n−1} Q(s_{t+n}, a*)

Retrace needs no behaviour probability: the target policy is greedy, so its trace is cut at the first other action.
Of all actions' values only two a state are used, that of a* and that of the action taken: they are picked first, and if values are
squashed by h, only they are stretched. Goals are the innermost axis, and kernels take rows of it, so that they run over vectors.
`deep.learn` calls it with values from both networks, as numpy views of torch tensors.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Integers = NDArray[np.integer[Any]]

H_EPSILON = 1e-3  # of R2D2


def h(x: NDArray[Any]) -> NDArray[Any]:
    """h(x) = sign(x)(√(|x| + 1) − 1) + εx: squashes large values, keeps their order."""
    squashed: NDArray[Any] = np.sign(x) * (np.sqrt(np.abs(x) + 1.0) - 1.0) + H_EPSILON * x
    return squashed


def h_inverse(y: NDArray[Any]) -> NDArray[Any]:
    """The exact inverse: sign(y)( ((√(1 + 4ε(|y| + 1 + ε)) − 1) / 2ε)² − 1 ).

    Computed in 64 bits: the difference under the square loses half of 32.
    """
    y = np.asarray(y)
    size = np.abs(y.astype(np.float64))
    root = (np.sqrt(1.0 + 4.0 * H_EPSILON * (size + 1.0 + H_EPSILON)) - 1.0) / (2.0 * H_EPSILON)
    stretched: NDArray[Any] = (np.sign(y) * (root * root - 1.0)).astype(y.dtype)
    return stretched


def multi_step_targets(
    kind: str,
    reward: Floats,
    discount: Floats,
    action: Integers,
    is_valid: Bools,
    q_online: Floats,
    q_target: Floats,
    trace_lambda: float = 0.95,
    n_steps: int = 5,
    is_squashed: bool = False,
) -> Floats:
    """Targets G [T, N, G] by the formulas above.

    reward, discount [T, N, G]; action, is_valid [T, N]; q_online, q_target [T, N, A, G] of the states after the transitions. A
    transition that is not valid (its successor was not stored: a time limit) gets a target that must not be used, and the one
    before it bootstraps from the state in between instead of looking past it. Of values squashed by h the targets are not squashed.
    """
    steps, batch, goals = reward.shape
    expected = (steps, batch, q_online.shape[2], goals)
    for name, array, shape in (
        ("discount", discount, (steps, batch, goals)),
        ("action", action, (steps, batch)),
        ("is_valid", is_valid, (steps, batch)),
        ("q_online", q_online, expected),
        ("q_target", q_target, expected),
    ):
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}; got {array.shape}")
    if kind not in ("retrace", "peng", "nstep"):
        raise ValueError(f"returns must be one of retrace, peng, nstep; got {kind!r}")
    value, targets = np.empty(reward.shape, q_target.dtype), np.empty(reward.shape, q_target.dtype)
    best = np.empty(reward.shape, np.int32)
    _greedy(q_online, q_target, np.empty(goals, q_online.dtype), best, value)
    stretched = h_inverse if is_squashed else np.asarray
    value = stretched(value)
    if kind == "nstep":
        _nstep(reward, discount, is_valid, value, n_steps, targets)
        return targets
    taken = q_target[np.arange(steps - 1)[:, None], np.arange(batch), action[1:]]  # [T−1, N, G]
    _lambda_returns(kind == "peng", reward, discount, action, is_valid, value, best, stretched(taken), trace_lambda, targets)
    return targets


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _greedy(q_online: Floats, q_target: Floats, highest: Floats, best: NDArray[np.int32], value: Floats) -> None:
    """a* [T, N, G] = argmax_a of q_online [T, N, A, G], the first of equals; its value under q_target. `highest` [G]: scratch."""
    steps, batch, num_actions, goals = q_online.shape
    for t in range(steps):
        for n in range(batch):
            q, q_of_target, best_action, picked = q_online[t, n], q_target[t, n], best[t, n], value[t, n]
            online, target = q[0], q_of_target[0]
            for g in range(goals):
                highest[g] = online[g]
                best_action[g] = 0
                picked[g] = target[g]
            for a in range(1, num_actions):
                online, target = q[a], q_of_target[a]
                for g in range(goals):
                    is_higher = online[g] > highest[g]
                    picked[g] = target[g] if is_higher else picked[g]
                    best_action[g] = np.int32(a) if is_higher else best_action[g]
                    highest[g] = online[g] if is_higher else highest[g]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _lambda_returns(
    is_peng: bool,
    reward: Floats,
    discount: Floats,
    action: Integers,
    is_valid: Bools,
    value: Floats,
    best: NDArray[np.int32],
    taken: Floats,
    trace_lambda: float,
    out: Floats,
) -> None:
    steps, batch, goals = reward.shape
    decay = np.float32(trace_lambda)
    keep = np.float32(1.0) - decay
    for t in range(steps - 1, -1, -1):
        for n in range(batch):
            r, gamma, v, made = reward[t, n], discount[t, n], value[t, n], out[t, n]
            if t + 1 == steps or not is_valid[t + 1, n]:
                for g in range(goals):
                    made[g] = r[g] + gamma[g] * v[g]
            elif is_peng:
                further = out[t + 1, n]
                for g in range(goals):
                    made[g] = r[g] + gamma[g] * (keep * v[g] + decay * further[g])
            else:
                further, q, a, chosen = out[t + 1, n], taken[t, n], best[t, n], np.int32(action[t + 1, n])
                for g in range(goals):
                    trace = decay if a[g] == chosen else np.float32(0.0)
                    made[g] = r[g] + gamma[g] * (v[g] + trace * (further[g] - q[g]))


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _nstep(reward: Floats, discount: Floats, is_valid: Bools, value: Floats, n_steps: int, out: Floats) -> None:
    steps, batch, goals = reward.shape
    for n in range(batch):
        for t in range(steps):
            last = t  # the last transition whose reward is taken
            while last + 1 < steps and last + 1 < t + n_steps and is_valid[last + 1, n]:
                last += 1
            made = out[t, n]
            made[:] = value[last, n]
            for k in range(last, t - 1, -1):
                r, gamma = reward[k, n], discount[k, n]
                for g in range(goals):
                    made[g] = r[g] + gamma[g] * made[g]
