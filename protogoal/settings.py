"""Settings: frozen dataclasses whose fields say what they are and what they may be; one validator, one grammar of messages.

    hidden: int = ranged(256, 1, 8192)
    '''Width of the layers.'''

Types are checked for every field, ranges where one is given. A wrong value is refused with the name of the field, what is
allowed and what was given: `NetworkSettings.hidden must be in [1, 8192]; got 0`. `to_dict` and `from_dict` are config.json.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from protogoal import registry


def ranged(default: Any, low: float | None = None, high: float | None = None) -> Any:
    """A field with a default and the least and largest value allowed; of a tuple, for each of its numbers."""
    return field(default=default, metadata={"range": (low, high)})


def refuse(name: str, allowed: str, value: Any) -> ValueError:
    """What to raise for a value that is not allowed."""
    return ValueError(f"{name} must be {allowed}; got {value!r}")


@dataclass(frozen=True)
class Settings:
    """A group of fields, checked when it is made."""

    def __post_init__(self) -> None:
        cls: Any = type(self)
        hints = hints_of(cls)
        for f in dataclasses.fields(self):
            name = f"{type(self).__name__}.{f.name}"
            value = as_hinted(hints[f.name], getattr(self, f.name), name)
            low, high = f.metadata.get("range", (None, None))
            for number in value if isinstance(value, tuple) else (value,):
                if (low is not None and number < low) or (high is not None and number > high):
                    raise refuse(name, f"at least {low}" if high is None else f"in [{low}, {high}]", value)


@dataclass(frozen=True)
class DomainSettings(Settings):
    """What an environment is made of; each domain has a class of its own (`protogoal.domains`), and `kind` says whose it is."""

    kind: str = field(default="", init=False)
    class_of: ClassVar[Any] = staticmethod(lambda kind: registry.domain(kind).settings)
    has_one_length: ClassVar[bool] = False
    """Whether all episodes are equally long, so that nothing is gained or lost by ending one."""

    def code(self) -> dict[str, str]:
        """Functions that these settings name, to be imported and called, by the option that gives them."""
        return {}

    @property
    def can_be_made_again(self) -> bool:
        """Whether this process has all that it takes to make the environments."""
        return True

    def in_one_process(self) -> DomainSettings:
        """The same without worker processes of its own."""
        return dataclasses.replace(self, workers=0) if hasattr(self, "workers") else self  # type: ignore[call-arg]


@dataclass(frozen=True)
class AgentSettings(Settings):
    """What an agent alone needs, the section `exploration`; one without a class of its own needs nothing."""

    kind: str = field(default="", init=False)
    class_of: ClassVar[Any] = staticmethod(lambda kind: registry.agent(kind).settings if kind else AgentSettings)


@functools.cache
def hints_of(cls: Any) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    return typing.get_type_hints(cls)


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as nested JSON-able values."""
    return dataclasses.asdict(config)


def from_dict(cls: Any, values: Mapping[str, Any], path: str = "") -> Any:
    """The inverse of `to_dict`; a ValueError names a field that is unknown or of the wrong type."""
    if hasattr(cls, "class_of"):  # of several kinds: which, stands beside the fields
        values = dict(values)
        cls = cls.class_of(values.pop("kind", ""))
    names = {f.name for f in dataclasses.fields(cls) if f.init}
    unknown = sorted(set(values) - names)
    if unknown:
        raise ValueError(f"unknown field {path}{unknown[0]}; allowed are {', '.join(sorted(names))}")
    hints = hints_of(cls)
    return cls(**{name: as_hinted(hints[name], value, f"{path}{name}") for name, value in values.items()})


def with_fields(config: Any, fields: Mapping[str, Any], words: str = "") -> Any:
    """The configuration with fields changed, by their dotted names; `words` come before the name of one that does not exist."""
    for dotted, value in fields.items():
        first, _, rest = dotted.partition(".")
        if not hasattr(config, first):
            raise ValueError(f"{words}{dotted} is not a field of the configuration")
        inner = with_fields(getattr(config, first), {rest: value}, f"{words}{first}.") if rest else value
        config = dataclasses.replace(config, **{first: inner})
    return config


def as_hinted(hint: Any, value: Any, name: str) -> Any:
    """The value as a field of this type has it, which JSON may have changed; a ValueError if it cannot be one."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        if isinstance(value, hint):  # type: ignore[arg-type]
            return value
        if not isinstance(value, dict):
            raise refuse(name, "a group of fields", value)
        return from_dict(hint, value, f"{name}.")  # type: ignore[arg-type]
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return as_hinted(next(option for option in arguments if option is not type(None)), value, name)
    if origin is Literal:
        if value not in arguments:
            raise refuse(name, f"one of {', '.join(map(str, arguments))}", value)
        return value
    if origin is tuple:
        if not isinstance(value, tuple | list) or (arguments[-1] is not ... and len(value) != len(arguments)):
            raise refuse(name, "a list", value)
        kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        return tuple(as_hinted(kind, item, name) for kind, item in zip(kinds, value, strict=True))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and (not isinstance(value, hint) or (hint is int and isinstance(value, bool))):
        raise refuse(name, {int: "a whole number", float: "a number", bool: "true or false"}.get(hint, hint.__name__), value)
    if hint is float and math.isnan(value):
        raise refuse(name, "a number", value)
    return value
