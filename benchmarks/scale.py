"""The Ray engine at the rate of the paper's 128 actors (260 steps a second each), with simulated actors.

First each component alone, as work of one core; then the engine as a whole, where the CPU time of each process says at what
rate it would be full. The reference is what 128 actors need, so a ratio above 1 keeps up. Weights are needed once in 16
updates, updates at one learned transition an acted one.
"""

from __future__ import annotations

from typing import Any

from protogoal.experiments import scaling_load, scaling_parts
from protogoal.experiments.scaling_load import NEEDED, REFRESHES_PER_SECOND


def run(quick: bool = False) -> list[dict[str, Any]]:
    config = scaling_load.paper_config()
    alone = scaling_parts.components(scaling_parts.Parts(config), least=0.1 if quick else 1.0)
    updates = NEEDED * config.learner.replay_ratio / (config.learner.batch_size * config.replay.trace_length)
    rows = [
        _row("counting bits and rewards", 1 / alone["count"], "steps/s a core", NEEDED),
        _row("insertion into replay", 1 / alone["insert"], "steps/s a core", NEEDED),
        _row("batches out of replay", 1 / alone["sample"], "transitions/s a core", NEEDED * config.learner.replay_ratio),
        _row("judging all goals", 1 / alone["refresh"], "refreshes/s", REFRESHES_PER_SECOND),
        _row("publishing a goal set", 1 / alone["goal set"], "versions/s", REFRESHES_PER_SECOND),
        _row("publishing weights", 1 / alone["weights"], "versions/s", updates / 16),
    ]
    measured = scaling_load.drive(rate=2_000 if quick else 8_000, seconds=3.0 if quick else 15.0)
    rows += [
        _row(f"whole engine: {process} full at", measured.achieved / cpus, "steps/s", NEEDED)
        for process, cpus in measured.load.items()
        if process not in ("workers", "player", "Ray itself") and cpus > 0  # 0: less than the clock can tell
    ]
    return [*rows, _row("whole engine: rate kept", measured.achieved, "steps/s", measured.offered)]


def _row(case: str, value: float, unit: str, needed: float) -> dict[str, Any]:
    return {"case": case, "value": value, "unit": unit, "reference": needed, "ratio": value / needed}
