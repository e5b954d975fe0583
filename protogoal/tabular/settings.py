"""Settings of the tabular agents; `protogoal.config` makes a command line of them."""

from __future__ import annotations

from dataclasses import dataclass

from protogoal.goals.evaluator import PGESettings
from protogoal.settings import Settings, ranged

TABULAR_PGE = PGESettings(pruning="values", strategy="paper", competence=False, patience=0.0, p_task_most=0.1, p_task_of="choices",
                          recombinations=0, max_goals=0, max_members=1)
"""The evaluator of Algorithm 1: verdicts by the values of the agent's own tables, no recombination."""


@dataclass(frozen=True)
class TabularSettings(Settings):
    """How both tabular agents learn, and how often the greedy policy is tested."""

    learning_rate: float = ranged(0.5, 1e-12, 1.0)
    """Step size α of every table."""
    discount: float = ranged(0.95, 0.0, 1.0)
    """γ of the task and, before attainment, of every goal."""
    epsilon: float = ranged(0.1, 0.0, 1.0)
    """Probability of a random action while the task is followed; goals are pursued greedily, as in Algorithm 1."""
    max_pursuit: int = ranged(0, 0)
    """Steps after which a pursuit is given up and another goal is chosen; 0 means never, which is the paper's rule."""
    refresh_every: int = ranged(200, 1)
    """The goal space is determined anew at the first end of an episode after so many steps; 1 means every episode."""
    eval_every: int = ranged(2_500, 1)
    """Steps between two tests of the greedy task policy."""
    eval_episodes: int = ranged(300, 1)
    """Episodes of a test; start states are visited in turn, and Taxi has 300 of them."""
