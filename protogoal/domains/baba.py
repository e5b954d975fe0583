"""Baba Is You (paper §6.3): the U-Mazes, with every thing in every cell as proto-goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from protogoal.domains.default import DEFAULT
from protogoal.domains.domain import Domain, Row, Wanted
from protogoal.envs.junk import with_junk
from protogoal.envs.vector import BatchEnv
from protogoal.envs.views import ActiveView
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.settings import DomainSettings, ranged


@dataclass(frozen=True)
class BabaSettings(DomainSettings):
    """Baba Is You."""

    kind: str = field(default="baba", init=False)
    level: str = "umaze-small"
    """A level that comes with the package (umaze-small, umaze-medium, umaze-paper, …) or the path of a level file."""
    max_steps: int = ranged(1000, 1)
    """Time limit of an episode."""
    observation: Literal["active", "planes"] = "active"
    """What the network reads: the list of what stands where (fast), or one binary picture a kind of thing."""
    junk: int = ranged(0, 0)
    """Proto-goals beside the level's that no action controls (envs/junk.py): noise, clocks, things that never change."""


STEPS = {"small": 400_000, "medium": 1_200_000, "paper": 4_000_000}


class Baba(Domain):
    settings = BabaSettings

    def make(self, settings: BabaSettings, wanted: Wanted) -> tuple[BatchEnv, ProtoGoalSpace]:
        from protogoal.envs.baba.batch import BabaBatch

        baba = BabaBatch(settings.level, wanted.num_envs, settings.max_steps)
        level = ActiveView(baba) if settings.observation == "active" else baba
        return with_junk(level, baba.space, settings.junk) if settings.junk else (level, baba.space)

    def presets(self) -> Mapping[str, Any]:
        return {f"baba-umaze-{size}": replace(DEFAULT, env=BabaSettings(level=f"umaze-{size}", max_steps=200), steps=steps)
                for size, steps in STEPS.items()}

    def at_paper_scale(self, settings: BabaSettings) -> BabaSettings:
        return replace(settings, max_steps=1000, observation="planes")

    def rows(self) -> list[Row]:
        from protogoal.envs.baba import load_level

        levels = {f"umaze-{size}": load_level(f"umaze-{size}") for size in STEPS}
        return [Row(f"baba-{name}", f'protogoal/Baba-v0, level="{name}"', 5,
                    f"{len(level.kinds)} objects and words in each of {level.width}×{level.height} cells",
                    len(level.kinds) * level.width * level.height, "deep") for name, level in levels.items()]

    def picture(self, env: Any, at_start: bool) -> Any:
        from protogoal.envs.baba import render

        return render.frame(env.level, render.things_in(env.level, (env.planes if at_start else env.final_planes)[0]))


BABA = Baba()
