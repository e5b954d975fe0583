"""Settings of Agent57 (`protogoal.agents.agent57`); the defaults are the papers' (proto-goals, Appendix C; NGU; Agent57)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from protogoal.settings import AgentSettings, ranged


@dataclass(frozen=True)
class Agent57Settings(AgentSettings):
    """Intrinsic rewards, the family of policies, and the meta-controller; the section `exploration` of agent57."""

    kind: str = field(default="agent57", init=False)
    num_policies: int = ranged(32, 1, 1024)
    """N, the policies (β_j, γ_j) from greedy (j = 0) to curious; a single one has β and discount_max."""
    beta: float = ranged(0.3, 0.0, 1e6)
    """Weight of the intrinsic value in the most curious policy."""
    discount_max: float = ranged(0.9999, 0.0, 0.999999)
    """γ of the greedy policy."""
    discount_min: float = ranged(0.99, 0.0, 0.999999)
    """γ of the most curious one."""
    learn_policies: Literal["own", "all"] = "own"
    """own: a segment is learned for the policy that made it. all: for every policy, which the bilinear join makes cheap."""
    reads_intrinsic: bool = True
    """The networks see the intrinsic reward of the step before."""
    intrinsic_return_ends: bool = True
    """The intrinsic return ends with the episode. Off: it goes on in the next, as in RND, so that winning forfeits no novelty."""
    meta_episode_length: int = ranged(10, 1)
    """Episodes after which the episodic memory is emptied."""
    episodic_memory_reward_scale: float = ranged(0.001, 0.0, 1e6)
    """Factor on the intrinsic reward."""
    is_episodic: bool = True
    """Off: intrinsic reward is lifelong novelty alone, α − 1."""
    is_lifelong: bool = True
    """Off: intrinsic reward is episodic novelty alone."""
    memory_capacity: int = ranged(5_000, 1, 10**7)
    """States the episodic memory of one environment holds; 5,000 is NGU's for gridworlds."""
    neighbours: int = ranged(10, 1, 1000)
    """k, the nearest states in memory that novelty is measured by."""
    kernel_epsilon: float = ranged(1e-4, 1e-12, 1e6)
    """ε of the kernel K(d) = ε / (d + ε); 0.01 in NGU's gridworlds."""
    cluster_distance: float = ranged(0.008, 0.0, 1e6)
    """ξ: states closer than this (in units of the mean squared distance) count as equal."""
    pseudo_count: float = ranged(1e-3, 1e-12, 1e6)
    """c, added to √ΣK."""
    max_similarity: float = ranged(8.0, 0.0)
    """Above this √ΣK + c the episodic reward is 0."""
    max_novelty: float = ranged(5.0, 1.0, 1e6)
    """L: lifelong novelty α is clipped to [1, L]."""
    embedding_size: int = ranged(32, 1, 4096)
    """Length of the controllable embedding."""
    distillation_size: int = ranged(128, 1, 4096)
    """Length of the random network's output."""
    curiosity_hidden: int = ranged(128, 1, 8192)
    """Width of the embedding and distillation networks."""
    curiosity_channels: tuple[int, ...] = ranged((16, 32), 1, 1024)
    """Channels of their 3×3 convolutions, for planes and characters."""
    curiosity_learning_rate: float = ranged(5e-4, 1e-12, 1.0)
    """Adam's step size for both."""
    bandit_window: int = ranged(160, 1)
    """Episodes that the meta-controller looks back."""
    bandit_epsilon: float = ranged(0.5, 0.0, 1.0)
    """Share of episodes with a policy drawn uniformly."""
    bandit_bonus: float = ranged(1.0, 0.0, 1e6)
    """Weight of √(1/count) in the meta-controller's choice."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.is_episodic or self.is_lifelong):
            raise ValueError("Agent57Settings needs is_episodic or is_lifelong; without both there is no intrinsic reward")
