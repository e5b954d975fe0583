"""The agents and the domains by name: one line here adds another. Nothing is loaded before it is asked for.

An agent is a class (`agents.r2d2.R2D2` says what it must be able to do), a domain an object (`domains.domain.Domain`).
"""

from __future__ import annotations

import importlib
from typing import Any

AGENTS = {
    "protogoal": "protogoal.agents.proto_r2d2:ProtoR2D2",
    "r2d2": "protogoal.agents.r2d2:R2D2",
    "agent57": "protogoal.agents.agent57.agent:Agent57",
    "count-bonus": "protogoal.agents.count_bonus:CountBonus",
    "rnd": "protogoal.agents.rnd:RND",
}

DOMAINS = {
    "taxi": "protogoal.domains.taxi:TAXI",
    "baba": "protogoal.domains.baba:BABA",
    "minihack": "protogoal.domains.minihack:MINIHACK",
    "deep-sea": "protogoal.domains.deep_sea:DEEP_SEA",
    "own": "protogoal.domains.user_env:OWN",
}


def agent(name: str) -> Any:
    """The class of an agent."""
    return _load(AGENTS, name, "agent")


def domain(kind: str) -> Any:
    """A domain."""
    return _load(DOMAINS, kind, "domain")


def _load(table: dict[str, str], name: str, what: str) -> Any:
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; allowed are {', '.join(table)}")
    module, _, attribute = table[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
