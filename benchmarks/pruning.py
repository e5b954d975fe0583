"""What pruning by trials costs: a refresh as goals grow, and counting and testing beside the rest of a run; one thread.

`protogoal bench pruning` calls `run`. A refresh judges every observed goal: ten kinds, eight events each and more, ten bits on at a
time. Only goals with new events are tested anew, so both extremes are measured: all of them, and none. The reference is the limit,
half a second for 100,000 goals. The other rows are of a short run on the medium U-Maze, in CPU seconds; gathering the events is
part of acting there.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from protogoal.agents.counting import Counted, count
from protogoal.agents.proto_r2d2 import ProtoR2D2
from protogoal.agents.r2d2 import R2D2
from protogoal.deep.relabel import KnownGoals
from protogoal.domains.domain import make_batch_env
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.spaces import Factor, OneHotFactors
from protogoal.goals.trials import LAGS, TrialEvents
from protogoal.presets import PRESETS

KINDS, EVENTS, ACTIONS = 10, 8, 5
LIMIT_GOALS, LIMIT = 100_000, 0.5  # seconds of a refresh
SHARE = 0.03  # of a run's time, for counting and testing


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows of the benchmark; `quick` takes seconds, else about a minute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        sizes = (1_000, 10_000) if quick else (1_000, 10_000, LIMIT_GOALS)
        refreshes = [row for goals in sizes for row in _refresh(goals, 1 if quick else 5)]
        return refreshes + _beside_a_run(2.0 if quick else 30.0)
    finally:
        torch.set_num_threads(threads)


def _refresh(goals: int, repeats: int) -> list[dict[str, Any]]:
    """CPU seconds of a refresh, the best of several: when every goal has new events, all tested anew, and when none has."""
    rng = np.random.default_rng(0)
    each = goals // KINDS
    space = OneHotFactors([Factor(f"kind {k}", tuple(f"{k}: {i}" for i in range(each))) for k in range(KINDS)])
    evaluator = ProtoGoalEvaluator(space, ACTIONS)
    for _ in range(EVENTS):
        _turn_each_on(evaluator, rng)
    assert evaluator.table.observed.sum() == goals
    evaluator.refresh()  # compiles
    all_new, none_new = [], []
    for _ in range(repeats):
        _turn_each_on(evaluator, rng)
        all_new.append(_seconds(evaluator.refresh))
        none_new.append(_seconds(evaluator.refresh))
    limit = LIMIT if goals == LIMIT_GOALS else None
    return [{"case": f"refresh of {goals:,} observed goals, {words} with new events", "value": min(spent), "unit": "s",
             "reference": limit, "ratio": limit / min(spent) if limit else None}
            for words, spent in (("all", all_new), ("none", none_new))]


def _turn_each_on(evaluator: ProtoGoalEvaluator, rng: np.random.Generator) -> None:
    """Every goal turns on once, ten of them a transition, one of each kind."""
    each = evaluator.num_bits // KINDS
    first = each * np.arange(KINDS)
    after = np.stack([rng.permutation(each) for _ in range(KINDS)], 1) + first
    before = (rng.integers(each, size=after.shape) + first).astype(np.int32)
    rows = np.repeat(np.arange(each, dtype=np.int32), KINDS)
    action = rng.integers(ACTIONS, size=(each, LAGS)).astype(np.int16)
    events = TrialEvents(before, action, rows, after.ravel().astype(np.int32))
    evaluator.count(after, np.ones(after.shape, np.bool_), np.zeros(each), events)


def _seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _beside_a_run(seconds: float) -> list[dict[str, Any]]:
    """CPU milliseconds of each part per 1,000 transitions, beside acting's; and the share of counting and testing."""
    config = PRESETS["baba-umaze-medium-protogoal"]
    env, space = make_batch_env(config.env, config.actor.num_envs)
    agent = ProtoR2D2(config, env, space)
    spent: dict[str, float] = defaultdict(float)

    def timed(part: str, call: Any, *arguments: Any) -> Any:
        start = time.process_time()
        result = call(*arguments)
        spent[part] += time.process_time() - start
        return result

    next_refresh, begun, steps = 0, None, 0
    while begun is None or time.process_time() - begun < seconds:
        if begun is None and agent.learner.updates > 3:  # all is compiled, and goals are pursued
            begun, steps = time.process_time(), agent.steps
            spent.clear()
        for _ in range(agent.updates_due()):
            timed("learning", agent.learn)
        experience = timed("acting", agent.act, agent.learner.updates == 0)
        timed("remembering", R2D2.remember, agent, experience)
        timed("counting", count, agent.evaluator, Counted.of(experience, config.replay.trace_length))
        agent.known = timed("publishing", KnownGoals.of, agent.evaluator)
        timed("publishing", agent.publish)
        if agent.can_learn and agent.steps >= next_refresh:
            next_refresh = agent.steps + config.refresh_every
            timed("testing", agent.refresh)
    thousands = (agent.steps - steps) / 1000
    rows = [{"case": f"{part}, per 1,000 transitions; reference: acting", "value": 1e3 * spent[part] / thousands, "unit": "ms",
             "reference": 1e3 * spent["acting"] / thousands, "ratio": spent[part] / spent["acting"]}
            for part in ("counting", "testing", "learning")]
    share = (spent["counting"] + spent["testing"]) / sum(spent.values())
    rows.append({"case": "counting and testing, share of a run", "value": share, "unit": "", "reference": SHARE,
                 "ratio": SHARE / max(share, 1e-9)})
    return rows
