"""What a vast proto-goal space costs beside a small one: 1,000 to 1,000,000 bits declared, half of them seen, some 200 useful.

`protogoal bench vast` calls `run`. Each size is a short run of the small U-Maze in a process of its own, with junk beside its own
bits (`envs.junk`). Half of all bits are counted as seen before anything is measured, each with a trial, as a long run would have
them. The reference of every row is the same quantity with 1,000 bits, measured just before; seconds are CPU seconds, one thread.
Rows that say "against 0.1.0" have that version as their reference, in turn with the present one (tests/reference/vast_before.py).
"""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROOT = Path(__file__).resolve().parents[1]
BEFORE = "c46a0ec7255eeb15d547e2ea7240a6460f4d5b1a"  # the last commit of version 0.1.0
BEFORE_SIZES = {1_000: 4_000, 10_000: 2_000, 100_000: 1_000}  # and steps; a million bits need more memory there than most have
TOGETHER = 8  # bits that turn on in one transition, when half of them are seen
ON_AT_ONCE = (16, 64, 256)
PLAUSIBLE = (50, 200, 800)
UNITS = {"start-up": "s", "steps": "/s", "steps without learning": "/s",
         "updates": "/s", "refresh": "s", "refresh, all seen anew": "s", "memory": "MB", "checkpoint": "MB", "saving": "s",
         "seeing half of them": "s"}


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows of the benchmark; `quick` takes seconds, else some minutes."""
    steps = 3_000 if quick else 20_000
    found = {size: measure_apart(ROOT, Path(__file__), size, steps) for size in (SIZES[:2] if quick else SIZES)}
    rows = []
    for size, measured in found.items():
        for what, value in measured.items():
            reference = found[SIZES[0]][what]
            rows.append({"case": f"{what}, {size:,} bits", "value": value, "unit": UNITS[what], "reference": reference,
                         "ratio": value / max(reference, 1e-9)})
    rows += against_before({1_000: 500} if quick else BEFORE_SIZES, 1 if quick else 3)
    crowded = {on: counting(on, 10 if quick else 100) for on in ON_AT_ONCE}
    rows += [{"case": f"counting and storing a transition, {on} bits on at once", "value": 1e6 * spent, "unit": "µs",
              "reference": 1e6 * crowded[ON_AT_ONCE[0]], "ratio": spent / crowded[ON_AT_ONCE[0]]} for on, spent in crowded.items()]
    learned = {goals: learning(goals, 3 if quick else 30) for goals in PLAUSIBLE}
    rows += [{"case": f"an update, {goals} plausible goals", "value": 1e3 * spent, "unit": "ms",
              "reference": 1e3 * learned[PLAUSIBLE[0]], "ratio": spent / learned[PLAUSIBLE[0]]} for goals, spent in learned.items()]
    return rows


def counting(on: int, windows: int) -> float:
    """CPU seconds for a transition with so many bits on, of which eight turn on: found, counted, stored."""
    from protogoal.deep.replay import Replay
    from protogoal.deep.segments import Segments, Sizes, schema
    from protogoal.deep.settings import ReplaySettings
    from protogoal.envs.vector import ArraySpec
    from protogoal.goals.active import turned_on
    from protogoal.goals.evaluator import ProtoGoalEvaluator
    from protogoal.goals.trials import TrialEvents

    steps, envs, bits = 10, 32, 100_000
    rng = np.random.default_rng(0)
    spec = {"x": ArraySpec((1,), np.dtype(np.float32), "vector")}
    sizes = Sizes(spec, bits, on, (0, 0))
    replay = Replay(sizes, ReplaySettings(capacity=20_000))
    evaluator = ProtoGoalEvaluator(bits, 5)
    rows = {"state": (steps + 1, envs), "transition": (steps, envs), "segment": (envs,)}
    arrays = {name: np.zeros((*rows[per], *shape), dtype) for name, (shape, dtype, per) in schema(sizes).items()}
    active = np.sort(rng.permuted(np.tile(np.arange(bits, dtype=np.int32), (envs, 1)), axis=1)[:, :on], axis=1)
    spent = 0.0
    for window in range(windows + 1):
        if window == 1:  # all is compiled
            spent = 0.0
        lists, came_on, begun = [], [], time.process_time()
        for _ in range(steps):
            after = active.copy()
            after[:, :TOGETHER] = rng.integers(bits, size=(envs, TOGETHER))
            came_on.append(turned_on(after, active))
            lists.append(after)
            active = after
        many, on_now = np.stack(lists), np.stack(came_on)
        replay.add(Segments.from_arrays(arrays | {"active": many, "turned_on": on_now, "weight": np.ones(envs, np.float32)}))
        evaluator.count(many.reshape(-1, on), on_now.reshape(-1, on), np.zeros(steps * envs), TrialEvents.none())
        spent += time.process_time() - begun
    return spent / (windows * steps * envs)


def learning(goals: int, updates: int) -> float:
    """CPU seconds of an update of the small U-Maze's network for so many goals."""
    from protogoal.agents.proto_r2d2 import ProtoR2D2
    from protogoal.deep.relabel import KnownGoals
    from protogoal.domains.domain import make_batch_env
    from protogoal.presets import PRESETS

    torch.set_num_threads(1)
    config = PRESETS["baba-umaze-small-protogoal"]
    config = replace(config, env=replace(config.env, junk=2_000), replay=replace(config.replay, capacity=20_000))
    env, space = make_batch_env(config.env, config.actor.num_envs)
    agent = ProtoR2D2(config, env, space)
    while agent.replay.transitions < 2_000:
        agent.remember(agent.act(randomly=True))
    ids = np.arange(goals, dtype=np.int32)[:, None]
    agent.evaluator.table.observe(ids, np.ones(ids.shape, np.bool_), np.zeros(goals))
    agent.evaluator.has_control = np.arange(env.num_bits) < goals
    agent.known = KnownGoals.of(agent.evaluator)
    assert len(agent.known) == goals
    agent.learn()
    begun = time.process_time()
    for _ in range(updates):
        agent.learn()
    return (time.process_time() - begun) / updates


