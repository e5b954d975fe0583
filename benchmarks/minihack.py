"""MiniHack's river: steps a second of one game and of a batch, against MiniHack's own environment and AsyncVectorEnv.

`protogoal bench minihack` calls `run`. Random policy everywhere. `python -m benchmarks.minihack EPISODES FILE.csv`
plays whole episodes of the six scenarios at random and writes how many were won, and the words that were read (-P keeps
this file from standing in the way of the package it is named after).
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
import psutil

from protogoal.envs.minihack import RiverEnv, river_batch
from protogoal.envs.minihack.game import SCENARIOS

SIX = [("narrow-river", m) for m in range(5)] + [("wide-river-lava", 0)]


def minihack_env(scenario: str = "narrow-river", monsters: int = 0) -> gymnasium.Env:
    """MiniHack's own environment, with the observations that ours is made of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from minihack.envs.river import MiniHackRiver
    return MiniHackRiver(observation_keys=("glyphs", "blstats", "message"), n_monster=monsters, **SCENARIOS[scenario])


def rate_of_one(env: gymnasium.Env, seconds: float) -> float:
    """Steps a second of one environment, resets included."""
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in rng.integers(0, 8, 100).tolist():
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        steps += 100
    rate = steps / (time.perf_counter() - start)
    env.close()
    return rate


class Rate(NamedTuple):
    """Steps a second by the clock, and by the time that all processes together spent computing.

    The second one is fair on a busy machine too, where many processes get more of it than few.
    """

    clock: float
    cpu: float


def cpu_seconds() -> float:
    """Of this process and everything it started."""
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (me, *me.children(recursive=True)))


def rate_of_batch(step: Callable[[np.ndarray], object], num_envs: int, seconds: float) -> Rate:
    """Steps a second of a batch, over all its environments."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        step(rng.integers(0, 8, num_envs))
    steps, start, spent = 0, time.perf_counter(), cpu_seconds()
    while time.perf_counter() - start < seconds:
        step(rng.integers(0, 8, num_envs))
        steps += num_envs
    return Rate(steps / (time.perf_counter() - start), steps / (cpu_seconds() - spent))


def async_rate(factory: Callable[[], gymnasium.Env], num_envs: int, seconds: float) -> Rate:
    """Gymnasium's AsyncVectorEnv: a process for each environment, shared memory."""
    batch = gymnasium.vector.AsyncVectorEnv([factory] * num_envs, shared_memory=True,
                                            autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    try:
        batch.reset(seed=0)
        return rate_of_batch(batch.step, num_envs, seconds)
    finally:
        batch.close()


def run(quick: bool = False) -> list[dict]:
    seconds = 1.0 if quick else 5.0
    one, theirs = rate_of_one(RiverEnv("narrow-river"), seconds), rate_of_one(minihack_env(), seconds)
    rows = [{"case": "one river, this package against MiniHack", "value": one, "unit": "steps/s", "reference": theirs,
             "ratio": one / theirs}]
    for num_envs in (16,) if quick else (16, 64):
        reference = async_rate(partial(RiverEnv, "narrow-river"), num_envs, seconds)
        for num_workers in (0, 1, 2):
            batch = river_batch("narrow-river", 0, num_envs, num_workers)
            batch.reset(seed=0)
            rate = rate_of_batch(batch.step, num_envs, seconds)
            batch.close()
            case = f"{num_envs} rivers with bits, {num_workers} workers, against AsyncVectorEnv"
            for unit, ours, theirs in zip(("steps/s", "steps/CPU-s"), rate, reference, strict=True):
                rows.append({"case": case, "value": ours, "unit": unit, "reference": theirs, "ratio": ours / theirs})
    return rows


def random_policy(episodes: int) -> list[dict]:
    """Endings of a random policy in the six scenarios, and the words it reads (last page of the message, as in the paper)."""
    rows = []
    for scenario, monsters in SIX:
        batch = river_batch(scenario, monsters, num_envs=16)
        batch.reset(seed=0)
        rng = np.random.default_rng(0)
        ended = won = died = cut = steps = 0
        start = time.perf_counter()
        while ended < episodes:
            step = batch.step(rng.integers(0, 8, 16))
            steps += 16
            wins = int((step.terminated & (step.reward > 0)).sum())
            won, died, cut = won + wins, died + int(step.terminated.sum()) - wins, cut + int(step.truncated.sum())
            ended = won + died + cut
        rows.append({"scenario": scenario, "monsters": monsters, "episodes": ended, "won": won, "died": died, "step_limit": cut,
                     "steps": steps, "seconds": round(time.perf_counter() - start, 1), "words": len(batch.space.vocabulary),
                     "vocabulary": " ".join(sorted(batch.space.vocabulary))})
        batch.close()
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    table = random_policy(int(sys.argv[1]))
    target = Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]))
        writer.writeheader()
        writer.writerows(table)
