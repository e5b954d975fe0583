"""A trained deep agent asked from outside: what to do in a state, which goals it has, how often it reaches one.

Observations come as an environment gives them, and are read as in training (`envs.raw`); what cannot be one is refused. Part of
`run.local.LocalSession`; `protogoal.api` is the way in.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from protogoal import registry
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import read_states
from protogoal.deep.device import device_of
from protogoal.deep.network import weights_from_arrays, weights_to_arrays
from protogoal.envs.raw import as_actions, read_raw
from protogoal.envs.vector import PAD, BatchEnv
from protogoal.envs.way import WAY, Reckoning, reckoned
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.stored import stored_number
from protogoal.run.goal_columns import columns_of


class Memory(NamedTuple):
    """Of n episodes under way: the core's state, the last actions, and how far they came where the view forgets it."""

    core: Any
    action: NDArray[np.int16]
    is_single: bool
    ways: Sequence[Reckoning] = ()


class Player:
    """What can be asked of an agent that is not training. `env` need only say what is observed, and how it is read."""

    config: DeepConfig
    env: Any

    @property
    def playing(self) -> Any:
        """The network that is evaluated and shown, on the CPU."""
        raise NotImplementedError

    def members(self, goal: int) -> tuple[NDArray[Any], NDArray[np.int32], str]:
        """A goal's bits, their slots, and its name; a ValueError where there is no such goal."""
        raise NotImplementedError

    @torch.inference_mode()
    def predict(
        self, raw: Any, goal: int | None, memory: Memory | None, reward: Any = 0.0, first: Any = None
    ) -> tuple[int | NDArray[np.int64], Memory]:
        """The greedy action, or one for each of a batch; and what is to be remembered of the episodes."""
        raw, ways = self._with_way(raw, memory, first)
        observation, is_single = read_raw(self.env, raw)
        n = len(next(iter(observation.values())))
        if memory is not None and (len(memory.action) != n or memory.is_single != is_single):
            raise ValueError(f"{n} observations, but {len(memory.action)} episodes are under way; call reset() to begin others")
        is_first = np.full(n, memory is None) if first is None else np.broadcast_to(np.asarray(first, bool), (n,)).copy()
        network = self.playing
        before = memory or Memory(network.initial_core(n), np.zeros(n, np.int16), is_single)
        read = registry.agent(self.config.agent).as_played(self.config, self.env, network).observation_spec
        observation |= {name: np.zeros((n, *spec.shape), spec.dtype) for name, spec in read.items() if name not in observation}
        paid = np.broadcast_to(np.asarray(reward, np.float32), (n,)).copy()
        z, core = read_states(network, observation, before.action, paid, is_first, before.core)
        best = network.q_each(z, self._goal_slots(goal).expand(n, 1, -1))[:, 0].argmax(-1).numpy()
        action = as_actions(self.env, best.astype(np.int64))
        chosen = action if not is_single else int(action[0]) if action.ndim == 1 else action[0]
        return chosen, Memory(core, best.astype(np.int16), is_single, ways)

    def _with_way(self, raw: Any, memory: Memory | None, first: Any) -> tuple[Any, Sequence[Reckoning]]:
        """What the view forgets, where an observation is MiniGrid's own."""
        image: Any = raw.get("image") if isinstance(raw, Mapping) and WAY not in raw else None
        if WAY not in self.env.observation_spec or np.ndim(image) not in (3, 4):
            return raw, ()
        n = 1 if np.ndim(image) == 3 else len(image)
        if memory is None or len(memory.ways) != n:
            return reckoned(raw, [Reckoning()] * n, np.zeros(n, int), np.ones(n, bool))
        return reckoned(raw, memory.ways, memory.action, np.broadcast_to(np.asarray(False if first is None else first, bool), (n,)))

    def _goal_slots(self, goal: int | None) -> torch.Tensor:
        return torch.full((1, 1), PAD) if goal is None else torch.from_numpy(self._pursued(goal)[1])[None]

    def _pursued(self, goal: int) -> tuple[NDArray[Any], NDArray[np.int32], str]:
        """The same; a ValueError also where the network has no weights for it."""
        members, slots, words = self.members(goal)
        if (slots < 0).any():
            raise ValueError(f"“{words}” is not learned now; protogoal goals lists what is plausible")
        return members, slots, words


class AgentPlayer(Player):
    """The same of an agent that is there whole, with its environments."""

    agent: R2D2
    env: BatchEnv
    space: ProtoGoalSpace

    @property
    def playing(self) -> Any:
        network = self.agent.learner.average.network
        return network if device_of(network).type == "cpu" else copy.deepcopy(network).cpu()

    @property
    def evaluator(self) -> ProtoGoalEvaluator:
        """What judges its goals; a ValueError where it has none."""
        if self.agent.evaluator is None:
            raise ValueError(f"the agent {self.config.agent} has no goals; it pursues the task alone")
        return self.agent.evaluator

    def members(self, goal: int) -> tuple[NDArray[Any], NDArray[np.int32], str]:
        members = np.array(self.evaluator.table.members(goal))
        return members, self.evaluator.slots.of(members), self.evaluator.name(goal)

    def goal_columns(self) -> dict[str, NDArray[Any]]:
        """Every goal ever observed, as columns."""
        return columns_of(self.evaluator)

    def player_state(self) -> dict[str, Any]:
        """All that playing needs: the weights it is evaluated with, the goals and their names, and what it observes."""
        state = {"network": weights_to_arrays(self.playing), "space": self.space.state_dict(), "steps": self.agent.steps}
        if self.agent.evaluator is not None:
            state |= {"evaluator": self.evaluator.state_dict(), "goals": self._goals_state()}
        if hasattr(self.env, "reader"):  # environments of one's own, observed as they are
            env: Any = self.env
            state["observed"] = {"reader": env.reader.state_dict(), "num_actions": env.num_actions,
                                 "own_actions": env.own_actions, "num_bits": env.num_bits, "max_active": env.max_active}
        return state

    def _goals_state(self) -> dict[str, Any]:
        """Names, numbers, bits and slots of all goals, so that they can be asked for without the environment's proto-goals."""
        columns = self.goal_columns()
        table = self.evaluator.table
        members = np.full((len(columns["id"]), table.max_members), PAD, np.int64)
        for row, goal in zip(members, columns["id"].tolist(), strict=True):
            bits = table.members(goal)
            row[: len(bits)] = bits
        plain = {name: column.tolist() if column.dtype == object else column for name, column in columns.items()}
        return {"columns": plain, "members": members, "slots": np.where(members == PAD, PAD, self.evaluator.slots.of(members))}

    def load_player(self, state: Mapping[str, Any]) -> None:
        """Take back what `player_state` gave; it cannot be trained on."""
        self.space.load_state_dict(state["space"])
        weights_from_arrays(self.agent.learner.average.network, state["network"])
        self.agent.steps = stored_number(state["steps"], "steps")
        if self.agent.evaluator is not None:
            self.agent.evaluator.load_state_dict(state["evaluator"])
