"""Settings of the deep agent, one frozen dataclass a part (paper, Tables 1 and 2; Appendix C).

Every field has its help text below it (the command line shows it) and its range. No torch here, so that the command line
starts fast. `protogoal.config.DeepConfig` puts the parts together; `protogoal.domains` holds the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from protogoal.settings import Settings, ranged


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """Q_θ(s, a, g): a torso for each part of the observation, a core, and the join of state and goal."""

    hidden: int = ranged(256, 1, 8192)
    """Width of the layers, and of the recurrent core."""
    layers: int = ranged(1, 0, 16)
    """Fully connected layers after the torso, before the core."""
    channels: tuple[int, ...] = ranged((32, 32), 1, 1024)
    """Channels of the convolutions: 3×3 for planes, characters and grids; for pictures 8×8 with stride 4, then 4×4."""
    character_dim: int = ranged(16, 1, 1024)
    """Length of the embedding of a character, or of a value of a grid."""
    core: Literal["none", "lstm", "auto"] = "none"
    """Recurrent core: none (the state is the observation), lstm (stored with each segment), or auto: lstm where the
    environment shows only a part of its state (env.partial)."""
    join: Literal["bilinear", "concat"] = "bilinear"
    """bilinear: ψ(s, a)·φ(g), every goal at the price of one product. concat: an MLP on both, one pass a goal."""
    rank: int = ranged(128, 1, 8192)
    """d, the length of ψ and φ in the bilinear join."""
    goal_hidden: int = ranged(256, 1, 8192)
    """Width of the goal branch."""
    goal_slots: int = ranged(4096, 1, 10_000_000)
    """Proto-goals that have weights at the same time; of more, those worth learning have them in turn."""



@dataclass(frozen=True)
class ActorSettings(Settings):
    """How experience is made (paper §5.1, Algorithms 2 and 6)."""

    num_envs: int = ranged(128, 1, 100_000)
    """Environments stepped together; each has its own exploration rate."""
    epsilon_base: float = ranged(0.4, 0.0, 1.0)
    """Environment i explores with ε_i = base^(1 + exponent·i/(N−1))."""
    epsilon_exponent: float = ranged(7.0, 0.0, 100.0)
    """7 is R2D2's ladder (0.4 down to 0.0007); 1 ends at base²."""


@dataclass(frozen=True)
class ReplaySettings(Settings):
    """Segments of experience, and which of them are learned from."""

    capacity: int = ranged(1_000_000, 1, 10**10)
    """Transitions kept."""
    most_gigabytes: float = ranged(0.0, 0.0, 1e6)
    """Memory that replay may take; where observations are large, fewer transitions are kept. 0: capacity alone decides."""
    trace_length: int = ranged(10, 1, 10_000)
    """Transitions of a segment that are learned from."""
    burn_in: int = ranged(0, 0, 10_000)
    """Transitions before them that only warm up the recurrent core."""
    novelty_share: float = ranged(0.0, 0.0, 1.0)
    """Share of a batch drawn by the novelty of the rarest bit that turned on in a segment; 0 is the paper's uniform."""
    novelty_exponent: float = ranged(0.5, 0.0, 4.0)
    """Such a segment weighs (times that bit turned on)^-exponent."""
    correction: float = ranged(1.0, 0.0, 1.0)
    """Segments drawn more often than others count for less in the loss: 1 in the long run without bias, 0 not at all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.capacity < self.trace_length:
            raise ValueError(f"ReplaySettings.capacity must hold one segment of {self.trace_length}; got {self.capacity}")


@dataclass(frozen=True)
class LearnerSettings(Settings):
    """How the network learns (Table 1; paper §5.2)."""

    learning_rate: float = ranged(3e-4, 1e-12, 1.0)
    """Adam's step size."""
    adam_epsilon: float = ranged(1e-4, 1e-16, 1.0)
    """Adam's ε; with a loss averaged over many goals the gradients are small, and so must this be."""
    weight_decay: float = ranged(1e-4, 0.0, 1.0)
    """Pull of the weights towards 0."""
    max_gradient_norm: float = ranged(10.0, 0.0)
    """Longer gradients are shortened to this; 0 leaves them."""
    batch_size: int = ranged(64, 1, 100_000)
    """Segments in a batch."""
    replay_ratio: float = ranged(1.0, 0.0, 1e6)
    """Transitions learned for each transition acted."""
    min_replay: int = ranged(5_000, 1)
    """Learning starts when this many transitions are in replay."""
    task_discount: float = ranged(0.99, 0.0, 1.0)
    """γ of the task."""
    goal_discount: float = ranged(0.99, 0.0, 1.0)
    """γ of every proto-goal."""
    returns: Literal["retrace", "peng", "nstep"] = "retrace"
    """Multi-step target: Retrace(λ) with a greedy target policy, Peng's Q(λ), or n-step double Q."""
    trace_lambda: float = ranged(0.95, 0.0, 1.0)
    """λ of retrace and peng."""
    n_steps: int = ranged(5, 1, 10_000)
    """n of nstep."""
    value_transform: Literal["identity", "h"] = "identity"
    """Targets as they are, or squashed by h(x) = sign(x)(√(|x|+1) − 1) + εx."""
    clip_goal_values: bool = False
    """Keep the targets of proto-goals in [0, 1], which their true values never leave."""
    target_period: int = ranged(10_000, 1)
    """Updates between two copies of the weights to the target network."""
    relabel: Literal["all", "novelty"] = "novelty"
    """all: learn every observed goal on every transition. novelty: hindsight goals drawn ∝ 1/√N, as in the paper."""
    hindsight_goals: int = ranged(15, 0, 100_000)
    """M_her: attained goals learned per segment (relabel = novelty)."""
    unattained_goals: int = ranged(0, 0, 100_000)
    """Offered goals that were not attained, learned per segment (relabel = novelty)."""
    max_goals: int = ranged(4096, 1)
    """Single-bit goals learned per batch at most, drawn uniformly where more were observed (relabel = all)."""
    conjunctions: int = ranged(64, 0)
    """AND-goals learned per batch, drawn uniformly from the observed ones (relabel = all)."""
    task_weight: float = ranged(1.0, 0.0, 1e6)
    """Weight of the task's loss beside the mean over proto-goals (relabel = all)."""
    average_decay: float = ranged(0.0, 0.0, 0.999999)
    """The player plays with a running mean of the weights, of 1/(1 − decay) updates; 0: with the newest weights."""


@dataclass(frozen=True)
class EvaluationSettings(Settings):
    """The player: the task alone, on its own environments (paper, Appendix C's evaluator)."""

    every: int = ranged(100_000, 1)
    """Steps between two evaluations; more where an evaluation itself took more."""
    episodes: int = ranged(32, 1, 100_000)
    """Episodes of one evaluation."""
    epsilon: float = ranged(0.0, 0.0, 1.0)
    """Share of random actions."""
    final_episodes: int = ranged(100, 1, 100_000)
    """Episodes of the evaluation at the end of a run."""
    max_steps: int = ranged(10_000, 1, 100_000_000)
    """An episode of an evaluation is cut after so many steps, as it need not end by itself; earlier where a run is shorter."""
    success_return: float | None = None
    """A return of at least this is a success, where the environment does not say itself which episodes succeed."""
