"""Seek and avoid values that noise cannot fool: the default estimator (docs/controllability.md). Called by `values.py`.

The paper's estimator takes a maximum over noisy action values, so that pure noise looks controllable. This one asks first
whether actions matter at all, with one half of the batch as the witness against the other. Values are probabilities,

    P(s, a) = E[b + γ(1 − b)·opt_{a'} P(s', a')],   seek: opt = max, V_seek = P;   avoid: opt = min, V_avoid = −P,

linear in the features z(s): P(s, a) = z·w + z·e_a, a shared part w and effects Σ_a e_a = 0 with a stronger ridge.

1. Trial: fitted value iteration on each half of the batch alone (and with projections of its own).
2. Test: effects e(s_i, a_i) learned on one half against residuals r_i of the other, which owes nothing to it:
   slope = Σ e·r / Σ e²,   t = Σ e·r / √Σ(e·r)²,   reliability ρ = min(slope, 1)·max(0, 1 − (significance/t)²) for t > 0.
   Both halves serve as witness, for seek and for avoid. These four tests ask nearly the same, so that their sums e·r and
   their standard errors are added: four times the same test counts once.
   Noise has t near 0 and hence ρ = 0: no effect, seek and avoid agree. What an action does has t ≫ 3 and ρ near 1.
3. Value iteration on the whole batch with P(s, a) = z·w + ρ·z·e_a, each step clipped to [0, 1].

The test says nothing where the batch holds too few events. The evidence is Σ r_i²/(1 + h_i) over forecasts of b from the
state alone, made across the halves (h: leverage; surprises in unfamiliar states count little): about as many as there are
attainments which the state did not foretell. None: the state decides, so the goal is static or runs by a clock. Some, but
fewer than `min_evidence`: undecided, and `avoid_mean` is NaN, which `plausibility.py` reads as optimism.

Everything is matrix products of [features × transitions] with [transitions × goals]; no goal needs a factorisation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
FORETOLD = 0.5  # evidence up to half an event is rounding and ridge: the state alone decides
FEWEST_HITS = 4  # with fewer attainments than two a half, the halves have nothing to compare


@dataclass(frozen=True)
class CrossfitSettings:
    """The numbers of this estimator; `EstimatorSettings` explains them."""

    discount: float
    ridge: float
    action_ridge: float
    trial_iterations: int
    iterations: int
    significance: float
    min_evidence: float


class Crossfit:
    """The estimator for one batch: all that goals share is computed once."""

    def __init__(
        self,
        features: Sequence[tuple[Floats, Floats]],
        action: NDArray[np.integer],
        terminated: NDArray[np.bool_],
        num_actions: int,
        settings: CrossfitSettings,
        order: NDArray[np.integer],
    ):
        """`features` holds (z, z') of the first half, the second half and the whole; `order`, a permutation, the halves."""
        self.settings = settings
        self.num_actions = num_actions
        n = len(action)
        half = n // 2
        # Within a half, transitions are sorted by action, so that those of one action are a slice.
        halves = [part[np.argsort(action[part], kind="stable")] for part in (order[:half], order[half:])]
        self.order = np.concatenate(halves)
        self.rows = (slice(0, half), slice(half, n), slice(0, n))
        self.go_on = (settings.discount * ~terminated[self.order]).astype(np.float32)  # [n]
        sorted_action = action[self.order]
        self.starts = [
            rows.start + np.searchsorted(sorted_action[rows], np.arange(num_actions + 1)) for rows in self.rows[:2]
        ]
        contrasts = _contrasts(num_actions)  # [A, A]
        self.z: list[Singles] = []  # [n, K] of each part
        self.z_next: list[Singles] = []  # [n_part, K]
        self.fit: list[Singles] = []  # [K·A, n_part]: targets → weights of every action
        self.forecast: list[Singles] = []  # [K, n_half]: attainments → weights of the forecast from the state alone
        self.familiarity: list[Singles] = []  # [n_other half]: 1/(1 + leverage)
        for part, (z, z_next) in enumerate(features):
            z, z_next, rows = z[self.order], z_next[self.order], self.rows[part]
            self.z.append(z.astype(np.float32))
            self.z_next.append(z_next[rows].astype(np.float32))
            # φ(s, a) = z ⊗ (1, contrasts of a), [n, K, A]
            size, k = z[rows].shape
            phi = (z[rows, :, None] * contrasts[sorted_action[rows]][:, None, :]).reshape(size, k * num_actions)
            penalty = np.tile([settings.ridge] + [settings.action_ridge] * (num_actions - 1), k)
            weights = _ridge_map(phi, penalty).reshape(k, num_actions, size)
            per_action = np.einsum("ac,kcn->kan", contrasts, weights).reshape(k * num_actions, size)
            self.fit.append(np.ascontiguousarray(per_action, dtype=np.float32))
        for half_index in (0, 1):
            z = features[half_index][0][self.order]
            own, other = z[self.rows[half_index]], z[self.rows[1 - half_index]]
            inverse = np.linalg.inv(own.T @ own + settings.ridge * np.eye(z.shape[1]))
            self.forecast.append((inverse @ own.T).astype(np.float32))
            leverage = np.einsum("nk,kl,nl->n", other, inverse, other, optimize=True)
            self.familiarity.append((1.0 / (1.0 + leverage)).astype(np.float32))

    def values(self, attained: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Returns (max V_seek, mean V_seek, mean V_avoid), each [G], from attained bool[n, G].

        mean V_avoid is NaN where the batch cannot tell whether actions matter.
        """
        bits = attained[self.order].astype(np.float32)  # [n, G]
        evidence = self._evidence(bits)
        targets, reliability = self._trial(bits)
        seek_max, seek_mean, avoid_mean = self._whole(bits, targets, reliability)
        few = attained.sum(axis=0) < FEWEST_HITS
        undecided = (few | (evidence > FORETOLD)) & (evidence < self.settings.min_evidence)
        return seek_max, seek_mean, np.where(undecided, np.nan, avoid_mean)

    def _evidence(self, bits: Singles) -> Floats:
        """Σ (b − forecast)²/(1 + h), [G]: attainments that the state alone does not foretell."""
        total = np.zeros(bits.shape[1])
        for half in (0, 1):
            own, other = self.rows[half], self.rows[1 - half]
            forecast = self.z[half][other] @ (self.forecast[half] @ bits[own])  # [n_other, G]
            _add_evidence(bits[other], forecast, self.familiarity[half], total)
        return total

    def _trial(self, bits: Singles) -> tuple[Singles, Floats]:
        """Value iteration on each half alone, and the test across them: last targets [n, 2G] and reliability ρ [G].

        Columns 0…G−1 are seek, G…2G−1 avoid, here and below.
        """
        goals = bits.shape[1]
        targets = np.concatenate([bits, bits], axis=1)
        trust = np.ones(goals, np.float32)
        weights: list[Singles] = []
        for half in (0, 1):
            rows = self.rows[half]
            w = self.fit[half] @ bits[rows]  # [K·A, G]: the first step is the same for seek and avoid
            w = np.concatenate([w, w], axis=1)
            for _ in range(self.settings.trial_iterations - 1):
                self._step(self.z_next[half], w, bits[rows], self.go_on[rows], trust, targets[rows])
                w = self.fit[half] @ targets[rows]
            weights.append(w.reshape(-1, self.num_actions, 2 * goals))  # [K, A, 2G]
        product, square, error = np.zeros(goals), np.zeros(goals), np.zeros(goals)
        shared = [w.mean(axis=1) for w in weights]  # [K, 2G]
        for half in (0, 1):
            rows, other = self.rows[half], 1 - half
            residual = targets[rows] - self.z[half][rows] @ shared[half]  # [n_half, 2G]
            effect = np.empty_like(residual)
            for a in range(self.num_actions):
                start, stop = self.starts[half][a : a + 2]
                at = slice(start - rows.start, stop - rows.start)
                effect[at] = self.z[other][start:stop] @ (weights[other][:, a] - shared[other])
            _add_test(effect, residual, product, square, error)
        return targets, _reliability(product, square, error, self.settings.significance)

    def _whole(self, bits: Singles, targets: Singles, reliability: Floats) -> tuple[Floats, Floats, Floats]:
        """Value iteration on the whole batch, going on from the trial as far as it can be relied on."""
        trust = reliability.astype(np.float32)
        seek, avoid = targets[:, : len(trust)], targets[:, len(trust) :]
        middle = (seek + avoid) / 2  # what noise adds to one it takes from the other
        targets = np.concatenate([middle + trust * (seek - middle), middle + trust * (avoid - middle)], axis=1)
        w = self.fit[2] @ targets
        for _ in range(self.settings.iterations):
            self._step(self.z_next[2], w, bits, self.go_on, trust, targets)
            w = self.fit[2] @ targets
        q = (self.z[2] @ w.reshape(self.z[2].shape[1], -1)).reshape(len(bits), self.num_actions, -1)
        seek_max, seek_mean, avoid_mean = _summary(q, trust)
        return seek_max, seek_mean, avoid_mean

    def _step(
        self, z_next: Singles, weights: Singles, bits: Singles, go_on: Singles, trust: Singles, targets: Singles
    ) -> None:
        """targets ← b + γ(1 − b)·V(s') with V from `weights` [K·A, 2G]."""
        q = z_next @ weights.reshape(z_next.shape[1], -1)  # [n, A·2G]
        _bootstrap(q.reshape(len(z_next), self.num_actions, targets.shape[1]), bits, go_on, trust, targets)


def _contrasts(num_actions: int) -> Floats:
    """[A, A]: a column of ones and A − 1 orthonormal columns that sum to zero; row a describes action a."""
    basis, _ = np.linalg.qr(np.concatenate([np.ones((num_actions, 1)), np.eye(num_actions)[:, :-1]], axis=1))
    basis[:, 0] = 1.0
    return np.asarray(basis, dtype=np.float64)


def _ridge_map(phi: Floats, penalty: Floats) -> Floats:
    """(ΦᵀΦ + Λ)⁻¹Φᵀ, [d, n], from Φ [n, d] and the diagonal of Λ [d]; by whichever of the two sides is smaller."""
    n, d = phi.shape
    if n == 0:
        return np.zeros((d, 0))
    if d <= n:
        return np.asarray(cho_solve(cho_factor(phi.T @ phi + np.diag(penalty)), phi.T))
    scaled = phi / penalty
    return np.asarray(cho_solve(cho_factor(scaled @ phi.T + np.eye(n)), scaled).T)


def _reliability(product: Floats, square: Floats, error: Floats, significance: float) -> Floats:
    """ρ = min(slope, 1)·max(0, 1 − (significance/t)²) where t > 0, else 0; [G]."""
    tiny = 1e-12  # a goal without any effect has 0/0 here, and ρ = 0
    slope = np.clip(product / np.maximum(square, tiny), 0.0, 1.0)
    t = product / np.maximum(error, tiny)
    return np.asarray(slope * np.maximum(0.0, 1.0 - (significance / np.maximum(t, tiny)) ** 2))


@njit(cache=True, fastmath=True)
def _bootstrap(q, bits, go_on, trust, targets):  # type: ignore[no-untyped-def]
    """targets[i, g] = 1 if attained else γ_i·clip(mean_a q + ρ·(opt_a q − mean_a q), 0, 1); max for seek, min for avoid."""
    n, num_actions, columns = q.shape
    goals = columns // 2
    best = np.empty(goals, np.float32)
    total = np.empty(goals, np.float32)
    share = np.float32(1.0 / num_actions)
    for i in range(n):
        for sign in range(2):
            offset = sign * goals
            for g in range(goals):
                best[g] = q[i, 0, offset + g]
                total[g] = best[g]
            for a in range(1, num_actions):
                if sign == 0:
                    for g in range(goals):
                        x = q[i, a, g]
                        best[g] = max(best[g], x)
                        total[g] += x
                else:
                    for g in range(goals):
                        x = q[i, a, offset + g]
                        best[g] = min(best[g], x)
                        total[g] += x
            for g in range(goals):
                mean = total[g] * share
                value = mean + trust[g] * (best[g] - mean)
                value = min(max(value, np.float32(0.0)), np.float32(1.0))
                b = bits[i, g]
                targets[i, offset + g] = b + (np.float32(1.0) - b) * go_on[i] * value


@njit(cache=True, fastmath=True)
def _summary(q, trust):  # type: ignore[no-untyped-def]
    """(max_i V_seek, mean_i V_seek, mean_i V_avoid), each [G], from q [n, A, 2G]."""
    n, num_actions, columns = q.shape
    goals = columns // 2
    seek_max = np.zeros(goals)
    mean_value = np.zeros((2, goals))
    for i in range(n):
        for g in range(columns):
            goal = g if g < goals else g - goals
            best = q[i, 0, g]
            total = best
            for a in range(1, num_actions):
                x = q[i, a, g]
                best = max(best, x) if g < goals else min(best, x)
                total += x
            mean = total / np.float32(num_actions)
            value = mean + trust[goal] * (best - mean)
            value = min(max(value, np.float32(0.0)), np.float32(1.0))
            if g < goals:
                seek_max[g] = max(seek_max[g], value)
                mean_value[0, g] += value
            else:
                mean_value[1, goal] -= value
    mean_value /= n
    return seek_max, mean_value[0], mean_value[1]


@njit(cache=True, fastmath=True)
def _add_evidence(bits, forecast, familiarity, total):  # type: ignore[no-untyped-def]
    """total[g] += Σ_i familiarity_i·(b − clip(forecast, 0, 1))²."""
    n, goals = bits.shape
    for i in range(n):
        for g in range(goals):
            surprise = bits[i, g] - min(max(forecast[i, g], np.float32(0.0)), np.float32(1.0))
            total[g] += familiarity[i] * surprise * surprise


@njit(cache=True, fastmath=True)
def _add_test(effect, residual, product, square, error):  # type: ignore[no-untyped-def]
    """Adds Σ e·r, Σ e² and √Σ(e·r)² over transitions, of seek and of avoid, each [G]."""
    n, columns = effect.shape
    goals = columns // 2
    variance = np.zeros(columns)
    for i in range(n):
        for sign in range(2):
            for g in range(goals):
                e = effect[i, sign * goals + g]
                p = e * residual[i, sign * goals + g]
                product[g] += p
                square[g] += e * e
                variance[sign * goals + g] += p * p
    for g in range(goals):
        error[g] += np.sqrt(variance[g]) + np.sqrt(variance[goals + g])
