"""The paper's estimator of seek and avoid values: goals a second, against the plain version of tests/reference/, on one thread.

`protogoal bench pge` calls `run`. All is measured in a process of its own with one thread for matrix products, in CPU
seconds, the best of a few repeats. The batch: ten things on a 10×10 grid, of which the first obeys the actions and the
others drift; 1,000 proto-goals "this thing in this cell". Columns are made distinct, so that nothing is gained by solving
equal columns once. What pruning by trials costs, `benchmarks/pruning.py` says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
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
    for part in ("estimators", "growth"):
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
    """Goals a second of LSPI and of its plain version; 1,024 transitions, 32 projections, 5 actions."""
    from reference.lspi import lspi_seek_avoid

    from protogoal.goals.features import observation_features
    from protogoal.goals.values import EstimatorSettings, seek_avoid_values

    goals, n, some = (200, 1024, 30) if quick else (1000, 1024, 30)
    repeats = 2 if quick else 5
    batch, settings = batch_of(n, ACTIONS), EstimatorSettings()
    attained = distinct_columns(batch.bits, goals)
    found = seek_avoid_values(batch, attained, ACTIONS, settings, 0)  # compiles
    fast = seconds(lambda: seek_avoid_values(batch, attained, ACTIONS, settings, 0), repeats) / goals
    rng = np.random.default_rng(0)  # the same projections
    z, z_next = observation_features(batch.observation, batch.next_observation, settings.projections, 0, rng)
    picked = np.linspace(0, goals - 1, some).astype(int)
    plain: list[Any] = []

    def slow() -> None:
        plain[:] = lspi_seek_avoid(z, batch.action, z_next, batch.terminated, attained[:, picked], ACTIONS,
                                   settings.discount, settings.policy_iterations, settings.ridge)

    slow_seconds = seconds(slow, min(repeats, 3)) / some
    values = found.seek_max, found.seek_mean, found.avoid_mean
    apart = max(np.nanmax(np.abs(ours[picked] - theirs)) for ours, theirs in zip(values, plain, strict=True))
    case = f"lspi: {goals:,} goals, {n:,} transitions, {settings.projections} projections, {ACTIONS} actions"
    return [{"case": case, "value": 1 / fast, "unit": "goals/s", "reference": 1 / slow_seconds, "ratio": slow_seconds / fast},
            {"case": f"lspi: largest difference from the plain version, {some} goals", "value": float(apart), "unit": "",
             "reference": 0.0, "ratio": None}]


def growth(quick: bool) -> list[dict[str, Any]]:
    """Milliseconds a goal as one size doubles at a time; reference: 256 goals, 1,024 transitions, 32 projections, 4 actions."""
    from protogoal.goals.values import EstimatorSettings, seek_avoid_values

    base = {"goals": 256, "transitions": 1024, "projections": 32, "actions": 4}
    rows = []
    reference = np.nan
    for changed in (None, *base):
        size = dict(base) if changed is None else {**base, changed: 2 * base[changed]}
        if quick:
            size["goals"] //= 4
        batch = batch_of(size["transitions"], size["actions"])
        attained = distinct_columns(batch.bits, size["goals"])
        settings = EstimatorSettings(projections=size["projections"])

        def work(batch: Any = batch, attained: Any = attained, size: Any = size, settings: Any = settings) -> None:
            seek_avoid_values(batch, attained, size["actions"], settings, 0)

        work()
        spent = seconds(work, 2 if quick else 4) / size["goals"] * 1e3
        reference = spent if changed is None else reference
        words = "as the reference" if changed is None else f"twice the {changed}"
        rows.append({"case": f"lspi: cost of a goal, {words}", "value": spent, "unit": "ms", "reference": reference,
                     "ratio": spent / reference})
    return rows


if __name__ == "__main__":
    parts = {"estimators": estimators, "growth": growth}
    print(json.dumps(parts[sys.argv[1]]("quick" in sys.argv[2:])))
