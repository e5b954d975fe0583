"""Settings of the deep agent, one frozen dataclass a part (paper, Tables 1 and 2; Appendix C).

Every field has its help text below it (the command line shows it) and its range, which is checked when the value is
made: a wrong one is refused with its name and what is allowed. No torch here, so that the command line starts fast.
`protogoal.config.DeepConfig` puts the parts together; `protogoal.presets` holds the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints


def check(settings: Any, field: str, low: float | None = None, high: float | None = None) -> None:
    """Refuses a field outside [low, high], or outside its Literal's values, with a line that names it."""
    value = getattr(settings, field)
    where = f"{type(settings).__name__}.{field}"
    choices = get_args(get_type_hints(type(settings))[field])
    if choices and all(isinstance(choice, str) for choice in choices):
        if value not in choices:
            raise ValueError(f"{where} must be one of {', '.join(choices)}; got {value!r}")
        return
    for number in value if isinstance(value, tuple) else (value,):
        is_number = isinstance(number, int | float) and not isinstance(number, bool) and number == number
        if not is_number or (low is not None and number < low) or (high is not None and number > high):
            allowed = f"≥ {low}" if high is None else f"≤ {high}" if low is None else f"in [{low}, {high}]"
            raise ValueError(f"{where} must be {allowed}; got {value!r}")


@dataclass(frozen=True)
class NetworkSettings:
    """Q_θ(s, a, g): a torso for each part of the observation, a core, and the join of state and goal."""

    hidden: int = 256
    """Width of the layers, and of the recurrent core."""
    layers: int = 1
    """Fully connected layers after the torso, before the core."""
    channels: tuple[int, ...] = (32, 32)
    """Channels of the 3×3 convolutions, for planes and characters."""
    character_dim: int = 16
    """Length of a character's embedding."""
    core: Literal["none", "lstm"] = "none"
    """Recurrent core: none (the state is the observation) or lstm (stored with each segment)."""
    join: Literal["bilinear", "concat"] = "bilinear"
    """bilinear: ψ(s, a)·φ(g), every goal at the price of one product. concat: an MLP on both, one pass a goal."""
    rank: int = 128
    """d, the length of ψ and φ in the bilinear join."""
    goal_hidden: int = 256
    """Width of the goal branch."""

    def __post_init__(self) -> None:
        check(self, "hidden", 1, 8192)
        check(self, "layers", 0, 16)
        check(self, "channels", 1, 1024)
        check(self, "character_dim", 1, 1024)
        check(self, "core")
        check(self, "join")
        check(self, "rank", 1, 8192)
        check(self, "goal_hidden", 1, 8192)


@dataclass(frozen=True)
class ActorSettings:
    """How experience is made (paper §5.1, Algorithms 2 and 6)."""

    num_envs: int = 128
    """Environments stepped together; each has its own exploration rate."""
    epsilon_base: float = 0.4
    """Environment i explores with ε_i = base^(1 + exponent·i/(N−1))."""
    epsilon_exponent: float = 7.0
    """7 is R2D2's ladder (0.4 down to 0.0007); 1 ends at base²."""
    max_pursuit_steps: int = 0
    """A pursuit is given up after this many steps; 0 lets it run to the end of the episode, as in the paper."""

    def __post_init__(self) -> None:
        check(self, "num_envs", 1, 100_000)
        check(self, "epsilon_base", 0.0, 1.0)
        check(self, "epsilon_exponent", 0.0, 100.0)
        check(self, "max_pursuit_steps", 0)


@dataclass(frozen=True)
class ReplaySettings:
    """Segments of experience, and which of them are learned from."""

    capacity: int = 1_000_000
    """Transitions kept."""
    trace_length: int = 10
    """Transitions of a segment that are learned from."""
    burn_in: int = 0
    """Transitions before them that only warm up the recurrent core."""
    novelty_share: float = 0.0
    """Share of a batch drawn by the novelty of the rarest bit that turned on in a segment; 0 is the paper's uniform."""
    novelty_exponent: float = 0.5
    """Such a segment weighs (times that bit turned on)^-exponent."""

    def __post_init__(self) -> None:
        check(self, "capacity", 1, 10**10)
        check(self, "trace_length", 1, 10_000)
        check(self, "burn_in", 0, 10_000)
        check(self, "novelty_share", 0.0, 1.0)
        check(self, "novelty_exponent", 0.0, 4.0)
        if self.capacity < self.trace_length:
            raise ValueError(f"ReplaySettings.capacity must hold one segment of {self.trace_length}; got {self.capacity}")


