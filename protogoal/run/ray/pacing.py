"""The ratio of learning to acting, held from both sides: the learner is told how much to learn, workers when to wait.

    updates due = ⌊(steps − min_replay − forgiven) · replay_ratio / (batch_size · trace_length)⌋ − updates made

as in the local engine. `forgiven` are steps acted while replay was too small to learn from after it had once been large
enough (a shard died): catching up on them would overfit what little is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protogoal.agents.blueprint import can_learn, updates_due
from protogoal.config import DeepConfig


class Pacing:
    """Steps acted and updates made, in all; `promised` updates have been asked for and not been answered yet."""

    def __init__(self, config: DeepConfig):
        self.config = config
        self.steps = self.updates = self.promised = self.forgiven = 0

    def can_learn(self, transitions: int) -> bool:
        """Whether enough is in the shards together."""
        return can_learn(self.config, transitions, self.config.ray.shards)

    def acted(self, steps: int, transitions: int) -> None:
        """`steps` more were acted, while `transitions` were in replay."""
        self.steps += steps
        if self.updates and not self.can_learn(transitions):
            self.forgiven += steps

    def due(self, transitions: int) -> int:
        """Updates that may be asked of the learner now."""
        if not self.can_learn(transitions):
            return 0
        return max(0, updates_due(self.config, self.steps - self.forgiven, self.updates + self.promised))

    def must_wait(self, transitions: int) -> bool:
        """Whether learning is so far behind that acting has to wait for it."""
        if not self.can_learn(transitions):
            return False
        return updates_due(self.config, self.steps - self.forgiven, self.updates) >= self.config.ray.max_lag

    @property
    def ratio(self) -> float:
        """Transitions learned for each one acted since learning began; the target is `learner.replay_ratio`."""
        learned = self.updates * self.config.learner.batch_size * self.config.replay.trace_length
        return learned / max(1, self.steps - self.forgiven - self.config.learner.min_replay)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.steps, self.updates, self.forgiven = (int(state[name]) for name in ("steps", "updates", "forgiven"))
        self.promised = 0
