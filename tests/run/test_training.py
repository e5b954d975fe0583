import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reference.tiny_deep import TINY

from protogoal.cli import main
from protogoal.presets import PRESETS
from protogoal.record.events import Recorder
from protogoal.record.store import Store, StoreReader
from protogoal.run import checkpoint, training
from protogoal.run.directory import RunDirectory


def final_state(path):
    return checkpoint.load_latest(path / "checkpoints")[1]


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return np.array_equal(a, b, equal_nan=isinstance(a, np.ndarray) and a.dtype.kind == "f")


OPTIONS = ["--steps", "60000", "--learning.eval_every", "500", "--learning.eval_episodes", "10"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    assert main(["train", "taxi-protogoal", "--run", str(path), *OPTIONS]) == 0
    return path


def metrics(path):
    with sqlite3.connect(path / "run.db") as database:
        return database.execute("SELECT name, step, value FROM metrics ORDER BY name, step").fetchall()


def test_the_same_seed_gives_the_same_run(uninterrupted, tmp_path):
    assert main(["train", "taxi-protogoal", "--run", str(tmp_path / "again"), *OPTIONS]) == 0
    assert metrics(tmp_path / "again") == metrics(uninterrupted)
    assert same(final_state(tmp_path / "again"), final_state(uninterrupted))


def run_until(path, number, delay, how):
    """Begins the run, or goes on with it, in a process that ends at its `number`th checkpoint from there."""
    code = (f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from reference.dying import die_at;"
            f"die_at({number}, {delay}, {int(how)}); from protogoal.cli import main; sys.exit(main(sys.argv[1:]))")
    arguments = ["resume", str(path)] if path.exists() else ["train", "taxi-protogoal", "--run", str(path), *OPTIONS]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert 0 <= newest(path) < 60_000
    return done


def newest(path):
    return max((int(found.name) for found in (path / "checkpoints").glob("[0-9]*")), default=-1)


def test_killed_at_random_moments_a_run_resumes_to_the_bit(uninterrupted, tmp_path):
    path = tmp_path / "killed"
    rng = np.random.default_rng()
    for _ in range(2):  # of about 120 steps that may be saved
        assert run_until(path, rng.integers(2, 40), rng.uniform(0.0, 0.02), signal.SIGKILL).returncode == -signal.SIGKILL
    assert main(["resume", str(path)]) == 0
    assert same(final_state(path), final_state(uninterrupted))
    assert metrics(path) == metrics(uninterrupted)


def test_ctrl_c_leaves_a_run_that_can_be_read_and_resumed(uninterrupted, tmp_path):
    path = tmp_path / "stopped"
    done = run_until(path, 5, 0.0, signal.SIGINT)
    assert done.returncode == 0
    assert "stopped; go on with: protogoal resume" in done.stdout
    assert status(path) == "stopped"
    assert main(["goals", str(path)]) == 0
    assert main(["eval", str(path), "--episodes", "5"]) == 0
    assert main(["report", str(path), "--out", str(tmp_path / "stopped.html")]) == 0
    assert main(["resume", str(path)]) == 0
    assert same(final_state(path), final_state(uninterrupted))


def test_a_stopped_run_records_how_good_it_was(tmp_path):
    class Stop(Recorder):
        def progress(self, step, facts):
            if step and "the last evaluation:" not in facts:
                os.kill(os.getpid(), signal.SIGINT)

    config = replace(TINY, threads=1, evaluation=replace(TINY.evaluation, every=10**9, final_episodes=7))
    assert not training.train(tmp_path / "run", "tiny", config, record=[Stop()])
    stopped = newest(tmp_path / "run")
    assert 0 < stopped < config.steps
    with sqlite3.connect(tmp_path / "run" / "run.db") as database:
        assert database.execute("SELECT step, episodes FROM evaluations WHERE step > 0").fetchall() == [(stopped, 7)]


def test_a_recorder_that_fails_to_close_leaves_the_others_theirs(tmp_path):
    closed = []

    class Closing(Recorder):
        def close(self, status):
            closed.append(status)

    class Failing(Recorder):
        def close(self, status):
            raise OSError("the line is dead")

    config = PRESETS["taxi-qlearning"].__class__(agent="qlearning", steps=2000)
    with pytest.raises(OSError, match="the line is dead"):
        training.train(tmp_path / "run", "taxi-qlearning", config, record=[Closing(), Failing()])
    assert (closed, status(tmp_path / "run")) == (["finished"], "finished")


def test_a_run_without_a_checkpoint_starts_again_from_its_configuration(tmp_path):
    config = PRESETS["taxi-qlearning"].__class__(agent="qlearning", steps=3000)
    RunDirectory.create(tmp_path / "early", "taxi-qlearning", config)  # killed before anything else was written
    assert training.resume(tmp_path / "early")
    assert training.train(tmp_path / "whole", "taxi-qlearning", config)
    assert newest(tmp_path / "early") == 3000
    assert same(final_state(tmp_path / "early"), final_state(tmp_path / "whole"))
    assert metrics(tmp_path / "early") == metrics(tmp_path / "whole")


def test_every_preset_field_survives_config_json(tmp_path):
    for name, config in PRESETS.items():
        RunDirectory.create(tmp_path / name, name, config)
        assert RunDirectory.open(tmp_path / name).config == config
        assert os.listdir(tmp_path / name) == ["config.json"]


def test_stopped_before_the_first_step_a_run_tests_at_step_0_once(uninterrupted, tmp_path, monkeypatch):
    class Killed(Exception):
        pass

    def die(*_, **__):
        raise Killed

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "save", die)
    path = tmp_path / "run"
    with pytest.raises(Killed):  # at the first checkpoint, which comes after the first step and not before
        main(["train", "taxi-protogoal", "--run", str(path), *OPTIONS])
    monkeypatch.undo()
    assert main(["resume", str(path)]) == 0
    assert same(final_state(path), final_state(uninterrupted))
    assert metrics(path) == metrics(uninterrupted)


def status(path):
    with StoreReader(path / "run.db") as store:
        return store.meta()["status"]


def test_a_run_killed_between_its_last_checkpoint_and_its_end_is_finished_by_resume(uninterrupted, tmp_path, capsys):
    path = tmp_path / "run"
    shutil.copytree(uninterrupted, path)
    Store.open(path / "run.db").close("stopped")
    assert status(path) == "stopped"
    assert main(["resume", str(path)]) == 0
    assert "already" in capsys.readouterr().out
    assert status(path) == "finished"


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(tmp_path, monkeypatch):
    write, tries = checkpoint.save, []

    def full(*arguments, **options):
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("cannot write the checkpoint: no space left on device")
        write(*arguments, **options)

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "save", full)
    with pytest.warns(UserWarning, match="the run goes on: cannot write"):
        assert main(["train", "taxi-protogoal", "--run", str(tmp_path / "run"), "--steps", "3000"]) == 0
    assert checkpoint.load_latest(tmp_path / "run" / "checkpoints")[0] == 3000
