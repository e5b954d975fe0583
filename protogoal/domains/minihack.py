"""MiniHack's rivers (paper §6.2), with the words of the message line as proto-goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from protogoal.domains.default import DEFAULT
from protogoal.domains.domain import Domain, Row, Wanted
from protogoal.envs.vector import BatchEnv
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.settings import DomainSettings, ranged


@dataclass(frozen=True)
class RiverSettings(DomainSettings):
    """MiniHack's rivers."""

    kind: str = field(default="minihack", init=False)
    scenario: Literal["narrow-river", "wide-river-lava"] = "narrow-river"
    """One boulder to cross, or two with lava about."""
    monsters: int = ranged(0, 0, 4)
    """Monsters on the way, 0 to 4."""
    max_steps: int = ranged(350, 1)
    """Time limit of an episode."""
    observation: Literal["around", "characters"] = "around"
    """What the network reads: the list of what lies around the player (fast), or the map and a view around as characters."""
    reach: int = ranged(12, 1)
    """Columns to either side that the list covers."""
    crop: int = ranged(9, 1)
    """Side of the view around the player as characters, an odd number of cells."""
    vocabulary: int = ranged(16_384, 1, 10_000_000)
    """Most words that can become proto-goals; those that are never read cost nothing."""
    workers: int = ranged(1, 0)
    """Processes that step the environments; 0 steps them in the main process."""


SCENARIOS: dict[Any, str] = {"narrow-river": "monsters=0…4", "wide-river-lava": ""}


class MiniHack(Domain):
    settings = RiverSettings
    needs = ("minihack",)

    def make(self, settings: RiverSettings, wanted: Wanted) -> tuple[BatchEnv, ProtoGoalSpace]:
        from protogoal.envs.minihack.batch import river_batch, word_space
        from protogoal.envs.minihack.egocentric import EgocentricView

        words = wanted.space or word_space(settings.vocabulary)
        river = river_batch(
            settings.scenario,
            settings.monsters,
            wanted.num_envs,
            0 if wanted.render_mode else settings.workers,
            max_steps=settings.max_steps,
            crop=settings.crop,
            space=words,  # type: ignore[arg-type]
            on_event=wanted.on_event,
            render_mode=wanted.render_mode,
        )
        return (EgocentricView(river, settings.reach) if settings.observation == "around" else river), words

    def presets(self) -> Mapping[str, Any]:
        return {f"minihack-{scenario}": replace(DEFAULT, env=RiverSettings(scenario=scenario)) for scenario in SCENARIOS}

    def at_paper_scale(self, settings: RiverSettings) -> RiverSettings:
        return replace(settings, max_steps=350, observation="characters")

    def rows(self) -> list[Row]:
        size = RiverSettings().vocabulary
        return [Row(f"minihack-{name}", ", ".join(filter(None, (f'protogoal/MiniHackRiver-v0, scenario="{name}"', more))), 8,
                    f"words of the message line, at most {size:,}, discovered as they are read", size, "deep,minihack")
                for name, more in SCENARIOS.items()]


MINIHACK = MiniHack()
