"""Steps per second of the tabular agents, against plain numpy (tests/reference/tabular.py) in the same run, one thread."""

from __future__ import annotations

import time
from collections.abc import Callable

import gymnasium
import numpy as np
from reference import tabular as reference

import protogoal.envs  # noqa: F401
from protogoal.envs.taxi import TaxiSpace
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.tabular.agent import ProtoGoalAgent, QLearningAgent
from protogoal.tabular.settings import TabularSettings
from protogoal.tabular.tables import TransitionTables


def run(quick: bool = False) -> list[dict[str, object]]:
    tables = TransitionTables.from_gymnasium(gymnasium.make("protogoal/SparseTaxi-v0"))
    settings, space = TabularSettings(), TaxiSpace()
    steps, slow_steps, repeats = (60_000, 3_000, 2) if quick else (300_000, 12_000, 5)
    proto = ProtoGoalAgent(tables, space, settings)
    for agent in (QLearningAgent(tables, settings), proto):
        agent.advance(1_000)  # compiles

    def slow_proto() -> None:
        evaluator = ProtoGoalEvaluator(space, tables.num_actions, proto.evaluator.settings, 0)
        reference.proto_goal(tables, proto.bits, settings, evaluator, np.random.default_rng(0), slow_steps)

    cases: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("Q-learning", lambda: QLearningAgent(tables, settings).advance(steps),
         lambda: reference.q_learning(tables, settings, np.random.default_rng(0), slow_steps)),
        ("proto-goal, 34 goals, goal space every 200 steps",
         lambda: ProtoGoalAgent(tables, space, settings).advance(steps), slow_proto),
    ]
    rows: list[dict[str, object]] = []
    for case, ours, theirs in cases:
        fast, slow = [], []
        for _ in range(repeats):  # in turn, and the best of each: other work on the machine strikes both
            fast.append(steps / _seconds(ours))
            slow.append(slow_steps / _seconds(theirs))
        value, ratio = max(fast), max(fast) / max(slow)
        rows.append({"case": case, "value": value, "unit": "steps/s", "reference": max(slow), "ratio": ratio})
    return rows


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start
