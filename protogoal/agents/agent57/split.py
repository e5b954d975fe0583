"""Split values: Q(s, a, j) = Q_e + β_j Q_i, one network and one optimiser for each, one greedy policy (Agent57 §3.1).

    target of Q_e:  r_e, γ_j          target of Q_i:  r_i alone, γ_j          both: the action that is greedy for the sum

With the transform h the sum is taken of h⁻¹(Q_e) and β_j h⁻¹(Q_i). The index j takes the place of the goal in `QNetwork`:
policy j is the goal with the one bit j, and the goal without bits, the task, is the policy that is played at the task.
`SplitNetwork` acts like a `QNetwork`, `SplitLearner` like a `Learner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from protogoal.agents.agent57.embedding import ControllableEmbedding
from protogoal.agents.agent57.mixture import beta_ladder, discount_ladder
from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.agents.blueprint import INTRINSIC, INTRINSIC_SPEC
from protogoal.agents.distillation import RandomDistillation
from protogoal.config import DeepConfig
from protogoal.deep import returns_torch
from protogoal.deep.average import AverageWeights
from protogoal.deep.device import device_of, place
from protogoal.deep.learn import Learner, Seed, finite, optimizer_from_arrays, optimizer_to_arrays
from protogoal.deep.network import CoreState, QNetwork, weights_from_arrays, weights_to_arrays
from protogoal.deep.relabel import BatchGoals, KnownGoals
from protogoal.deep.returns import h_inverse
from protogoal.deep.segments import Segments
from protogoal.deep.settings import LearnerSettings
from protogoal.envs.vector import ArraySpec
from protogoal.goals.stored import stored_number


class SplitNetwork(nn.Module):
    """Q_e and Q_i, and the networks behind the intrinsic reward."""

    beta: Tensor
    task_policy: Tensor

    def __init__(self, observation_spec: dict[str, ArraySpec], num_actions: int, config: DeepConfig):
        super().__init__()
        s = cast(Agent57Settings, config.exploration)
        self.num_actions, self.transform = num_actions, config.learner.value_transform
        read = observation_spec | ({INTRINSIC: INTRINSIC_SPEC} if s.reads_intrinsic else {})
        self.extrinsic = QNetwork(read, num_actions, s.num_policies, config.network)
        self.intrinsic = QNetwork(read, num_actions, s.num_policies, config.network)
        self.embedding = ControllableEmbedding(observation_spec, num_actions, s)
        self.distillation = RandomDistillation(observation_spec, s)
        self.register_buffer("beta", torch.from_numpy(beta_ladder(s.num_policies, s.beta)))
        self.register_buffer("task_policy", torch.zeros((), dtype=torch.int64))

    @property
    def core_shape(self) -> tuple[int, int]:
        """Both cores, one after the other."""
        rows, hidden = self.extrinsic.core_shape
        return 2 * rows, hidden

    def initial_core(self, batch: int) -> CoreState:
        """The cores' state at the start of an episode."""
        return torch.zeros(batch, *self.core_shape, device=device_of(self))

    def unroll(
        self,
        observation: dict[str, Tensor],
        previous_action: Tensor,
        previous_reward: Tensor,
        is_first: Tensor,
        core: CoreState,
    ) -> tuple[Tensor, CoreState]:
        """Features [T, N, 2H] of both networks side by side; see `QNetwork.unroll`."""
        if INTRINSIC in observation:  # of the episode before, nothing is seen
            observation = observation | {INTRINSIC: observation[INTRINSIC] * ~is_first.unsqueeze(-1)}
        cores = core.tensor_split(2, 1)
        parts = [network.unroll(observation, previous_action, previous_reward, is_first, part)
                 for network, part in zip((self.extrinsic, self.intrinsic), cores, strict=True)]
        return torch.cat([z for z, _ in parts], -1), torch.cat([state for _, state in parts], 1)

    def encode(self, members: Tensor) -> Tensor:
        """What `q_of` reads of policies: their numbers."""
        return members

    def q_of(self, z: Tensor, goals: Tensor) -> Tensor:
        return self.q_each(z, goals)

    def q_each(self, z: Tensor, members: Tensor) -> Tensor:
        """The sum that the policies are greedy for: z [M, 2H], members [M, K, L] → [M, K, A]."""
        policy = members[..., :1].long()
        policy = torch.where(policy < 0, self.task_policy, policy)  # [M, K, 1]
        z_e, z_i = z.chunk(2, -1)
        return combine(self.extrinsic.q_each(z_e, policy), self.intrinsic.q_each(z_i, policy), self.beta[policy], self.transform)


def combine(q_e: Tensor, q_i: Tensor, beta: Tensor, transform: str) -> Tensor:
    """Q_e + β Q_i, or h⁻¹(Q_e) + β h⁻¹(Q_i): h, which would stand around the sum, changes no argmax."""
    if transform == "h":
        is_cpu = q_e.device.type == "cpu"
        q_e, q_i = (torch.from_numpy(h_inverse(q.numpy())) if is_cpu else returns_torch.h_inverse(q) for q in (q_e, q_i))
    return q_e + beta * q_i


