"""Randomised trials: does an action have to do with a goal's turning on? (the test of control; paper §4.1 asks it of values)

Every exploratory action is drawn from a distribution μ(·|s) that we know, so it is a randomised experiment. Look at the
transitions on which g turns on. If actions do not matter to g, the action there is distributed as μ, whatever the state: so
compare. The smallest of μ is in all of it, so w = min_b μ_b / μ_a of an action is as good as drawn uniformly (all, where μ is
uniform). With the residual r = w √A (e_a − 1/A), and features z(s) of the state, the last of them constant, a row of sums is kept
for each goal that ever turned on:

    n += w     U += r zᵀ  [A, K]     S += w z zᵀ  [K, K]      and for the action d = 1…D−1 steps before:  n_d += w_d,  u_d += r'_d

    T   = Σ_a U_aᵀ (S + λnI)⁻¹ U_a   ~ χ²((A−1)·tr S(S + λnI)⁻¹)    the action, given the state
    T₁  = ‖U e_K‖²/n                 ~ χ²(A−1)                       the action, whatever the state
    T_d = ‖u_d‖²/n_d                 ~ χ²(A−1)                       an action before: effects that come later

    p    = 3 min(p_T, p_T₁, (D−1) min_d p_T_d), at most 1
    nats = max over the tests with a p of at most 1/100 (without any, over T and T₁) of (T − df)/2n, at most log A: how much the
           action tells about g, whatever its scale or rarity
    most = max over T, T₁ of (T − df)/2n + 2 √(2 df)/2n:  two standard errors more, what it may tell at most

r'_d = (r_d − w_d m_d)/√max(1, A p_d), m_d = √A (p_d − 1/A), where p_d [A] is the share of each action among those d steps before
*any* transition so far. It is 1/A unless actions end episodes: what ended one has nothing after it, so it is missing before every
event, noise too, and by itself that would look like control. Where μ_b = 0 for some actions, the others stand for A.

T is a score test: of "P(g | s, a) ∝ exp(θ_a·z)" at θ = 0. S matters: noise that occurs in few states has few directions, and
a test that ignores them passes it too often. T₁ matters: eight events that all follow one action are decisive with A − 1
degrees of freedom and invisible with (A − 1)K. w matters: an unlikely action, taken once, would outweigh all else, were it
counted by 1/μ_a; so an ε-greedy one counts as the ε of a uniform one that it is.

Of few events and many actions T has a longer tail than χ²: four events of 20 actions that happen to be alike would pass. Its third
moment is larger by c = 1 + (A−2)·df/(A−1)/2n, so T is compared with a χ² that has this moment too: df + c (χ²(df/c²) − df/c²).

z(s) is made of the bits of the state: random projections of those of g's own kind (things move from where they were), of all
bits, and a constant. A function of the state that knows nothing of the action is all that the test needs to be valid; a better one
makes it sharper.

**Kinds** have two tests over all their goals, since most are too rare to be judged alone: the same sums over all events of the
kind, one a transition (an action that matters to the kind), and how often two events of one goal share their action, beyond
chance, Σ_g (T₁_g − Σ‖r‖²/n) (an action that matters to each goal in another way, which cancels in the sum).

Memory: a row for each goal that ever turned on, 4·(AK + K(K+1)/2 + (D−1)(A+1)) + 20 bytes: 548 with 5 actions.
`plausibility.judge_trials` turns p and nats into verdicts; the evaluator owns the one object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from protogoal.goals.active import as_wide
from protogoal.goals.stored import stored_array

PROJECTIONS = 4  # of the bits of the goal's own kind, and as many of all bits
FEATURES = 2 * PROJECTIONS + 1  # K
LAGS = 8  # D: the action before the event, and the seven before that
RIDGE = 0.05  # λ
SURE = 0.01  # p of a test whose nats count
HALVED_AT = 2.0**23  # events
AT_ONCE = 4_096  # rows tested together: what lies between stays in the processor's cache
DIRECTIONS = 65_536  # different random directions at most; beyond, bits share them

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class TrialEvents:
    """Transitions on which something turned on, m of them, and what did: all that the sums need.

    action[:, 0] was taken there, action[:, d] d steps before; −1 where there was none, or none that was drawn at random.
    `taken` counts the actions 1…D−1 steps before every transition, with or without events (`taken_before`); None: not known.
    """

    before: Ints  # [m, L]: bits of the state before, padded with −1
    action: NDArray[np.int16]  # [m, D]
    row: Ints  # [e]: which transition, ascending
    bit: Ints  # [e]: what turned on
    probability: Singles | None = None  # [m, D, A]: μ of each of these actions; None: uniform
    taken: Floats | None = None  # [D−1, A]

    @staticmethod
    def none() -> TrialEvents:
        nothing = np.empty(0, np.int32)
        return TrialEvents(np.empty((0, 1), np.int32), np.empty((0, LAGS), np.int16), nothing, nothing)

    @staticmethod
    def join(parts: Sequence[TrialEvents]) -> TrialEvents:
        """Events one after another; all with probabilities, or none."""
        if not parts:
            return TrialEvents.none()
        first = np.cumsum([0] + [len(p.before) for p in parts[:-1]])
        known = [p.probability for p in parts if p.probability is not None]
        if known and len(known) < len(parts):
            raise ValueError("trials with known action probabilities cannot be joined with trials without")
        return TrialEvents(
            np.concatenate(as_wide([p.before for p in parts])),
            np.concatenate([p.action for p in parts]),
            np.concatenate([p.row + np.int32(start) for p, start in zip(parts, first, strict=True)]),
            np.concatenate([p.bit for p in parts]), np.concatenate(known) if known else None,
            sum(counts[1:], counts[0]) if (counts := [p.taken for p in parts if p.taken is not None]) else None)


@dataclass(frozen=True)
class Tested:
    """What the sums say of every row: events n (in uniform trials), p, nats, and the most nats there may be; [rows] each."""

    events: Floats
    p: Floats
    nats: Floats
    most: Floats

    @staticmethod
    def nothing(size: int) -> Tested:
        """No events."""
        return Tested(np.zeros(size), np.ones(size), np.zeros(size), np.full(size, np.inf))

    def padded(self, size: int) -> Tested:
        """The same with rows without events up to `size`."""
        more = Tested.nothing(size - len(self.p))
        return Tested(*(np.concatenate(pair) for pair in zip(vars(self).values(), vars(more).values(), strict=True)))


def residuals(action: NDArray[np.int16], probability: Singles | None, num_actions: int) -> tuple[Singles, Singles]:
    """r [m, D, A] and w [m, D] of actions [m, D]; 0 where the action is −1, or the only one possible."""
    is_trial = action >= 0
    taken = np.where(is_trial, action, 0)[..., None]
    weight = is_trial.astype(np.float32)
    is_taken = taken == np.arange(num_actions)
    if probability is None:
        return (weight[..., None] * (np.sqrt(num_actions) * (is_taken - 1.0 / num_actions))).astype(np.float32), weight
    possible = probability > 0
    among = possible.sum(-1)  # the actions that could be taken: k of A
    least = np.where(possible, probability, np.inf).min(-1)
    of_taken = np.take_along_axis(probability, taken.astype(np.int64), -1)[..., 0]
    weight *= np.where(((among > 1) | (num_actions == 1)) & (of_taken > 0), least / np.maximum(of_taken, 1e-12), 0.0)
    k = np.maximum(among, 1)[..., None]
    r = np.sqrt(k) * (is_taken - possible / k)
    return (weight[..., None] * r).astype(np.float32), weight.astype(np.float32)


def taken_before(action: NDArray[np.int16], probability: Singles | None, num_actions: int) -> Floats:
    """How often each action was drawn 1…D−1 steps before transitions with actions [m, D], by weight w; [D−1, A]."""
    before = action[:, 1:]
    if probability is None:
        row, lag = np.nonzero(before >= 0)
        weight = None
    else:
        w = residuals(before, probability[:, 1:], num_actions)[1]
        row, lag = np.nonzero(w)
        weight = w[row, lag]
    return np.bincount(lag * num_actions + before[row, lag], weight, before.shape[1] * num_actions).reshape(-1, num_actions).astype(
        np.float64)


class Sums:
    """Rows of sums that grow: n, U, S (its lower triangle), those of the actions before, and Σ‖r‖².

    In single precision a sum of ones ends at 16.8 million, so a row of HALVED_AT events is halved: what is old counts for less.
    """

    NAMES = ("n", "u", "s", "lag_n", "lag_u", "own")

    def __init__(self, num_actions: int):
        k, dtype = FEATURES, np.float32
        self._layout: dict[str, tuple[tuple[int, ...], Any]] = {
            "n": ((), np.float64), "u": ((num_actions, k), dtype), "s": ((k * (k + 1) // 2,), dtype),
            "lag_n": ((LAGS - 1,), dtype), "lag_u": ((LAGS - 1, num_actions), dtype), "own": ((), np.float64)}
        self.size = 0
        self._arrays = {name: np.zeros((16, *shape), dtype) for name, (shape, dtype) in self._layout.items()}

    @staticmethod
    def row_bytes(num_actions: int) -> int:
        """Memory of one row."""
        return sum(array.nbytes // len(array) for array in Sums(num_actions)._arrays.values())

    def resize(self, size: int) -> None:
        """More rows, of zeros."""
        if size > len(self._arrays["n"]):
            capacity = max(size, 2 * len(self._arrays["n"]))
            for name, array in self._arrays.items():
                more = np.zeros((capacity, *array.shape[1:]), array.dtype)  # taken from the machine as it is filled
                more[: len(array)] = array
                self._arrays[name] = more
        self.size = size

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The filled part of each, in the order of NAMES."""
        return tuple(self._arrays[name][: self.size] for name in self.NAMES)

    def state_dict(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in zip(self.NAMES, self.arrays(), strict=True)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        size = len(state["n"])
        self.resize(size)
        for name, (shape, _) in self._layout.items():
            array = stored_array(state[name], f"trials {name}", (size, *shape), "f")
            self._arrays[name][:size], self._arrays[name][size:] = array, 0


class Trials:
    """The sums of every goal that ever turned on, and of every kind. `kinds` names the kinds of bits."""

    def __init__(self, num_bits: int, num_actions: int, kinds: Callable[[Ints], Sequence[str]] | None = None, seed: int = 0):
        self.num_bits, self.num_actions = num_bits, num_actions
        self._kind_names = kinds or (lambda bits: ["bit"] * len(bits))
        self.kinds: list[str] = []
        self._number: dict[str, int] = {}  # of each kind
        self.kind_of = np.full(num_bits, -1, np.int32)  # of every bit that was ever on
        self.row_of = np.full(num_bits, -1, np.int32)
        self._bits = np.empty(0, np.int32)  # of each row
        self.sums, self.kind_sums = Sums(num_actions), Sums(num_actions)
        self.taken = np.zeros((LAGS - 1, num_actions))  # how often each action was drawn d steps before any transition
        self._tested = Tested.nothing(0)  # of each row, as of the last test
        self._is_stale = np.empty(0, np.bool_)  # rows with events since
        self._pairs = np.zeros((0, 2))  # how often two events of a row share their action, beyond chance, and its variance
        shape = min(num_bits, DIRECTIONS), 2 * PROJECTIONS
        self._directions = np.random.default_rng(seed).standard_normal(shape, np.float32)

    @property
    def bits(self) -> Ints:
        """The goal of each row."""
        return self._bits

    def update(self, events: TrialEvents) -> None:
        """Adds events to the sums."""
        if events.taken is not None:
            self.taken += events.taken
        if len(events.bit) == 0:
            return
        self.name_kinds(events.before)
        self.name_kinds(events.bit)
        new = np.unique(events.bit[self.row_of[events.bit] < 0])
        if len(new):
            self.row_of[new] = np.arange(len(self._bits), len(self._bits) + len(new), dtype=np.int32)
            self._bits = np.concatenate([self._bits, new])
            self.sums.resize(len(self._bits))
            self._is_stale = np.append(self._is_stale, np.ones(len(new), np.bool_))
        self._is_stale[self.row_of[events.bit]] = True
        r, weight = residuals(events.action, events.probability, self.num_actions)
        self._centre(r[:, 1:], weight[:, 1:])
        last = np.full(len(self.kinds), -1, np.int64)  # transition that each kind counted last
        _accumulate(events.bit, events.row, events.before, r, weight, self.row_of, self.kind_of, self._directions, last,
                    *self.sums.arrays(), *self.kind_sums.arrays())

    def _centre(self, r: Singles, weight: Singles) -> None:
        """r → r' of the actions before, [m, D−1, A], in place."""
        among = self.taken.sum(1, keepdims=True)
        share = np.where(among > 0, self.taken / np.maximum(among, 1e-12), 1.0 / self.num_actions)  # p_d
        mean = np.sqrt(self.num_actions) * (share - 1.0 / self.num_actions)
        r -= (weight[..., None] * mean).astype(np.float32)
        r /= np.sqrt(np.maximum(1.0, self.num_actions * share)).astype(np.float32)

    def name_kinds(self, bits: NDArray[np.integer[Any]]) -> None:
        """Finds out the kinds of bits that were not asked for before; −1 is passed over."""
        unknown = np.unique(bits[(self.kind_of[bits] < 0) & (bits >= 0)])
        if len(unknown) == 0:
            return
        names = self._kind_names(unknown)
        for name in dict.fromkeys(names):
            if name not in self._number:
                self._number[name] = len(self.kinds)
                self.kinds.append(name)
        self.kind_sums.resize(len(self.kinds))
        self.kind_of[unknown] = [self._number[name] for name in names]

    def test(self) -> Tested:
        """p and nats of every row; only those with new events are computed."""
        rows = np.flatnonzero(self._is_stale)
        if len(rows):
            if len(self._pairs) < len(self._bits):
                self._tested = self._tested.padded(len(self._bits))
                self._pairs = np.append(self._pairs, np.zeros((len(self._bits) - len(self._pairs), 2)), 0)
            for some in np.array_split(rows, -(-len(rows) // AT_ONCE)):
                self._test_rows(some)
            self._is_stale[rows] = False
        return self._tested

    def _test_rows(self, rows: NDArray[np.int64]) -> None:
        sums = [array[rows] for array in self.sums.arrays()]
        found = test_sums(*sums)
        for name, array in vars(self._tested).items():
            array[rows] = getattr(found, name)
        n, u, own = sums[0], sums[1], sums[-1]
        # with n events T₁ has mean Σ‖r‖²/n, A−1 for uniform μ, and then variance 2(A−1)(1 − 1/n), else less
        often, is_pair = np.maximum(n, 1.0), n > 1
        excess = ((u[:, :, -1].astype(np.float64) ** 2).sum(1) - own) / often
        self._pairs[rows, 0] = np.where(is_pair, excess, 0.0)
        self._pairs[rows, 1] = np.where(is_pair, 2 * (self.num_actions - 1) * (1 - 1 / often), 0.0)

    def test_kinds(self) -> Tested:
        """p, nats and events of every kind."""
        pooled = test_sums(*self.kind_sums.arrays())
        self.test()  # brings the pairs of every goal up to date
        kind = self.kind_of[self._bits]
        excess, variance = (np.bincount(kind, x, len(self.kinds)) for x in self._pairs.T)
        df = np.maximum(variance / 2, 1e-9)  # as one χ² of that mean and variance
        p_pairs = np.where(variance > 0, chdtrc(df, np.maximum(df + excess, 0.0)), 1.0)
        return Tested(pooled.events, np.minimum(1.0, 2 * np.minimum(pooled.p, p_pairs)), pooled.nats, pooled.most)

    def state_dict(self) -> dict[str, Any]:
        """All sums, as plain arrays."""
        return {"bits": self._bits.copy(), "sums": self.sums.state_dict(), "kinds": list(self.kinds),
                "kind_sums": self.kind_sums.state_dict(), "taken": self.taken.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        bits = stored_array(state["bits"], "trials bits", (None,), "i").astype(np.int32)
        if len(bits) and (bits.min() < 0 or bits.max() >= self.num_bits or len(np.unique(bits)) < len(bits)):
            raise ValueError(f"stored trials name a bit that is not one of 0…{self.num_bits - 1}, or one twice")
        self._bits = bits
        self.row_of[:] = self.kind_of[:] = -1
        self.row_of[bits] = np.arange(len(bits), dtype=np.int32)
        self.sums.load_state_dict(state["sums"])
        self.kind_sums.load_state_dict(state["kind_sums"])
        self.taken[:] = stored_array(state["taken"], "trials taken", self.taken.shape, "f")
        self.kinds = [str(name) for name in state["kinds"]]
        self._number = {name: i for i, name in enumerate(self.kinds)}
        if self.sums.size != len(bits) or self.kind_sums.size != len(self.kinds):
            raise ValueError(f"stored trials have {self.sums.size} rows for {len(bits)} bits and {self.kind_sums.size} for "
                             f"{len(self.kinds)} kinds")
        self._tested, self._is_stale = Tested.nothing(len(bits)), np.ones(len(bits), np.bool_)
        self._pairs = np.zeros((len(bits), 2))
        self.name_kinds(bits)


def test_sums(n: Floats, u: NDArray[Any], s: NDArray[Any], lag_n: NDArray[Any], lag_u: NDArray[Any], own: NDArray[Any]) -> Tested:
    """The three tests of rows of sums."""
    df = u.shape[1] - 1
    if df == 0 or len(n) == 0:  # one action: nothing to compare
        return Tested(n.copy(), np.ones(len(n)), np.zeros(len(n)), np.where(n > 0, 0.0, np.inf))
    t, rank = _score(n, u, s)
    often, lag_often = np.maximum(n, 1e-9), np.maximum(lag_n.astype(np.float64), 1e-9)
    t_1 = (u[:, :, -1].astype(np.float64) ** 2).sum(1) / often
    t_d = (lag_u.astype(np.float64) ** 2).sum(2) / lag_often  # [rows, D−1]
    given_state, whatever = (t - df * rank) / (2 * often), (t_1 - df) / (2 * often)
    p_tests = np.column_stack([_tail(t, rank, often, df), _tail(t_1, 1.0, often, df), (LAGS - 1) * _tail(t_d, 1.0, lag_often, df)])
    tells = np.column_stack([given_state, whatever, (t_d - df) / (2 * lag_often)])  # [rows, 2 + D−1]
    p = 3 * p_tests.min(1)
    counts = p_tests <= SURE  # not all: a lag with two events that happen to be alike would tell a nat
    counts[~counts.any(1), :2] = True
    nats = np.clip(np.where(counts, tells, -np.inf).max(1), 0.0, np.log(df + 1))
    most = np.maximum(given_state + np.sqrt(2 * df * rank) / often, whatever + np.sqrt(2 * df) / often)  # two standard errors more
    is_known = n >= 1.0
    return Tested(n.copy(), np.where(is_known, np.minimum(p, 1.0), 1.0), np.where(is_known, nats, 0.0),
                  np.where(is_known, most, np.inf))


def _tail(t: Floats, rank: Floats | float, n: Floats, df: int) -> Floats:
    """p of a statistic with df·rank degrees of freedom, of n events of df + 1 actions; 1 where it is no more than expected."""
    c = 1.0 + (df - 1) * rank / (2.0 * n)
    free = np.broadcast_to(np.maximum(df * rank, 1e-9), t.shape)
    p = np.ones(t.shape)
    some = (t > free) & (n > 1.0)  # one event cannot tell, and most goals of a vast space have no more
    c, free, t = c[some], free[some], t[some]
    p[some] = chdtrc(free / c**2, free / c**2 + (t - free) / c)
    return p


@nb.njit(cache=True)
def _accumulate(bit, row, before, r, weight, row_of, kind_of, directions, last,  # type: ignore[no-untyped-def]
                n, u, s, lag_n, lag_u, own_sum, kind_n, kind_u, kind_s, kind_lag_n, kind_lag_u, kind_own):
    """One pass over the events, in which each kind counts once a transition."""
    half = directions.shape[1] // 2
    z = np.empty(2 * half + 1, np.float32)
    z[-1] = 1.0
    for e in range(len(bit)):
        g, i = row_of[bit[e]], row[e]
        kind = kind_of[bit[e]]
        if weight[i, 0] > 0:
            z[:-1] = 0.0
            own = everything = 0
            for b in before[i]:
                if b < 0:
                    continue
                direction = directions[b % len(directions)]
                everything += 1
                for k in range(half):
                    z[half + k] += direction[half + k]
                if kind_of[b] == kind:
                    own += 1
                    for k in range(half):
                        z[k] += direction[k]
            for k in range(half):
                z[k] = min(4.0, max(-4.0, z[k] / np.sqrt(max(1, own))))
                z[half + k] = min(4.0, max(-4.0, z[half + k] / np.sqrt(max(1, everything))))
        _add(g, z, r[i], weight[i], n, u, s, lag_n, lag_u, own_sum)
        if last[kind] != i:
            last[kind] = i
            _add(kind, z, r[i], weight[i], kind_n, kind_u, kind_s, kind_lag_n, kind_lag_u, kind_own)


@nb.njit(cache=True)
def _add(g, z, r, weight, n, u, s, lag_n, lag_u, own):  # type: ignore[no-untyped-def]
    """One event to the sums of row g."""
    if n[g] >= HALVED_AT or lag_n[g].max() >= HALVED_AT:
        n[g] *= 0.5
        own[g] *= 0.5
        u[g] *= np.float32(0.5)
        s[g] *= np.float32(0.5)
        lag_n[g] *= np.float32(0.5)
        lag_u[g] *= np.float32(0.5)
    if weight[0] > 0:
        n[g] += weight[0]
        for a in range(r.shape[1]):
            own[g] += r[0, a] * r[0, a]
            for k in range(len(z)):
                u[g, a, k] += r[0, a] * z[k]
        place = 0
        for j in range(len(z)):
            for k in range(j + 1):
                s[g, place] += weight[0] * z[j] * z[k]
                place += 1
    for d in range(1, len(weight)):
        if weight[d] > 0:
            lag_n[g, d - 1] += weight[d]
            for a in range(r.shape[1]):
                lag_u[g, d - 1, a] += r[d, a]


@nb.njit(cache=True)
def _score(n, u, s):  # type: ignore[no-untyped-def]
    """T = Σ_a U_aᵀ (S + λnI)⁻¹ U_a and tr S(S + λnI)⁻¹ of each row, by Cholesky."""
    rows, actions, size = u.shape
    t, rank = np.zeros(rows), np.zeros(rows)
    c, x = np.zeros((size, size)), np.zeros(size)  # C Cᵀ = S + λnI, lower triangle
    for g in range(rows):
        if n[g] <= 0.0:
            continue
        ridge = RIDGE * n[g]
        place = 0
        for i in range(size):
            for j in range(i + 1):
                total = np.float64(s[g, place]) + (ridge if i == j else 0.0)
                place += 1
                for k in range(j):
                    total -= c[i, k] * c[j, k]
                c[i, j] = np.sqrt(max(total, 1e-12)) if i == j else total / c[j, j]
        for a in range(actions):  # ‖C⁻¹ U_a‖²
            for i in range(size):
                total = np.float64(u[g, a, i])
                for k in range(i):
                    total -= c[i, k] * x[k]
                x[i] = total / c[i, i]
                t[g] += x[i] * x[i]
        inverse = 0.0  # tr (S + λnI)⁻¹ = ‖C⁻¹‖²
        for b in range(size):
            for i in range(b, size):
                total = 1.0 if i == b else 0.0
                for k in range(b, i):
                    total -= c[i, k] * x[k]
                x[i] = total / c[i, i]
                inverse += x[i] * x[i]
        rank[g] = size - ridge * inverse
    return t, rank
