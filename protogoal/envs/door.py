"""From a name to an environment: `CartPole-v1`, `minigrid:MiniGrid-Empty-5x5-v0`, `my_module:make_env`, `ALE/Pong-v5?obs_type=ram`.

    ID                 registered with Gymnasium; packages that are well known, or installed and register it, are imported
    package:ID         the package is imported, which registers its environments
    module:function    a function of one's own, called
    …?key=value&…      arguments of the environment: numbers, true, false, none, lists, words

`user_envs.EnvReference` is the caller.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium

from protogoal.envs.failure import failure
from protogoal.envs.packages import registering_packages
from protogoal.envs.pictures import picture_mode

PACKAGES: dict[str, tuple[str, str]] = {
    "MiniGrid-": ("minigrid", "'protogoal[minigrid]'"),
    "BabyAI-": ("minigrid", "'protogoal[minigrid]'"),
    "ALE/": ("ale_py", "'protogoal[atari]'"),
    "MiniHack-": ("minihack", "'protogoal[minihack]'"),
    "NetHack": ("nle", "'protogoal[minihack]'"),
    "Crafter": ("crafter", "'protogoal[crafter]'"),
    "protogoal/": ("protogoal.envs", "protogoal"),
    "MiniWorld-": ("miniworld", "miniworld"),
    "highway-": ("highway_env", "highway-env"),
    "merge-": ("highway_env", "highway-env"),
    "roundabout-": ("highway_env", "highway-env"),
    "intersection-": ("highway_env", "highway-env"),
    "procgen": ("procgen_gymnasium", "procgen-gymnasium"),
    "Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom"),
    "MinAtar/": ("minatar.gym", "minatar"),
    "popgym-": ("popgym", "popgym"),
    "memory_gym": ("memory_gym", "memory-gym"),
    "tw-": ("textworld.gym", "textworld"),
}
"""How ids begin → the package that they come with, and what pip installs."""

OF_OURS = {"crafter": "protogoal.envs.crafter"}
"""Packages that register nothing themselves → the module of ours that does."""

CONSTANTS = {"true": True, "false": False, "none": None, "null": None}
SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}
"""Words that would all count as true."""

ATARI = ("-v0", "-v4")
"""How the old ids of Atari games end: Pong-ramNoFrameskip-v4."""


def make_env(name: str, render_mode: str | None = None) -> Any:
    """What the name stands for, made; `render_mode` is passed on where the function or environment takes it."""
    name, arguments = _arguments(name)
    wish = {} if render_mode is None else {"render_mode": render_mode}
    if ":" in name and (function := function_of(name)) is not None:
        return call(function, name, arguments=arguments, wanted=wish)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*WARN: ")  # Gymnasium's, meant for who wrote the environment
        return _registered(name.partition(":")[2] if ":" in name else name, arguments, render_mode)


def _arguments(name: str) -> tuple[str, dict[str, Any]]:
    """The name without what follows a question mark, and that as arguments."""
    name, _, words = name.partition("?")
    arguments: dict[str, Any] = {}
    for word in filter(None, words.split("&")):
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f"{word!r} is no argument of an environment; write {name}?key=value&key=value")
        arguments[key] = _argument(key, value)
    return name, arguments


def _argument(key: str, value: str) -> Any:
    """What a word stands for: JSON as it is written, the constants in any case, else the word itself."""
    plain = value.lower()
    if plain in SWITCHES:
        raise ValueError(f"{key}={value} would be a word; write {key}={SWITCHES[plain]} (allowed are true, false, none, "
                         "numbers, lists, other words)")
    try:
        return CONSTANTS[plain] if plain in CONSTANTS else json.loads(value)
    except (ValueError, RecursionError):
        return value


def load(name: str) -> Any:
    """The object that "module:name" names."""
    module, attribute = _split(name)
    found = _imported(module)
    if not hasattr(found, attribute):
        raise ValueError(f"module {module!r} has no {attribute!r}")
    return getattr(found, attribute)


def _split(name: str) -> tuple[str, str]:
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise ValueError(f"expected module:name; got {name!r}")
    return module, attribute


def function_of(name: str) -> Any | None:
    """The function that "module:name" names; None where the module has none of that name, but an environment may be so called."""
    module, attribute = _split(name)
    found = _imported(module)
    if hasattr(found, attribute):
        return getattr(found, attribute)
    if attribute in gymnasium.registry:
        return None
    raise ValueError(f"module {module!r} has no {attribute!r}, and no environment of that name is registered{_nearest(attribute)}")


def _imported(module: str, is_own: bool = True) -> Any:
    """A module; one's own may lie in the directory where one is."""
    here = os.getcwd()
    if is_own and here not in sys.path:  # a command has its own directory on the path, and not the user's
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"cannot import {module!r}: {error}") from error
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        raise ValueError(f"cannot import {module!r}: {type(error).__name__}: {error}") from error


