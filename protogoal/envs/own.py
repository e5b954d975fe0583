"""An environment of your own: two names on the command line, or a package that announces itself.

`protogoal train --env module:factory --space module:function` makes environments with `factory()` and their proto-goals
with `function(env)`. A package may instead offer named domains through the entry-point group `protogoal.domains`; each
entry is an `OwnDomain`, and its presets NAME-protogoal and NAME-r2d2 then stand beside those that come with protogoal.

Called by `run.environments`, `presets` and `envs.catalog`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import gymnasium

from protogoal.envs.gym_batch import GymBatchEnv, load
from protogoal.goals.spaces import ProtoGoalSpace

GROUP = "protogoal.domains"


@dataclass(frozen=True)
class OwnDomain:
    """What an entry point of the group `protogoal.domains` names."""

    env: str
    """module:function that makes one environment, or the id of a registered Gymnasium environment."""
    space: str
    """module:function that takes an environment and gives its proto-goal space."""
    proto_goals: str
    """What the proto-goals are, in a few words, for `protogoal envs`."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration that differ from the defaults, by dotted name: {"steps": 500_000, "actor.num_envs": 16}."""


@dataclass(frozen=True)
class EnvReference:
    """Makes an environment from its name; small, so that workers can be told.

    `render_mode` is passed on where pictures are wanted, to a function that takes an argument of this name.
    """

    name: str
    render_mode: str | None = None

    def __call__(self) -> gymnasium.Env[Any, Any]:
        made = self._make()
        if not isinstance(made, gymnasium.Env):
            raise ValueError(f"{self.name} gave a {type(made).__name__}; it must give a gymnasium.Env")
        return made

    def _make(self) -> Any:
        wish: dict[str, Any] = {} if self.render_mode is None else {"render_mode": self.render_mode}
        if ":" in self.name:
            return _call(self.name, wanted=wish)
        try:
            return gymnasium.make(self.name, **wish)
        except gymnasium.error.Error as error:
            raise ValueError(f"{self.name!r} is neither module:function nor a Gymnasium environment: {error}") from None


def make_space(name: str, env: gymnasium.Env[Any, Any]) -> ProtoGoalSpace:
    """The proto-goal space that `module:function` gives for an environment."""
    space = _call(name, env)
    if not isinstance(space, ProtoGoalSpace):
        raise ValueError(f"{name} gave a {type(space).__name__}; it must give a ProtoGoalSpace")
    return space


def own_batch(
    env: str,
    space: str,
    num_envs: int,
    num_workers: int = 0,
    max_active: int | None = None,
    shared: ProtoGoalSpace | None = None,
    on_event: Callable[[str], None] | None = None,
    render_mode: str | None = None,
) -> GymBatchEnv:
    """N environments by name; `shared` is a proto-goal space that exists already, with what it has learned."""
    factory = EnvReference(env, render_mode)
    if shared is None:
        probe = factory()
        try:
            shared = make_space(space, probe)
        finally:
            probe.close()
    return GymBatchEnv(factory, shared, num_envs, num_workers, max_active, on_event)


def _call(name: str, *arguments: Any, wanted: Mapping[str, Any] | None = None) -> Any:
    """The function of that name, called; of the `wanted` arguments it gets those that it knows."""
    here = os.getcwd()
    if here not in sys.path:  # a command has its own directory on the path, and not the user's
        sys.path.insert(0, here)
    function = load(name)
    if not callable(function):
        raise ValueError(f"{name} is a {type(function).__name__}, not a function")
    known = inspect.signature(function).parameters if wanted else {}
    try:
        return function(*arguments, **{key: value for key, value in (wanted or {}).items() if key in known})
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{name} raised {type(error).__name__}: {error}") from error


def announced_domains(tell: Callable[[str], None] | None = None) -> dict[str, OwnDomain]:
    """Domains of installed packages, by name. One that cannot be read is passed over, and `tell` hears why."""
    tell = tell or (lambda text: print(text, file=sys.stderr))
    found: dict[str, OwnDomain] = {}
    for entry in metadata.entry_points(group=GROUP):
        try:
            domain = entry.load()
            domain = domain() if callable(domain) else domain
        except Exception as error:
            tell(f"the domain {entry.name} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}")
            continue
        if isinstance(domain, OwnDomain):
            found[entry.name] = domain
        else:
            tell(f"the domain {entry.name} ({entry.value}) is a {type(domain).__name__}; it must be an OwnDomain")
    return found
