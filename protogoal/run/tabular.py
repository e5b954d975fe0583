"""Running the tabular agents on SparseTaxi: made of a configuration, trained into a store, loaded, shown."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np

import protogoal.envs  # noqa: F401  (registers SparseTaxi)
from protogoal.config import TabularConfig
from protogoal.envs.pictures import without_window
from protogoal.envs.taxi import TaxiSpace
from protogoal.goals.table import TASK
from protogoal.record.events import Evaluated, Event, Measured, Progressed, Pursued, Refreshed
from protogoal.run.goal_columns import columns_of
from protogoal.tabular import agent as agents
from protogoal.tabular.tables import TransitionTables


def make_env(config: TabularConfig, render_mode: str | None = None) -> gymnasium.Env:
    """SparseTaxi as configured."""
    return gymnasium.make("protogoal/SparseTaxi-v0", render_mode=render_mode, wrong_put_down_ends=config.env.wrong_put_down_ends)  # type: ignore[attr-defined]


class TabularSession:
    """One run of a tabular agent: what the training driver and the player need of it."""

    def __init__(self, config: TabularConfig):
        self.config = config
        tables = TransitionTables.from_gymnasium(make_env(config))
        self.agent = agents.AGENTS[config.agent](tables, TaxiSpace(), config.learning, config.pge, config.seed)

    @property
    def step(self) -> int:
        return self.agent.step

    def train(self) -> Iterator[Event]:
        """Trains to the end."""
        episodes = self.config.learning.eval_episodes
        for step, metrics in agents.train(self.agent, self.config.steps):
            yield Measured(step, metrics)
            yield Evaluated(step, episodes, round(metrics["success"] * episodes), metrics["return"])
            facts: dict[str, Any] = {"success": metrics["success"]}
            evaluator, ended = self.agent.evaluator, self.agent.take_pursuits()
            if evaluator is not None:
                told = ended.goal != TASK  # the kernel does not say whether the task succeeded
                yield Pursued(step, ended.goal[told], ended.success[told], ended.length[told])
                yield Refreshed(step, evaluator.snapshot(), evaluator.describe)
                facts["goals"] = int(metrics["plausible"])
            yield Progressed(step, facts)

    def state_dict(self) -> dict[str, Any]:
        return self.agent.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.agent.load_state_dict(state)

    def evaluate(self, episodes: int, seed: int, goal: int | None = None, as_in_run: bool = False) -> Evaluated:
        """Greedy episodes for the task, which leave the run as it was."""
        if goal is not None:
            raise ValueError("tabular agents are evaluated for the task alone")
        agent = copy.copy(self.agent)
        agent.seed_tests(seed)
        result = agent.test(episodes)
        return Evaluated(self.step, episodes, round(result["success"] * episodes), result["return"])

    def predict(self, raw: Any, goal: int | None, memory: Any, reward: Any = 0.0, first: Any = None) -> tuple[Any, Any]:
        """The greedy action in a state, or in each of several."""
        states = np.atleast_1d(np.asarray(raw))
        if states.dtype.kind not in "iu" or states.min() < 0 or states.max() >= self.agent.tables.num_states:
            raise ValueError(f"a state is a whole number below {self.agent.tables.num_states}; got {raw!r}")
        actions = np.array([self.agent.action(int(state), TASK if goal is None else goal) for state in states])
        return (int(actions[0]) if np.ndim(raw) == 0 else actions), None

    def goal_columns(self) -> dict[str, Any]:
        """Every goal ever observed, as columns."""
        if self.agent.evaluator is None:
            raise ValueError(f"the agent {self.config.agent} has no goals; it pursues the task alone")
        return columns_of(self.agent.evaluator)

    def player_state(self) -> dict[str, Any]:
        """All of it: the tables are small."""
        return self.state_dict()

    load_player = load_state_dict

    def close(self) -> None:
        """Nothing to free."""

    def play(self, goal: int | None, seed: int) -> Iterator[tuple[np.ndarray, str]]:
        """Frames of one episode for the task, or until the goal is attained, with what happens in words."""
        without_window()
        env = make_env(self.config, "rgb_array")
        agent = copy.copy(self.agent)  # the same tables; a stream of its own, so that playing leaves the tests as they were
        agent.seed_tests(seed)
        target = TASK if goal is None else goal
        attaining = np.zeros(agent.tables.num_states, np.bool_) if goal is None else agent.attaining(goal)
        words = "the task" if goal is None or agent.evaluator is None else agent.evaluator.name(goal)
        state, _ = env.reset(seed=seed)
        yield env.render(), f"{words}: start"  # type: ignore[misc]
        for t in range(1, self.agent.tables.time_limit + 1):
            state, reward, terminated, truncated, _ = env.step(agent.action(int(state), target))
            attained = bool(attaining[int(state)])
            ending = "attained" if attained else "delivered" if reward else "ended" if terminated or truncated else ""
            yield env.render(), f"{words}: step {t}  {ending}"  # type: ignore[misc]
            if attained or terminated or truncated:
                return
