"""Q_θ(s, a, g), the goal-conditioned value network (paper §5 and Appendix C, "UVFA architecture").

    observation → torso(s) → [core] → z(s) ─┐
                                            ├─ join → Q(s, ·, g)
    goal's bits ───────────────────→ e(g) ──┘

The goal joins after the core: a recurrent state then never depends on the goal, and stays valid when a segment is
relabelled. The `bilinear` join is Q(s, a, g) = ψ(s, a)·φ(g) with ψ dueling, so that the values of every goal in
every state are one matrix product; `concat` is an MLP on [z, e], which costs one pass a goal. A goal is the list of its
bits' slots (`goals.slots`), padded with -1 (a multi-hot vector in sparse form); the empty list is **0**, the task.
`deep.act` and `deep.learn` call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from protogoal.deep import lstm
from protogoal.deep.bag import sum_of_rows
from protogoal.deep.bilinear import dueling, dueling_weights
from protogoal.deep.device import device_of, fetch
from protogoal.deep.norm import dense, dense_of_ids
from protogoal.deep.product import Affine, affine
from protogoal.deep.settings import NetworkSettings
from protogoal.envs.vector import ArraySpec

LARGE_GRID = 512  # cells, from which on a convolution over a grid has stride 2
FREE_STD, BRANCH_STD = 0.05, 0.5  # of the first weights of a goal's own vectors

Network = TypeVar("Network", bound=nn.Module)

CoreState = Tensor
"""Hidden and cell state of the core, [N, 2, H]; [N, 0, 0] without one."""


class ActiveTorso(nn.Module):
    """Ids of what is on in a long binary vector, [M, L] padded with -1 → [M, H]: a linear layer that reads only the ones."""

    def __init__(self, spec: ArraySpec, settings: NetworkSettings):
        super().__init__()
        self.embedding = nn.EmbeddingBag(spec.num_values + 1, settings.hidden, mode="sum", padding_idx=spec.num_values)
        self.bias = nn.Parameter(torch.zeros(settings.hidden))
        self.norm = nn.LayerNorm(settings.hidden)
        nn.init.normal_(self.embedding.weight, std=spec.shape[0] ** -0.5)
        self.size = settings.hidden

    def forward(self, active: Tensor) -> Tensor:
        return dense_of_ids(active.contiguous(), self.embedding.weight, self.bias, self.norm)


class VectorTorso(nn.Module):
    """Numbers [M, D] → [M, H]."""

    def __init__(self, spec: ArraySpec, settings: NetworkSettings):
        super().__init__()
        self.linear = Affine(spec.shape[0], settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden)
        self.size = settings.hidden

    def forward(self, vector: Tensor) -> Tensor:
        return dense(vector.float(), self.linear, self.norm)


class BytesTorso(nn.Module):
    """Bytes [M, D] → [M, H]: each as its eight bits, which tell values apart, and as a number, which tells near from far."""

    def __init__(self, spec: ArraySpec, settings: NetworkSettings):
        super().__init__()
        self.linear = nn.Linear(9 * spec.shape[0], settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden)
        self.size = settings.hidden

    def forward(self, values: Tensor) -> Tensor:
        number = values.int().unsqueeze(-1)  # [M, D, 1]
        bits = (number >> torch.arange(8, device=values.device)) & 1
        read = torch.cat([bits.float(), number / 255.0], -1).flatten(1)  # [M, 9·D]
        return dense(read, self.linear, self.norm)


class ConvolutionTorso(nn.Module):
    """Planes [M, C, H, W], or characters [M, H, W] and grids [M, C, H, W] which are embedded to planes → [M, hidden].

    The channels of a grid have ids of their own; a cell is the sum of their embeddings. Large grids are halved on the way.
    """

    def __init__(self, spec: ArraySpec, settings: NetworkSettings):
        super().__init__()
        self.embedding: nn.Embedding | None = None
        self.is_summed = spec.kind == "grid"
        planes, height, width = spec.shape[0], spec.shape[-2], spec.shape[-1]
        if spec.kind in ("characters", "grid"):
            planes = settings.character_dim
            self.embedding = nn.Embedding(spec.num_values, planes)
        layers: list[nn.Module] = []
        for channels in settings.channels:
            stride = 2 if spec.kind == "grid" and height * width > LARGE_GRID else 1
            layers += [nn.Conv2d(planes, channels, 3, stride=stride, padding=1), nn.ReLU()]
            planes, height, width = channels, -(-height // stride), -(-width // stride)
        self.convolutions = nn.Sequential(*layers)
        self.linear = Affine(planes * height * width, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden)
        self.size = settings.hidden

    def forward(self, grid: Tensor) -> Tensor:
        planes = grid.float() if self.embedding is None else self._embedded(grid)
        return dense(self.convolutions(planes).flatten(1), self.linear, self.norm)

    def _embedded(self, grid: Tensor) -> Tensor:
        assert self.embedding is not None
        if self.is_summed:
            return self.embedding(grid.long()).sum(1).permute(0, 3, 1, 2)  # [M, C, H, W, E] → [M, E, H, W]
        embedded: Tensor = self.embedding(grid.long()).permute(0, 3, 1, 2)
        return embedded


class PictureTorso(nn.Module):
    """Pictures [M, C, H, W] of bytes → [M, H]: a convolution of 8×8 with stride 4, then 4×4 with stride 2.

    There is one for each of `channels`, and one more. With stride 2 the first would take most of the time.
    """

    def __init__(self, spec: ArraySpec, settings: NetworkSettings):
        super().__init__()
        planes, height, width = spec.shape
        layers: list[nn.Module] = []
        for channels in (*settings.channels, *settings.channels[-1:]):
            if min(height, width) < 4:
                break
            stride = 2 if layers else 4
            layers += [nn.Conv2d(planes, channels, 2 * stride, stride, padding=stride // 2), nn.ReLU()]
            planes, height, width = channels, height // stride, width // stride
        self.convolutions = nn.Sequential(*layers)
        self.linear = nn.Linear(planes * height * width, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden)
        self.size = settings.hidden

    def forward(self, picture: Tensor) -> Tensor:
        return dense(self.convolutions(picture.float() / 255.0).flatten(1), self.linear, self.norm)


TORSOS = {
    "active": ActiveTorso,
    "vector": VectorTorso,
    "bytes": BytesTorso,
    "planes": ConvolutionTorso,
    "characters": ConvolutionTorso,
    "grid": ConvolutionTorso,
    "picture": PictureTorso,
}


def make_torsos(observation_spec: dict[str, ArraySpec], settings: NetworkSettings) -> nn.ModuleDict:
    """A torso for each part of an observation."""
    return nn.ModuleDict({module_name(name): TORSOS[spec.kind](spec, settings) for name, spec in observation_spec.items()})


def module_name(part: str) -> str:
    """The name of a part's torso: its own, but for names that torch keeps for itself (a dot, "keys", "type")."""
    name = part.replace(".", "·")
    return f"{name}_" if hasattr(nn.ModuleDict, name) or not name else name


