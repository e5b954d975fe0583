"""An environment of your own: named on the command line, or announced by an installed package (`envs.user_envs`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from protogoal.config import DeepConfig
from protogoal.domains.default import DEFAULT
from protogoal.domains.domain import Domain, Row, Wanted
from protogoal.envs.success import SuccessRule, find_rule
from protogoal.envs.user_envs import EnvReference, announced_domains, can_be_found, is_local, own_batch, shows_a_part, space_of
from protogoal.envs.vector import BatchEnv
from protogoal.envs.views import ActiveView
from protogoal.envs.workers import WorkerPool
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.settings import DomainSettings, ranged, with_fields


@dataclass(frozen=True)
class OwnSettings(DomainSettings):
    """An environment of your own."""

    kind: str = field(default="own", init=False)
    factory: str = ""
    """The environment: the id of a Gymnasium environment, package:ID, or module:function that makes one."""
    space: str = ""
    """Its proto-goals: module:function of an environment; with a + in front they are added to what follows from the observation.
    Empty: that alone."""
    info: str = ""
    """Entries of `info`, separated by commas, whose numbers are proto-goals too: inventory,achievements."""
    partial: Literal["auto", "yes", "no"] = "auto"
    """Whether the observation shows only a part of the state; auto knows MiniGrid's view and NetHack's map."""
    workers: int = ranged(0, 0)
    """Processes that step the environments; 0 steps them in the main process."""
    observation: Literal["own", "bits"] = "own"
    """What the network reads: what the environment observes, or which proto-goals are on (fast, where they tell the state)."""

    def code(self) -> dict[str, str]:
        names = {"--env": self.factory, "--space": self.space}
        return {option: name for option, name in names.items() if name and not is_local(name)} \
            if any(map(is_code, names.values())) else {}

    @property
    def can_be_made_again(self) -> bool:
        return can_be_found(self.factory) and can_be_found(self.space)


def is_code(name: str) -> bool:
    """Whether a name makes us import or run what is not simply an installed package's environment."""
    return (":" in name or "?" in name) and not is_local(name)


def own_environment(factory: str, space: str = "", info: str = "") -> DeepConfig:
    """The configuration of `protogoal train --env NAME`, with or without `--space` and `--info`."""
    if not factory:
        raise ValueError("--space and --info are about an environment of your own; name it: --env ID or --env module:function")
    return replace(DEFAULT, env=OwnSettings(factory, space, info))


class Own(Domain):
    settings = OwnSettings

    def make(self, settings: OwnSettings, wanted: Wanted) -> tuple[BatchEnv, ProtoGoalSpace]:
        workers = 0 if wanted.render_mode else settings.workers
        own = own_batch(settings.factory, settings.space, wanted.num_envs, workers, wanted.space, wanted.on_event,
                        wanted.render_mode, settings.info)
        return (ActiveView(own) if settings.observation == "bits" else own), own.space

    def shows_a_part(self, settings: OwnSettings) -> bool:
        return settings.partial == "yes" or (settings.partial == "auto" and shows_a_part(settings.factory))

    def success_rule(self, settings: OwnSettings, success_return: float | None) -> SuccessRule:
        pool = WorkerPool(EnvReference(settings.factory), 1, min(1, settings.workers))
        try:
            return find_rule(pool, success_return)
        finally:
            pool.close()

    def announced(self) -> Mapping[str, Any]:
        """The tasks that installed packages announce, as `presets` has those that come with protogoal."""
        return {name: with_fields(own_environment(domain.env, domain.space), domain.fields, f"domain {name}: ")
                for name, domain in announced_domains().items()}

    def rows(self) -> list[Row]:
        """Each is made once, to count its actions and proto-goals."""
        rows = []
        for name, domain in announced_domains().items():
            env = EnvReference(domain.env)()
            actions = int(env.action_space.n)  # type: ignore[attr-defined]
            size = space_of(domain.env, domain.space).space.size
            rows.append(Row(name, domain.env, actions, domain.proto_goals, size, "deep"))
            env.close()
        return rows


OWN = Own()
