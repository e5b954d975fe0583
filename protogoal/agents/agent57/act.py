"""Acting with a family of policies: the meta-controller chooses one at the start of every episode (Agent57 §3.2).

Everything else is `deep.act.Actor`: the policy's index stands where the goal's id stands, and no goal is ever attained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from protogoal.agents.agent57.bandit import SlidingWindowUCB
from protogoal.agents.agent57.curiosity import CuriousView
from protogoal.agents.agent57.split import SplitNetwork
from protogoal.agents.bonus import BonusActor
from protogoal.config import DeepConfig
from protogoal.envs.vector import BatchEnv
from protogoal.goals.goal_set import GoalSet


class Agent57Actor(BonusActor):
    """N environments seen through their novelty, and a bandit for each."""

    def __init__(self, env: BatchEnv, network: SplitNetwork, config: DeepConfig, seed: np.random.SeedSequence):
        s: Any = config.exploration
        super().__init__(CuriousView(env, network, s), network, config, seed)
        choosing = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 57)))
        self.bandit = SlidingWindowUCB(env.num_envs, s.num_policies, s.bandit_window, s.bandit_epsilon, s.bandit_bonus, choosing)

    def shared(self) -> NDArray[Any]:
        """How often each policy was followed, and the sum of its returns, [2, N]."""
        return self.bandit.arm_sums()

    def _choose_goals(self, z: Tensor, goals: GoalSet) -> None:
        rows = np.flatnonzero(self.needs_goal)
        if len(rows):
            self.goal[rows] = self.bandit.choose(rows)
            self.slots[rows, 0] = self.goal[rows]
            self.needs_goal[rows] = False

    def _attained(self, active: NDArray[Any]) -> NDArray[np.bool_]:
        return np.zeros(len(active), bool)

    def _episodes_ended(self, rows: NDArray[np.int64]) -> None:
        self.bandit.update(rows, self.goal[rows], self.episode_return[rows])

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"bandit": self.bandit.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        # What is known of policies outlives environments that could not be saved.
        if len(state["bandit"]["pulls"]) == self.env.num_envs:  # else saved with another number of them
            self.bandit.load_state_dict(state["bandit"])