class GoalBranch(nn.Module):
    """A goal's bits [..., L] padded with -1 → e(g) [..., goal_hidden]; no bits, the task, has its own value too."""

    def __init__(self, num_bits: int, settings: NetworkSettings):
        super().__init__()
        self.embedding = nn.EmbeddingBag(num_bits + 1, settings.goal_hidden, mode="sum", padding_idx=num_bits)
        self.bias = nn.Parameter(torch.zeros(settings.goal_hidden))
        nn.init.normal_(self.embedding.weight, std=BRANCH_STD)
        with torch.no_grad():
            self.embedding.weight[num_bits] = 0.0

    def forward(self, members: Tensor) -> Tensor:
        bag = sum_of_rows(members.reshape(-1, members.shape[-1]), self.embedding.weight) + self.bias
        return F.relu(bag).view(*members.shape[:-1], bag.shape[1])


class GoalFactors(nn.Module):
    """φ(g) [..., d] of the bilinear join, for goals [..., L].

    # DEVIATION(D14): the paper gives the goal its own CNN or MLP. Here a single bit has a free vector, and so has the task;
    # only a conjunction goes through an MLP, beside the mean of its bits' vectors. Fitted to the exact values of `medium`,
    # the error after 2,000 updates was 0.033 instead of 0.051 (one run each).
    """

    def __init__(self, num_bits: int, settings: NetworkSettings):
        super().__init__()
        self.task = num_bits + 1
        self.free = nn.EmbeddingBag(num_bits + 2, settings.rank, mode="mean", padding_idx=num_bits)
        self.branch = GoalBranch(num_bits, settings)
        self.mix = Affine(settings.goal_hidden, settings.rank)
        nn.init.normal_(self.free.weight, std=FREE_STD)

    def forward(self, members: Tensor) -> Tensor:
        rows = members.reshape(-1, members.shape[-1])
        if rows.shape[1] == 1:
            factors = sum_of_rows(torch.where(rows < 0, self.task, rows), self.free.weight)
        else:
            size = (rows >= 0).sum(1, keepdim=True)
            first = torch.where(size == 0, self.task, rows[:, :1])
            factors = sum_of_rows(torch.cat([first, rows[:, 1:]], 1), self.free.weight) / size.clamp(min=1)
            together = torch.nonzero(size.squeeze(1) > 1).squeeze(1)
            if len(together):
                joined = self.mix(self.branch(rows[together])) / self.mix.in_features**0.5
                factors = factors.index_add(0, together, joined)
        return factors.view(*members.shape[:-1], factors.shape[1])


