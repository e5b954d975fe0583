"""Settings of Agent57 (`protogoal.agents.agent57`); the defaults are the papers' (proto-goals, Appendix C; NGU; Agent57)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from protogoal.deep.settings import check


@dataclass(frozen=True)
class Agent57Settings:
    """Intrinsic rewards, the family of policies, and the meta-controller; only the agent agent57 reads it."""

    num_policies: int = 32
    """N, the policies (β_j, γ_j) from greedy (j = 0) to curious; a single one has β and discount_max."""
    beta: float = 0.3
    """Weight of the intrinsic value in the most curious policy."""
    discount_max: float = 0.9999
    """γ of the greedy policy."""
    discount_min: float = 0.99
    """γ of the most curious one."""
    learn_policies: Literal["own", "all"] = "own"
    """own: a segment is learned for the policy that made it. all: for every policy, which the bilinear join makes cheap."""
    reads_intrinsic: bool = True
    """The networks see the intrinsic reward of the step before."""
    intrinsic_return_ends: bool = True
    """The intrinsic return ends with the episode. Off: it goes on in the next, as in RND, so that winning forfeits no novelty."""
    meta_episode_length: int = 10
    """Episodes after which the episodic memory is emptied."""
    episodic_memory_reward_scale: float = 0.001
    """Factor on the intrinsic reward."""
    is_episodic: bool = True
    """Off: intrinsic reward is lifelong novelty alone, α − 1."""
    is_lifelong: bool = True
    """Off: intrinsic reward is episodic novelty alone."""
    memory_capacity: int = 5_000
    """States the episodic memory of one environment holds; 5,000 is NGU's for gridworlds."""
    neighbours: int = 10
    """k, the nearest states in memory that novelty is measured by."""
    kernel_epsilon: float = 1e-4
    """ε of the kernel K(d) = ε / (d + ε); 0.01 in NGU's gridworlds."""
    cluster_distance: float = 0.008
    """ξ: states closer than this (in units of the mean squared distance) count as equal."""
    pseudo_count: float = 1e-3
    """c, added to √ΣK."""
    max_similarity: float = 8.0
    """Above this √ΣK + c the episodic reward is 0."""
    max_novelty: float = 5.0
    """L: lifelong novelty α is clipped to [1, L]."""
    embedding_size: int = 32
    """Length of the controllable embedding."""
    distillation_size: int = 128
    """Length of the random network's output."""
    curiosity_hidden: int = 128
    """Width of the embedding and distillation networks."""
    curiosity_channels: tuple[int, ...] = (16, 32)
    """Channels of their 3×3 convolutions, for planes and characters."""
    curiosity_learning_rate: float = 5e-4
    """Adam's step size for both."""
    bandit_window: int = 160
    """Episodes that the meta-controller looks back."""
    bandit_epsilon: float = 0.5
    """Share of episodes with a policy drawn uniformly."""
    bandit_bonus: float = 1.0
    """Weight of √(1/count) in the meta-controller's choice."""

    def __post_init__(self) -> None:
        check(self, "num_policies", 1, 1024)
        check(self, "beta", 0.0, 1e6)
        check(self, "discount_max", 0.0, 0.999999)
        check(self, "discount_min", 0.0, 0.999999)
        check(self, "learn_policies")
        check(self, "meta_episode_length", 1)
        check(self, "episodic_memory_reward_scale", 0.0, 1e6)
        check(self, "memory_capacity", 1, 10**7)
        check(self, "neighbours", 1, 1000)
        check(self, "kernel_epsilon", 1e-12, 1e6)
        check(self, "cluster_distance", 0.0, 1e6)
        check(self, "pseudo_count", 1e-12, 1e6)
        check(self, "max_similarity", 0.0)
        check(self, "max_novelty", 1.0, 1e6)
        check(self, "embedding_size", 1, 4096)
        check(self, "distillation_size", 1, 4096)
        check(self, "curiosity_hidden", 1, 8192)
        check(self, "curiosity_channels", 1, 1024)
        check(self, "curiosity_learning_rate", 1e-12, 1.0)
        check(self, "bandit_window", 1)
        check(self, "bandit_epsilon", 0.0, 1.0)
        check(self, "bandit_bonus", 0.0, 1e6)
        if not (self.is_episodic or self.is_lifelong):
            raise ValueError("Agent57Settings needs is_episodic or is_lifelong; without both there is no intrinsic reward")