def against_before(sizes: dict[int, int], turns: int) -> list[dict[str, Any]]:
    """Rows of the present version against 0.1.0, by medians of runs in turn; none where the history has no such commit."""
    command = ["git", "-C", str(ROOT), "archive", "--format=zip", BEFORE, "protogoal"]
    packed = subprocess.run(command, capture_output=True, check=False) if shutil.which("git") else None
    if packed is None or packed.returncode:
        return []
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(io.BytesIO(packed.stdout)).extractall(folder)
        both = ((ROOT, Path(__file__)), (Path(folder), ROOT / "tests" / "reference" / "vast_before.py"))
        for size, steps in sizes.items():
            runs = [[measure_apart(*version, size, steps) for version in both] for _ in range(turns)]
            for what in runs[0][0]:
                ours, theirs = (float(np.median([run[who][what] for run in runs])) for who in (0, 1))
                rows.append({"case": f"{what}, {size:,} bits, against 0.1.0", "value": ours, "unit": UNITS[what],
                             "reference": theirs, "ratio": ours / max(theirs, 1e-9)})
    return rows


def measure_apart(package: Path, script: Path, size: int, steps: int) -> dict[str, float]:
    """One size in a process of its own, so that its memory is its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(script), str(size), str(steps)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the run with {size:,} bits failed: {done.stderr.strip().splitlines()[-1]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def measure(size: int, steps: int) -> dict[str, float]:
    """A run with `size` bits: what it costs to start, to go on, to judge, to keep and to save."""
    from protogoal.presets import PRESETS
    from protogoal.run.local import LocalSession

    preset = PRESETS["baba-umaze-small-protogoal"]
    config = replace(preset, threads=1, steps=10**9, learner=replace(preset.learner, min_replay=1_000),
                     evaluation=replace(preset.evaluation, every=10**9), replay=replace(preset.replay, capacity=100_000))
    small = LocalSession(config)  # compiles, and says how many bits the level has
    config = replace(config, env=replace(config.env, junk=size - small.env.num_bits))
    small.close()
    return costs(lambda: LocalSession(config), see_half, steps)


def costs(make: Callable[[], Any], see_half: Callable[[Any], None], steps: int) -> dict[str, float]:
    """What is measured of a session, of this version or an earlier one."""
    from protogoal.run import checkpoint

    found = {}
    start = time.process_time()
    session = make()
    found["start-up"] = time.process_time() - start
    agent: Any = session.agent
    start = time.process_time()
    see_half(agent.evaluator)
    found["seeing half of them"] = time.process_time() - start

    spent = {"learning": 0.0}
    learn = agent.learn

    def learn_timed() -> Any:
        begun = time.process_time()
        figures = learn()
        spent["learning"] += time.process_time() - begun
        return figures

    agent.learn = learn_timed
    events = session.train()
    while agent.learner.updates < 2:  # compiles, and has goals to pursue
        next(events)
    updates, begun, first = agent.learner.updates, time.process_time(), agent.steps
    spent["learning"] = 0.0
    while agent.steps < first + steps:
        next(events)
    found["steps"] = (agent.steps - first) / (time.process_time() - begun)
    found["steps without learning"] = (agent.steps - first) / (time.process_time() - begun - spent["learning"])
    found["updates"] = (agent.learner.updates - updates) / spent["learning"]
    refreshes = []
    for _ in range(3):
        begun = time.process_time()
        agent.refresh()
        refreshes.append(time.process_time() - begun)
    found["refresh"] = min(refreshes)
    see_half(agent.evaluator)
    begun = time.process_time()
    agent.refresh()
    found["refresh, all seen anew"] = time.process_time() - begun
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        path = checkpoint.save(Path(folder) / "checkpoints", agent.steps, session.state_dict())
        found["saving"] = time.process_time() - begun
        found["checkpoint"] = sum(file.stat().st_size for file in path.iterdir()) / 1e6
    session.close()
    return {what: found[what] for what in UNITS}


def see_half(evaluator: Any) -> None:
    """The last half of the bits turn on, once each, after actions that have nothing to do with them."""
    from protogoal.goals.trials import LAGS, TrialEvents

    rng = np.random.default_rng(0)
    bits = rng.permutation(np.arange(evaluator.num_bits // 2, evaluator.num_bits, dtype=np.int32))
    bits = bits[: len(bits) // TOGETHER * TOGETHER].reshape(-1, TOGETHER)
    for part in np.array_split(bits, max(1, len(bits) // 1_000)):
        row = np.repeat(np.arange(len(part), dtype=np.int32), TOGETHER)
        action = rng.integers(evaluator.num_actions, size=(len(part), LAGS)).astype(np.int16)
        events = TrialEvents(np.roll(part, 1, 0), action, row, part.ravel())
        evaluator.count(part, np.ones(part.shape, np.bool_), np.zeros(len(part)), events)


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
