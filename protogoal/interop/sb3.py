"""Stable-Baselines3 with goals chosen by the evaluator: hindsight replay whose goals end, and the values that choose them.

`HerReplayBuffer` works with `ProtoGoalEnv` as it is, but takes the end of a relabelled transition from the goal that was
pursued at the time, and the model's action even where the environment made a trial of another. `GoalReplayBuffer` asks the
environment instead: for goal g the continuation is γ(1 − b_g) (paper §3), so a value is the discounted probability of attaining g
and lies in [0, 1]; and it stores the action that was taken.

`use_values` hands a DQN's own values to the environments, for local reachability (paper §5.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from protogoal.interop.goal_env import GoalValues


class GoalReplayBuffer(HerReplayBuffer):
    """Hindsight replay in which every transition ends where its own goal is attained or the environment terminates."""

    def add(  # type: ignore[override]
        self, obs: Any, next_obs: Any, action: np.ndarray, reward: np.ndarray, done: np.ndarray, infos: list[dict[str, Any]]
    ) -> None:
        """Stores a transition with the action that was taken, which may be a trial instead of the model's."""
        taken = np.array([info["action"] for info in infos], action.dtype).reshape(action.shape)
        super().add(obs, next_obs, taken, reward, done, infos)

    def _get_virtual_samples(
        self, batch_indices: np.ndarray, env_indices: np.ndarray, env: VecNormalize | None = None
    ) -> DictReplayBufferSamples:
        samples = super()._get_virtual_samples(batch_indices, env_indices, env)
        achieved = samples.next_observations["achieved_goal"].cpu().numpy()
        desired = samples.next_observations["desired_goal"].cpu().numpy()
        assert self.env is not None
        ended = self.env.env_method("compute_terminated", achieved, desired, indices=[0])[0]
        return samples._replace(dones=self.to_torch(ended.astype(np.float32)).reshape(-1, 1))


def goal_values(model: DQN) -> GoalValues:
    """V(s, g) = max_a Q(s, a, g) of a DQN, for a batch of observations."""

    def values(observations: dict[str, np.ndarray]) -> np.ndarray:
        with torch.no_grad():
            tensors, _ = model.policy.obs_to_tensor(observations)  # type: ignore[arg-type]
            q: Any = model.q_net(tensors)
        result: np.ndarray = q.max(dim=1).values.cpu().numpy()
        return result

    return values


def use_values(model: DQN) -> None:
    """Lets every environment of the model choose goals by the model's values; they must live in this process."""
    assert model.env is not None
    values = goal_values(model)
    for env in getattr(model.env, "envs", ()):
        env.unwrapped.values = values
