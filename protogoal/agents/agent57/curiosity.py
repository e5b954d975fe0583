"""Agent57's intrinsic reward, as a view of the environments (`agents.bonus`).

    r_i = scale · r_episodic · α          (without the episodic part: scale · (α − 1))

`act` steps this view; `split` reads the reward from a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protogoal.agents.agent57.embedding import ControllableEmbedding
from protogoal.agents.agent57.memory import EpisodicMemory
from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.agents.bonus import BonusView
from protogoal.agents.distillation import RandomDistillation, RunningMoments
from protogoal.envs.vector import BatchEnv, BatchStep, Observation
from protogoal.goals.stored import stored_like


class CuriosityNetworks(Protocol):
    """The networks behind the reward; they are replaced as they are learned."""

    embedding: ControllableEmbedding
    distillation: RandomDistillation


class CuriousView(BonusView):
    """N environments, each with a memory of the states of its last episodes."""

    def __init__(self, env: BatchEnv, networks: CuriosityNetworks, settings: Agent57Settings):
        super().__init__(env)
        self.networks, self.settings = networks, settings
        self.memory = EpisodicMemory(env.num_envs, settings)
        self.moments = RunningMoments()
        self.episodes = np.zeros(env.num_envs, np.int64)  # ended since the memory was emptied

    def reset(self, seed: int | None = None) -> tuple[Observation, NDArray[Any]]:
        """All episodes and all memories begin anew."""
        self.memory.forget(np.arange(self.num_envs))
        self.episodes[:] = 0
        return super().reset(seed)

    def bonus(self, step: BatchStep) -> NDArray[np.float32]:
        """What the step was worth; the state is remembered."""
        reward = self._intrinsic(step.final_observation, step.terminated)
        self.episodes += step.terminated | step.truncated
        over = np.flatnonzero(self.episodes >= self.settings.meta_episode_length)
        if len(over):
            self.memory.forget(over)
            self.episodes[over] = 0
        return reward

    @torch.inference_mode()
    def _intrinsic(self, observation: Observation, terminated: NDArray[np.bool_]) -> NDArray[np.float32]:
        s = self.settings
        state: dict[str, Tensor] = {name: torch.from_numpy(array) for name, array in observation.items()}
        reward: NDArray[Any] = np.ones(self.num_envs, np.float32)
        if s.is_episodic:
            reward = self.memory.reward(self.networks.embedding(state).numpy())
        if s.is_lifelong:
            error = self.networks.distillation.error(state).numpy()
            # DEVIATION(D20): terminal states are not in replay, so nothing is distilled of them and their error never falls:
            # they count as known, α = 1, and not towards the mean and spread of the errors
            self.moments.update(error[~terminated])
            alpha = np.where(terminated, 1.0, self.moments.novelty(error, s.max_novelty))
            reward = reward * alpha if s.is_episodic else alpha - 1.0
        return (s.episodic_memory_reward_scale * reward).astype(np.float32)

    def knowledge(self) -> dict[str, Any]:
        """The scales of novelty."""
        return {"moments": self.moments.state_dict(), "distances": self.memory.distances()}

    def load_knowledge(self, state: Mapping[str, Any]) -> None:
        self.moments.load_state_dict(state["moments"])
        if len(state["distances"]["mean"]) == self.num_envs:  # else saved with another number of them
            self.memory.load_distances(state["distances"])

    def get_state(self) -> dict[str, Any] | None:
        state = super().get_state()
        return None if state is None else state | {"memory": self.memory.state_dict(), "episodes": self.episodes.copy()}

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, NDArray[Any]]:
        self.memory.load_state_dict(state["memory"])
        self.episodes[:] = stored_like(state["episodes"], "episodes", self.episodes, 0)
        return super().set_state(state)