@dataclass(frozen=True)
class LearnerSettings:
    """How the network learns (Table 1; paper §5.2)."""

    learning_rate: float = 3e-4
    """Adam's step size."""
    adam_epsilon: float = 1e-4
    """Adam's ε; with a loss averaged over many goals the gradients are small, and so must this be."""
    weight_decay: float = 1e-4
    """Pull of the weights towards 0."""
    max_gradient_norm: float = 10.0
    """Longer gradients are shortened to this; 0 leaves them."""
    batch_size: int = 64
    """Segments in a batch."""
    replay_ratio: float = 1.0
    """Transitions learned for each transition acted."""
    min_replay: int = 5_000
    """Learning starts when this many transitions are in replay."""
    task_discount: float = 0.99
    """γ of the task."""
    goal_discount: float = 0.99
    """γ of every proto-goal."""
    returns: Literal["retrace", "peng", "nstep"] = "retrace"
    """Multi-step target: Retrace(λ) with a greedy target policy, Peng's Q(λ), or n-step double Q."""
    trace_lambda: float = 0.95
    """λ of retrace and peng."""
    n_steps: int = 5
    """n of nstep."""
    value_transform: Literal["identity", "h"] = "identity"
    """Targets as they are, or squashed by h(x) = sign(x)(√(|x|+1) − 1) + εx."""
    clip_goal_values: bool = False
    """Keep the targets of proto-goals in [0, 1], which their true values never leave."""
    target_period: int = 10_000
    """Updates between two copies of the weights to the target network."""
    relabel: Literal["all", "novelty"] = "novelty"
    """all: learn every observed goal on every transition. novelty: hindsight goals drawn ∝ 1/√N, as in the paper."""
    hindsight_goals: int = 15
    """M_her: attained goals learned per segment (relabel = novelty)."""
    unattained_goals: int = 0
    """Offered goals that were not attained, learned per segment (relabel = novelty)."""
    max_goals: int = 4096
    """Single-bit goals learned per batch at most, drawn uniformly where more were observed (relabel = all)."""
    conjunctions: int = 64
    """AND-goals learned per batch, drawn uniformly from the observed ones (relabel = all)."""
    task_weight: float = 1.0
    """Weight of the task's loss beside the mean over proto-goals (relabel = all)."""
    average_decay: float = 0.0
    """The evaluator plays with a running mean of the weights, of 1/(1 − decay) updates; 0: with the newest weights."""

    def __post_init__(self) -> None:
        check(self, "learning_rate", 1e-12, 1.0)
        check(self, "adam_epsilon", 1e-16, 1.0)
        check(self, "weight_decay", 0.0, 1.0)
        check(self, "max_gradient_norm", 0.0)
        check(self, "batch_size", 1, 100_000)
        check(self, "replay_ratio", 0.0, 1e6)
        check(self, "min_replay", 1)
        check(self, "task_discount", 0.0, 1.0)
        check(self, "goal_discount", 0.0, 1.0)
        check(self, "returns")
        check(self, "trace_lambda", 0.0, 1.0)
        check(self, "n_steps", 1, 10_000)
        check(self, "value_transform")
        check(self, "target_period", 1)
        check(self, "relabel")
        check(self, "hindsight_goals", 0, 100_000)
        check(self, "unattained_goals", 0, 100_000)
        check(self, "max_goals", 1)
        check(self, "conjunctions", 0)
        check(self, "task_weight", 0.0, 1e6)
        check(self, "average_decay", 0.0, 0.999999)


@dataclass(frozen=True)
class EvaluationSettings:
    """The evaluator: the task alone, on its own environments (paper, Appendix C)."""

    every: int = 100_000
    """Steps between two evaluations."""
    episodes: int = 32
    """Episodes of one evaluation."""
    epsilon: float = 0.0
    """Share of random actions."""
    final_episodes: int = 100
    """Episodes of the evaluation at the end of a run."""

    def __post_init__(self) -> None:
        check(self, "every", 1)
        check(self, "episodes", 1, 100_000)
        check(self, "epsilon", 0.0, 1.0)
        check(self, "final_episodes", 1, 100_000)
