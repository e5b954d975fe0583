"""Environments with one thing wrong: each gives the line it must give, or is trained on as if nothing were."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from amount import FULL

pytest.importorskip("torch")

import bad_envs

from protogoal.cli import main
from protogoal.envs.gym_batch import GymBatchEnv
from protogoal.envs.user_envs import EnvReference, own_batch
from protogoal.record.store import StoreReader

HERE = Path(__file__).parent
ALONE = {"hangs", "hangs_deaf", "killed_for_memory", "leaves_at_once"}  # what would take this process with it
TINY = ["--actor.num_envs", "2", "--network.hidden", "16", "--network.rank", "8", "--learner.batch_size", "4",
        "--learner.min_replay", "60", "--refresh_every", "100", "--evaluation.every", "200", "--evaluation.episodes", "2",
        "--evaluation.final_episodes", "2", "--evaluation.max_steps", "50", "--steps", "300", "--threads", "1"]


@pytest.fixture(autouse=True)
def importable(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bad_envs.Leaks, "kept", [])


def spaces_of(kind):
    cls = bad_envs.KINDS[kind]
    return "any_cells" if getattr(cls, "needs_any_cells", False) else "cells"


def played(env, space, events):
    """What two copies give in 80 random steps."""
    batch = own_batch(f"bad_envs:{env}", f"bad_envs:{space}", 2, on_event=events.append)
    try:
        batch.reset(seed=3)
        rng = np.random.default_rng(0)
        for _ in range(80):
            batch.step(rng.integers(batch.num_actions, size=2))
    finally:
        batch.close()


@pytest.mark.parametrize("kind", bad_envs.SAID)
def test_what_is_wrong_is_said_with_environment_seed_and_step(kind):
    with pytest.raises(ValueError, match=bad_envs.SAID[kind]) as caught:
        played(kind, spaces_of(kind), [])
    rest = str(caught.value).splitlines()[1:]
    if kind.startswith("raises") and kind != "raises_many_lines":
        assert any("bad_envs.py" in line and "line " in line for line in rest)  # the user's own file and line, under ours
        assert not any("protogoal/envs" in line for line in rest)


@pytest.mark.parametrize("kind", sorted(bad_envs.KINDS.keys() - bad_envs.SAID.keys() - ALONE))
def test_what_is_not_wrong_enough_is_played(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        played(kind, spaces_of(kind), [])


@pytest.mark.parametrize("space", bad_envs.SPACES_SAID)
def test_wrong_proto_goals_are_one_line(space):
    with pytest.raises(ValueError, match=bad_envs.SPACES_SAID[space]):
        played("corridor", space, [])


def test_huge_rewards_are_played_without_a_word():
    events = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        played("reward_huge", "cells", events)
    assert not events


@pytest.mark.parametrize(("kind", "said"), [
    ("killed_for_memory", "was killed by SIGKILL"),
    ("leaves_at_once", "ended with exit code 7"),
    ("raises_runtime_error", r"failed: environment \d \(seed \d+, step \d+\) raised Runtime"),
])
def test_a_worker_that_dies_between_good_steps_is_started_again_and_its_reason_told(kind, said):
    events = []
    batch = own_batch(f"bad_envs:{kind}", "bad_envs:cells", 2, 1, on_event=events.append)
    batch.reset(seed=0)
    try:
        for _ in range(200):
            batch.step(np.ones(2, int))
        assert len(events) >= 3  # restarted each time, as good steps lay between
        assert re.search(said, events[0])
        assert "\n" not in events[0]
    finally:
        batch.close()


def test_a_worker_that_hangs_is_replaced():
    events = []
    batch = GymBatchEnv(EnvReference("bad_envs:hangs"), bad_envs.cells(None), 2, 1, on_event=events.append, timeout=1.0)
    batch.reset(seed=0)
    try:
        for _ in range(40):
            batch.step(np.ones(2, int))
        assert "did not answer for 1 s" in events[0]
    finally:
        batch.close()


def trained(kind, path, capsys, *more):
    words = ["train", "--env", f"bad_envs:{kind}", "--space", f"bad_envs:{spaces_of(kind)}", "--run", str(path), *TINY, *more]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = main(words)
    return code, capsys.readouterr().err


SOME = ["raises_value_error", "leaves_python", "reward_nan", "cell_beyond", "raises_when_closed", "goes_elsewhere",
        "actions_too_many"]


@pytest.mark.parametrize("kind", sorted(bad_envs.KINDS.keys() - ALONE) if FULL else SOME)
def test_from_the_command_line_it_is_exit_code_2_and_no_traceback_of_ours(kind, tmp_path, capsys):
    code, said = trained(kind, "run", capsys)
    assert code == (2 if kind in bad_envs.SAID else 0), said
    lines = [line for line in said.splitlines() if line.startswith("protogoal: ")]
    assert len(lines) == (1 if code else 0)
    assert "Traceback" not in said
    if code == 0:
        assert (tmp_path / "run" / "report.html").exists()


def test_an_environment_that_is_not_deterministic_begins_afresh_after_a_resume(tmp_path, capsys):
    assert trained("not_deterministic", "run", capsys)[0] == 0
    assert main(["resume", "run", "--steps", "600", "--trust"]) == 0
    with StoreReader(Path("run")) as reader:
        assert any("begin afresh" in text or "did not repeat" in text for (text,) in reader.rows("SELECT text FROM events"))
    assert json.loads(Path("run/config.json").read_text())["config"]["steps"] == 600
