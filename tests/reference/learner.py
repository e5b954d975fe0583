"""One update as it was computed before it was made fast; for the bilinear join, goals shared by all segments, Retrace.

BLAS through `nn.Linear`, `nn.EmbeddingBag`, `nn.LSTMCell` a step at a time, dueling in every state, a graph through all actions,
both networks in all T + 1 states, torch's optimiser, attained goals found by numpy's search. `benchmarks/learner.py` measures
against it.
"""

import numba as nb
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from protogoal.deep.average import AverageWeights
from protogoal.deep.learn import unroll_inputs
from protogoal.deep.network import ActiveTorso, GoalBranch, GoalFactors, QNetwork
from protogoal.deep.product import Affine
from protogoal.deep.relabel import BatchGoals, shared_goals


class PlainTorso(ActiveTorso):
    def forward(self, active):
        ids = torch.where(active < 0, self.embedding.padding_idx, active.long())
        return F.relu(self.norm(self.embedding(ids) + self.bias))


class PlainBranch(GoalBranch):
    def forward(self, members):
        ids = torch.where(members < 0, self.embedding.padding_idx, members.long())
        bag = self.embedding(ids.reshape(-1, ids.shape[-1])) + self.bias
        return F.relu(bag).view(*ids.shape[:-1], -1)


class PlainFactors(GoalFactors):
    def forward(self, members):
        size = (members >= 0).sum(1)
        ids = torch.where(members < 0, self.free.padding_idx, members.long())
        ids[:, 0] = torch.where(size == 0, self.task, ids[:, 0])
        factors = self.free(ids)
        together = torch.nonzero(size > 1).squeeze(1)
        if len(together):
            joined = self.mix(self.branch(members[together])) / self.mix.in_features**0.5
            factors = factors.index_add(0, together, joined)
        return factors


class PlainNetwork(QNetwork):
    def unroll(self, observation, previous_action, previous_reward, is_first, core):
        steps, batch = is_first.shape
        parts = [torso(observation[name].flatten(0, 1)) for name, torso in self.torsos.items()]
        x = self.layers(torch.cat(parts, 1) if len(parts) > 1 else parts[0])
        if self.core is None:
            return x.view(steps, batch, -1), core
        goes_on = (~is_first).to(x.dtype).unsqueeze(-1)
        taken = F.one_hot(previous_action.long(), self.num_actions) * goes_on
        x = torch.cat([x.view(steps, batch, -1), taken, previous_reward.unsqueeze(-1) * goes_on], -1)
        outputs = []
        hidden, cell = core.to(x.dtype).unbind(1)
        for t in range(steps):
            hidden, cell = self.core(x[t], (hidden * goes_on[t], cell * goes_on[t]))
            outputs.append(hidden)
        return torch.stack(outputs), torch.stack([hidden, cell], 1)

    def state_factors(self, z):
        streams = self.psi(z).view(*z.shape[:-1], self.num_actions + 1, self.settings.rank)
        advantage = streams[..., :-1, :]
        return streams[..., -1:, :] + advantage - advantage.mean(-2, keepdim=True)


PLAIN = {Affine: nn.Linear, ActiveTorso: PlainTorso, GoalBranch: PlainBranch, GoalFactors: PlainFactors, QNetwork: PlainNetwork}


def plain(network):
    """The same network, computed plainly from now on."""
    for module in network.modules():
        module.__class__ = PLAIN.get(type(module), type(module))
    return network


