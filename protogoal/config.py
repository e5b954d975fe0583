"""What a run is made of: frozen dataclasses, the same on the command line (`--section.field value`) and in config.json.

Sections are defined where they are used (`goals.evaluator.PGESettings`, `tabular.settings`, `deep.settings`); this file
composes them and turns them into JSON and back. Named values of these classes are in `presets`.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from protogoal.deep.settings import (
    ActorSettings,
    EvaluationSettings,
    LearnerSettings,
    NetworkSettings,
    ReplaySettings,
)
from protogoal.deep.settings_agent57 import Agent57Settings
from protogoal.goals.evaluator import PGESettings
from protogoal.tabular.settings import TabularSettings

Config = TypeVar("Config")


@dataclass(frozen=True)
class TaxiSettings:
    """SparseTaxi."""

    wrong_put_down_ends: bool = True
    """Any legal put-down at a depot ends the episode; off: only the right one does."""


@dataclass(frozen=True)
class TabularConfig:
    """A run of a tabular agent on SparseTaxi."""

    agent: Literal["protogoal", "qlearning"] = "protogoal"
    """Algorithm 1, or plain Q-learning."""
    env: TaxiSettings = field(default_factory=TaxiSettings)
    """The environment."""
    learning: TabularSettings = field(default_factory=TabularSettings)
    """How the tables are learned."""
    pge: PGESettings = field(default_factory=lambda: PGESettings(recombinations=0, max_goals=0, max_members=1))
    """The proto-goal evaluator. Values are the agent's own tables, so estimator and batch_size have no effect; tables do not
    generalise to AND-goals, so recombination stays off."""
    steps: int = 300_000
    """Environment steps in all."""
    seed: int = 0
    """Everything random follows from it."""

    def __post_init__(self) -> None:
        check_at_least(self, steps=1, seed=0)


@dataclass(frozen=True)
class BabaSettings:
    """Baba Is You."""

    level: str = "umaze-small"
    """A level that comes with the package (umaze-small, umaze-medium, umaze-paper, …) or the path of a level file."""
    max_steps: int = 1000
    """Time limit of an episode."""
    observation: Literal["active", "planes"] = "active"
    """What the network reads: the list of what stands where (fast), or one binary picture a kind of thing."""

    def __post_init__(self) -> None:
        check_at_least(self, max_steps=1)


@dataclass(frozen=True)
class RiverSettings:
    """MiniHack's rivers."""

    scenario: Literal["narrow-river", "wide-river-lava"] = "narrow-river"
    """One boulder to cross, or two with lava about."""
    monsters: int = 0
    """Monsters on the way, 0 to 4."""
    max_steps: int = 350
    """Time limit of an episode."""
    observation: Literal["around", "characters"] = "around"
    """What the network reads: the list of what lies around the player (fast), or the map and a view around as characters."""
    reach: int = 12
    """Columns to either side that the list covers."""
    crop: int = 9
    """Side of the view around the player as characters, an odd number of cells."""
    vocabulary: int = 256
    """Most words that can become proto-goals."""
    workers: int = 1
    """Processes that step the environments; 0 steps them in the main process."""

    def __post_init__(self) -> None:
        check_at_least(self, monsters=0, max_steps=1, reach=1, crop=1, vocabulary=1, workers=0)


@dataclass(frozen=True)
class DeepSeaSettings:
    """Deep Sea, a probe of exploration."""

    size: int = 16
    """Rows and columns; a random policy finds the treasure once in 2^size episodes."""
    layout: int = 0
    """Seed of which action leads right in which cell."""

    def __post_init__(self) -> None:
        check_at_least(self, size=2, layout=0)


