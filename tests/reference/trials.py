"""The randomised trials straight from their definition: a list of events, loops, `np.linalg` and `scipy.stats`."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats


def residual(action, mu):
    """(r [A], w) of one action drawn from μ [A]; nothing of an action that was no trial, or the only one possible."""
    num_actions = len(mu)
    possible = [a for a in range(num_actions) if mu[a] > 0]
    k = len(possible)
    if action not in possible or (k == 1 and num_actions > 1):
        return np.zeros(num_actions), 0.0
    w = min(mu[a] for a in possible) / mu[action]
    return np.array([w * math.sqrt(k) * ((a == action) - 1 / k) if a in possible else 0.0 for a in range(num_actions)]), w


def centred(r, w, taken):
    """r' of an action some steps before, where `taken` [A] counts the actions so many steps before any transition so far."""
    num_actions = len(r)
    if sum(taken) == 0:
        return r
    share = [x / sum(taken) for x in taken]
    return np.array([(r[a] - w * math.sqrt(num_actions) * (share[a] - 1 / num_actions)) / math.sqrt(max(1, num_actions * share[a]))
                     for a in range(num_actions)])


def tail(t, df, n, num_actions):
    """P(df + c (X − df/c²) > t) of X ~ χ²(df/c²); 1 of a single event, and where t is no more than expected."""
    if n <= 1 or t <= df:
        return 1.0
    c = 1 + (num_actions - 2) * df / (num_actions - 1) / (2 * n)
    return stats.chi2.sf(df / c**2 + (t - df) / c, df / c**2)


def features(before, kind, kind_of, directions):
    """z(s) for a goal of a kind: projections of the state's bits of that kind, of all bits, and a constant."""
    half = directions.shape[1] // 2
    bits = [int(b) for b in before if b >= 0]
    own = [b for b in bits if kind_of(b) == kind]
    z = []
    for some, columns in ((own, range(half)), (bits, range(half, 2 * half))):
        for k in columns:
            total = sum(float(directions[b % len(directions), k]) for b in some) / math.sqrt(max(1, len(some)))
            z.append(min(4.0, max(-4.0, total)))
    return np.array([*z, 1.0])


class Row:
    """The events of one goal, or of one kind."""

    def __init__(self):
        self.events = []  # (z, r [D, A], w [D])

    def sums(self):
        """n, U, S, n_d, u_d, Σ‖r‖²."""
        n = sum(w[0] for _, _, w in self.events)
        u = sum(np.outer(r[0], z) for z, r, _ in self.events)
        s = sum(w[0] * np.outer(z, z) for z, _, w in self.events)
        lag_n = sum(w[1:] for _, _, w in self.events)
        lag_u = sum(r[1:] for _, r, _ in self.events)
        return n, u, s, lag_n, lag_u, sum((r[0] ** 2).sum() for _, r, _ in self.events)

    def test(self, ridge):
        """(n, p, nats, most) by the equations."""
        n, u, s, lag_n, lag_u, _ = self.sums()
        num_actions, size = u.shape
        if num_actions == 1:
            return n, 1.0, 0.0, 0.0 if n > 0 else math.inf
        if n < 1:
            return n, 1.0, 0.0, math.inf
        inverse = np.linalg.inv(s + ridge * n * np.eye(size))
        t = sum(u[a] @ inverse @ u[a] for a in range(num_actions))
        df = (num_actions - 1) * np.trace(s @ inverse)
        t_1 = sum(u[a, -1] ** 2 for a in range(num_actions)) / n
        nats = [(t - df) / (2 * n), (t_1 - (num_actions - 1)) / (2 * n)]
        tests = [(tail(t, df, n, num_actions), nats[0]), (tail(t_1, num_actions - 1, n, num_actions), nats[1])]
        most = max(nats[0] + 2 * math.sqrt(2 * df) / (2 * n), nats[1] + 2 * math.sqrt(2 * (num_actions - 1)) / (2 * n))
        for n_d, u_d in zip(lag_n, lag_u, strict=True):
            if n_d > 0:
                t_d = (u_d**2).sum() / n_d
                tests.append((len(lag_n) * tail(t_d, num_actions - 1, n_d, num_actions), (t_d - (num_actions - 1)) / (2 * n_d)))
        told = max([nats for p, nats in tests if p <= 0.01] or nats)
        return n, min(1.0, 3 * min(p for p, _ in tests)), min(max(0.0, told), math.log(num_actions)), most


def collect(parts, num_actions, kind_of, directions):
    """The rows of goals and of kinds, of windows one after another: two dictionaries."""
    goals, kinds, taken = {}, {}, np.zeros((parts[0].action.shape[1] - 1, num_actions))
    for events in parts:
        taken = taken if events.taken is None else taken + events.taken
        _collect(events, num_actions, kind_of, directions, taken, goals, kinds)
    return goals, kinds


def _collect(events, num_actions, kind_of, directions, taken, goals, kinds):
    lags = events.action.shape[1]
    uniform = np.full(num_actions, 1 / num_actions)
    counted = set()
    for i, bit in zip(events.row.tolist(), events.bit.tolist(), strict=True):
        r, w = [], []
        for d in range(lags):
            mu = uniform if events.probability is None else events.probability[i, d].astype(np.float64)
            one, weight = residual(int(events.action[i, d]), mu)
            r.append(one if d == 0 else centred(one, weight, taken[d - 1]))
            w.append(weight)
        kind = kind_of(bit)
        event = features(events.before[i], kind, kind_of, directions), np.array(r), np.array(w)
        goals.setdefault(bit, Row()).events.append(event)
        if (kind, i) not in counted:
            counted.add((kind, i))
            kinds.setdefault(kind, Row()).events.append(event)


def test_of_kind(kind, goals, kinds, kind_of, num_actions, ridge):
    """(n, p, nats, most) of a kind: twice the smaller p of its own events and of the actions that events of one goal share."""
    n, p, nats, most = kinds[kind].test(ridge)
    excess = variance = 0.0
    for bit, row in goals.items():
        if kind_of(bit) == kind:
            n_g, u, *_, own = row.sums()
            if n_g > 1:
                excess += ((u[:, -1] ** 2).sum() - own) / n_g
                variance += 2 * (num_actions - 1) * (1 - 1 / n_g)
    if variance > 0:  # a χ² of this mean and variance: df degrees of freedom, moved by the excess
        p = min(p, stats.chi2.sf(max(0.0, variance / 2 + excess), variance / 2))
    return n, min(1.0, 2 * p), nats, most


def discoveries(p, group, is_tested, share):
    """Benjamini and Hochberg, group by group and rank by rank."""
    found = np.zeros(len(p), bool)
    for g in set(group[is_tested].tolist()):
        rows = [i for i in range(len(p)) if is_tested[i] and group[i] == g]
        ordered = sorted(p[i] for i in rows)
        passing = [k for k, value in enumerate(ordered, 1) if value <= share * k / len(rows)]
        if passing:
            for i in rows:
                found[i] = p[i] <= ordered[max(passing) - 1]
    return found
