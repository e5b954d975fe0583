"""The local engine on Baba: interrupted and resumed = uninterrupted, to the bit."""

import contextlib
import dataclasses
import json
import multiprocessing
import shutil
import signal
import sqlite3
import threading
import time

import numpy as np
import pytest
from reference.dying import die_at
from reference.tiny_deep import TINY, differences, steps_of

from protogoal.domains.minihack import RiverSettings
from protogoal.record.store import Store, StoreReader
from protogoal.run import checkpoint, training
from protogoal.run.directory import RunDirectory
from protogoal.run.local import LocalSession
from protogoal.run.log import RunLog


def final_state(path):
    state = checkpoint.load_latest(path / "checkpoints")[1]
    for name in ("seconds", "cpu_seconds"):  # the only parts that no two runs share
        state["log"].pop(name)
    return state


def recorded(path):
    """Everything a run wrote into its store, but for what depends on the clock."""
    with sqlite3.connect(path / "run.db") as database:
        read = {
            "metrics": "SELECT name, step, value FROM metrics WHERE name NOT LIKE 'time/%' AND name NOT LIKE '%_per_second' "
                       "AND name NOT LIKE 'recent/%'",
            "evaluations": "SELECT step, episodes, successes FROM evaluations",
            "pursuits": "SELECT step, goal, success, length FROM pursuits",
            "goals": "SELECT id, name, kind, count, pursuits, verdict FROM goals",
        }
        return {table: sorted(database.execute(sql).fetchall()) for table, sql in read.items()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    training.train(path, "tiny", TINY)
    return path


def run_or_resume(path, number, delay):
    die_at(number, delay, signal.SIGKILL)
    training.resume(path) if path.exists() else training.train(path, "tiny", TINY)


def killed(path, number, delay):
    """The exit code of a process that goes on with the run and is killed at its `number`th checkpoint, or soon after."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["protogoal.run.local", "torch._dynamo"])  # imported once, for all children
    process = context.Process(target=run_or_resume, args=(path, number, delay))
    process.start()
    process.join()
    return process.exitcode


def newest(path):
    return max((int(found.name) for found in (path / "checkpoints").glob("[0-9]*")), default=-1)


def test_killed_at_random_moments_a_deep_run_resumes_to_the_bit(uninterrupted, tmp_path):
    path = tmp_path / "killed"
    rng = np.random.default_rng()
    for _ in range(3):  # of 60 steps that may be saved
        assert killed(path, rng.integers(2, 15), rng.uniform(0.0, 0.05)) == -signal.SIGKILL
        assert 0 <= newest(path) < TINY.steps
    training.resume(path)
    assert differences(final_state(path), final_state(uninterrupted)) == []
    assert recorded(path) == recorded(uninterrupted)


def test_acting_and_learning_at_once_changes_nothing(uninterrupted, tmp_path):
    training.train(tmp_path / "in_turn", "tiny", dataclasses.replace(TINY, threads=1))
    assert differences(final_state(tmp_path / "in_turn"), final_state(uninterrupted)) == []


def test_where_learning_fails_environments_are_closed_only_after_the_window_under_way(monkeypatch):
    session, is_acting, at_close = LocalSession(TINY), threading.Event(), []
    act, close = session.agent.act, session.env.close

    def act_slowly(randomly):
        is_acting.set()
        time.sleep(0.1)
        experience = act(randomly)
        is_acting.clear()
        return experience

    def fail():
        assert is_acting.wait(60)
        raise ArithmeticError("no such loss")

    def close_environments():
        at_close.append(is_acting.is_set())
        close()

    monkeypatch.setattr(session.agent, "act", act_slowly)
    monkeypatch.setattr(session.agent, "learn", fail)
    monkeypatch.setattr(session.env, "close", close_environments)
    with pytest.raises(ArithmeticError, match="no such loss"), contextlib.closing(session):
        list(session.train())
    assert at_close == [False]


def test_a_run_is_complete_when_its_last_checkpoint_is_written(uninterrupted, capsys):
    training.resume(uninterrupted)
    assert "has reached its 1,200 steps already" in capsys.readouterr().out
    assert recorded(uninterrupted)["evaluations"][-1][0] == 1200


def test_a_finished_run_can_be_trained_on_as_if_it_had_been_meant_to(uninterrupted, tmp_path):
    longer = tmp_path / "longer"
    shutil.copytree(uninterrupted, longer)
    assert training.resume(longer, steps=2 * TINY.steps)
    training.train(tmp_path / "long", "tiny", dataclasses.replace(TINY, steps=2 * TINY.steps))
    ours, whole = (final_state(path)["agent"] for path in (longer, tmp_path / "long"))
    assert differences(ours, whole) == []
    assert RunDirectory.open(longer).config == dataclasses.replace(TINY, steps=2 * TINY.steps)
    record, before = (json.loads((path / "config.json").read_text()) for path in (longer, uninterrupted))
    assert record | {"config": record["config"] | {"steps": TINY.steps}, "checksum": before["checksum"]} == before
    with StoreReader(longer / "run.db") as store:
        assert store.meta()["total_steps"] == 2 * TINY.steps
        assert store.meta()["status"] == "finished"
    with pytest.raises(ValueError, match=r"--steps must be at least 2,400, which .* has made already; got 2,399"):
        training.resume(longer, steps=2 * TINY.steps - 1)
    assert RunDirectory.open(longer).config.steps == 2 * TINY.steps


def test_a_run_that_another_process_writes_to_keeps_its_number_of_steps(uninterrupted, tmp_path, monkeypatch):
    def in_use(path):
        raise ValueError(f"{path} is in use")

    longer = tmp_path / "longer"
    shutil.copytree(uninterrupted, longer)
    monkeypatch.setattr(Store, "open", in_use)
    with pytest.raises(ValueError, match="is in use"):
        training.resume(longer, steps=2 * TINY.steps)
    assert RunDirectory.open(longer).config.steps == TINY.steps


def test_the_weights_lie_beside_the_checkpoints_as_safetensors(uninterrupted):
    from safetensors.numpy import load_file

    weights = load_file(uninterrupted / "weights.safetensors")
    assert differences(weights, final_state(uninterrupted)["agent"]["acting_network"]) == []


def test_numbers_among_the_weights_keep_their_shape(tmp_path):
    from safetensors.numpy import load_file

    checkpoint.save_weights(tmp_path / "weights", {"policy": np.array(3), "rows": np.ones((2, 3)).T})
    found = load_file(tmp_path / "weights")
    assert found["policy"].shape == ()
    assert found["rows"].tolist() == [[1, 1]] * 3


def test_environments_that_cannot_be_saved_begin_afresh_and_say_so(tmp_path):
    def session():
        made = LocalSession(dataclasses.replace(TINY, steps=400))
        made.env.get_state = lambda: None
        return made

    with Store.create(tmp_path / "run.db") as store:
        first = session()
        for _ in zip(range(15), steps_of(first, store), strict=False):
            pass
        state = first.state_dict()
        assert state["agent"]["actor"]["env"] is None
        second = session()
        second.load_state_dict(state)
        assert second.step == first.step
        for _ in steps_of(second, store):
            pass
        store.flush()
    with sqlite3.connect(tmp_path / "run.db") as database:
        events = [text for (text,) in database.execute("SELECT text FROM events")]
    assert events == ["the environments could not be restored: all episodes begin afresh"]


def test_minihack_repeats_the_episodes_it_was_in(tmp_path):
    pytest.importorskip("minihack")
    config = dataclasses.replace(TINY, env=RiverSettings(max_steps=30, workers=0, vocabulary=64), steps=260)
    one = LocalSession(config)
    with Store.create(tmp_path / "run.db") as store:
        steps = steps_of(one, store)
        for _ in range(11):
            next(steps)
        state = one.state_dict()
        checkpoint.save(tmp_path / "checkpoints", one.step, state)
        two = LocalSession(config)
        two.load_state_dict(checkpoint.load_latest(tmp_path / "checkpoints")[1])
        acted = [session.agent.act(randomly=True).segments.arrays() for session in (one, two)]
    assert differences(*acted) == []
    one.close()
    two.close()


def test_a_checkpoint_of_another_run_or_version_is_refused_in_one_line(uninterrupted, tmp_path):
    other = RunDirectory.create(tmp_path / "other", "another-preset", TINY)
    (uninterrupted / "checkpoints").rename(other.checkpoints)
    try:
        with pytest.raises(ValueError, match="its preset is tiny, this run's is another-preset"):
            training.resume(other.path)
        same = RunDirectory.create(tmp_path / "wider", "tiny", dataclasses.replace(
            TINY, network=dataclasses.replace(TINY.network, hidden=32), steps=5000))
        other.checkpoints.rename(same.checkpoints)
        with pytest.raises(ValueError, match=r"^the checkpoint in .* does not fit this run: .*shape"):
            training.resume(same.path)
        same.checkpoints.rename(other.checkpoints)
        manifest = max(other.checkpoints.glob("[0-9]*")) / "manifest.json"
        written = manifest.read_text()
        manifest.write_text(json.dumps(json.loads(written) | {"format": 0, "version": "0.0.1", "checksum": None}))
        with pytest.raises(ValueError, match=r"has format 0 \(written by protogoal 0.0.1\)"):
            training.resume(other.path)
        manifest.write_text(written)
    finally:
        other.checkpoints.rename(uninterrupted / "checkpoints")


def test_a_run_whose_checkpoints_are_all_damaged_does_not_begin_again_in_silence(tmp_path):
    run = RunDirectory.create(tmp_path / "run", "tiny", TINY)
    for step in (1, 2):
        file = checkpoint.save(run.checkpoints, step, {"x": np.zeros(9)}, run.about) / "arrays.npz"
        file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(ValueError, match="no other is left"), pytest.warns(UserWarning, match="trying the one before"):
        training.resume(run.path)


def test_the_log_counts_cpu_seconds_over_a_resume():
    log = RunLog()
    log.load_state_dict(RunLog().state_dict() | {"cpu_seconds": 100.0})
    assert 100.0 <= log.cpu_seconds < 160.0
    assert log.metrics(10)["time/cpu_seconds"] >= 100.0
    with pytest.raises(ValueError, match="cpu_seconds"):
        log.load_state_dict(RunLog().state_dict() | {"cpu_seconds": "much"})
