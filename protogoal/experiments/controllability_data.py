"""Data of the controllability experiment: a random policy's, and a trained one's. Called by experiments/controllability.py.

The trained policy pursues one controllable bit after the other, each drawn anew when the last was attained or an episode begins,
by the action values of tabular Q-learning,

    Q(s, g, a) ← Q + α [b_g(s') + γ (1 − b_g(s')) max_a' Q(s', g, a') − Q],

for all these bits at once, from episodes of a random policy. It then acts ε-greedily: μ(a) = ε/A + (1 − ε)·1[a = argmax Q]. The
random policy is the same with ε = 1. μ is known for every action and is part of the data.

States are kept as lists of the bits that are on; dense bits are made for as many transitions at a time as somebody asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from protogoal.envs.controllability import Bits, Dynamics, Ints
from protogoal.goals.active import dense_bits
from protogoal.goals.values import TransitionBatch

EPSILON = 0.2  # of the trained policy
DISCOUNT = 0.95
LEARNING_RATE = 0.2
VISITS = 100  # of every state and action in training, on average


@dataclass(frozen=True)
class Policy:
    """ε-greedy for a goal: q [S, G, A] of the goals, which are bits [G]."""

    goals: Ints
    q: NDArray[np.float64]
    epsilon: float

    def probability(self, table_state: Ints, goal: Ints) -> NDArray[np.float64]:
        """μ(·|s) of the policy for each state's goal, an index of `goals`, [N, A]."""
        greedy = self.q[table_state, goal].argmax(1)[:, None] == np.arange(self.q.shape[2])
        mu: NDArray[np.float64] = self.epsilon / self.q.shape[2] + (1.0 - self.epsilon) * greedy
        return mu


def random_policy(dynamics: Dynamics) -> Policy:
    """Actions are uniformly random."""
    goals = np.flatnonzero(dynamics.controllable)
    return Policy(goals, np.zeros((dynamics.table_size, len(goals), dynamics.num_actions)), 1.0)


def train(dynamics: Dynamics, rng: np.random.Generator, epsilon: float = EPSILON) -> Policy:
    """Q-learning of every controllable bit, from random episodes."""
    policy = random_policy(dynamics)
    episodes = -(-VISITS * dynamics.table_size * dynamics.num_actions // dynamics.max_steps)
    for step in play(dynamics, policy, episodes, rng):
        b = (dynamics.active(step.after)[:, :, None] == policy.goals).any(1)  # [N, G]
        _learn(policy.q, dynamics.table_state(step.before), step.action, dynamics.table_state(step.after), b, step.terminated)
    return Policy(policy.goals, policy.q, epsilon)


@nb.njit(cache=True)
def _learn(q, state, action, after, attained, terminated):  # type: ignore[no-untyped-def]
    """Q-learning from one step of every episode, in place."""
    for i in range(len(state)):
        for g in range(q.shape[1]):
            target = 1.0 if attained[i, g] else 0.0 if terminated[i] else DISCOUNT * q[after[i], g].max()
            q[state[i], g, action[i]] += LEARNING_RATE * (target - q[state[i], g, action[i]])


class Step(NamedTuple):
    """One step of every episode that still goes on."""

    episode: Ints  # [N]
    before: Ints  # [N, …], states
    action: Ints  # [N]
    probability: NDArray[np.float64]  # [N, A]
    after: Ints  # [N, …]
    terminated: Bits  # [N]


def play(dynamics: Dynamics, policy: Policy, episodes: int, rng: np.random.Generator) -> Iterator[Step]:
    """Whole episodes, all of them side by side."""
    alive, state = np.arange(episodes), dynamics.start(episodes, rng)
    goal = rng.integers(len(policy.goals), size=episodes)
    for _ in range(dynamics.max_steps):
        mu = policy.probability(dynamics.table_state(state), goal)
        action = (rng.random((len(mu), 1)) > mu.cumsum(1)[:, :-1]).sum(1)
        after, terminated = dynamics.step(state, action, rng)
        yield Step(alive, state, action, mu, after, terminated)
        attained = (dynamics.active(after) == policy.goals[goal][:, None]).any(1)
        goal = np.where(attained, rng.integers(len(policy.goals), size=len(goal)), goal)
        alive, state, goal = alive[~terminated], after[~terminated], goal[~terminated]


@dataclass(frozen=True)
class Experience:
    """Transitions, episode after episode; states as the bits that are on, padded with −1."""

    num_bits: int
    episode: Ints  # [n], ascending
    before: NDArray[np.int32]  # [n, L]
    action: Ints  # [n]
    probability: NDArray[np.float32]  # [n, A]: μ of the policy
    after: NDArray[np.int32]  # [n, L]
    terminated: Bits  # [n]

    def rows_of(self, first: int, last: int) -> slice:
        """The transitions of episodes first…last − 1."""
        start, stop = np.searchsorted(self.episode, [first, last])
        return slice(int(start), int(stop))

    def seen(self, rows: slice) -> Bits:
        """Which bits were on in some state of these transitions, [B]."""
        on = np.zeros(self.num_bits + 1, np.bool_)
        on[self.before[rows]] = on[self.after[rows]] = True
        return on[:-1]

    def batch(self, rows: slice | Ints) -> TransitionBatch:
        """Transitions with dense bits, which are observations and proto-goals at once."""
        before, after = (dense_bits(active[rows], self.num_bits) for active in (self.before, self.after))
        return TransitionBatch(before, self.action[rows], after, self.terminated[rows], after)


def collect(dynamics: Dynamics, policy: Policy, episodes: int, rng: np.random.Generator) -> Experience:
    """The data of a policy."""
    steps = [(s.episode, dynamics.active(s.before).astype(np.int32), s.action, s.probability.astype(np.float32),
              dynamics.active(s.after).astype(np.int32), s.terminated) for s in play(dynamics, policy, episodes, rng)]
    whole = [np.concatenate(part) for part in zip(*steps, strict=True)]
    order = np.argsort(whole[0], kind="stable")
    return Experience(dynamics.space.size, *(part[order] for part in whole))
