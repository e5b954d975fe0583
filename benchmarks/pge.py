"""The evaluator's estimators: goals a second, against the plain versions of tests/reference/, on one thread.

`protogoal bench pge` calls `run`. All is measured in a process of its own with one thread for matrix products, in CPU
seconds, the best of a few repeats. The batch: ten things on a 10×10 grid, of which the first obeys the actions and the
others drift; 1,000 proto-goals "this thing in this cell", and ANDs of them. Columns are made distinct where goals a second
are counted, so that nothing is gained by solving equal columns once. The reference of a refresh is its limit, 6 s and 1 GB.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SIDE, THINGS, ACTIONS = 10, 10, 5


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows of all cases, each group measured in a fresh process with one thread."""
    rows: list[dict[str, Any]] = []
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": path}
    for part in ("estimators", "refresh", "growth"):
        command = [sys.executable, "-m", "benchmarks.pge", part, *(["quick"] if quick else [])]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{part}: {done.stderr.strip().splitlines()[-1:]}")
        rows += json.loads(done.stdout.splitlines()[-1])
    return rows


def things_on_a_grid(n: int, num_actions: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """n transitions: observation and next observation uint8 [n, 1000], action [n]; episodes of 32 steps."""
    episodes = -(-n // 32)
    place = rng.integers(SIDE, size=(episodes, THINGS, 2))
    moves = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]] + [[0, 0]] * max(1, num_actions - 4))
    rows = []
    for _ in range(32):
        action = rng.integers(num_actions, size=episodes)
        drift = moves[rng.integers(4, size=(episodes, THINGS))] * (rng.random((episodes, THINGS, 1)) < 0.3)
        drift[:, 0] = moves[action]
        after = np.clip(place + drift, 0, SIDE - 1)
        rows.append((_one_hot(place), action, _one_hot(after)))
        place = after
    observation, action, following = (np.concatenate(part)[:n] for part in zip(*rows, strict=True))
    return observation, action, following


def _one_hot(place: np.ndarray) -> np.ndarray:
    cell = place[..., 0] * SIDE + place[..., 1]
    return np.eye(SIDE * SIDE, dtype=np.uint8)[cell].reshape(len(place), -1)


def batch_of(n: int, num_actions: int, seed: int = 0) -> Any:
    from protogoal.goals.values import TransitionBatch

    observation, action, following = things_on_a_grid(n, num_actions, np.random.default_rng(seed))
    return TransitionBatch(observation, action, following, np.zeros(n, np.bool_), following > 0)