def call(function: Any, name: str, *values: Any, arguments: Mapping[str, Any] | None = None,
         wanted: Mapping[str, Any] | None = None) -> Any:
    """The function, called; of the `wanted` arguments it gets those that it knows."""
    if not callable(function):
        raise ValueError(f"{name} is a {type(function).__name__}, not a function")
    known = {**inspect.signature(function).parameters, **(arguments or {})} if wanted else {}
    wishes = {key: value for key, value in (wanted or {}).items() if key in known}
    try:
        return function(*values, **{**(arguments or {}), **wishes})
    except BaseException as error:
        raise failure(error, name) from error


def _registered(name: str, arguments: Mapping[str, Any], render_mode: str | None) -> Any:
    """An environment by its id; the package that it is known to come from is imported first."""
    if name not in gymnasium.registry:
        import_package_of(name)
    try:
        wish: dict[str, Any] = {} if render_mode is None else {"render_mode": picture_mode(_render_modes(name))}
        return gymnasium.make(name, disable_env_checker=True, **{**arguments, **wish})
    except gymnasium.error.UnregisteredEnv as error:
        raise ValueError(f"{name!r} is neither module:function nor a Gymnasium environment: {_one_line(error)}") from None
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"{name} cannot be made: {_one_line(error)}") from error
    except BaseException as error:
        if isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
            raise ValueError(f"{name} does not take all of the arguments {', '.join(arguments)}: {_one_line(error)}") from None
        if isinstance(error, TypeError) and "required" in str(error) and " argument" in str(error):
            needs = _one_line(error).partition(" was raised from")[0]
            raise ValueError(f"{name} has to be told more: {needs}; write {name}?key=value&key=value") from None
        raise failure(error, name) from error


def _render_modes(name: str) -> list[str]:
    """How a registered environment can be drawn; none where its class does not say."""
    made: Any = gymnasium.spec(name).entry_point
    made = gymnasium.envs.registration.load_env_creator(made) if isinstance(made, str) else made
    metadata = getattr(made, "metadata", None) or {}
    return list(metadata.get("render_modes", ()))


def import_package_of(name: str) -> None:
    """Imports the package that registers this id: the well-known one, of which a ValueError says what to install, or any."""
    found = next((package for start, package in PACKAGES.items() if name.startswith(start)), None)
    if found is None:
        if name.endswith(ATARI) and importlib.util.find_spec("ale_py") is not None:
            _register_with("ale_py", name)
        _import_any(name)
        return
    module, pip = found
    try:
        importable = importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        importable = False
    if not importable:
        raise ValueError(f"{name} comes with the package {module.partition('.')[0]}: pip install {pip}")
    _register_with(OF_OURS.get(module, module), name)


def _import_any(name: str) -> None:
    """Imports installed packages until one has registered this id."""
    for module in registering_packages(name):
        if name in gymnasium.registry:
            return
        with contextlib.suppress(ValueError), _silence():  # one that cannot be imported is not the one
            _register_with(module, name)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What packages print that are looked into by the way is nobody's concern."""
    heard = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        warnings.simplefilter("ignore")
        yield


def _register_with(module: str, name: str) -> None:
    """Imports a module that registers an environment, most when they are imported, some when they are asked to."""
    found = _imported(module, is_own=False)
    if name not in gymnasium.registry and hasattr(found, "register_envs"):
        with contextlib.suppress(Exception):
            found.register_envs()


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, list(gymnasium.registry), 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