class QNetwork(nn.Module):
    """Q_θ(s, a, g) for A actions and goals over B bits."""

    def __init__(
        self, observation_spec: dict[str, ArraySpec], num_actions: int, num_bits: int, settings: NetworkSettings
    ):
        super().__init__()
        if num_actions < 1:
            raise ValueError(f"the network needs at least one action; got {num_actions}")
        if not observation_spec:
            raise ValueError("the network needs an observation; observation_spec is empty")
        self.settings, self.num_actions = settings, num_actions
        self.torsos, self.parts = make_torsos(observation_spec, settings), tuple(observation_spec)
        width = settings.hidden * len(observation_spec)
        layers: list[nn.Module] = []
        for _ in range(settings.layers):
            layers += [Affine(width, settings.hidden), nn.LayerNorm(settings.hidden), nn.ReLU()]
            width = settings.hidden
        self.layers = nn.Sequential(*layers)
        self.core: nn.LSTMCell | None = None
        if settings.core == "lstm":
            self.core = nn.LSTMCell(width + num_actions + 1, settings.hidden)
            width = settings.hidden
        if settings.join == "bilinear":
            self.psi = Affine(width, (num_actions + 1) * settings.rank)
            self.phi = GoalFactors(num_bits, settings)
            nn.init.normal_(self.psi.weight, std=(width * settings.rank) ** -0.5)
        else:
            self.goal_branch = GoalBranch(num_bits, settings)
            self.mix = nn.Sequential(Affine(width + settings.goal_hidden, settings.hidden), nn.ReLU())
            self.head = Affine(settings.hidden, num_actions + 1)

    def goal_tables(self) -> list[tuple[Tensor, float]]:
        """Weights with a row for each slot, and the size of a fresh row's numbers."""
        if self.settings.join == "bilinear":
            return [(self.phi.free.weight, FREE_STD), (self.phi.branch.embedding.weight, BRANCH_STD)]
        return [(self.goal_branch.embedding.weight, BRANCH_STD)]

    @property
    def core_shape(self) -> tuple[int, int]:
        """Shape of one environment's core state."""
        return (2, self.settings.hidden) if self.core is not None else (0, 0)

    def initial_core(self, batch: int) -> CoreState:
        """The core's state at the start of an episode, [N, *core_shape]."""
        return torch.zeros(batch, *self.core_shape, device=device_of(self))

    def unroll(
        self,
        observation: dict[str, Tensor],
        previous_action: Tensor,
        previous_reward: Tensor,
        is_first: Tensor,
        core: CoreState,
    ) -> tuple[Tensor, CoreState]:
        """Features z [T, N, H] of T states of N environments, and the core's state after them.

        observation: name → [T, N, …]; previous_action, previous_reward, is_first [T, N]; core [N, 2, H]. Where a state
        is the first of an episode, the core starts afresh and there was no previous action or reward.
        """
        steps, batch = is_first.shape
        parts = [self.torsos[module_name(name)](observation[name].flatten(0, 1)) for name in self.parts]  # [T·N, hidden] each
        x = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
        layers: list[Any] = list(self.layers)
        for linear, norm in zip(layers[::3], layers[1::3], strict=True):  # the rectifier is part of `dense`
            x = dense(x, linear, norm)
        if self.core is None:
            return x.view(steps, batch, -1), core
        goes_on = (~is_first).to(x.dtype).unsqueeze(-1)  # [T, N, 1]
        taken = F.one_hot(previous_action.long(), self.num_actions) * goes_on
        x = torch.cat([x.view(steps, batch, -1), taken, previous_reward.unsqueeze(-1) * goes_on], -1)
        return lstm.unroll(self.core, x, goes_on, core.to(x.dtype))

    def state_factors(self, z: Tensor, weights: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """ψ(s, a) [..., A, d] of the bilinear join, dueling; `weights` are its `dueling_weights`, where they are at hand."""
        factors = affine(z, *(weights or dueling_weights(self.psi.weight, self.psi.bias, self.num_actions)))
        return factors.view(*z.shape[:-1], self.num_actions, self.settings.rank)

    def goal_factors(self, members: Tensor) -> Tensor:
        """φ(g) [..., d] of the bilinear join, for goals [..., L]."""
        factors: Tensor = self.phi(members)
        return factors

    def q_all(self, z: Tensor, members: Tensor) -> Tensor:
        """Q of every goal in every state: z [M, H], members [G, L] → [M, A, G]."""
        if self.settings.join == "bilinear":
            return affine(self.state_factors(z), self.goal_factors(members))
        return self.q_each(z, members.expand(len(z), *members.shape)).transpose(1, 2)

    def encode(self, members: Tensor) -> Tensor:
        """What the join reads of goals [..., L]: φ(g) or e(g), [..., d]."""
        return self.goal_factors(members) if self.settings.join == "bilinear" else self.goal_branch(members)

    def q_each(self, z: Tensor, members: Tensor) -> Tensor:
        """Q of each state's own goals: z [M, H], members [M, K, L] → [M, K, A]."""
        return self.q_of(z, self.encode(members))

    def q_of(self, z: Tensor, goals: Tensor) -> Tensor:
        """The same for goals that are encoded, [M, K, d]."""
        if self.settings.join == "bilinear":
            streams = self.psi(z).view(len(z), self.num_actions + 1, self.settings.rank)
            return dueling(goals @ streams.transpose(1, 2), -1)  # few goals: dueling is cheaper after the product
        state = z.unsqueeze(1).expand(-1, goals.shape[1], -1)
        return dueling(self.head(self.mix(torch.cat([state, goals], -1))), -1)


def make_network(
    observation_spec: dict[str, ArraySpec],
    num_actions: int,
    num_bits: int,
    settings: NetworkSettings,
    seed: np.random.SeedSequence,
) -> QNetwork:
    """A network whose first weights follow from the seed alone."""
    return seeded(int(seed.generate_state(1)[0]), lambda: QNetwork(observation_spec, num_actions, num_bits, settings))


def seeded(seed: int, make: Callable[[], Network]) -> Network:
    """What is made with torch's generator begun at the seed; it is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def weights_to_arrays(network: nn.Module) -> dict[str, NDArray[np.float32]]:
    """A copy of the weights as plain arrays, by name."""
    return {name: fetch(tensor).copy() for name, tensor in network.state_dict().items()}


def set_buffers(network: nn.Module, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Sets buffers of the network, by name."""
    for name, array in arrays.items():
        network.get_buffer(name).copy_(torch.from_numpy(np.asarray(array)))


def weights_from_arrays(network: nn.Module, arrays: Mapping[str, NDArray[np.float32]]) -> None:
    """Take back what `weights_to_arrays` gave; a ValueError names the first array that does not fit."""
    own = network.state_dict()
    if set(own) != set(arrays):
        name = sorted(set(own) ^ set(arrays))[0]
        raise ValueError(f"stored weights do not fit this network: {name} is on one side only")
    for name, tensor in own.items():
        if np.asarray(arrays[name]).dtype.kind not in "fiub":
            raise ValueError(f"stored weights {name} hold {arrays[name].dtype}; they must be numbers")
        if tuple(tensor.shape) != arrays[name].shape:
            raise ValueError(f"stored weights {name} have shape {arrays[name].shape}, this network {tuple(tensor.shape)}")
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
