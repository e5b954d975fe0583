"""SparseTaxi (paper §6.1), for the tabular agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from protogoal.config import TabularConfig
from protogoal.domains.domain import Domain, Row
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.settings import DomainSettings


@dataclass(frozen=True)
class TaxiSettings(DomainSettings):
    """SparseTaxi."""

    kind: str = field(default="taxi", init=False)
    wrong_put_down_ends: bool = True
    """Any legal put-down at a depot ends the episode; off: only the right one does."""


class Taxi(Domain):
    settings = TaxiSettings

    def space(self, settings: Any) -> ProtoGoalSpace:
        from protogoal.envs.taxi import TaxiSpace

        return TaxiSpace()

    def presets(self) -> Mapping[str, Any]:
        return {"taxi": TabularConfig()}

    def rows(self) -> list[Row]:
        return [Row("taxi", "protogoal/SparseTaxi-v0", 6, "25 taxi cells, 5 passenger places, 4 destinations", 34)]


TAXI = Taxi()
