"""The deep agent's speed: updates against the plain learner, what learning every goal at once buys, acting, where the time goes.

`updates` are measured against the learner as it was before it was made fast (`tests/reference/learner.py`), in turn, in seconds of
this thread's processor time, on made-up segments of the shapes that three domains have; the ratio is the median over the turns.
`learned` counts transitions × goals: a batch of n transitions learned for k goals each is n·k. The reference is the paper's
way, hindsight goals drawn by novelty and a network that takes state and goal together, on the same data in the same run.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from reference.learner import PlainLearner

from protogoal.agents.blueprint import EnvSpaces
from protogoal.agents.proto_r2d2 import ProtoR2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import Actor
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.replay import Replay
from protogoal.deep.segments import PREFIX, Segments, schema
from protogoal.domains.default import DEFAULT
from protogoal.domains.domain import make_batch_env
from protogoal.envs.vector import ArraySpec, BatchEnv
from protogoal.goals.goal_set import GoalSet
from protogoal.presets import PRESETS

SHAPES: dict[str, tuple[dict[str, tuple[int, int]], int, int, int]] = {
    # parts of the observation: ids on at once, of how many; actions; bits on at once; goals learned
    "own environment (MiniGrid's KeyCorridor)": ({"seen": (49, 343), "status": (5, 21), "where": (3, 150)}, 7, 8, 171),
    "Baba U-Maze medium": ({"active": (8, 693)}, 5, 8, 179),
    "MiniHack river": ({"active": (128, 3547)}, 8, 16, 256),
}
UPDATES = 20  # of one learner before it is the other's turn


def _setup(config: DeepConfig, steps: int) -> ProtoR2D2:
    """An agent with the experience of a random policy, and goals to pursue."""
    env, space = make_batch_env(config.env, config.actor.num_envs)
    agent = ProtoR2D2(config, env, space)
    while agent.replay.transitions < steps:
        agent.remember(agent.act(randomly=True))
    agent.refresh()
    return agent


def _segments(spaces: EnvSpaces, config: DeepConfig, rng: np.random.Generator) -> Segments:
    """A batch of made-up segments."""
    steps, n = config.replay.burn_in + config.replay.trace_length, config.learner.batch_size
    arrays = {}
    for name, (shape, dtype, per) in schema(ProtoR2D2.stored(config, spaces)).items():
        rows = {"state": (steps + 1, n), "transition": (steps, n), "segment": (n,)}[per]
        arrays[name] = np.zeros((*rows, *shape), dtype)
    for name, spec in spaces.observation_spec.items():
        arrays[f"{PREFIX}{name}"][:] = rng.integers(spec.num_values, size=(steps + 1, n, *spec.shape))
    arrays["action"][:] = rng.integers(spaces.num_actions, size=(steps, n))
    arrays["active"][:] = rng.integers(spaces.num_bits, size=arrays["active"].shape)
    arrays["is_first"][:] = rng.random((steps + 1, n)) < 0.02
    return Segments.from_arrays(arrays | {"weight": np.ones(n, np.float32)})


def _against_plain(name: str, core: Any, turns: int) -> dict[str, Any]:
    """Updates a second of processor time by both learners, in turn on the same batches, and their ratio."""
    parts, num_actions, most, goals = SHAPES[name]
    spec = {part: ArraySpec((on,), np.dtype(np.int16), "active", many) for part, (on, many) in parts.items()}
    spaces = EnvSpaces(spec, num_actions, goals, most)
    config = replace(DEFAULT, network=replace(DEFAULT.network, core=core))  # of every preset
    ids = np.arange(goals)
    slots = ids[:, None].astype(np.int32)
    known = KnownGoals(ids, slots, slots, np.zeros(goals, np.int32), np.ones(goals, np.int64), np.ones(goals, bool),
                       np.ones(goals, bool), goals)
    networks = [ProtoR2D2.make_network(config, spaces) for _ in range(4)]
    plain = PlainLearner(*networks[:2], config.learner, 0, config.replay.burn_in)
    learners = [ProtoR2D2.make_learner(config, *networks[2:]), plain]
    rng = np.random.default_rng(0)
    batches = [_segments(spaces, config, rng) for _ in range(UPDATES)]
    spent = np.empty((turns, 2))
    for turn in range(-1, turns):  # the first warms up
        for who, learner in enumerate(learners):
            start = time.thread_time()
            for batch in batches:
                learner.update(batch, known)
            spent[turn, who] = time.thread_time() - start
    fast, slow = UPDATES / np.median(spent, 0)
    word = "feed-forward" if core == "none" else core
    return {"case": f"updates, {name}, {word}, {goals} goals", "value": fast, "unit": "updates/s", "reference": slow,
            "ratio": float(np.median(spent[:, 1] / spent[:, 0]))}


def _learning(config: DeepConfig, env: BatchEnv, replay: Replay, known: KnownGoals, seconds: float) -> dict[str, float]:
    """Transitions × goals a second, and seconds of each part per update."""
    online, target = (ProtoR2D2.make_network(config, env) for _ in range(2))
    learner = ProtoR2D2.make_learner(config, online, target)
    rng = np.random.default_rng(0)
    pairs = updates = 0
    for _ in range(3):
        learner.update(replay.sample(config.learner.batch_size, rng), known)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        batch = replay.sample(config.learner.batch_size, rng)
        pairs += batch.action.size * int(learner.update(batch, known)["goals_learned"])
        updates += 1
    spent = time.perf_counter() - start
    return {"pairs": pairs / spent, "updates": updates / spent}


def _acting(actor: Actor, goals: GoalSet, seconds: float) -> float:
    """Steps a second of all environments together, with goal selection."""
    actor.collect(goals)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        steps += actor.collect(goals).segments.action.size
    return steps / (time.perf_counter() - start)


def _shares(config: DeepConfig, seconds: float) -> dict[str, float]:
    """Share of a run's time spent in each part, of a short run without overlap."""
    env, space = make_batch_env(config.env, config.actor.num_envs)
    agent = ProtoR2D2(config, env, space)
    spent: dict[str, float] = defaultdict(float)

    def timed(part: str, call: Any, *arguments: Any) -> Any:
        start = time.perf_counter()
        result = call(*arguments)
        spent[part] += time.perf_counter() - start
        return result

    next_refresh = 0
    start = None
    while start is None or time.perf_counter() - start < seconds:
        if start is None and agent.learner.updates > 3:
            start = time.perf_counter()
            spent.clear()
        for _ in range(agent.updates_due()):
            timed("learn", agent.learn)
        experience = timed("act", agent.act, agent.learner.updates == 0)
        timed("remember", agent.remember, experience)
        timed("publish", agent.publish)
        if agent.can_learn and agent.steps >= next_refresh:
            next_refresh = agent.steps + config.refresh_every
            timed("pge", agent.refresh)
    total = sum(spent.values())
    return {part: value / total for part, value in spent.items()}


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows of the benchmark; `quick` takes seconds, else about a minute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(0.5 if quick else 8.0, 20_000 if quick else 100_000, 1 if quick else 12)
    finally:
        torch.set_num_threads(threads)


