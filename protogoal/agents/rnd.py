"""RND: R2D2 paid for states in which a network has not yet learned to copy a random one (Burda et al. 2019).

    r + scale · clip((err(s') − mean err) / std err, 0, most)      err of `agents.distillation`

The original has a value of its own for the bonus, whose return does not end with the episode; here both are one reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from protogoal.agents.blueprint import Seeds, Spaces
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.segments import Segments
from protogoal.envs.vector import BatchEnv, BatchStep
from protogoal.settings import AgentSettings, ranged

if TYPE_CHECKING:
    from protogoal.deep.act import Actor


@dataclass(frozen=True)
class RNDSettings(AgentSettings):
    """The bonus and its networks; the section `exploration` of rnd."""

    kind: str = field(default="rnd", init=False)
    scale: float = ranged(0.01, 0.0, 1e6)
    """What an error one standard deviation above the mean is worth."""
    most: float = ranged(5.0, 0.0, 1e6)
    """Deviations above the mean beyond which a state is worth no more."""
    distillation_size: int = ranged(128, 1, 4096)
    """Length of the random network's output."""
    curiosity_hidden: int = ranged(128, 1, 8192)
    """Width of both networks."""
    curiosity_channels: tuple[int, ...] = ranged((16, 32), 1, 1024)
    """Channels of their 3×3 convolutions, for planes and characters."""


class RND(R2D2):
    """R2D2 that seeks what it cannot predict."""

    settings = RNDSettings
    stores_bonus = True

    @classmethod
    def make_network(cls, config: DeepConfig, spaces: Spaces) -> Any:
        """The value network, with the two of the bonus inside: they travel with its weights."""
        from protogoal.agents.distillation import RandomDistillation
        from protogoal.deep.network import seeded

        network, seed = super().make_network(config, spaces), int(Seeds.of(config.seed).weights.generate_state(2)[1])
        s: Any = config.exploration
        network.distillation = seeded(seed, lambda: RandomDistillation(spaces.observation_spec, s))
        return network

    @classmethod
    def make_learner(cls, config: DeepConfig, network: Any, target: Any) -> Any:
        from protogoal.agents.bonus import BonusLearner

        class DistillingLearner(BonusLearner):
            def extra_loss(self, batch: Segments) -> dict[str, Any]:
                return {"distillation_loss": network.distillation.loss(batch)}

        return DistillingLearner(network, target, config.learner, Seeds.of(config.seed).learning, config.replay.burn_in)

    @classmethod
    def make_actor(cls, config: DeepConfig, env: BatchEnv, network: Any, seed: np.random.SeedSequence) -> Actor:
        import torch

        from protogoal.agents.bonus import BonusActor, BonusView
        from protogoal.agents.distillation import RunningMoments

        s: Any = config.exploration
        moments = RunningMoments()

        class UnpredictedView(BonusView):
            @torch.inference_mode()
            def bonus(self, step: BatchStep) -> NDArray[np.float32]:
                state = {name: torch.from_numpy(array) for name, array in step.final_observation.items()}
                error = network.distillation.error(state).numpy()
                moments.update(error[~step.terminated])  # terminal states are not in replay: their error never falls
                surprise = moments.novelty(error, 1.0 + s.most) - 1.0
                return np.where(step.terminated, 0.0, s.scale * surprise).astype(np.float32)

            def knowledge(self) -> dict[str, Any]:
                return moments.state_dict()

            def load_knowledge(self, state: Mapping[str, Any]) -> None:
                moments.load_state_dict(state)

        return BonusActor(UnpredictedView(env), network, config, seed)

    @classmethod
    def join_knowledge(cls, actors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One actor's scale of the errors serves all."""
        return {"bonus": dict(actors[0]["bonus"])}
