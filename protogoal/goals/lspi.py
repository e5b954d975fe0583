"""Seek and avoid values by least-squares policy iteration, as the paper words it (§4.1). Called by `values.py`.

Q(s, a) = φ(s, a)·w with one copy of the features z(s) per action. From the uniform policy, evaluate, make greedy per goal,
evaluate again; LSTDQ solves, with S the transitions that attain the goal,

    [Φᵀ(Φ − γ·(1 − b)·Φ'_π) + ridge·I] w = ±Φᵀb.

What keeps it fast, with n transitions, K features, A actions and d = A·K:
- The matrix of the uniform policy without goal termination is the same for all goals and factored once. A goal adds
  γ·Φ_SᵀΦ'_S, of rank |S|: a system of that size remains (Woodbury). And w_avoid = −w_seek.
- A greedy policy makes a matrix of K×K blocks, one for each pair (action, next action): n·K² products instead of n·d².
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import lapack, lu_factor, lu_solve

Floats = NDArray[np.float64]


class LSPI:
    """The estimator for one batch: all that goals share is computed once."""

    def __init__(
        self,
        features: tuple[Floats, Floats],
        action: NDArray[np.integer],
        terminated: NDArray[np.bool_],
        num_actions: int,
        discount: float,
        policy_iterations: int,
        ridge: float,
    ):
        """`features` is (z(s), z(s')), each [n, K]; transitions are kept sorted by action, so that blocks are slices."""
        self.num_actions, self.discount, self.policy_iterations = num_actions, discount, policy_iterations
        self.order = np.argsort(action, kind="stable")
        self.z, self.z_next = (np.ascontiguousarray(z[self.order]) for z in features)
        self.start = np.searchsorted(action[self.order], np.arange(num_actions + 1)).astype(np.int64)
        self.alive = ~terminated[self.order]
        n, k = self.z.shape
        d = k * num_actions
        self.gram = np.empty((num_actions, k, k))  # the blocks of ΦᵀΦ + ridge·I
        self.uniform = np.empty((d, d))  # the matrix of the uniform policy, without goal termination
        self.phi = np.zeros((n, d))
        for a in range(num_actions):
            rows, block = slice(self.start[a], self.start[a + 1]), slice(a * k, (a + 1) * k)
            self.gram[a] = self.z[rows].T @ self.z[rows] + ridge * np.eye(k)
            future = self.z[rows].T @ (self.alive[rows, None] * self.z_next[rows])
            self.uniform[block] = np.tile(-discount / num_actions * future, num_actions)
            self.uniform[block, block] += self.gram[a]
            self.phi[rows, block] = self.z[rows]
        self.response = np.ascontiguousarray(lu_solve(lu_factor(self.uniform), self.phi.T).T)  # [n, d]: (A⁻¹Φᵀ)ᵀ
        for absent in np.flatnonzero(np.diff(self.start) == 0):
            self.response[:, absent * k : (absent + 1) * k] = 0.0  # exactly, so that actions never taken tie
        self.mean_response = self.response.reshape(n, num_actions, k).mean(axis=1)  # [n, K]

    def values(self, attained: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Returns (max V_seek, mean V_seek, mean V_avoid), each [G], from attained bool[n, G]; NaN if a system is singular."""
        attained = np.ascontiguousarray(attained[self.order].T)  # [G, n]
        goals, k = len(attained), self.z.shape[1]
        seek = np.empty((goals, k * self.num_actions))
        for g in range(goals):
            seek[g] = self._first(attained[g])
        avoid = -seek
        for _ in range(self.policy_iterations - 1):
            seek, avoid = self._greedy(seek, attained, +1.0), self._greedy(avoid, attained, -1.0)
        seek, avoid = (self._action_values(self.z, weights).max(-1) for weights in (seek, avoid))  # V(s), [n, G]
        return seek.max(0), seek.mean(0), avoid.mean(0)

    def _action_values(self, z: Floats, weights: Floats) -> Floats:
        """Q(s, a) of every goal, [n, G, A]."""
        q: Floats = z @ weights.reshape(-1, z.shape[1]).T  # [n, G·A]
        return q.reshape(len(z), len(weights), self.num_actions)

    def _first(self, attained: NDArray[np.bool_]) -> Floats:
        """w of the uniform policy, [d], for seek.

        With R = A⁻¹Φᵀ and U = Φ'_uniform:  (I + γ·U_S·R_S) t = U_S·R_S·1,  w = R_S·1 − γ·R_S·t;  t is the value at s' ∈ S,
        which goal termination takes back. Transitions that end the environment take nothing.
        """
        hits = np.flatnonzero(attained)
        ends = hits[self.alive[hits]]
        reach: Floats = self.response[hits].sum(axis=0)
        if len(ends) == 0:
            return reach
        if len(ends) >= len(reach):  # more attainments than unknowns: add them to the matrix itself
            back = self.discount / self.num_actions * (self.phi[ends].T @ self.z_next[ends])
            return solve(self.uniform + np.tile(back, self.num_actions), self.phi[hits].sum(axis=0))
        small = self.discount * (self.z_next[ends] @ self.mean_response[ends].T)
        small.ravel()[:: len(ends) + 1] += 1.0
        taken_back = solve(small, self.z_next[ends] @ self.mean_response[hits].sum(axis=0))
        weights: Floats = reach - self.discount * (taken_back @ self.response[ends])
        return weights

    def _greedy(self, weights: Floats, attained: NDArray[np.bool_], sign: float) -> Floats:
        """LSTDQ of the policy that is greedy for `weights` [G, d], goal by goal; [G, d]."""
        policy = np.ascontiguousarray(self._action_values(self.z_next, weights).argmax(-1).T)  # [G, n]
        out = np.empty_like(weights)
        k = self.z.shape[1]
        blocks = np.empty((self.num_actions, self.num_actions, k, k))
        for g in range(len(weights)):
            go_on = self.alive & ~attained[g]
            right = sign * self.phi[attained[g]].sum(axis=0)
            _lstdq_blocks(self.z, self.z_next, self.start, policy[g], go_on, self.gram, self.discount, blocks)
            out[g] = solve(blocks.transpose(0, 2, 1, 3).reshape(self.uniform.shape), right)
        return out


def solve(matrix: Floats, right: Floats) -> Floats:
    """Solves matrix·x = right with full row exchanges; NaN if the matrix is singular."""
    _, _, solution, info = lapack.dgesv(matrix, right)
    return np.full_like(right, np.nan) if info else np.asarray(solution)


@njit(cache=True, fastmath=True)
def _lstdq_blocks(z, z_next, start, policy, go_on, gram, discount, blocks):  # type: ignore[no-untyped-def]
    """Fills `blocks` [A, A, K, K] with ΦᵀΦ + ridge·I − γ·Φᵀ·diag(go_on)·Φ'_π, one for each pair (action, next action)."""
    n, k = z.shape
    num_actions = len(start) - 1
    edge = np.empty(num_actions + 1, np.int64)
    position = np.empty(num_actions, np.int64)
    left, right = np.empty((n, k)), np.empty((n, k))
    block = np.empty((k, k))
    for a in range(num_actions):
        # Sort the transitions of action a by next action; those that do not go on are left out.
        edge[:] = 0
        for i in range(start[a], start[a + 1]):
            if go_on[i]:
                edge[policy[i] + 1] += 1
        for b in range(num_actions):
            edge[b + 1] += edge[b]
            position[b] = edge[b]
        for i in range(start[a], start[a + 1]):
            if go_on[i]:
                row = position[policy[i]]
                position[policy[i]] = row + 1
                for p in range(k):
                    left[row, p] = z[i, p]
                for p in range(k):
                    right[row, p] = z_next[i, p]
        for b in range(num_actions):
            if edge[b] == edge[b + 1]:
                blocks[a, b] = 0.0
            else:
                np.dot(left[edge[b] : edge[b + 1]].T, right[edge[b] : edge[b + 1]], block)
                out = blocks[a, b]
                for p in range(k):
                    for q in range(k):
                        out[p, q] = -discount * block[p, q]
        diagonal, own = blocks[a, a], gram[a]
        for p in range(k):
            for q in range(k):
                diagonal[p, q] += own[p, q]
