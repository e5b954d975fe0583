"""A saved agent without its environment: it says what to do and which goals it has, and imports no code of anyone's.

`protogoal.load` makes one where a file names code that was not trusted, or functions of a script that has ended. What the
environment observes and the names of goals stand in the file (`run.player.AgentPlayer.player_state`); only `evaluate` needs more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from protogoal import registry
from protogoal.config import DeepConfig
from protogoal.deep.network import weights_from_arrays
from protogoal.envs.observed import MOST_ACTIONS
from protogoal.envs.reading import ObservationReader, stored_reader
from protogoal.envs.vector import PAD, ArraySpec, Observation
from protogoal.goals.stored import stored_array, stored_number
from protogoal.run.player import Player


@dataclass(frozen=True)
class Observed:
    """What is known of an environment that is not there."""

    reader: ObservationReader
    num_actions: int
    own_actions: NDArray[np.int64]
    num_bits: int
    max_active: int
    num_envs: int = 1

    @staticmethod
    def of(state: Mapping[str, Any]) -> Observed:
        count = stored_number(state["num_actions"], "num_actions", 1, MOST_ACTIONS)
        shape = (count, *np.shape(state["own_actions"])[1:])
        return Observed(stored_reader(state["reader"]), count, stored_array(state["own_actions"], "own_actions", shape, "i"),
                        stored_number(state["num_bits"], "num_bits", 1), stored_number(state["max_active"], "max_active", 1))

    @property
    def observation_spec(self) -> dict[str, ArraySpec]:
        return self.reader.spec

    def read_raw(self, raw: Any) -> tuple[Observation, NDArray[Any], bool]:
        """As `envs.gym_batch.GymBatchEnv.read_raw`; the bits are not known."""
        arrays, is_single = self.reader.arrays(raw)
        return self.reader.read(arrays, lambda env: f"observation {env}"), np.empty((0, 0), np.int32), is_single


class SavedAgent(Player):
    """Made of what `player_state` gave; `why` is what keeps it from its environment."""

    def __init__(self, config: DeepConfig, state: Mapping[str, Any], why: str):
        self.config, self._why, self._state = config, why, state
        self.env = Observed.of(state["observed"])
        self._network = registry.agent(config.agent).make_network(config, self.env)
        weights_from_arrays(self._network, state["network"])
        self.step = stored_number(state["steps"], "steps")
        self._goals = _goals(state["goals"], self.env.num_bits) if "goals" in state else None

    @property
    def playing(self) -> Any:
        return self._network

    def members(self, goal: int) -> tuple[NDArray[Any], NDArray[np.int32], str]:
        goals = self.goal_columns()
        rows = np.flatnonzero(goals["id"] == goal)
        if len(rows) == 0:
            raise ValueError(f"there is no goal {goal}; agent.goals() lists them")
        members = self._goals["members"][rows[0]]  # type: ignore[index]
        is_there = members != PAD
        slots: NDArray[np.int32] = self._goals["slots"][rows[0]][is_there].astype(np.int32)  # type: ignore[index]
        return members[is_there], slots, str(goals["name"][rows[0]])

    def goal_columns(self) -> dict[str, NDArray[Any]]:
        """Every goal ever observed, as columns."""
        if self._goals is None:
            raise ValueError(f"the agent {self.config.agent} has no goals; it pursues the task alone")
        columns: dict[str, NDArray[Any]] = self._goals["columns"]
        return columns

    def player_state(self) -> Mapping[str, Any]:
        """What it was made of."""
        return self._state

    def evaluate(self, episodes: int, seed: int, goal: int | None = None, as_in_run: bool = False) -> NoReturn:
        raise ValueError(f"to play, the agent needs its environment: {self._why}")

    def play(self, goal: int | None, seed: int) -> NoReturn:
        self.evaluate(1, seed, goal)


def _goals(state: Mapping[str, Any], num_bits: int) -> dict[str, Any]:
    """Columns, members and slots of a file, checked."""
    ids = stored_array(state["columns"]["id"], "goals", (None,), "i", 0)
    columns = {name: np.array(column, object) if isinstance(column, list) else np.asarray(column)
               for name, column in state["columns"].items()}
    if any(column.shape != ids.shape for column in columns.values()):
        raise ValueError("stored goals have columns of different lengths")
    members = stored_array(state["members"], "members", (len(ids), None), "i", PAD, num_bits - 1)
    slots = stored_array(state["slots"], "slots", members.shape, "i", PAD, num_bits - 1)
    return {"columns": columns, "members": members, "slots": slots}
