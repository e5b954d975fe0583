"""Other ways to look at a batch of environments; each is a `BatchEnv` around a `BatchEnv`."""

from __future__ import annotations

from typing import Any

import numpy as np

from protogoal.envs.vector import ArraySpec, BatchEnv, BatchStep, Observation


class View:
    """A batch observed in another way; a subclass says what is seen (`read`), and in which arrays."""

    observation_spec: dict[str, ArraySpec]

    def __init__(self, env: BatchEnv):
        self.env = env
        self.num_envs, self.num_actions = env.num_envs, env.num_actions
        self.num_bits, self.max_active = env.num_bits, env.max_active

    def read(self, observation: Observation, active: np.ndarray) -> Observation:
        """What is seen of observations [n, …] with these bits on."""
        raise NotImplementedError

    def reset(self, seed: int | None = None) -> tuple[Observation, np.ndarray]:
        observation, active = self.env.reset(seed)
        return self.read(observation, active), active

    def step(self, actions: np.ndarray) -> BatchStep:
        return self.seen(self.env.step(actions))

    def seen(self, step: BatchStep) -> BatchStep:
        """A step of the environments as it is observed."""
        final = self.read(step.final_observation, step.final_active)
        now = final if step.observation is step.final_observation else self.read(step.observation, step.active)
        return step._replace(observation=now, final_observation=final)

    def get_state(self) -> dict[str, Any] | None:
        return self.env.get_state()

    def set_state(self, state: dict[str, Any]) -> tuple[Observation, np.ndarray]:
        observation, active = self.env.set_state(state)
        return self.read(observation, active), active

    def close(self) -> None:
        self.env.close()


class ActiveView(View):
    """A batch whose bits are its whole observation, observed as the list of those that are on instead of as planes."""

    def __init__(self, env: BatchEnv):
        super().__init__(env)
        dtype = np.dtype(np.int16 if env.num_bits <= np.iinfo(np.int16).max else np.int32)
        self.observation_spec = {"active": ArraySpec((env.max_active,), dtype, "active", env.num_bits)}

    def read(self, observation: Observation, active: np.ndarray) -> Observation:
        return {"active": active.astype(self.observation_spec["active"].dtype, copy=False)}


def innermost(env: Any) -> Any:
    """The batch that is looked at, without the views around it."""
    while hasattr(env, "env"):
        env = env.env
    return env
