"""Proto-R2D2 (paper §5, Appendix C): R2D2 plus the proto-goal evaluator.

The difference to its parent: what happened is counted, pursuits are recorded, and the evaluator's goals are what the
actor pursues and the learner relabels with. `run.local` calls `refresh` now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from protogoal.agents.counting import Counted, count
from protogoal.agents.parts import make_evaluator
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import Experience
from protogoal.deep.relabel import KnownGoals
from protogoal.envs.vector import BatchEnv
from protogoal.goals.spaces import ProtoGoalSpace


class ProtoR2D2(R2D2):
    """R2D2 that sets itself goals."""

    def __init__(self, config: DeepConfig, env: BatchEnv, space: ProtoGoalSpace):
        super().__init__(config, env, space)
        self.evaluator = make_evaluator(config, space, env.num_actions)
        self._refreshing = np.random.default_rng(self._seeds.refreshing)

    def remember(self, experience: Experience) -> None:
        super().remember(experience)
        count(self.evaluator, Counted.of(experience, self.config.replay.trace_length))
        self.known = KnownGoals.of(self.evaluator)

    def refresh(self) -> None:
        """Judges all goals on transitions from replay, and publishes a new goal set to actor and learner."""
        self.goal_set = self.evaluator.refresh(self.replay.sample_transitions(self.config.pge.batch_size, self._refreshing))
        self.known = KnownGoals.of(self.evaluator)

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
