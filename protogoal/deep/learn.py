"""The learner: one gradient step on a batch of segments for many goals (paper §5.2, Table 1; R2D2).

    L(θ) = mean over transitions of Σ_g w_g (Q_θ(s_t, a_t, g) − G_t(g))²

with targets G from `deep.returns` and goals from `deep.relabel`. Only the value of the action taken carries a gradient,
so with the bilinear join the pass that needs all actions (for the greedy one) runs without a graph, and the other is
one product [T·N, d] × [d, G]. Without goals this is R2D2. `run.local` calls `Learner.update` in its loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protogoal.deep import returns_torch
from protogoal.deep.average import AverageWeights
from protogoal.deep.device import device_of, fetch, place
from protogoal.deep.network import QNetwork, weights_from_arrays, weights_to_arrays
from protogoal.deep.relabel import BatchGoals, KnownGoals, relabel
from protogoal.deep.returns import h, h_inverse, multi_step_targets
from protogoal.deep.scale import largest, legible
from protogoal.deep.segments import Segments
from protogoal.deep.settings import LearnerSettings
from protogoal.goals.stored import stored_array

CPU = torch.device("cpu")
Seed = int | np.random.SeedSequence


class Values(NamedTuple):
    """Q of the actions taken, with gradient, [T, N, G]; and of all actions by both networks, without, [T+1, N, A, G]."""

    taken: Tensor
    online: Tensor
    target: Tensor


class Learner:
    """Online and target network, the mean that is played with, optimiser, and the number of updates made."""

    def __init__(self, network: QNetwork, target: QNetwork, settings: LearnerSettings, seed: Seed, burn_in: int = 0):
        self.network, self.target, self.settings, self.burn_in = network, target, settings, burn_in
        self.device = device_of(network)
        self.target.load_state_dict(network.state_dict())
        self.target.requires_grad_(False)
        self._weights = list(network.parameters())
        self.optimizer = torch.optim.AdamW(
            self._weights,
            lr=settings.learning_rate,
            eps=settings.adam_epsilon,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.average = AverageWeights(network, settings.average_decay)
        self.rng = np.random.default_rng(seed)
        self._generation = np.zeros(0, np.int32)  # of the slots, as last learned
        self.updates = 0
        self.scale = 1.0  # of the task's returns, see `deep.scale`

    def update(self, batch: Segments, known: KnownGoals) -> dict[str, float]:
        """One step on a batch, for the goals that `relabel` chooses among the known; returns figures for the log."""
        self._renew(known.generation)
        goals = relabel(self.paid(batch), known, self.settings, self.rng, self.burn_in)
        values = self.values(batch, goals)
        figures = self.descend(batch, goals, values, values.online)
        self.average.update()
        return figures

    def paid(self, batch: Segments) -> Segments:
        """A batch with the rewards that are learned: the task's, divided by the size of its returns."""
        self.scale = max(self.scale, largest(batch.reward, batch.scale))
        return batch if self.scale == 1.0 else replace(batch, reward=batch.reward / np.float32(self.scale))

    def extra_loss(self, batch: Segments) -> dict[str, Tensor]:
        """What else is learned from a batch (after the burn-in) in the same step, by name."""
        return {}

    @torch.no_grad()
    def _renew(self, generation: NDArray[np.int32]) -> None:
        """Rows that belong to another bit than before begin anew, in all networks and in what the optimiser remembers."""
        if len(generation) != len(self._generation):
            self._generation = np.zeros(len(generation), np.int32)
        rows = np.flatnonzero(generation != self._generation)
        if len(rows) == 0:
            return
        self._generation = generation.copy()
        places = place(rows, self.device)
        networks = [self.network, self.target, *([self.average.network] if self.average.decay else [])]
        for tables in zip(*(network.goal_tables() for network in networks), strict=True):
            newest, std = tables[0]
            fresh = place(self.rng.standard_normal((len(rows), newest.shape[1]), np.float32) * np.float32(std), self.device)
            for table, _ in tables:
                table[places] = fresh
            for name, moment in self.optimizer.state.get(newest, {}).items():
                if name != "step":
                    moment[places] = 0.0

    def values(self, batch: Segments, goals: BatchGoals) -> Values:
        """What both networks say of a batch."""
        action = place(batch.action[self.burn_in :].astype(np.int64), self.device)  # [T, N]
        z, z_target = self._features(batch)  # [T+1, N, H]
        taken, online = self._values(z, action, goals)
        with torch.no_grad():
            return Values(taken, online, all_values(self.target, z_target, goals))

    def descend(self, batch: Segments, goals: BatchGoals, values: Values, q_greedy: Tensor) -> dict[str, float]:
        """One gradient step; `q_greedy` [T+1, N, A, G] says which action the target policy takes."""
        learned = batch.last(batch.steps - self.burn_in)
        targets = self._targets(learned, goals, q_greedy, values.target)
        counts_for = place(learned.is_valid * learned.weight, self.device).unsqueeze(-1)  # [T, N, 1]
        weight = place(goals.weight, self.device) * counts_for  # [T, N, G]
        error = values.taken - targets
        loss = (weight * error * error).sum() / max(1, int(learned.is_valid.sum()))
        extra = self.extra_loss(learned)
        loss = loss + sum(extra.values()) if extra else loss
        figure = finite(loss, self.updates)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = 0.0
        if self.settings.max_gradient_norm > 0:
            limit = self.settings.max_gradient_norm
            norm = float(torch.nn.utils.clip_grad_norm_(self._weights, limit))
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.settings.target_period == 0:
            self.target.load_state_dict(self.network.state_dict())
        figures = {name: float(value.detach()) for name, value in extra.items()}
        return {"loss": figure, "gradient_norm": norm, "goals_learned": goals.weight.shape[1]} | figures

    def _features(self, batch: Segments) -> tuple[Tensor, Tensor]:
        """z [T+1, N, H] of both networks, after the burn-in, which warms up the core and carries no gradient."""
        inputs = unroll_inputs(batch, self.device)
        z = _unroll_after_burn_in(self.network, inputs, self.burn_in)
        with torch.no_grad():
            z_target = _unroll_after_burn_in(self.target, inputs, self.burn_in)
        return z, z_target

    def _values(self, z: Tensor, action: Tensor, goals: BatchGoals) -> tuple[Tensor, Tensor]:
        """Q of the actions taken, with gradient, [T, N, G]; and of all actions without, [T+1, N, A, G]."""
        network = self.network
        steps, n = action.shape
        if network.settings.join == "bilinear":
            members = place(goals.slots, self.device)
            psi, phi = network.state_factors(z), network.goal_factors(members)  # [T+1, N, A, d], [G, d] or [N, K, d]
            psi_taken = psi.flatten(0, 2)[_flat_action(action, network.num_actions)].view(steps, n, -1)
            if goals.is_shared:
                return psi_taken @ phi.T, psi.detach() @ phi.detach().T
            q_taken = torch.einsum("tnd,nkd->tnk", psi_taken, phi)
            return q_taken, torch.einsum("tnad,nkd->tnak", psi.detach(), phi.detach()).contiguous()
        q = all_values(network, z, goals)
        chosen = action.view(steps, n, 1, 1).expand(-1, -1, 1, q.shape[-1])
        return q[:-1].gather(2, chosen).squeeze(2), q.detach()

    def _targets(self, batch: Segments, goals: BatchGoals, q_greedy: Tensor, q_target: Tensor) -> Tensor:
        """G [T, N, G], by the compiled kernels on the CPU, elsewhere in torch."""
        s = self.settings
        if self.device.type == "cpu":
            values = h_inverse(q_target.numpy()) if s.value_transform == "h" else q_target.numpy()
            made = multi_step_targets(s.returns, goals.reward, goals.discount, batch.action, batch.is_valid, q_greedy.numpy(),
                                      values, s.trace_lambda, s.n_steps)
            if s.clip_goal_values:
                np.clip(made[..., 1:], 0.0, 1.0, out=made[..., 1:])
            return torch.from_numpy(h(made) if s.value_transform == "h" else made)
        # h is monotone: the greedy action is the same before and after
        value = returns_torch.h_inverse(q_target) if s.value_transform == "h" else q_target
        arrays = (goals.reward, goals.discount, batch.action.astype(np.int64), batch.is_valid)
        reward, discount, action, is_valid = (place(array, self.device) for array in arrays)
        targets = returns_torch.multi_step_targets(s.returns, reward, discount, action, is_valid, q_greedy, value, s.trace_lambda,
                                                   s.n_steps)
        if s.clip_goal_values:
            targets[..., 1:].clamp_(0.0, 1.0)
        return returns_torch.h(targets) if s.value_transform == "h" else targets

    def state_dict(self) -> dict[str, Any]:
        """Weights, target weights, optimiser, generator and count, as plain arrays and JSON-able values."""
        return {
            "network": weights_to_arrays(self.network),
            "target": weights_to_arrays(self.target),
            "average": self.average.state_dict(),
            "optimizer": optimizer_to_arrays(self.optimizer, self.network.parameters()),
            "rng": self.rng.bit_generator.state,
            "generation": self._generation.copy(),
            "updates": self.updates,
            "scale": self.scale,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        weights_from_arrays(self.network, state["network"])
        weights_from_arrays(self.target, state["target"])
        self.average.load_state_dict(state["average"])
        optimizer_from_arrays(self.optimizer, self.network.parameters(), state["optimizer"])
        self.rng.bit_generator.state = state["rng"]
        self._generation = np.array(state["generation"], np.int32)
        self.updates = int(state["updates"])
        self.scale = max(1.0, float(stored_array(state["scale"], "scale", (), "f")))


def finite(loss: Tensor, updates: int) -> float:
    """The loss as a number; a ValueError where training has diverged, before it spoils a weight."""
    figure = float(loss.detach())
    if not np.isfinite(figure):
        raise ValueError(f"the loss of update {updates + 1:,} is {figure}: training has diverged; the last checkpoint stands "
                         "(smaller learning rates or rewards may help)")
    return figure


def optimizer_to_arrays(optimizer: torch.optim.Optimizer, parameters: Iterable[Tensor]) -> list[dict[str, Any]]:
    """What an optimiser remembers of each parameter."""
    return [{name: fetch(value).copy() for name, value in optimizer.state.get(p, {}).items()} for p in parameters]


def optimizer_from_arrays(
    optimizer: torch.optim.Optimizer, parameters: Iterable[Tensor], moments: Sequence[Mapping[str, Any]]
) -> None:
    """Take back what `optimizer_to_arrays` gave."""
    for parameter, moment in zip(parameters, moments, strict=True):
        for name, value in moment.items():
            stored_array(value, f"optimizer {name}", () if name == "step" else tuple(parameter.shape), "f")
        optimizer.state[parameter] = {name: place(np.array(value), parameter.device).view(value.shape) for name, value
                                      in moment.items()}


def all_values(network: QNetwork, z: Tensor, goals: BatchGoals) -> Tensor:
    """Q(s, ·, g) for states z [T+1, N, H] and a batch's goals → contiguous [T+1, N, A, G]."""
    members = place(goals.slots, z.device)
    states, n, width = z.shape
    if goals.is_shared:
        return network.q_all(z.reshape(-1, width), members).view(states, n, network.num_actions, -1).contiguous()
    if network.settings.join == "bilinear":
        q = torch.einsum("tnad,nkd->tnak", network.state_factors(z), network.goal_factors(members))
        return q.contiguous()
    each = members.expand(states, *members.shape).flatten(0, 1)  # [T+1·N, K, L]
    q = network.q_each(z.reshape(-1, width), each).view(states, n, members.shape[1], network.num_actions)
    return q.transpose(2, 3).contiguous()


def unroll_inputs(batch: Segments, device: torch.device = CPU) -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor, Tensor]:
    """A batch as `QNetwork.unroll` takes it."""
    previous_action = np.concatenate([batch.previous_action[None], batch.action])  # [T+1, N]
    previous_reward = legible(np.concatenate([batch.previous_reward[None], batch.reward]))
    observation = {name: place(array, device) for name, array in batch.observation.items()}
    rest = (previous_action, previous_reward, batch.is_first, batch.core)
    action, reward, is_first, core = (place(array, device) for array in rest)
    return observation, action, reward, is_first, core


def _unroll_after_burn_in(network: QNetwork, inputs: tuple[Any, ...], burn_in: int) -> Tensor:
    observation, action, reward, is_first, core = inputs
    if burn_in and network.core is not None:
        with torch.no_grad():
            before = {name: array[:burn_in] for name, array in observation.items()}
            _, core = network.unroll(before, action[:burn_in], reward[:burn_in], is_first[:burn_in], core)
    after = {name: array[burn_in:] for name, array in observation.items()}
    z, _ = network.unroll(after, action[burn_in:], reward[burn_in:], is_first[burn_in:], core)
    return z


def _flat_action(action: Tensor, num_actions: int) -> Tensor:
    """Rows of [T+1 · N · A] that hold the actions taken in the first T states, [T·N]."""
    flat = action.flatten()
    return torch.arange(len(flat), device=action.device) * num_actions + flat