def _run(seconds: float, steps: int, turns: int) -> list[dict[str, Any]]:
    config: DeepConfig = PRESETS["baba-umaze-medium-protogoal"]
    agent = _setup(config, steps)
    known = agent.known
    ours = _learning(config, agent.env, agent.replay, known, seconds)
    paper = replace(
        config,
        network=replace(config.network, join="concat"),
        learner=replace(config.learner, relabel="novelty", hindsight_goals=15, unattained_goals=0),
    )
    reference = _learning(paper, agent.env, agent.replay, known, seconds)
    rows = [_against_plain(name, core, turns) for name in SHAPES for core in ("none", "lstm")]
    rows += [
        {
            "case": f"learned: all {len(known)} goals + bilinear, against novelty + concat",
            "value": ours["pairs"],
            "unit": "transitions x goals/s",
            "reference": reference["pairs"],
            "ratio": ours["pairs"] / reference["pairs"],
        },
        {
            "case": "updates (of these two)",
            "value": ours["updates"],
            "unit": "updates/s",
            "reference": reference["updates"],
            "ratio": ours["updates"] / reference["updates"],
        },
        {
            "case": f"acting, {config.actor.num_envs} environments, goals selected",
            "value": _acting(agent.actor, agent.goal_set, seconds),
            "unit": "steps/s",
            "reference": None,
            "ratio": None,
        },
    ]
    for part, share in sorted(_shares(config, seconds).items(), key=lambda item: -item[1]):
        rows.append({"case": f"share of time: {part}", "value": share, "unit": "", "reference": None, "ratio": None})
    return rows