@dataclass(frozen=True)
class Streams:
    """What a batch is learned for: the same policies for both networks, each with its own reward."""

    extrinsic: BatchGoals
    intrinsic: BatchGoals
    beta: NDArray[np.float32]  # [G] where all segments share the policies, else [N, 1]

    @staticmethod
    def of(batch: Segments, settings: Agent57Settings) -> Streams:
        """A batch after its burn-in; a segment's own policy is that of its first step."""
        betas = beta_ladder(settings.num_policies, settings.beta)
        discounts = discount_ladder(settings.num_policies, settings.discount_max, settings.discount_min)
        if settings.learn_policies == "all":
            policy = np.arange(settings.num_policies)  # [G]
            slots = policy[:, None].astype(np.int32)
        else:
            policy = batch.goal[0][:, None]  # [N, 1]
            slots = policy[..., None].astype(np.int32)
        weight = np.full((batch.size, policy.shape[-1]), 1.0 / policy.shape[-1], np.float32)

        def stream(reward: NDArray[Any], ends: NDArray[np.bool_]) -> BatchGoals:
            goes_on = (~ends).astype(np.float32)[..., None]  # [T, N, 1]
            discount = np.ascontiguousarray(goes_on * discounts[policy])  # [T, N, G]
            each = np.ascontiguousarray(np.broadcast_to(reward[..., None], discount.shape))
            return BatchGoals(slots, each, discount, weight)

        # The intrinsic stream has r_i alone: r_e + βr_i there would count the task's reward twice.
        # DEVIATION(D20): where it does not end with the episode, the state after a terminal one is the next episode's first.
        novelty_ends = batch.terminated & settings.intrinsic_return_ends
        return Streams(stream(batch.reward, batch.terminated), stream(batch.observation[INTRINSIC][1:, :, 0], novelty_ends),
                       betas[policy])


class SplitLearner:
    """A `Learner` for each network, and one optimiser for what makes the intrinsic reward."""

    def __init__(self, network: SplitNetwork, target: SplitNetwork, config: DeepConfig, seed: Seed):
        self.network, self.burn_in = network, config.replay.burn_in
        self.exploration = s = cast(Agent57Settings, config.exploration)
        target.load_state_dict(network.state_dict())
        self.average = AverageWeights(network, config.learner.average_decay)  # of both networks
        # policies are not proto-goals
        settings: LearnerSettings = replace(config.learner, clip_goal_values=False, average_decay=0.0)
        self.extrinsic = Learner(network.extrinsic, target.extrinsic, settings, seed, self.burn_in)
        self.intrinsic = Learner(network.intrinsic, target.intrinsic, settings, seed, self.burn_in)
        self._curious = [p for part in (network.embedding, network.distillation) for p in part.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self._curious, lr=s.curiosity_learning_rate, weight_decay=0.0, fused=True
        )

    @property
    def updates(self) -> int:
        return self.extrinsic.updates

    def update(self, batch: Segments, known: KnownGoals | None = None) -> dict[str, float]:
        """One step of both values and of the curiosity networks on a batch; returns figures for the log."""
        streams = Streams.of(self.extrinsic.paid(batch).last(batch.steps - self.burn_in), self.exploration)
        seen = batch.observation[INTRINSIC] * ~batch.is_first[..., None]  # of the episode before, nothing is seen
        read = replace(batch, observation=batch.observation | {INTRINSIC: seen})
        core_e, core_i = np.array_split(batch.core, 2, 1)
        read_e, read_i = replace(read, core=core_e), replace(read, core=core_i)
        value_e = self.extrinsic.values(read_e, streams.extrinsic)
        value_i = self.intrinsic.values(read_i, streams.intrinsic)
        beta = place(streams.beta, self.extrinsic.device)
        beta = beta if beta.ndim == 1 else beta.unsqueeze(1)  # against [T, N, A, G]
        greedy = combine(value_e.online, value_i.online, beta, self.extrinsic.settings.value_transform)
        figures_e = self.extrinsic.descend(read_e, streams.extrinsic, value_e, greedy)
        figures_i = self.intrinsic.descend(read_i, streams.intrinsic, value_i, greedy)
        self.average.update()
        return figures_e | {"intrinsic_loss": figures_i["loss"]} | self._learn_curiosity(batch.last(batch.steps - self.burn_in))

    def _learn_curiosity(self, batch: Segments) -> dict[str, float]:
        """One step of embedding and distillation."""
        inverse = self.network.embedding.loss(batch)
        distilled = self.network.distillation.loss(batch)
        finite(inverse + distilled, self.updates)
        self.optimizer.zero_grad(set_to_none=True)
        (inverse + distilled).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        reward = float(batch.observation[INTRINSIC][1:].mean())
        return {"inverse_loss": float(inverse.detach()), "distillation_loss": float(distilled.detach()), "intrinsic_reward": reward}

    def state_dict(self) -> dict[str, Any]:
        """All weights, both learners, and the optimiser of the curiosity networks."""
        return {
            "network": weights_to_arrays(self.network),
            "average": self.average.state_dict(),
            "extrinsic": self.extrinsic.state_dict(),
            "intrinsic": self.intrinsic.state_dict(),
            "optimizer": optimizer_to_arrays(self.optimizer, self._curious),
            "updates": self.updates,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        weights_from_arrays(self.network, state["network"])
        stored_number(int(self.network.task_policy), "task_policy", 0, self.exploration.num_policies - 1)
        self.average.load_state_dict(state["average"])
        self.extrinsic.load_state_dict(state["extrinsic"])
        self.intrinsic.load_state_dict(state["intrinsic"])
        optimizer_from_arrays(self.optimizer, self._curious, state["optimizer"])
