"""What the checks cost that hold environments and disks to their word, as a share of a training run's CPU time.

One run, of an environment so cheap that checks weigh as much as they ever do; every check is timed where it is called, in CPU
seconds of its thread, and so is the run in those of the process. Other work on the machine changes neither. The clock itself is
counted as the check: a share is an upper bound of what a run without that check would save. The run saves itself once, which a
longer one does once a minute.
"""

from __future__ import annotations

import contextlib
import functools
import io
import pkgutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "envs"))  # own_corridor

CHECKS = {
    "shape and type of observations": ["protogoal.envs.episodes.fitting", "protogoal.envs.episodes.part_of"],
    "range of observations": ["protogoal.envs.observed.Limits.check"],
    "finite rewards": ["protogoal.envs.gym_batch.GymBatchEnv.check_rewards"],
    "ids of bits": ["protogoal.goals.spaces.check_ids"],
    "checksums": ["protogoal.run.checkpoint.hashlib.file_digest", "protogoal.run.checkpoint.seal"],
    "record on disk before a checkpoint": ["protogoal.record.store.Store.sync"],
    "the directory is still there": ["protogoal.run.directory.RunDirectory.is_there"],
}


def run(quick: bool = False) -> list[dict[str, Any]]:
    from protogoal.domains.user_env import own_environment
    from protogoal.run import training
    from protogoal.settings import with_fields

    steps = 1_000 if quick else 20_000
    small = {"network.hidden": 16, "learner.min_replay": 200, "replay.capacity": 5_000} if quick else {}
    config = with_fields(own_environment("own_corridor:make", "own_corridor:cells"), {
        "steps": steps, "threads": 1, "evaluation.every": steps, "evaluation.episodes": 4, "evaluation.final_episodes": 4, **small})
    spent: Counter[str] = Counter()
    quiet = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as patched, quiet:
        training.train(Path(folder) / "first", "checks", with_fields(config, {"steps": 1_000}), record=())  # compiles
        for check, names in CHECKS.items():
            for name in names:
                patched.enter_context(_timed(name, check, spent))
        start = time.process_time()
        training.train(Path(folder) / "run", "checks", config, record=())
        whole = time.process_time() - start
    rows = [_row(check, spent[check], whole, steps) for check in CHECKS]
    return [*rows, _row("all checks", sum(spent.values()), whole, steps)]


def _timed(name: str, check: str, spent: Counter[str]) -> Any:
    """Patches a function, a method or a property with one that adds what it takes to `spent`."""
    place, _, last = name.rpartition(".")
    found = vars(pkgutil.resolve_name(place))[last]
    function = found.fget if isinstance(found, property) else found

    @functools.wraps(function)
    def timed(*arguments: Any, **named: Any) -> Any:
        start = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            spent[check] += time.thread_time() - start

    return mock.patch(name, property(timed) if isinstance(found, property) else timed)


def _row(case: str, seconds: float, whole: float, steps: int) -> dict[str, Any]:
    thousands = steps / 1_000
    return {"case": case, "value": 1e3 * seconds / thousands, "unit": "ms/1,000 steps", "reference": 1e3 * whole / thousands,
            "ratio": seconds / whole}
