"""The proto-goals that a run declares, observed or not: asked for by name when its record has no such goal.

A record holds what was observed. What was declared follows from the run's space, which is made anew from its configuration; code
of one's own only as far as the user trusts it (`run.trust`). Called by `protogoal goals --why`.
"""

from __future__ import annotations

from pathlib import Path

from protogoal.domains.domain import check_installed
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.registry import domain
from protogoal.run import trust
from protogoal.run.directory import RunDirectory


def declared_space(path: Path, granted: trust.Trust = trust.NOTHING) -> ProtoGoalSpace:
    """The proto-goal space of a run; a ValueError says why it cannot be made."""
    config = RunDirectory.open(path).config
    trust.check(path, config, "local", granted)
    check_installed(f"the domain {config.env.kind}", domain(config.env.kind).needs)
    space: ProtoGoalSpace = domain(config.env.kind).space(config.env)
    return space
