"""What a run is made of: frozen dataclasses, the same on the command line (`--section.field value`) and in config.json.

Sections are defined where they are used (`goals.evaluator.PGESettings`, `tabular.settings`, `deep.settings`, `domains`,
`agents`); this file composes them. Named values of these classes are in `presets`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from protogoal import registry
from protogoal.deep.settings import ActorSettings, EvaluationSettings, LearnerSettings, NetworkSettings, ReplaySettings
from protogoal.goals.evaluator import PGESettings
from protogoal.settings import AgentSettings, DomainSettings, Settings, ranged, refuse
from protogoal.tabular.settings import TABULAR_PGE, TabularSettings

LEAST_PLAYED = 1_000  # steps that an episode of an evaluation may take in the shortest run

if TYPE_CHECKING:
    AgentName = str
else:
    AgentName = Literal[tuple(registry.AGENTS)]


@dataclass(frozen=True)
class TabularConfig(Settings):
    """A run of a tabular agent on SparseTaxi."""

    agents: ClassVar[tuple[str, ...]] = ("protogoal", "qlearning")
    engines: ClassVar[dict[str, str]] = {"local": "protogoal.run.tabular:TabularSession"}
    needs: ClassVar[tuple[str, ...]] = ()
    has_paper_settings: ClassVar[bool] = True

    agent: Literal["protogoal", "qlearning"] = "protogoal"
    """Algorithm 1, or plain Q-learning."""
    env: DomainSettings = field(default_factory=lambda: registry.domain("taxi").settings())
    """The environment."""
    learning: TabularSettings = field(default_factory=TabularSettings)
    """How the tables are learned."""
    pge: PGESettings = field(default_factory=lambda: TABULAR_PGE)
    """The proto-goal evaluator, as in the paper. Values are the agent's own tables, so estimator and batch_size have no effect;
    tables do not generalise to AND-goals, so recombination stays off."""
    steps: int = ranged(300_000, 1)
    """Environment steps in all."""
    seed: int = ranged(0, 0)
    """Everything random follows from it."""

    @property
    def final_episodes(self) -> int:
        """Episodes of the evaluation at the end."""
        return self.learning.eval_episodes

    def with_agent(self, name: str) -> TabularConfig:
        """The same task for another agent."""
        return replace(self, agent=name)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RaySettings(Settings):
    """The Ray engine (--engine ray); the local one reads nothing of this."""

    address: str = ""
    """The cluster: auto (the one this machine belongs to) or HOST:PORT; empty starts one on this machine."""
    workers: int = ranged(2, 1)
    """Processes that act."""
    envs_per_worker: int = ranged(0, 0)
    """Environments of each; 0 divides actor.num_envs among the workers."""
    shards: int = ranged(1, 1)
    """Processes that hold a part of replay each."""
    synchronous: bool = False
    """All roles in lockstep, the same result at every run; with one worker and one shard that of the local engine."""
    windows_per_call: int = ranged(1, 1)
    """Windows that a worker makes for one message; more of them need fewer messages."""
    calls_ahead: int = ranged(2, 1)
    """Messages a worker may have waiting, so that it never idles; each is acted with weights one version older."""
    updates_per_call: int = ranged(8, 1)
    """Updates that the learner makes for one message, after which it publishes its weights."""
    max_lag: int = ranged(64, 1)
    """Acting waits when learning is this many updates behind learner.replay_ratio."""
    prefetch: int = ranged(8, 0)
    """Batches that the learner asks for at a time, ahead of their use; 0: only what a message needs."""
    backlog: int = ranged(500_000, 1)
    """Transitions that may wait to be counted by the proto-goal evaluator; then acting waits."""
    backup_seconds: float = ranged(30.0, 0)
    """Between two copies of the learner's state; what it learned since is lost when it dies."""
    connect_seconds: float = ranged(20.0, 1)
    """How long to wait for a cluster to answer."""
    answer_seconds: float = ranged(300.0, 1)
    """A process that does not start or answer for so long counts as dead; an evaluation may take ten times as long."""
    worker_cpus: float = ranged(1.0, 0)
    """CPUs that a worker reserves."""
    learner_cpus: float = ranged(1.0, 0)
    """CPUs that the learner reserves."""
    learner_gpus: float = ranged(0.0, 0)
    """GPUs that the learner reserves; with any it computes on `device`, else on the CPU (cuda and mps are refused)."""
    shard_cpus: float = ranged(1.0, 0)
    """CPUs that a part of replay reserves."""
    pge_cpus: float = ranged(1.0, 0)
    """CPUs that the proto-goal evaluator reserves."""
    player_cpus: float = ranged(1.0, 0)
    """CPUs that the player of the task reserves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.address not in ("", "auto") and not re.fullmatch(r"[^\s:/]+:[0-9]+", self.address):
            raise refuse("RaySettings.address", "auto or HOST:PORT", self.address)


@dataclass(frozen=True)
class DeepConfig(Settings):
    """A run of a deep agent."""

    agents: ClassVar[tuple[str, ...]] = tuple(registry.AGENTS)
    engines: ClassVar[dict[str, str]] = {"local": "protogoal.run.local:LocalSession", "ray": "protogoal.run.ray.session:RaySession"}
    needs: ClassVar[tuple[str, ...]] = ("torch",)
    has_paper_settings: ClassVar[bool] = False

    env: DomainSettings = field(default_factory=DomainSettings)
    """The environment; a domain's own class."""
    agent: AgentName = "protogoal"
    """Proto-R2D2, the same agent without goals, or another baseline."""
    network: NetworkSettings = field(default_factory=NetworkSettings)
    """The value network."""
    actor: ActorSettings = field(default_factory=ActorSettings)
    """How experience is made."""
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    """What is kept of it, and what is learned from."""
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    """How the network learns."""
    pge: PGESettings = field(default_factory=PGESettings)
    """The proto-goal evaluator."""
    exploration: AgentSettings = field(default_factory=AgentSettings)
    """What the agent alone needs, by default its own class's; agents without such settings have none."""
    refresh_every: int = ranged(50_000, 1)
    """Steps between two refreshes of the proto-goal evaluator."""
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    """How the task is played for a figure."""
    steps: int = ranged(10_000_000, 1)
    """Environment steps in all."""
    seed: int = ranged(0, 0)
    """Everything random follows from it."""
    threads: int = ranged(2, 1)
    """2: acting and learning at the same time, each on its own core, with the same result at every run. 1: in turn."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the learner computes; auto takes a GPU where there is one. Acting stays on the CPU; checkpoints fit every device."""
    ray: RaySettings = field(default_factory=RaySettings)
    """The Ray engine."""

    def __post_init__(self) -> None:
        wanted = registry.agent(self.agent).settings if self.agent in registry.AGENTS else AgentSettings
        if type(self.exploration) is AgentSettings:
            object.__setattr__(self, "exploration", wanted())
        super().__post_init__()
        if type(self.exploration) is not wanted:
            raise refuse("DeepConfig.exploration", f"{wanted.__name__}, of the agent {self.agent}", self.exploration)

    @property
    def final_episodes(self) -> int:
        """Episodes of the evaluation at the end."""
        return self.evaluation.final_episodes

    @property
    def longest_played(self) -> int:
        """Steps after which an episode of an evaluation is cut, the same for every figure of a run.

        Where episodes never end, an evaluation of the run takes ten times its steps at most.
        """
        most = max(self.evaluation.episodes, self.evaluation.final_episodes)
        return min(self.evaluation.max_steps, max(LEAST_PLAYED, 10 * self.steps // most))

    def with_agent(self, name: str) -> DeepConfig:
        """The same task for another agent, with that agent's settings for two cores."""
        if name not in registry.AGENTS:
            raise refuse("DeepConfig.agent", f"one of {', '.join(registry.AGENTS)}", name)
        config: DeepConfig = registry.agent(name).on_two_cores(replace(self, agent=name, exploration=AgentSettings()))
        return config


def config_class(name: str) -> Any:
    """The configuration class of that name."""
    classes: dict[str, Any] = {c.__name__: c for c in (TabularConfig, DeepConfig)}
    if name not in classes:
        raise ValueError(f"unknown kind of run {name!r}; known are {', '.join(sorted(classes))}")
    return classes[name]
