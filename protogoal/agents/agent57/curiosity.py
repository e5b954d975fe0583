"""Intrinsic reward as a view of the environments: every observation says how novel the state was that the last step led to.

    r_i = scale · r_episodic · α          (without the episodic part: scale · (α − 1))

As a part of the observation it travels through segments and replay like any other: the reward of transition t stands with
the state t + 1. `act` steps this view; `split` reads the reward from a batch.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protogoal.agents.agent57.distillation import RandomDistillation, RunningMoments
from protogoal.agents.agent57.embedding import ControllableEmbedding
from protogoal.agents.agent57.memory import EpisodicMemory
from protogoal.deep.settings_agent57 import Agent57Settings
from protogoal.envs.vector import ArraySpec, BatchEnv, BatchStep, Observation

INTRINSIC = "intrinsic_reward"
INTRINSIC_SPEC = ArraySpec((1,), np.dtype(np.float32), "vector")


class CuriosityNetworks(Protocol):
    """The networks behind the reward; they are replaced as they are learned."""

    embedding: ControllableEmbedding
    distillation: RandomDistillation


class CuriousView:
    """N environments whose observations have one more part, the intrinsic reward just earned."""

    def __init__(self, env: BatchEnv, networks: CuriosityNetworks, settings: Agent57Settings):
        if INTRINSIC in env.observation_spec:
            raise ValueError(f"the observation has a part named {INTRINSIC}, which is the intrinsic reward's name")
        self.env, self.networks, self.settings = env, networks, settings
        self.num_envs, self.num_actions = env.num_envs, env.num_actions
        self.num_bits, self.max_active = env.num_bits, env.max_active
        self.observation_spec = env.observation_spec | {INTRINSIC: INTRINSIC_SPEC}
        self.memory = EpisodicMemory(env.num_envs, settings)
        self.moments = RunningMoments()
        self.episodes = np.zeros(env.num_envs, np.int64)  # ended since the memory was emptied
        self.reward = np.zeros(env.num_envs, np.float32)

    def reset(self, seed: int | None = None) -> tuple[Observation, NDArray[Any]]:
        """All episodes and all memories begin anew."""
        observation, active = self.env.reset(seed)
        self.memory.forget(np.arange(self.num_envs))
        self.episodes[:] = 0
        self.reward[:] = 0.0
        return self._with_reward(observation), active

    def step(self, actions: NDArray[Any]) -> BatchStep:
        """One step, and what it was worth; the state is remembered."""
        step = self.env.step(actions)
        self.reward = self._intrinsic(step.final_observation, step.terminated)
        ended = step.terminated | step.truncated
        self.episodes += ended
        over = np.flatnonzero(self.episodes >= self.settings.meta_episode_length)
        if len(over):
            self.memory.forget(over)
            self.episodes[over] = 0
        return step._replace(observation=self._with_reward(step.observation),
                             final_observation=self._with_reward(step.final_observation))

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

    def _with_reward(self, observation: Observation) -> Observation:
        return observation | {INTRINSIC: self.reward[:, None]}

    def get_state(self) -> dict[str, Any] | None:
        """The environments' state and the memories; None where the environments cannot be saved."""
        inner = self.env.get_state()
        if inner is None:
            return None
        return {"env": inner, "memory": self.memory.state_dict(), "moments": self.moments.state_dict(),
                "episodes": self.episodes.copy(), "reward": self.reward.copy()}

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, NDArray[Any]]:
        """Goes back to what `get_state` gave."""
        observation, active = self.env.set_state(state["env"])
        self.memory.load_state_dict(state["memory"])
        self.moments.load_state_dict(state["moments"])
        self.episodes[:] = state["episodes"]
        self.reward = np.array(state["reward"], np.float32)
        return self._with_reward(observation), active

    def close(self) -> None:
        self.env.close()
