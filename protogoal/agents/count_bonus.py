"""Count bonus: R2D2 paid for each proto-goal bit that turns on, the more the rarer: novelty over the knowledge that goals have.

    r + scale · Σ 1/√N(b)   over the bits b that the transition turned on, N(b) the times b ever was, this one included

It sets itself no goals and prunes nothing: what flickers by itself is paid for until it is common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from protogoal.agents.blueprint import Seeds
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.envs.vector import BatchEnv, BatchStep
from protogoal.goals.active import turned_on
from protogoal.settings import AgentSettings, ranged

if TYPE_CHECKING:
    from protogoal.deep.act import Actor


@dataclass(frozen=True)
class CountBonusSettings(AgentSettings):
    """The bonus; the section `exploration` of count-bonus."""

    kind: str = field(default="count-bonus", init=False)
    scale: float = ranged(0.1, 0.0, 1e6)
    """What a bit is worth that turns on for the first time; the task's rewards are what they are."""


class CountBonus(R2D2):
    """R2D2 that is paid for rare bits."""

    settings = CountBonusSettings
    stores_bonus = True

    @classmethod
    def make_learner(cls, config: DeepConfig, network: Any, target: Any) -> Any:
        from protogoal.agents.bonus import BonusLearner

        return BonusLearner(network, target, config.learner, Seeds.of(config.seed).learning, config.replay.burn_in)

    @classmethod
    def make_actor(cls, config: DeepConfig, env: BatchEnv, network: Any, seed: np.random.SeedSequence) -> Actor:
        from protogoal.agents.bonus import BonusActor, BonusView

        class CountingActor(BonusActor):
            """All workers count together."""

            def shared(self) -> NDArray[Any]:
                return counts.own.copy()

            def take(self, others: NDArray[Any]) -> None:
                counts.others = others

        class CountedView(BonusView):
            def begin(self, active: NDArray[Any]) -> None:
                counts.active = active.copy()

            def bonus(self, step: BatchStep) -> NDArray[np.float32]:
                return counts.paid(step)

            def knowledge(self) -> dict[str, Any]:
                return {"counts": counts.own.copy()}

            def load_knowledge(self, state: Mapping[str, Any]) -> None:
                counts.own[:] = state["counts"]

        counts = BitCounts(env.num_bits, config.exploration.scale)  # type: ignore[attr-defined]
        return CountingActor(CountedView(env), network, config, seed)

    @classmethod
    def join_knowledge(cls, actors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"bonus": {"counts": np.sum([actor["bonus"]["counts"] for actor in actors], axis=0)}}

    @classmethod
    def part_of_knowledge(cls, joined: Mapping[str, Any], index: int, num_envs: int) -> dict[str, Any]:
        """The first actor has counted it all; the others hear of it."""
        return {"bonus": {"counts": joined["bonus"]["counts"] * (index == 0)}}

    @classmethod
    def shared_knowledge(cls, shared: NDArray[Any]) -> dict[str, Any]:
        """Its counts are what it shares."""
        return {"bonus": {"counts": shared}}


class BitCounts:
    """How often each bit turned on, here and elsewhere; and what the next time is worth."""

    def __init__(self, num_bits: int, scale: float):
        self.own = np.zeros(num_bits, np.int64)
        self.others: NDArray[Any] = np.zeros(num_bits, np.int64)
        self.active: NDArray[Any] = np.empty((0, 0), np.int64)  # bits of the states that the next step leaves
        self.scale = scale

    def paid(self, step: BatchStep) -> NDArray[np.float32]:
        """Counts the bits that turned on, and returns what they are worth, [N]."""
        on = turned_on(step.final_active, self.active)  # [N, L]
        self.active = step.active.copy()
        np.add.at(self.own, step.final_active[on], 1)
        count = np.maximum(self.own[step.final_active] + self.others[step.final_active], 1)
        return (self.scale * np.where(on, count**-0.5, 0.0).sum(1)).astype(np.float32)