@dataclass(frozen=True)
class RaySettings:
    """The Ray engine (--engine ray); the local one reads nothing of this."""

    address: str = ""
    """The cluster: auto (the one this machine belongs to) or HOST:PORT; empty starts one on this machine."""
    workers: int = 2
    """Processes that act."""
    envs_per_worker: int = 0
    """Environments of each; 0 divides actor.num_envs among the workers."""
    shards: int = 1
    """Processes that hold a part of replay each."""
    synchronous: bool = False
    """All roles in lockstep, the same result at every run; with one worker and one shard that of the local engine."""
    windows_per_call: int = 1
    """Windows that a worker makes for one message; more of them need fewer messages."""
    calls_ahead: int = 2
    """Messages a worker may have waiting, so that it never idles; each is acted with weights one version older."""
    updates_per_call: int = 8
    """Updates that the learner makes for one message, after which it publishes its weights."""
    max_lag: int = 64
    """Acting waits when learning is this many updates behind learner.replay_ratio."""
    prefetch: int = 8
    """Batches that the learner asks for at a time, ahead of their use; 0: only what a message needs."""
    backlog: int = 500_000
    """Transitions that may wait to be counted by the proto-goal evaluator; then acting waits."""
    backup_seconds: float = 30.0
    """Between two copies of the learner's state; what it learned since is lost when it dies."""
    connect_seconds: float = 20.0
    """How long to wait for a cluster to answer."""
    answer_seconds: float = 300.0
    """A process that does not start or answer for so long counts as dead; an evaluation may take ten times as long."""
    worker_cpus: float = 1.0
    """CPUs that a worker reserves."""
    learner_cpus: float = 1.0
    """CPUs that the learner reserves."""
    learner_gpus: float = 0.0
    """GPUs that the learner reserves, to be placed beside one; it computes on the CPU."""
    shard_cpus: float = 1.0
    """CPUs that a part of replay reserves."""
    pge_cpus: float = 1.0
    """CPUs that the proto-goal evaluator reserves."""
    evaluator_cpus: float = 1.0
    """CPUs that the evaluator of the task reserves."""

    def __post_init__(self) -> None:
        check_at_least(self, workers=1, envs_per_worker=0, shards=1, windows_per_call=1, calls_ahead=1, updates_per_call=1,
                       max_lag=1, prefetch=0, backlog=1, backup_seconds=0, connect_seconds=1, answer_seconds=1,
                       worker_cpus=0, learner_cpus=0, learner_gpus=0, shard_cpus=0, pge_cpus=0, evaluator_cpus=0)
        if self.address not in ("", "auto") and not re.fullmatch(r"[^\s:/]+:[0-9]+", self.address):
            raise ValueError(f"address must be auto or HOST:PORT, got {self.address!r}")


@dataclass(frozen=True)
class OwnSettings:
    """An environment of your own."""

    factory: str = ""
    """module:function that makes one environment, or the id of a registered Gymnasium environment."""
    space: str = ""
    """module:function that takes an environment and gives its proto-goal space."""
    max_active: int = 0
    """Most bits that are on at once; 0 allows 64."""
    workers: int = 0
    """Processes that step the environments; 0 steps them in the main process."""
    observation: Literal["own", "bits"] = "own"
    """What the network reads: what the environment observes, or which proto-goals are on (fast, where they tell the state)."""

    def __post_init__(self) -> None:
        check_at_least(self, max_active=0, workers=0)


@dataclass(frozen=True)
class DeepConfig:
    """A run of the deep agent."""

    env: BabaSettings | RiverSettings | OwnSettings | DeepSeaSettings = field(default_factory=BabaSettings)
    """The environment."""
    agent: Literal["protogoal", "r2d2", "agent57"] = "protogoal"
    """Proto-R2D2, the same agent without goals, or Agent57."""
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
    agent57: Agent57Settings = field(default_factory=Agent57Settings)
    """Agent57's intrinsic rewards and policies."""
    refresh_every: int = 50_000
    """Steps between two refreshes of the proto-goal evaluator."""
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    """The evaluator of the task."""
    steps: int = 10_000_000
    """Environment steps in all."""
    seed: int = 0
    """Everything random follows from it."""
    threads: int = 2
    """2: acting and learning at the same time, each on its own core, with the same result at every run. 1: in turn."""
    ray: RaySettings = field(default_factory=RaySettings)
    """The Ray engine."""

    def __post_init__(self) -> None:
        check_at_least(self, refresh_every=1, steps=1, seed=0, threads=1)


def check_at_least(config: Any, **least: int) -> None:
    """Raise a ValueError naming the first field that lies below its least value."""
    for name, low in least.items():
        if getattr(config, name) < low:
            raise ValueError(f"{name} must be at least {low}, got {getattr(config, name)}")


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as nested JSON-able values."""
    return dataclasses.asdict(config)


def from_dict(cls: type[Config], values: dict[str, Any], path: str = "") -> Config:
    """The inverse of `to_dict`; a ValueError names a field that is unknown or of the wrong type."""
    hints = typing.get_type_hints(cls)
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - names)
    if unknown:
        raise ValueError(f"unknown field {path}{unknown[0]}; allowed are {', '.join(sorted(names))}")
    return cls(**{name: _convert(hints[name], value, f"{path}{name}") for name, value in values.items()})


def _convert(hint: Any, value: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise ValueError(f"{path} must be a group of fields, got {value!r}")
        return from_dict(hint, value, f"{path}.")  # type: ignore[arg-type]
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        errors = []
        for option in arguments:
            try:
                return _convert(option, value, path)
            except ValueError as error:
                errors.append(error)
        raise errors[0]
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{path} must be one of {', '.join(map(str, arguments))}, got {value!r}")
        return value
    if origin is tuple:
        kinds = arguments[:1] * len(value) if len(arguments) == 2 and arguments[1] is ... else arguments
        return tuple(_convert(kind, item, path) for kind, item in zip(kinds, value, strict=True))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and (not isinstance(value, hint) or (hint is int and isinstance(value, bool))):
        raise ValueError(f"{path} must be {hint.__name__}, got {value!r}")
    return value
