"""Acting with a family of policies: the meta-controller chooses one at the start of every episode (Agent57 §3.2).

Everything else is `deep.act.Actor`: the policy's index stands where the goal's id stands, and no goal is ever attained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from protogoal.agents.agent57.bandit import SlidingWindowUCB
from protogoal.agents.agent57.curiosity import CuriousView
from protogoal.agents.agent57.split import SplitNetwork
from protogoal.config import DeepConfig
from protogoal.deep.act import Actor
from protogoal.envs.vector import PAD, BatchEnv
from protogoal.goals.selection import GoalSet


class Agent57Actor(Actor):
    """N environments seen through their novelty, and a bandit for each."""

    def __init__(self, env: BatchEnv, network: SplitNetwork, config: DeepConfig, seed: np.random.SeedSequence):
        s = config.agent57
        actor = replace(config.actor, max_pursuit_steps=0)  # a policy is followed to the end of the episode
        self.view = CuriousView(env, network, s)
        super().__init__(self.view, network, actor, config.pge, config.replay, seed)  # type: ignore[arg-type]
        choosing = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 57)))
        self.bandit = SlidingWindowUCB(env.num_envs, s.num_policies, s.bandit_window, s.bandit_epsilon, s.bandit_bonus, choosing)

    def _choose_goals(self, z: Tensor, goals: GoalSet) -> None:
        rows = np.flatnonzero(self.needs_goal)
        if len(rows):
            self.goal[rows] = self.bandit.choose(rows)
            self.members[rows] = PAD
            self.members[rows, 0] = self.goal[rows]
            self.needs_goal[rows] = False

    def _attained(self, active: NDArray[Any]) -> NDArray[np.bool_]:
        return np.zeros(len(active), bool)

    def _episodes_ended(self, rows: NDArray[np.int64]) -> None:
        self.bandit.update(rows, self.goal[rows], self.episode_return[rows])

    def state_dict(self) -> dict[str, Any]:
        known = {"bandit": self.bandit.state_dict(), "moments": self.view.moments.state_dict(),
                 "distances": self.view.memory.distances()}
        return super().state_dict() | known

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        # What is known of policies and of the scales of novelty outlives environments that could not be saved.
        if len(state["bandit"]["pulls"]) == self.env.num_envs:  # else saved with another number of them
            self.bandit.load_state_dict(state["bandit"])
            if "distances" in state:
                self.view.memory.load_distances(state["distances"])
        if "moments" in state:
            self.view.moments.load_state_dict(state["moments"])
