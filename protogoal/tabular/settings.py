"""Settings of the tabular agents, without any import that costs time; `protogoal.config` makes a command line of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TabularSettings:
    """How both tabular agents learn, and how often the greedy policy is tested."""

    learning_rate: float = 0.5
    """Step size α of every table."""
    discount: float = 0.95
    """γ of the task and, before attainment, of every goal."""
    epsilon: float = 0.1
    """Probability of a random action while the task is followed; goals are pursued greedily, as in Algorithm 1."""
    max_pursuit: int = 0
    """Steps after which a pursuit is given up and another goal is chosen; 0 means never, which is the paper's rule."""
    refresh_every: int = 200
    """The goal space is determined anew at the first end of an episode after so many steps; 1 means every episode."""
    eval_every: int = 2_500
    """Steps between two tests of the greedy task policy."""
    eval_episodes: int = 300
    """Episodes of a test; start states are visited in turn, and Taxi has 300 of them."""

    def __post_init__(self) -> None:
        if not 0.0 < self.learning_rate <= 1.0:
            raise ValueError(f"learning_rate must lie above 0 and at most at 1, got {self.learning_rate}")
        for name in ("discount", "epsilon"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        for name in ("refresh_every", "eval_every", "eval_episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.max_pursuit < 0:
            raise ValueError(f"max_pursuit must be at least 0, got {self.max_pursuit}")
