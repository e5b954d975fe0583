"""The learner: one gradient step on a batch of segments for many goals (paper §5.2, Table 1; R2D2).

    L(θ) = mean over transitions of Σ_g w_g (Q_θ(s_t, a_t, g) − G_t(g))²

with targets G from `deep.returns` and goals from `deep.relabel`. Only the value of the action taken carries a gradient,
so with the bilinear join the pass that needs all actions (for the greedy one) runs without a graph, and the other is
one product [T·N, d] × [d, G]. Without goals this is R2D2. `agents.r2d2` calls `Learner.update`, on Ray `run.ray.learner`.
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
from protogoal.deep.bilinear import KeptWeights, factors_of_taken
from protogoal.deep.device import device_of, fetch, place
from protogoal.deep.network import QNetwork, weights_from_arrays, weights_to_arrays
from protogoal.deep.optimizer import Descent, rows_in_use
from protogoal.deep.product import affine
from protogoal.deep.relabel import BatchGoals, KnownGoals, relabel
from protogoal.deep.returns import h, multi_step_targets
from protogoal.deep.segments import Segments
from protogoal.deep.settings import LearnerSettings
from protogoal.goals.scale import TaskScale, legible
from protogoal.goals.stored import stored_array

CPU = torch.device("cpu")
Seed = int | np.random.SeedSequence


class Values(NamedTuple):
    """Q of the actions taken, with gradient, [T, N, G]; and without, of all actions in the states after, by both networks,
    [T, N, A, G].
    """

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
        self._target_psi = KeptWeights(target.psi, target.num_actions) if target.settings.join == "bilinear" else None
        self.optimizer = Descent(network.parameters(), settings.learning_rate, settings.adam_epsilon, settings.weight_decay)
        self.average = AverageWeights(network, settings.average_decay)
        self.rng = np.random.default_rng(seed)
        self._generation = np.zeros(0, np.int32)  # of the slots, as last learned
        self.updates = 0
        self.scale = TaskScale()

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
        self.scale.see(batch.reward, batch.best)
        scale = self.scale.value
        return batch if scale == 1.0 else replace(batch, reward=batch.reward / np.float32(scale))

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
        self._look_at_rows()
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

    def _look_at_rows(self) -> None:
        self.optimizer.rows = rows_in_use((table for table, _ in self.network.goal_tables()), self._generation)
        self.average.look_at(self.optimizer.rows)

    def values(self, batch: Segments, goals: BatchGoals) -> Values:
        """What both networks say of a batch."""
        action = place(batch.action[self.burn_in :].astype(np.int64), self.device)  # [T, N]
        members = place(goals.slots, self.device)
        inputs = unroll_inputs(batch, self.device)
        z = _unroll_after(self.network, inputs, self.burn_in)  # [T+1, N, H]
        taken, online = self._values(z, action, members)
        with torch.no_grad():
            skip = self.burn_in + (self.target.core is None)  # a state is its observation: the first is not asked for
            z_target = _unroll_after(self.target, inputs, skip)[-len(action) :]
            weights = self._target_psi() if self._target_psi else None
            return Values(taken, online, all_values(self.target, z_target, members, weights))

    def descend(self, batch: Segments, goals: BatchGoals, values: Values, q_greedy: Tensor) -> dict[str, float]:
        """One gradient step; `q_greedy` [T, N, A, G] says which action the target policy takes."""
        learned = batch.last(batch.steps - self.burn_in)
        targets = self._targets(learned, goals, q_greedy, values.target)
        is_valid = learned.is_valid
        share = is_valid * learned.weight * np.float32(2.0 / max(1, int(is_valid.sum())))
        error = values.taken.detach() - targets
        slope = (place(goals.weight, self.device) * error).mul_(place(share, self.device).unsqueeze(-1))  # [T, N, G], dL/dQ
        loss = 0.5 * torch.dot(slope.flatten(), error.flatten())
        extra = self.extra_loss(learned)
        figure = finite(loss + sum(extra.values()) if extra else loss, self.updates)
        self.optimizer.forget()
        torch.autograd.backward([values.taken, *extra.values()], [slope, *(None for _ in extra)])
        norm = self.optimizer.descend(self.settings.max_gradient_norm)
        self.updates += 1
        if self.updates % self.settings.target_period == 0:
            self.target.load_state_dict(self.network.state_dict())
        figures = {name: float(value.detach()) for name, value in extra.items()}
        return {"loss": figure, "gradient_norm": norm, "goals_learned": goals.weight.shape[1]} | figures

    def _values(self, z: Tensor, action: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
        """Q of the actions taken, with gradient, [T, N, G]; and of all actions in the states after them, without, [T, N, A, G]."""
        network = self.network
        steps, n = action.shape
        if network.settings.join == "bilinear":
            weights = network.psi.weight, network.psi.bias, network.num_actions
            taken, psi = factors_of_taken(z.flatten(0, 1), action.flatten(), *weights)
            phi = network.goal_factors(members)  # [G, d] or [N, K, d]
            with torch.no_grad():
                online = join(psi.view(steps + 1, n, network.num_actions, -1)[1:], phi)
            return join(taken.view(steps, n, 1, -1), phi).squeeze(2), online
        q = all_values(network, z, members)
        chosen = action.view(steps, n, 1, 1).expand(-1, -1, 1, q.shape[-1])
        return q[:-1].gather(2, chosen).squeeze(2), q[1:].detach()

    def _targets(self, batch: Segments, goals: BatchGoals, q_greedy: Tensor, q_target: Tensor) -> Tensor:
        """G [T, N, G], by the compiled kernels on the CPU, elsewhere in torch."""
        s = self.settings
        if self.device.type == "cpu":
            made = multi_step_targets(s.returns, goals.reward, goals.discount, batch.action, batch.is_valid, q_greedy.numpy(),
                                      q_target.numpy(), s.trace_lambda, s.n_steps, is_squashed=s.value_transform == "h")
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
            "scale": self.scale.state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        weights_from_arrays(self.network, state["network"])
        weights_from_arrays(self.target, state["target"])
        self.average.load_state_dict(state["average"])
        optimizer_from_arrays(self.optimizer, self.network.parameters(), state["optimizer"])
        self.rng.bit_generator.state = state["rng"]
        self._generation = np.array(state["generation"], np.int32)
        self._look_at_rows()
        self.updates = int(state["updates"])
        self.scale.load(state["scale"])


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


def join(psi: Tensor, phi: Tensor) -> Tensor:
    """ψ·φ of states' factors [T, N, A, d] and goals' [G, d], or each segment's own [N, K, d] → contiguous [T, N, A, G or K]."""
    if phi.ndim == 2:
        return affine(psi, phi)
    steps, n, num_actions, rank = psi.shape
    rows = psi.transpose(0, 1).reshape(n, steps * num_actions, rank)
    return (rows @ phi.transpose(1, 2)).view(n, steps, num_actions, -1).transpose(0, 1).contiguous()


