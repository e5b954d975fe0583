"""An environment of your own: two names on the command line, or a package that announces itself.

`protogoal train --env module:factory --space module:function` makes environments with `factory()` and their proto-goals
with `function(env)`. A package may instead offer named domains through the entry-point group `protogoal.domains`; each
entry is an `OwnDomain`, and its presets NAME-protogoal and NAME-r2d2 then stand beside those that come with protogoal.

Called by `domains.own` and `protogoal.api`.
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

from protogoal.envs.failure import close, failure
from protogoal.envs.gym_batch import GymBatchEnv, load
from protogoal.envs.pictures import ready_to_draw
from protogoal.goals.spaces import ProtoGoalSpace

GROUP = "protogoal.domains"
HERE = "here"  # stands for the module of functions that only this process has


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
        if self.render_mode is not None:
            ready_to_draw(made)
        return made

    def _make(self) -> Any:
        wish: dict[str, Any] = {} if self.render_mode is None else {"render_mode": self.render_mode}
        if ":" in self.name:
            return _call(self.name, wanted=wish)
        try:
            return gymnasium.make(self.name, **wish)
        except gymnasium.error.Error as error:
            raise ValueError(f"{self.name!r} is neither module:function nor a Gymnasium environment: {error}") from None
        except Exception as error:
            raise failure(error, self.name) from error


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
            close(probe)
    return GymBatchEnv(factory, shared, num_envs, num_workers, on_event)


def _call(name: str, *arguments: Any, wanted: Mapping[str, Any] | None = None) -> Any:
    """The function of that name, called; of the `wanted` arguments it gets those that it knows."""
    here = os.getcwd()
    if here not in sys.path:  # a command has its own directory on the path, and not the user's
        sys.path.insert(0, here)
    function = _HERE[name] if name in _HERE else load(name)
    if not callable(function):
        raise ValueError(f"{name} is a {type(function).__name__}, not a function")
    known = inspect.signature(function).parameters if wanted else {}
    try:
        return function(*arguments, **{key: value for key, value in (wanted or {}).items() if key in known})
    except (Exception, SystemExit) as error:
        raise failure(error, name) from error


_HERE: dict[str, Any] = {}
"""Functions of a running script or notebook, by the names under which this process alone finds them."""


def reference(function: Any, must_last: bool) -> str:
    """module:function of a function, by which it is found again.

    One that cannot be found so (a lambda, a function inside another, or of a script or notebook) serves this process alone;
    where it `must_last`, because a run directory or other processes shall use it, it is refused.
    """
    if not callable(function):
        raise ValueError(f"a function is needed, or its name as module:function; got {function!r}")
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", type(function).__name__)
    found = getattr(sys.modules.get(module), name, None)
    if module != "__main__" and found is function:
        return f"{module}:{name}"
    if must_last:
        raise ValueError(f"{name} is defined in {'the script itself' if module == '__main__' else 'a function'}, so the run could "
                         "not be opened again; put it into a module of its own and import it, or leave out run")
    key = f"{HERE}:{len(_HERE)}-{name}"
    _HERE[key] = function
    return key


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
