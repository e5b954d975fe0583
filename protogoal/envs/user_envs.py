"""An environment of your own: a name on the command line, or a package that announces itself.

`protogoal train --env NAME` makes environments by their name (`door`), and their proto-goals from what they observe (`derive`) or
with a function of one's own: `--space module:function` replaces them, `--space +module:function` adds to them. A package may
instead offer named domains through the entry-point group `protogoal.domains`; each entry is an `OwnDomain`, and its presets
NAME-protogoal and NAME-r2d2 then stand beside those that come with protogoal.

Called by `domains.user_env` and `protogoal.api`.
"""

from __future__ import annotations

import functools
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import gymnasium

from protogoal.envs.actions import flat_actions
from protogoal.envs.counters import Counters, counters_of
from protogoal.envs.derive import Derivation, beside, derive
from protogoal.envs.door import call, load, make_env
from protogoal.envs.failure import close, failure
from protogoal.envs.gym_batch import GymBatchEnv
from protogoal.envs.known import is_partial
from protogoal.envs.pictures import ready_to_draw, without_window
from protogoal.envs.quiet import quiet
from protogoal.envs.readable import readable
from protogoal.envs.way import Way, forgets
from protogoal.goals.spaces import ProtoGoalSpace

GROUP = "protogoal.domains"
ADDS = "+"  # before the name of a space that is added to the derived one
HERE = "here"  # stands for the module of functions that only this process has


@dataclass(frozen=True)
class OwnDomain:
    """What an entry point of the group `protogoal.domains` names."""

    env: str
    """module:function that makes one environment, or the id of a registered Gymnasium environment."""
    space: str
    """module:function that takes an environment and gives its proto-goal space; empty: they follow from the observation."""
    proto_goals: str
    """What the proto-goals are, in a few words, for `protogoal envs`."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration that differ from the defaults, by dotted name: {"steps": 500_000, "actor.num_envs": 16}."""


@dataclass(frozen=True)
class EnvReference:
    """Makes an environment from its name; small, so that workers can be told.

    `render_mode` is passed on where pictures are wanted, to a function that takes an argument of this name. `counters` are the
    numbers of `info` that its observation shall have.
    """

    name: str
    render_mode: str | None = None
    counters: tuple[str, ...] = ()

    def __call__(self) -> gymnasium.Env[Any, Any]:
        without_window()
        made = self._make()
        if not isinstance(made, gymnasium.Env):
            raise ValueError(f"{self.name} gave a {type(made).__name__}; it must give a gymnasium.Env")
        for what in ("observation_space", "action_space"):
            if not isinstance(_asked(made, what, self.name), gymnasium.Space):
                raise ValueError(f"the {what} of {self.name} is none of Gymnasium's spaces")
        if self.render_mode is not None:
            ready_to_draw(made)
        env = flat_actions(quiet(made))
        env = readable(Way(env) if forgets(env) else env)
        return Counters(env, self.counters) if self.counters else env

    def _make(self) -> Any:
        if is_local(self.name):
            return call(_function(self.name), self.name, wanted={"render_mode": self.render_mode} if self.render_mode else {})
        return make_env(self.name, self.render_mode)


def _asked(env: Any, what: str, name: str) -> Any:
    """An attribute of an environment, None where it has none; one that is worked out may fail."""
    try:
        return getattr(env, what, None)
    except BaseException as error:
        raise failure(error, f"the {what} of {name}") from error


def make_space(name: str, env: gymnasium.Env[Any, Any]) -> ProtoGoalSpace:
    """The proto-goal space that `module:function` gives for an environment."""
    space = call(_function(name) if is_local(name) else load(name), name, env)
    if not isinstance(space, ProtoGoalSpace):
        raise ValueError(f"{name} gave a {type(space).__name__}; it must give a ProtoGoalSpace")
    for what in ("name", "kind"):  # of the first; a space that learns its words may not know others yet
        word = call(getattr(space, what), f"{what}(0) of {name}", 0)
        if not isinstance(word, str):
            raise ValueError(f"{what}(0) of {name} gave a {type(word).__name__}; it must give text")
    return space


def space_of(env: str, space: str = "", info: str = "") -> Derivation:
    """The proto-goals of an environment by name, and what is to be said of them.

    They follow from what it observes (`derive`), unless `space` names a function: it replaces them, or, with a +, is added.
    """
    factory = reference_of(env, info)
    probe = factory()
    try:
        if space and not space.startswith(ADDS):
            return beside(make_space(space, probe), probe, factory)
        return derive(probe, (make_space(space.removeprefix(ADDS), probe),) if space else (), factory)
    finally:
        close(probe)


def shows_a_part(env: str) -> bool:
    """Whether an environment is known to show only a part of its state."""
    probe = EnvReference(env)()
    try:
        return is_partial(probe)
    finally:
        close(probe)


@functools.lru_cache(maxsize=64)
def reference_of(env: str, info: str = "", render_mode: str | None = None) -> EnvReference:
    """The environment of that name, with the numbers in these entries of its `info`, separated by commas."""
    entries = tuple(filter(None, (entry.strip() for entry in info.split(","))))
    if not entries:
        return EnvReference(env, render_mode)
    probe = EnvReference(env)()
    try:
        return EnvReference(env, render_mode, counters_of(probe, entries))
    finally:
        close(probe)


def own_batch(
    env: str,
    space: str,
    num_envs: int,
    num_workers: int = 0,
    shared: ProtoGoalSpace | None = None,
    on_event: Callable[[str], None] | None = None,
    render_mode: str | None = None,
    info: str = "",
) -> GymBatchEnv:
    """N environments by name; `shared` is a proto-goal space that exists already, with what it has learned."""
    goals = space_of(env, space, info).space if shared is None else shared
    return GymBatchEnv(reference_of(env, info, render_mode), goals, num_envs, num_workers, on_event)


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
    key = f"{HERE}:{secrets.token_hex(4)}-{name}"  # no other process has it
    _HERE[key] = function
    return key


def is_local(name: str) -> bool:
    """Whether a name stands for a function that only one process has; nothing is ever imported for it."""
    return name.startswith(f"{HERE}:")


def can_be_found(name: str) -> bool:
    """Whether this process can have the function of that name: of another's own functions it has none."""
    return name in _HERE or not is_local(name)


def _function(name: str) -> Any:
    if name not in _HERE:
        raise ValueError(f"{name} is a function of a script or notebook, which this process does not have; "
                         "put it into a module of its own and import it")
    return _HERE[name]


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
