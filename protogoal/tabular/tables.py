"""A small environment as arrays, so that kernels can step it without Python.

Any deterministic environment with Gymnasium's toy-text table `P[state][action] = [(probability, state, reward,
terminated)]` will do. Read by `kernels`; the truncation limit is the environment's own `TimeLimit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TransitionTables:
    """Deterministic dynamics: s' = next_state[s, a]; S states, A actions."""

    next_state: NDArray[np.int64]  # [S, A]
    reward: NDArray[np.float64]  # [S, A]
    terminated: NDArray[np.bool_]  # [S, A]
    initial_states: NDArray[np.int64]  # [I], equally likely
    time_limit: int  # steps after which an episode is truncated

    def __post_init__(self) -> None:
        if not self.next_state.shape == self.reward.shape == self.terminated.shape or self.next_state.ndim != 2:
            raise ValueError("next_state, reward and terminated must share one shape [S, A]")
        if len(self.initial_states) == 0 or self.time_limit < 1:
            raise ValueError("transition tables need an initial state and a time limit of at least 1 step")
        for states in (self.next_state, self.initial_states):
            if states.min() < 0 or states.max() >= self.num_states:
                raise ValueError(f"states must lie in 0…{self.num_states - 1}")

    @property
    def num_states(self) -> int:
        return len(self.next_state)

    @property
    def num_actions(self) -> int:
        return self.next_state.shape[1]

    @staticmethod
    def from_gymnasium(env: Any) -> TransitionTables:
        """Read the table of a toy-text environment made by `gymnasium.make`."""
        table = getattr(env.unwrapped, "P", None)
        limit = env.spec.max_episode_steps if env.spec is not None else None
        if table is None or limit is None:
            raise ValueError(f"{env} has no transition table P or no time limit; the tabular agents need both")
        shape = len(table), len(table[0])
        next_state, reward, terminated = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.bool_)
        for s, actions in table.items():
            for a, outcomes in actions.items():
                if len(outcomes) != 1:
                    raise ValueError(f"state {s}, action {a} has {len(outcomes)} outcomes; the tabular agents need exactly 1")
                _, next_state[s, a], reward[s, a], terminated[s, a] = outcomes[0]
        start = np.asarray(env.unwrapped.initial_state_distrib)
        if not np.allclose(start[start > 0], 1 / np.count_nonzero(start)):
            raise ValueError("initial states must be equally likely")
        return TransitionTables(next_state, reward, terminated, np.flatnonzero(start > 0), int(limit))