def distinct_columns(bits: np.ndarray, goals: int) -> np.ndarray:
    """bool [n, goals]: the bits, and ORs of two where bits do not suffice, no two columns equal and none empty."""
    rng = np.random.default_rng(1)
    pairs = rng.integers(bits.shape[1], size=(4 * goals, 2))
    every = np.concatenate([bits, bits[:, pairs[:, 0]] | bits[:, pairs[:, 1]]], axis=1)
    every = every[:, every.any(axis=0)]
    _, first = np.unique(np.packbits(every, axis=0), axis=1, return_index=True)
    chosen = np.sort(first)[:goals]
    assert len(chosen) == goals
    return every[:, chosen]


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """CPU seconds of one call, the best of several."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def estimators(quick: bool) -> list[dict[str, Any]]:
    """Goals a second of both estimators and of their plain versions; 1,024 transitions, 32 projections, 5 actions."""
    from reference.crossfit import crossfit_seek_avoid
    from reference.lspi import lspi_seek_avoid

    from protogoal.goals.crossfit import CrossfitSettings
    from protogoal.goals.features import observation_features
    from protogoal.goals.table import pack_columns
    from protogoal.goals.values import EstimatorSettings, seek_avoid_values

    goals, n = (200, 1024) if quick else (1000, 1024)
    repeats = 2 if quick else 5
    batch = batch_of(n, ACTIONS)
    attained = distinct_columns(batch.bits, goals)
    packed = pack_columns(attained)
    rows = []
    for method, ours, some in (("lspi", "lspi", 30), ("crossfit", "default (crossfit)", 10)):
        settings = EstimatorSettings(method=method, projections=32, whole_up_to=0)
        seed = 0
        found = seek_avoid_values(batch, packed, ACTIONS, settings, seed)  # compiles
        fast = seconds(lambda s=settings: seek_avoid_values(batch, packed, ACTIONS, s, 0), repeats) / goals
        rng = np.random.default_rng(seed)  # the same projections and halves
        draws = observation_features(batch.observation, batch.next_observation, 32, 0, 1 if method == "lspi" else 3, rng)
        picked = np.linspace(0, goals - 1, some).astype(int)
        plain: list[Any] = []
        if method == "lspi":

            def slow(draws: Any = draws, s: Any = settings, picked: Any = picked, plain: Any = plain) -> None:
                plain[:] = lspi_seek_avoid(
                    *(draws[0][0], batch.action, draws[0][1], batch.terminated, attained[:, picked], ACTIONS),
                    s.discount, s.policy_iterations, s.ridge,
                )  # fmt: skip
        else:
            numbers = CrossfitSettings(**{f.name: getattr(settings, f.name) for f in fields(CrossfitSettings)})
            order = rng.permutation(n)

            def slow(draws: Any = draws, numbers: Any = numbers, order: Any = order, picked: Any = picked,
                     plain: Any = plain) -> None:
                plain[:] = crossfit_seek_avoid(
                    draws, batch.action, batch.terminated, attained[:, picked], ACTIONS, numbers, order)
        slow_seconds = seconds(slow, min(repeats, 3)) / some
        values = found.seek_max, found.seek_mean, found.avoid_mean
        apart = max(np.nanmax(np.abs(ours_[picked] - theirs)) for ours_, theirs in zip(values, plain, strict=True))
        case = f"{ours}: {goals:,} goals, {n:,} transitions, 32 projections, {ACTIONS} actions"
        rows.append({"case": case, "value": 1 / fast, "unit": "goals/s", "reference": 1 / slow_seconds,
                     "ratio": slow_seconds / fast})
        rows.append({"case": f"{method}: largest difference from the plain version, {some} goals", "value": float(apart),
                     "unit": "", "reference": 0.0, "ratio": None})
    return rows


def refresh(quick: bool) -> list[dict[str, Any]]:
    """A whole refresh of many goals, most of them ANDs, and the memory it took; in an easy and in a hard mixture of ANDs.

    any: two goals that were mastered, whichever they are, as recombination draws them; few are ever on together.
    together: ANDs of two to four bits that were on together in some earlier transition, so that every goal was observed.
    """
    from protogoal.goals.evaluator import PGESettings, ProtoGoalEvaluator
    from protogoal.goals.values import EstimatorSettings

    goals = 10_000 if quick else 100_000
    settings = PGESettings(estimator=EstimatorSettings(projections=32, whole_up_to=0), max_goals=goals, recombinations=0)
    batch = batch_of(1024, ACTIONS)
    past = batch_of(20 * 1024, ACTIONS, seed=1)
    rows = []
    for mixture in ("any", "together"):
        rng = np.random.default_rng(0)
        evaluator = ProtoGoalEvaluator(THINGS * SIDE * SIDE, ACTIONS, settings, 0)
        evaluator.observe(past.bits, np.zeros(len(past.action)))
        evaluator.refresh(batch_of(256, ACTIONS))  # compiles
        table = evaluator.table
        mastered = list(range(table.size))
        while table.size < goals:
            if mixture == "any":
                first, *others = (mastered[i] for i in rng.integers(len(mastered), size=2))
            else:
                first, *others = rng.permutation(np.flatnonzero(past.bits[rng.integers(len(past.bits))]))[: rng.integers(2, 5)]
            new: int | None = int(first)
            for other in others:
                new = None if new is None else table.add(new, int(other))
            if new is not None and rng.random() < 0.02:
                mastered.append(new)  # what was made is mastered in turn, at times
        for data in (past, batch):
            evaluator.observe(data.bits, np.zeros(len(data.action)))
        observed = table.count > 0
        distinct = len(np.unique(table.attained_packed(batch.bits)[observed], axis=0))
        spent = seconds(lambda evaluator=evaluator: evaluator.refresh(batch), 1 if quick else 3)
        words = f"{goals:,} goals, ANDs of {mixture}: {observed.sum():,} observed, {distinct:,} columns differ"
        rows.append({"case": f"refresh: {words}", "value": spent, "unit": "s", "reference": 6.0, "ratio": 6.0 / spent})
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append({"case": "refresh: most memory of the process", "value": memory, "unit": "MB", "reference": 1024.0,
                 "ratio": 1024.0 / memory})
    return rows


def growth(quick: bool) -> list[dict[str, Any]]:
    """Milliseconds a goal as one size doubles at a time; reference: 256 goals, 1,024 transitions, 32 projections, 4 actions."""
    from protogoal.goals.table import pack_columns
    from protogoal.goals.values import EstimatorSettings, seek_avoid_values

    base = {"goals": 256, "transitions": 1024, "projections": 32, "actions": 4}
    rows = []
    for method in ("lspi", "crossfit"):
        reference = np.nan
        for changed in (None, *base):
            size = dict(base) if changed is None else {**base, changed: 2 * base[changed]}
            if quick:
                size["goals"] //= 4
            batch = batch_of(size["transitions"], size["actions"])
            packed = pack_columns(distinct_columns(batch.bits, size["goals"]))
            settings = EstimatorSettings(method=method, projections=size["projections"], whole_up_to=0)

            def work(batch: Any = batch, packed: Any = packed, size: Any = size, settings: Any = settings) -> None:
                seek_avoid_values(batch, packed, size["actions"], settings, 0)

            work()
            spent = seconds(work, 2 if quick else 4) / size["goals"] * 1e3
            reference = spent if changed is None else reference
            words = "as the reference" if changed is None else f"twice the {changed}"
            rows.append({"case": f"{method}: cost of a goal, {words}", "value": spent, "unit": "ms", "reference": reference,
                         "ratio": spent / reference})
    return rows


if __name__ == "__main__":
    parts = {"estimators": estimators, "refresh": refresh, "growth": growth}
    print(json.dumps(parts[sys.argv[1]]("quick" in sys.argv[2:])))
