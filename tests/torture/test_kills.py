"""Killed at any moment, again and again, a run of every domain ends as the one that nobody touched, to the bit."""

import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from amount import amount
from reference.tiny_deep import TINY, TINY_AGENT57, differences

pytest.importorskip("torch")

from protogoal.domains.deep_sea import DeepSeaSettings
from protogoal.domains.minihack import RiverSettings
from protogoal.domains.user_env import OwnSettings
from protogoal.presets import PRESETS
from protogoal.run import checkpoint, training
from protogoal.run.directory import RunDirectory

HERE = Path(__file__).parent
OWN = dataclasses.replace(TINY, env=OwnSettings("bad_envs:corridor", "bad_envs:cells"), steps=1600)
RIVER = dataclasses.replace(TINY, env=RiverSettings(max_steps=30, workers=1), steps=800)
SEA = dataclasses.replace(TINY, env=DeepSeaSettings(size=5))
TAXI = dataclasses.replace(PRESETS["taxi-protogoal"], steps=60_000)
CONFIGS = {"baba": TINY, "agent57": TINY_AGENT57, "own": OWN, "river": RIVER, "deep-sea": SEA, "taxi": TAXI}
KILLS = {"baba": amount(0, 20), "agent57": amount(0, 20), "own": amount(2, 20), "river": amount(0, 10), "deep-sea": amount(0, 15),
         "taxi": amount(0, 15)}
CODE = """
import sys
sys.path[:0] = sys.argv[2:4]
from pathlib import Path
from protogoal.run import training, trust
import test_kills
training.CHECKPOINT_SECONDS, training.CHECKPOINT_SHARE = 0.02, 1.0
path, name = Path(sys.argv[1]), sys.argv[4]
if path.exists():
    training.resume(path, granted=trust.EVERYTHING)
else:
    training.train(path, name, test_kills.CONFIGS[name])
"""


def start(path, name):
    command = [sys.executable, "-c", CODE, str(path), str(HERE), str(HERE.parent), name]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)


def final_state(path):
    state = checkpoint.load_latest(path / "checkpoints")[1]
    for name in ("seconds", "cpu_seconds"):
        state.get("log", {}).pop(name, None)
    return state


def recorded(path):
    with sqlite3.connect(path / "run.db") as database:
        return [database.execute(sql).fetchall() for sql in (
            "SELECT step, episodes, successes FROM evaluations ORDER BY step",
            "SELECT id, name, count, verdict FROM goals ORDER BY id",
            "SELECT step, goal, success, length FROM pursuits ORDER BY id")]


@pytest.mark.parametrize("name", [name for name, kills in KILLS.items() if kills])
def test_killed_again_and_again_a_run_ends_as_if_nobody_had(name, tmp_path, monkeypatch):
    if name == "river":
        pytest.importorskip("minihack")
    monkeypatch.syspath_prepend(str(HERE))
    training.train(tmp_path / "whole", name, CONFIGS[name])
    rng, path, killed = np.random.default_rng(), tmp_path / "killed", 0
    while killed < KILLS[name]:
        process = start(path, name)
        deadline = time.monotonic() + 120
        while not (path / "config.json").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 4.0 if (path / "checkpoints").exists() else 6.0))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        else:
            assert process.returncode == 0, f"it ended by itself with code {process.returncode}"
        if process.returncode == 0 and killed and checkpoint.load_latest(path / "checkpoints")[0] >= CONFIGS[name].steps:
            compare(path, tmp_path / "whole")  # it had time to end: once more from the start
            path = tmp_path / f"killed-{killed}"
        process.wait()
    process = start(path, name)
    assert process.wait(timeout=300) == 0
    compare(path, tmp_path / "whole")


def compare(path, whole):
    assert differences(final_state(path), final_state(whole)) == []
    ours, theirs = recorded(path), recorded(whole)
    assert ours[:2] == theirs[:2]
    if "taxi" not in RunDirectory.open(whole).preset:  # so many pursuits that a commit keeps the newest
        assert ours[2] == theirs[2]
