"""Agent57's episodic memory: the k nearest of 5,000 states in each of 128 environments, against the networks' forward pass.

The reference is one forward pass for the same 128 environments, with the paper's settings and with ours: of the value networks
(Q_e and Q_i) alone, and of all that a step of acting needs (with the embedding and the two networks of distillation); and the
same search by a full matrix of distances in torch, and plainly in numpy (what is used where it cannot be compiled). A ratio
below 1 means that the search is cheaper. With ours an episode on Baba has at most 200 steps, so that a memory never holds more than
10 × 200 states; both sizes are measured. Search and passes take turns, and times are of the process, not of the clock: other
work does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from protogoal.agents.agent57.neighbours import Neighbours, plain_nearest
from protogoal.agents.agent57.split import SplitNetwork
from protogoal.config import DeepConfig
from protogoal.deep.act import read_states
from protogoal.deep.network import seeded
from protogoal.domains.domain import make_batch_env
from protogoal.envs.vector import PAD
from protogoal.presets import PRESETS, at_paper_scale

ENVS, MEMORIES, SIZE, NEIGHBOURS = 128, 5_000, 32, 10


def _milliseconds(repeats: int, *functions: Callable[[], Any]) -> list[float]:
    """The median of some calls of each, which take turns."""
    spent: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 1):  # the first warms up
        for function, times in zip(functions, spent, strict=True):
            start = time.process_time()
            function()
            if turn:
                times.append(time.process_time() - start)
    return [1e3 * float(np.median(times)) for times in spent]


def _passes(config: DeepConfig) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """One pass for all environments: of the value networks, and of all networks."""
    env, _ = make_batch_env(config.env, ENVS)
    network = seeded(0, lambda: SplitNetwork(env.observation_spec, env.num_actions, config))
    observation, _ = env.reset(seed=0)
    observation = {name: array.copy() for name, array in observation.items()}
    state = {name: torch.from_numpy(array) for name, array in observation.items()}
    if config.exploration.reads_intrinsic:
        observation["intrinsic_reward"] = np.zeros((ENVS, 1), np.float32)
    action, reward, is_first = np.zeros(ENVS, np.int16), np.zeros(ENVS, np.float32), np.zeros(ENVS, bool)
    goal = torch.full((ENVS, 1, 1), PAD)

    @torch.inference_mode()
    def values() -> Any:
        z, _ = read_states(network, observation, action, reward, is_first, network.initial_core(ENVS))  # type: ignore[arg-type]
        return network.q_each(z, goal)

    @torch.inference_mode()
    def every() -> Any:
        return values(), network.embedding(state), network.distillation.error(state)

    return values, every


def _matrix(states: np.ndarray, query: np.ndarray) -> Callable[[], Any]:
    """The same search with a distance matrix and topk."""
    memory, q = torch.from_numpy(states), torch.from_numpy(query)

    def run() -> Any:
        distance = memory.square().sum(-1) - 2.0 * torch.bmm(memory, q.unsqueeze(-1)).squeeze(-1) + q.square().sum(-1, keepdim=True)
        return distance.topk(NEIGHBOURS, largest=False)

    return run


def run(quick: bool = False) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    repeats = 5 if quick else 30
    rng = np.random.default_rng(0)
    states = rng.normal(size=(ENVS, MEMORIES, SIZE)).astype(np.float32)
    query = rng.normal(size=(ENVS, SIZE)).astype(np.float32)

    def search(held: int) -> Callable[[], Any]:
        neighbours = Neighbours(*states.shape)
        neighbours.load_rows(states[:, :held], np.full(ENVS, held))
        return lambda: neighbours.nearest(query, NEIGHBOURS)

    ours = PRESETS["baba-umaze-medium-agent57"]
    full, usual, values, every = _milliseconds(repeats, search(MEMORIES), search(2_000), *_passes(ours))
    slow_repeats = max(3, repeats // 5)
    beside_paper, paper_values = _milliseconds(slow_repeats, search(MEMORIES), _passes(at_paper_scale(ours))[0])
    beside_matrix, matrix = _milliseconds(slow_repeats, search(MEMORIES), _matrix(states, query))
    nothing, held = np.zeros((ENVS, 0), np.int8), np.full(ENVS, MEMORIES)
    beside_plain, plain = _milliseconds(slow_repeats, search(MEMORIES),
                                        lambda: plain_nearest(states, nothing, nothing, held, query, NEIGHBOURS))
    rows = [
        ("k-NN 128 × 5,000, pass of the paper's value networks", beside_paper, paper_values),
        ("k-NN 128 × 5,000, pass of the cpu value networks", full, values),
        ("k-NN 128 × 5,000, pass of all cpu networks of a step", full, every),
        ("k-NN 128 × 2,000 (the most of 10 episodes), pass of the cpu value networks", usual, values),
        ("k-NN 128 × 5,000, distance matrix and topk", beside_matrix, matrix),
        ("k-NN 128 × 5,000, the plain search", beside_plain, plain),
    ]
    return [{"case": case, "value": value, "unit": "ms", "reference": reference, "ratio": value / reference}
            for case, value, reference in rows]
