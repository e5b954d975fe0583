"""Slow, obvious versions of the goal table, desirability and selection, one goal and one transition at a time."""

from __future__ import annotations

import numpy as np


def attains(bits_of_transition, members) -> bool:
    return all(bool(bits_of_transition[i]) for i in members)


def attained(bits, all_members):
    """bool [n, G]."""
    return np.array([[attains(row, members) for members in all_members] for row in bits]).reshape(len(bits), len(all_members))


def turned_on(before, after):
    """Transitions in the sparse form: bits that are on after [n, L], padded with −1, and which of them were off before [n, L]."""
    width = max(1, *(int(sum(row)) for row in after))
    active, on = np.full((len(after), width), -1), np.zeros((len(after), width), bool)
    for t, row in enumerate(after):
        for place, bit in enumerate(np.flatnonzero(row)):
            active[t, place], on[t, place] = bit, not before[t][bit]
    return active, on


class CountingTable:
    """N(g) and R(g) kept in dictionaries."""

    def __init__(self):
        self.count, self.reward = {}, {}

    def observe(self, before, after, reward, all_members):
        """A transition attains a goal if it turns it on."""
        for old, new, r in zip(before, after, reward, strict=True):
            for goal, members in enumerate(all_members):
                if attains(new, members) and not attains(old, members):
                    self.count[goal] = self.count.get(goal, 0) + 1
                    self.reward[goal] = self.reward.get(goal, 0.0) + r


def desirability(count, reward_mean):
    return [max(r, 0.0) + 1 / max(n, 1) ** 0.5 for n, r in zip(count, reward_mean, strict=True)]


def candidate_probabilities(novelty, bucket):
    """Probability that one draw of Algorithm 2 gives each goal: a bucket uniformly, then ∝ novelty within it."""
    buckets = sorted(set(bucket))
    p = []
    for n, b in zip(novelty, bucket, strict=True):
        total = sum(x for x, c in zip(novelty, bucket, strict=True) if c == b)
        p.append(n / total / len(buckets))
    return p
