"""What a domain must say of itself; `registry.DOMAINS` names them, and nothing else knows which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal import registry
from protogoal.deep.replay import replay_bytes
from protogoal.deep.segments import Sizes
from protogoal.domains.installed import EXTRAS, is_installed, missing
from protogoal.envs.pictures import RENDER_MODE, as_picture
from protogoal.envs.success import ABOVE_0, SuccessRule, least_return
from protogoal.envs.vector import BatchEnv
from protogoal.envs.views import innermost
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.settings import DomainSettings, with_fields

BURN_IN = 5
"""Steps that warm up a recurrent core, where it was left to us to have one."""


@dataclass(frozen=True)
class Row:
    """One row of `protogoal envs`."""

    name: str  # presets begin with it
    env: str  # Gymnasium id and arguments
    actions: int
    proto_goals: str
    size: int  # B
    needs: str = ""  # extras, joined by commas
    missing: str = field(default="", init=False)  # those of them that are not installed

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", missing(self.needs))


@dataclass(frozen=True)
class Wanted:
    """How many environments, and what for; see `make_batch_env`."""

    num_envs: int
    space: ProtoGoalSpace | None = None
    on_event: Callable[[str], None] | None = None
    render_mode: str | None = None


class Domain:
    """A kind of environment. A domain overrides what it does otherwise."""

    settings: type[DomainSettings]
    needs: tuple[str, ...] = ()
    """Modules without which it cannot be made."""

    def make(self, settings: Any, wanted: Wanted) -> tuple[BatchEnv, ProtoGoalSpace]:
        """See `make_batch_env`."""
        raise ValueError(f"the domain {settings.kind} has no environments for the deep agents")

    def success_rule(self, settings: Any, success_return: float | None) -> SuccessRule:
        """See `success_rule`. Our own tasks pay when they are won, and seldom for anything else."""
        return ABOVE_0 if success_return is None else least_return(success_return)

    def space(self, settings: Any) -> ProtoGoalSpace:
        """Its proto-goals alone."""
        env, space = self.make(settings, Wanted(1))
        env.close()
        return space

    def shows_a_part(self, settings: Any) -> bool:
        """Whether the observation shows only a part of the state, so that `network.core` = auto is a recurrent one."""
        return False

    def settled(self, config: Any) -> Any:
        """The configuration with what is left to the environment decided: `network.core` = auto, `replay.most_gigabytes`."""
        if not hasattr(config, "network"):
            return config
        if config.network.core == "auto":
            is_recurrent = self.shows_a_part(config.env)
            fields = {"network.core": "lstm" if is_recurrent else "none"}
            burn_in = {"replay.burn_in": BURN_IN} if is_recurrent and not config.replay.burn_in else {}
            config = with_fields(config, fields | burn_in)
        if config.replay.most_gigabytes:
            env, _ = self.make(config.env.in_one_process(), Wanted(1))
            env.close()
            config = with_fields(config, {"replay.capacity": kept(config, env), "replay.most_gigabytes": 0.0})
        return config

    def presets(self) -> Mapping[str, Any]:
        """Its tasks by name, each a configuration for two cores; `presets` makes one of each for every agent."""
        return {}

    def at_paper_scale(self, settings: Any) -> Any:
        """The same environment as in the paper."""
        return settings

    def rows(self) -> list[Row]:
        """What `protogoal envs` says of it."""
        return []

    def picture(self, env: Any, at_start: bool) -> Any:
        """See `picture`; `env` is without the views around it."""
        return env.picture(0) if hasattr(env, "picture") else None


def make_batch_env(
    settings: DomainSettings,
    num_envs: int,
    space: ProtoGoalSpace | None = None,
    on_event: Callable[[str], None] | None = None,
    render_mode: str | None = None,
) -> tuple[BatchEnv, ProtoGoalSpace]:
    """N environments and their proto-goal space. `space`: one to share (a vocabulary, with the environments that act).

    With `render_mode`, environments are made that `picture` can draw.
    """
    wanted = Wanted(num_envs, space, on_event, render_mode)
    made: tuple[BatchEnv, ProtoGoalSpace] = registry.domain(settings.kind).make(settings, wanted)
    return made


def success_rule(settings: DomainSettings, success_return: float | None = None) -> SuccessRule:
    """What counts as success; an environment of one's own is looked at for some steps. `success_return`: a return to reach."""
    rule: SuccessRule = registry.domain(settings.kind).success_rule(settings, success_return)
    return rule


def kept(config: Any, env: BatchEnv) -> int:
    """Transitions that replay keeps: `capacity`, or fewer where they would take more than `most_gigabytes`."""
    core = (2, config.network.hidden) if config.network.core == "lstm" else (0, 0)
    needed = replay_bytes(Sizes(env.observation_spec, env.num_bits, env.max_active, core), config.replay)
    share = config.replay.most_gigabytes * 1e9 / needed
    return int(config.replay.capacity) if share >= 1 else max(config.replay.trace_length, int(config.replay.capacity * share))


def settled(config: Any) -> Any:
    """A configuration with nothing left open; config.json has this one."""
    return registry.domain(config.env.kind).settled(config)


def picture(settings: DomainSettings, env: BatchEnv, at_start: bool = False) -> NDArray[np.uint8]:
    """The state that the first environment's last transition led to (`at_start`: that it begins in), [height, width, 3]."""
    inner = innermost(env)
    drawn = as_picture(registry.domain(settings.kind).picture(inner, at_start))
    if drawn is None:
        raise ValueError(f"the environment draws no pictures: it must be able to render in the mode {RENDER_MODE}")
    return drawn


def check_installed(what: str, modules: tuple[str, ...]) -> None:
    """A ValueError with what to install, where a module is missing."""
    for module in modules:
        if not is_installed(module):
            raise ValueError(f"{what} needs {module}: pip install 'protogoal[{EXTRAS[module]}]'")