def all_values(network: QNetwork, z: Tensor, members: Tensor, weights: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Q(s, ·, g) for states z [T, N, H] and goals [G, L], or each segment's own [N, K, L] → contiguous [T, N, A, G or K].

    weights: of the bilinear join, where they are at hand (`QNetwork.state_factors`).
    """
    if network.settings.join == "bilinear":
        return join(network.state_factors(z, weights), network.goal_factors(members))
    steps, n, width = z.shape
    each = members.expand(steps, n, *members.shape[-2:]).flatten(0, 1)  # [T·N, K, L]
    q = network.q_each(z.reshape(-1, width), each).view(steps, n, members.shape[-2], network.num_actions)
    return q.transpose(2, 3).contiguous()


def unroll_inputs(batch: Segments, device: torch.device = CPU) -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor, Tensor]:
    """A batch as `QNetwork.unroll` takes it."""
    previous_action = np.concatenate([batch.previous_action[None], batch.action])  # [T+1, N]
    previous_reward = legible(np.concatenate([batch.previous_reward[None], batch.reward]))
    observation = {name: place(array, device) for name, array in batch.observation.items()}
    rest = (previous_action, previous_reward, batch.is_first, batch.core)
    action, reward, is_first, core = (place(array, device) for array in rest)
    return observation, action, reward, is_first, core


def _unroll_after(network: QNetwork, inputs: tuple[Any, ...], burn_in: int) -> Tensor:
    """z [T+1, N, H] after the burn-in, which warms up the core and carries no gradient."""
    observation, action, reward, is_first, core = inputs
    if burn_in and network.core is not None:
        with torch.no_grad():
            before = {name: array[:burn_in] for name, array in observation.items()}
            _, core = network.unroll(before, action[:burn_in], reward[:burn_in], is_first[:burn_in], core)
    after = {name: array[burn_in:] for name, array in observation.items()}
    z: Tensor = network.unroll(after, action[burn_in:], reward[burn_in:], is_first[burn_in:], core)[0]
    return z

