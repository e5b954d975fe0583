"""Proto-R2D2 (paper §5, Appendix C): R2D2 plus the proto-goal evaluator.

The difference to its parent: what happened is counted, pursuits are recorded, and the evaluator's goals are what the
actor pursues and the learner relabels with. `run.local` calls `refresh` now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import Experience
from protogoal.deep.relabel import KnownGoals
from protogoal.envs.vector import BatchEnv, dense_bits
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.spaces import ProtoGoalSpace


class ProtoR2D2(R2D2):
    """R2D2 that sets itself goals."""

    def __init__(self, config: DeepConfig, env: BatchEnv, space: ProtoGoalSpace):
        super().__init__(config, env, space)
        judging, drawing = self._own_seed.spawn(2)
        self.evaluator = ProtoGoalEvaluator(space, env.num_actions, config.pge, int(judging.generate_state(1)[0]))
        self._refreshing = np.random.default_rng(drawing)

    def remember(self, experience: Experience) -> None:
        super().remember(experience)
        new = experience.segments.last(self.config.replay.trace_length)
        self.evaluator.observe(dense_bits(new.active, self.env.num_bits).reshape(-1, self.env.num_bits), new.reward.ravel())
        self.evaluator.record_pursuit(experience.pursuits.goal, experience.pursuits.success)
        self.known = KnownGoals.of(self.evaluator.table, self.goal_set.ids)

    def refresh(self) -> None:
        """Judges all goals on transitions from replay, and publishes a new goal set to actor and learner."""
        self.goal_set = self.evaluator.refresh(self.replay.sample_transitions(self.config.pge.batch_size, self._refreshing))
        self.known = KnownGoals.of(self.evaluator.table, self.goal_set.ids)

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
        self.known = KnownGoals.of(self.evaluator.table, self.goal_set.ids)
