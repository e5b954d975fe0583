"""Deep Sea, a probe of exploration (bsuite)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from protogoal.domains.default import DEFAULT
from protogoal.domains.domain import Domain, Row, Wanted
from protogoal.envs.vector import BatchEnv
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.settings import DomainSettings, ranged


@dataclass(frozen=True)
class DeepSeaSettings(DomainSettings):
    """Deep Sea, a probe of exploration."""

    kind: str = field(default="deep-sea", init=False)
    has_one_length: ClassVar[bool] = True
    size: int = ranged(16, 2)
    """Rows and columns; a random policy finds the treasure once in 2^size episodes."""
    layout: int = ranged(0, 0)
    """Seed of which action leads right in which cell."""


class DeepSeaDomain(Domain):
    settings = DeepSeaSettings

    def make(self, settings: DeepSeaSettings, wanted: Wanted) -> tuple[BatchEnv, ProtoGoalSpace]:
        from protogoal.envs.deep_sea import DeepSea

        sea = DeepSea(settings.size, wanted.num_envs, settings.layout)
        return sea, sea.space

    def presets(self) -> Mapping[str, Any]:
        evaluation = replace(DEFAULT.evaluation, every=2_000, episodes=16)
        return {"deep-sea": replace(DEFAULT, env=DeepSeaSettings(), evaluation=evaluation, steps=50_000)}

    def rows(self) -> list[Row]:
        return [Row("deep-sea", "protogoal.envs.deep_sea.DeepSea, size=16", 2, "the diver in each of 16×16 cells", 256, "deep")]


DEEP_SEA = DeepSeaDomain()
