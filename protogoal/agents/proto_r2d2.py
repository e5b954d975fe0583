"""Proto-R2D2 (paper §5, Appendix C): R2D2 plus the proto-goal evaluator.

The difference to its parent: what happened is counted, pursuits are recorded, and the evaluator's goals are what the
actor pursues and the learner relabels with. `run.local` calls `refresh` now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from protogoal.agents.blueprint import make_evaluator
from protogoal.agents.counting import Counted, count
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.relabel import KnownGoals
from protogoal.envs.vector import BatchEnv
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.spaces import ProtoGoalSpace

if TYPE_CHECKING:
    from protogoal.deep.act import Experience


class ProtoR2D2(R2D2):
    """R2D2 that sets itself goals."""

    sets_goals = True
    evaluator: ProtoGoalEvaluator

    def __init__(self, config: DeepConfig, env: BatchEnv, space: ProtoGoalSpace):
        super().__init__(config, env, space)
        self.evaluator = make_evaluator(config, space, env.num_actions)
        self._refreshing = np.random.default_rng(self._seeds.refreshing)

    def remember(self, experience: Experience) -> None:
        super().remember(experience)
        count(self.evaluator, Counted.of(experience, self.config.replay.trace_length))
        self.known = KnownGoals.of(self.evaluator)

    def refresh(self) -> None:
        """Judges all goals, and publishes a new goal set to actor, learner and replay."""
        by_values = self.config.pge.pruning == "values"
        batch = self.replay.sample_transitions(self.config.pge.batch_size, self._refreshing) if by_values else None
        self.goal_set = self.evaluator.refresh(batch)
        self.known = KnownGoals.of(self.evaluator)
        self.replay.want(self.known.bits)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {
            "evaluator": self.evaluator.state_dict(),
            "refreshing": self._refreshing.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.evaluator.load_state_dict(state["evaluator"])
        self.goal_set = self.evaluator.goal_set
        self._refreshing.bit_generator.state = state["refreshing"]
        self.known = KnownGoals.of(self.evaluator)
