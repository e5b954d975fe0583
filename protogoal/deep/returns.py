"""Multi-step targets for many goals at once (paper, Table 1: trace λ; R2D2's value transform).

For each goal g a segment of T transitions has a reward r_t, a discount γ_t (0 where the goal was attained or the
environment ended the episode) and values Q(s, a, g) at its T + 1 states. All three targets choose the next action
a* = argmax_a Q_online(s', a) and value it by the target network ("double"):

  retrace  G_t = r_t + γ_t ( Q(s_{t+1}, a*) + c_{t+1} (G_{t+1} − Q(s_{t+1}, a_{t+1})) ),  c = λ·1[a_{t+1} = a*]
  peng     G_t = r_t + γ_t ( (1 − λ) Q(s_{t+1}, a*) + λ G_{t+1} )
  nstep    G_t = r_t + γ_t r_{t+1} + … + γ_t⋯γ_{t+n−1} Q(s_{t+n}, a*)

Retrace needs no behaviour probability: the target policy is greedy, so its trace is cut at the first other action.
Goals are the innermost axis, so a kernel runs over them as over a vector. `deep.learn` calls it with values from both
networks, as numpy views of torch tensors.
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
) -> Floats:
    """Targets G [T, N, G] by the formulas above.

    reward, discount [T, N, G]; action, is_valid [T, N]; q_online, q_target [T+1, N, A, G]. A transition that is not
    valid (its successor was not stored: a time limit) gets a target that must not be used, and the one before it
    bootstraps from the state in between instead of looking past it.
    """
    steps, batch, goals = reward.shape
    expected = (steps + 1, batch, q_online.shape[2], goals)
    for name, array, shape in (
        ("discount", discount, (steps, batch, goals)),
        ("action", action, (steps, batch)),
        ("is_valid", is_valid, (steps, batch)),
        ("q_online", q_online, expected),
        ("q_target", q_target, expected),
    ):
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    targets = np.empty((steps, batch, goals), np.float32)
    if kind == "nstep":
        _nstep(reward, discount, is_valid, q_online, q_target, n_steps, targets)
    elif kind in ("retrace", "peng"):
        _lambda_returns(kind == "peng", reward, discount, action, is_valid, q_online, q_target, trace_lambda, targets)
    else:
        raise ValueError(f"returns must be one of retrace, peng, nstep; got {kind!r}")
    return targets


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _greedy(q_online: Floats, q_target: Floats, best: Floats, best_action: NDArray[np.int32], value: Floats) -> None:
    """a* [G] = argmax_a of q_online [A, G] (the first of equals) and its value [G] under q_target [A, G]."""
    for g in range(best.shape[0]):
        best[g] = q_online[0, g]
        best_action[g] = 0
        value[g] = q_target[0, g]
    for a in range(1, q_online.shape[0]):
        for g in range(best.shape[0]):
            better = q_online[a, g] > best[g]
            best[g] = q_online[a, g] if better else best[g]
            best_action[g] = a if better else best_action[g]
            value[g] = q_target[a, g] if better else value[g]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _lambda_returns(
    is_peng: bool,
    reward: Floats,
    discount: Floats,
    action: Integers,
    is_valid: Bools,
    q_online: Floats,
    q_target: Floats,
    trace_lambda: float,
    out: Floats,
) -> None:
    steps, batch, goals = reward.shape
    best = np.empty(goals, np.float32)
    best_action = np.empty(goals, np.int32)
    value = np.empty(goals, np.float32)
    decay = np.float32(trace_lambda)
    keep = np.float32(1.0) - decay
    for n in range(batch):
        for t in range(steps - 1, -1, -1):
            _greedy(q_online[t + 1, n], q_target[t + 1, n], best, best_action, value)
            if t + 1 < steps and is_valid[t + 1, n]:
                if is_peng:
                    for g in range(goals):
                        value[g] = keep * value[g] + decay * out[t + 1, n, g]
                else:
                    taken = np.int32(action[t + 1, n])
                    for g in range(goals):
                        trace = decay if best_action[g] == taken else np.float32(0.0)
                        value[g] += trace * (out[t + 1, n, g] - q_target[t + 1, n, taken, g])
            for g in range(goals):
                out[t, n, g] = reward[t, n, g] + discount[t, n, g] * value[g]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _nstep(
    reward: Floats,
    discount: Floats,
    is_valid: Bools,
    q_online: Floats,
    q_target: Floats,
    n_steps: int,
    out: Floats,
) -> None:
    steps, batch, goals = reward.shape
    best = np.empty(goals, np.float32)
    best_action = np.empty(goals, np.int32)
    value = np.empty(goals, np.float32)
    for n in range(batch):
        for t in range(steps):
            last = t  # the last transition whose reward is taken
            while last + 1 < steps and last + 1 < t + n_steps and is_valid[last + 1, n]:
                last += 1
            _greedy(q_online[last + 1, n], q_target[last + 1, n], best, best_action, value)
            for k in range(last, t - 1, -1):
                for g in range(goals):
                    value[g] = reward[k, n, g] + discount[k, n, g] * value[g]
            for g in range(goals):
                out[t, n, g] = value[g]