class PlainLearner:
    """A `Learner` of the plain networks."""

    def __init__(self, network, target, settings, seed, burn_in=0):
        self.network, self.target, self.settings, self.burn_in = plain(network), plain(target), settings, burn_in
        target.load_state_dict(network.state_dict())
        target.requires_grad_(False)
        self.optimizer = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, eps=settings.adam_epsilon,
                                           weight_decay=settings.weight_decay, fused=True)
        self.average = AverageWeights(network, settings.average_decay)
        self.rng = np.random.default_rng(seed)
        self.updates = 0

    def update(self, batch, known):
        s = self.settings
        learned = batch.last(batch.steps - self.burn_in)
        goals = relabelled(learned, known, s, self.rng)
        action = torch.from_numpy(learned.action.astype(np.int64))
        members, inputs = torch.from_numpy(goals.slots), unroll_inputs(batch)
        psi, phi = self.network.state_factors(self._features(self.network, inputs)), self.network.goal_factors(members)
        flat = torch.arange(action.numel()) * self.network.num_actions + action.flatten()
        q_taken = psi.flatten(0, 2)[flat].view(*action.shape, -1) @ phi.T
        q_online = psi.detach() @ phi.detach().T  # [T+1, N, A, G]
        with torch.no_grad():
            q_target = self.target.state_factors(self._features(self.target, inputs)) @ self.target.goal_factors(members).T
        targets = np.empty(goals.reward.shape, q_target.numpy().dtype)
        retrace(goals.reward, goals.discount, learned.action, learned.is_valid, q_online.numpy(), q_target.numpy(), s.trace_lambda,
                targets)
        if s.clip_goal_values:
            np.clip(targets[..., 1:], 0.0, 1.0, out=targets[..., 1:])
        weight = torch.from_numpy(goals.weight) * torch.from_numpy(learned.is_valid * learned.weight).unsqueeze(-1)
        error = q_taken - torch.from_numpy(targets)
        loss = (weight * error * error).sum() / max(1, int(learned.is_valid.sum()))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if s.max_gradient_norm > 0:
            torch.nn.utils.clip_grad_norm_(list(self.network.parameters()), s.max_gradient_norm)
        self.optimizer.step()
        self.updates += 1
        if self.updates % s.target_period == 0:
            self.target.load_state_dict(self.network.state_dict())
        self.average.update()
        return {"loss": loss.item(), "goals_learned": goals.weight.shape[1]}

    def _features(self, network, inputs):
        observation, action, reward, is_first, core = inputs
        skip = self.burn_in
        if skip and network.core is not None:
            with torch.no_grad():
                before = {name: array[:skip] for name, array in observation.items()}
                core = network.unroll(before, action[:skip], reward[:skip], is_first[:skip], core)[1]
        after = {name: array[skip:] for name, array in observation.items()}
        return network.unroll(after, action[skip:], reward[skip:], is_first[skip:], core)[0]


def relabelled(batch, known, settings, rng):
    """The task and all known goals."""
    rows = shared_goals(known, settings, rng)
    attained = attained_in(batch.active.reshape(-1, batch.active.shape[-1]), known.members[rows])
    attained = attained.reshape(batch.steps, batch.size, len(rows))
    goes_on = (~batch.terminated).astype(np.float32)[..., None]
    reward = np.concatenate([batch.reward[..., None], attained], -1, dtype=np.float32)
    discount = np.empty_like(reward)
    discount[..., :1] = settings.task_discount * goes_on
    np.multiply(settings.goal_discount * goes_on, ~attained, out=discount[..., 1:])
    weight = np.full(1 + len(rows), 1.0 / max(1, len(rows)), np.float32)
    weight[0] = settings.task_weight
    slots = np.concatenate([np.full((1, known.slots.shape[1]), -1, np.int32), known.slots[rows]])
    return BatchGoals(slots, reward, discount, np.tile(weight, (batch.size, 1)))


def attained_in(active, members):
    result = np.ones((len(active), len(members)), np.bool_)
    for column in members.T:
        some = np.flatnonzero(column >= 0)
        order = some[np.argsort(column[some], kind="stable")]
        if len(order) == 0:
            continue
        first, last = (np.searchsorted(column[order], active, side=side) for side in ("left", "right"))
        on = np.zeros((len(active), len(members)), np.bool_)
        switch_on(first, last, order, on)
        on[:, column < 0] = True
        result &= on
    return result


@nb.njit(cache=True)
def switch_on(first, last, order, on):
    for t in range(first.shape[0]):
        for l in range(first.shape[1]):
            for place in range(first[t, l], last[t, l]):
                on[t, order[place]] = True


@nb.njit(nogil=True, error_model="numpy")
def retrace(reward, discount, action, is_valid, q_online, q_target, trace_lambda, out):
    """Targets [T, N, G] from values of all T + 1 states, goal by goal."""
    steps, batch, goals = reward.shape
    for n in range(batch):
        for t in range(steps - 1, -1, -1):
            for g in range(goals):
                best = 0
                for a in range(1, q_online.shape[2]):
                    best = a if q_online[t + 1, n, a, g] > q_online[t + 1, n, best, g] else best
                value = q_target[t + 1, n, best, g]
                if t + 1 < steps and is_valid[t + 1, n] and best == action[t + 1, n]:
                    value += np.float32(trace_lambda) * (out[t + 1, n, g] - q_target[t + 1, n, best, g])
                out[t, n, g] = reward[t, n, g] + discount[t, n, g] * value
