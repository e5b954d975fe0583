"""Novelty as a reward: a view of the environments whose observations say what the last step was worth beyond the task.

As a part of the observation the bonus travels through segments and replay like any other: that of transition t stands with
the state t + 1. `BonusActor` steps such a view and `BonusLearner` learns the sum of both rewards: an agent is R2D2 with these
two and a view of its own (`count_bonus`, `rnd`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.agents.blueprint import INTRINSIC, INTRINSIC_SPEC
from protogoal.config import DeepConfig
from protogoal.deep.act import Actor
from protogoal.deep.learn import Learner
from protogoal.deep.segments import Segments
from protogoal.envs.vector import BatchEnv, BatchStep, Observation
from protogoal.envs.views import View
from protogoal.goals.stored import stored_array


class BonusView(View):
    """N environments whose observations have one more part, the bonus just earned; a subclass says how much that is."""

    def __init__(self, env: BatchEnv):
        if INTRINSIC in env.observation_spec:
            raise ValueError(f"the observation has a part named {INTRINSIC}, which is the intrinsic reward's name")
        super().__init__(env)
        self.observation_spec = env.observation_spec | {INTRINSIC: INTRINSIC_SPEC}
        self.reward = np.zeros(env.num_envs, np.float32)

    def bonus(self, step: BatchStep) -> NDArray[np.float32]:
        """What the step was worth, [N]."""
        raise NotImplementedError

    def begin(self, active: NDArray[Any]) -> None:
        """Told of the bits of the states in which all episodes begin, or go on after loading."""

    def knowledge(self) -> dict[str, Any]:
        """What it has learned that does not hang on the episodes."""
        return {}

    def load_knowledge(self, state: Mapping[str, Any]) -> None:
        """Take back what `knowledge` gave."""

    def reset(self, seed: int | None = None) -> tuple[Observation, NDArray[Any]]:
        """All episodes begin anew."""
        self.reward = np.zeros(self.num_envs, np.float32)
        observation, active = super().reset(seed)
        self.begin(active)
        return observation, active

    def step(self, actions: NDArray[Any]) -> BatchStep:
        """One step, and what it was worth."""
        step = self.env.step(actions)
        self.reward = self.bonus(step)
        return self.seen(step)

    def read(self, observation: Observation, active: NDArray[Any]) -> Observation:
        return observation | {INTRINSIC: self.reward[:, None]}

    def get_state(self) -> dict[str, Any] | None:
        """The environments' state and the last bonus; None where the environments cannot be saved."""
        inner = self.env.get_state()
        return None if inner is None else {"env": inner, "reward": self.reward.copy()}

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, NDArray[Any]]:
        """Goes back to what `get_state` gave."""
        observation, active = self.env.set_state(state["env"])
        self.reward = stored_array(state["reward"], "reward", (self.num_envs,), "f").astype(np.float32)
        self.begin(active)
        return self.read(observation, active), active


class BonusActor(Actor):
    """Acts in environments seen through their bonus; what the view knows outlives environments that could not be saved."""

    def __init__(self, view: Any, network: Any, config: DeepConfig, seed: np.random.SeedSequence):
        self.view = view
        super().__init__(view, network, config.actor, config.replay, seed)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"bonus": self.view.knowledge()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if "bonus" in state:
            self.view.load_knowledge(state["bonus"])


class BonusLearner(Learner):
    """Learns the task's reward and the bonus as one; the network reads the task's alone."""

    def paid(self, batch: Segments) -> Segments:
        scaled = super().paid(batch)
        return replace(scaled, reward=scaled.reward + batch.observation[INTRINSIC][1:, :, 0])
