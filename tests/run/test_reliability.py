"""Disks that fill up, processes that are killed between two writes, files in which a digit flips, two runs in one directory."""

import json
import multiprocessing
import os
import re
import shutil
import sqlite3
import stat
import sys
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from protogoal.cli import main
from protogoal.files import write_whole
from protogoal.presets import PRESETS
from protogoal.record.store import Store, StoreReader
from protogoal.run import checkpoint, training
from protogoal.run.checksums import seal, unseal
from protogoal.run.directory import RunDirectory
from protogoal.run.progress import Progress

OPTIONS = ["--steps", "6000", "--learning.eval_every", "500", "--learning.eval_episodes", "5"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "run"
    assert main(["train", "taxi-protogoal", "--run", str(path), *OPTIONS]) == 0
    return path


@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def one_line(capsys):
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith("protogoal: ")]
    assert len(lines) == 1, said
    assert "Traceback" not in said
    return lines[0]


# --- record and checkpoint belong together --------------------------------------------------------------------------------


def evaluations(path):
    with StoreReader(path / "run.db") as reader:
        return [row[0] for row in reader.rows("SELECT step FROM evaluations ORDER BY step")]


def test_no_checkpoint_is_written_while_the_record_cannot_be(tmp_path, monkeypatch):
    saved, refused = [], [True]
    save, flush = checkpoint.save, Store.flush

    def refusing(self, always=False):
        return False if refused[0] else flush(self, always)

    def saving(folder, step, *rest, **more):
        saved.append(step)
        return save(folder, step, *rest, **more)

    def progress(self, step, facts=None):
        refused[0] = step < 3000

    monkeypatch.setattr(Store, "flush", refusing)
    monkeypatch.setattr(checkpoint, "save", saving)
    monkeypatch.setattr(Store, "progress", progress)
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    with pytest.warns(UserWarning, match=r"no checkpoint at step 500, the run goes on: .*run.db cannot be written"):
        assert main(["train", "taxi-protogoal", "--run", str(tmp_path / "run"), *OPTIONS]) == 0
    assert min(saved) == 3000
    assert evaluations(tmp_path / "run") == list(range(0, 6001, 500))


def two_checkpoints(tmp_path, monkeypatch):
    """A run with checkpoints at 5500 and 6000, and the record as it was at each."""
    path, records = tmp_path / "run", {}
    save = checkpoint.save

    def keeping(folder, step, *rest, **more):
        records[step] = tmp_path / f"record-{step}"
        with closing(sqlite3.connect(path / "run.db")) as database, closing(sqlite3.connect(records[step])) as copy:
            database.backup(copy)
        return save(folder, step, *rest, **more)

    monkeypatch.setattr(checkpoint, "save", keeping)
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(training, "CHECKPOINT_SHARE", 1e9)
    assert main(["train", "taxi-protogoal", "--run", str(path), *OPTIONS]) == 0
    monkeypatch.undo()
    return path, records


def test_a_record_that_lost_its_end_is_resumed_from_the_checkpoint_that_it_reaches(tmp_path, monkeypatch):
    path, records = two_checkpoints(tmp_path, monkeypatch)
    whole = evaluations(path)
    shutil.copy(records[5500], path / "run.db")  # as a cut WAL leaves it
    with pytest.warns(UserWarning, match="the record has lost its end.*trying the one before"):
        assert main(["resume", str(path)]) == 0
    assert evaluations(path) == whole


def test_where_no_checkpoint_is_left_that_it_reaches_the_loss_is_said(tmp_path, monkeypatch):
    path, records = two_checkpoints(tmp_path, monkeypatch)
    shutil.copy(min(records.items())[1], path / "run.db")
    with pytest.warns(UserWarning, match="what it lost stays lost"):
        assert main(["resume", str(path), "--steps", "7000"]) == 0
    with StoreReader(path / "run.db") as reader:
        assert any("had lost its end" in row[0] for row in reader.rows("SELECT text FROM events"))


def refuse(*_):
    raise sqlite3.OperationalError("database or disk is full")


def test_rows_that_a_full_disk_made_us_forget_are_announced(tmp_path, monkeypatch):
    monkeypatch.setattr("protogoal.record.store.QUEUE_ROWS", 10)
    store = Store.create(tmp_path / "run.db")
    monkeypatch.setattr("protogoal.record.table_limits.TableLimits.keep", refuse)
    store.metrics(0, {"loss": 0.0})
    with pytest.warns(UserWarning, match="cannot be written"):
        store.flush()
    for step in range(100):
        store.metrics(step, {"loss": 0.0})
        store.flush()
    monkeypatch.undo()
    store.close()
    with StoreReader(tmp_path / "run.db") as reader:
        assert "rows of the record were forgotten" in reader.rows("SELECT text FROM events")[0][0]


# --- weights of a finished run ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    pytest.importorskip("torch")
    from reference.tiny_deep import TINY

    path = tmp_path_factory.mktemp("deep") / "run"
    training.train(path, "tiny", TINY)
    return path


@pytest.mark.parametrize("left", [None, b"old"])
def test_the_weights_of_a_finished_run_are_mended_by_resume(deep, tmp_path, left):
    path = tmp_path / "run"
    shutil.copytree(deep, path)
    whole = (path / "weights.safetensors").read_bytes()
    (path / "weights.safetensors").unlink()
    if left:
        (path / "weights.safetensors").write_bytes(left)
    assert training.resume(path)
    assert (path / "weights.safetensors").read_bytes() == whole


def test_all_files_of_a_run_have_the_same_mode(deep):
    modes = {stat.S_IMODE(file.stat().st_mode) for file in deep.rglob("*") if file.is_file()}
    assert len(modes) == 1


# --- checksums --------------------------------------------------------------------------------------------------------------


def test_a_digit_that_flips_in_the_configuration_is_noticed(deep, tmp_path, capsys):
    path = tmp_path / "run"
    shutil.copytree(deep, path)
    file = path / "config.json"
    file.write_text(file.read_text().replace('"replay_ratio": 1.0', '"replay_ratio": 5.0'))
    assert main(["resume", str(path)]) == 2
    assert "checksum" in one_line(capsys)


def test_who_edits_a_configuration_on_purpose_says_so(run):
    file = run / "config.json"
    record = json.loads(file.read_text())
    record["config"]["steps"] = 7000
    file.write_text(json.dumps(record | {"checksum": None}))
    assert RunDirectory.open(run).config.steps == 7000


@pytest.mark.parametrize("name", ["config.json", "checkpoints/000000006000/manifest.json"])
@pytest.mark.parametrize("form", [1, 2, 99, "x", None])
def test_files_of_another_format_are_refused_in_one_line(run, name, form, capsys):
    record = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps(record | {"format": form, "checksum": None}))
    assert main(["resume", str(run), "--steps", "7000"]) == 2
    assert f"has format {form}" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["step", "about", "version", "revision"])
def test_a_flip_in_a_manifest_takes_the_checkpoint_before(tmp_path, field):
    about = {"preset": "taxi"}
    checkpoint.save(tmp_path, 1, {"x": np.zeros(2)}, about)
    manifest = checkpoint.save(tmp_path, 2, {"x": np.ones(2)}, about) / "manifest.json"
    record = json.loads(manifest.read_text())
    record[field] = {"step": 3, "about": {"preset": "maxi"}, "version": "9", "revision": 77}[field]
    manifest.write_text(json.dumps(record))
    with pytest.warns(UserWarning, match="trying the one before"):
        assert checkpoint.load_latest(tmp_path, about)[0] == 1


MOVES_THE_CURSOR = "\x1b[2J\x1b[1A\r\u2028protogoal: all is well\nprotogoal: all is well"


@pytest.mark.parametrize("name", ["config.json", "checkpoints/000000006000/manifest.json"])
@pytest.mark.parametrize("field", ["format", "preset", "steps", "checksums"])
def test_words_in_a_file_neither_move_the_cursor_nor_pass_for_ours(run, name, field, capsys):
    record = json.loads((run / name).read_text())
    holder = record if field == "format" else record.get("config" if field == "steps" else "about", record)
    holder[field] = {MOVES_THE_CURSOR: MOVES_THE_CURSOR} if field == "checksums" else MOVES_THE_CURSOR
    (run / name).write_text(json.dumps(record | {"checksum": None}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(["resume", str(run), "--steps", "7000"])
    said = capsys.readouterr().err
    assert not {"\x1b", "\r", "\u2028"} & set(said)
    assert sum(line.startswith("protogoal: ") for line in said.splitlines()) <= 1
    assert not any(line.startswith("protogoal: all") for line in said.splitlines())


def test_a_name_that_looks_like_markup_is_drawn_as_it_is(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Progress(10, "[/x]") as bar:
        bar.update(5)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "NaN", "Infinity", "[" * 100_000, '{"a":' * 100_000, "3", '"x"', "", "\x00"])
def test_numbers_that_are_none_and_nesting_without_end_are_one_line(run, text, capsys):
    record = (run / "config.json").read_text()
    for content in (text, record.replace('"steps": 6000', f'"steps": {text}')):
        (run / "config.json").write_text(content)
        assert main(["eval", str(run)]) == 2
        assert "config.json is damaged" in one_line(capsys)


def test_a_sealed_record_comes_back():
    record = {"a": 1, "b": [0.1, "ü", None], "c": {"d": True}}
    assert unseal(seal(record).encode()) == json.loads(seal(record))


# --- dead ends --------------------------------------------------------------------------------------------------------------


def test_a_run_killed_while_its_store_is_made_can_be_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("protogoal.record.store.TABLES", "CREATE TABLE meta (key); nonsense")
    path = tmp_path / "run"
    assert main(["train", "taxi-qlearning", "--run", str(path), "--steps", "1000"]) == 2
    assert not (path / "run.db").exists()
    monkeypatch.undo()
    assert main(["resume", str(path)]) == 0


def test_what_a_killed_writer_left_does_not_take_a_directory(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / ".config.json.4711").write_text('{"form')
    (path / "run.db.lock").touch()
    assert main(["train", "taxi-qlearning", "--run", str(path), "--steps", "1000"]) == 0


def test_a_directory_that_is_no_run_is_not_sent_to_resume(tmp_path, capsys):
    (tmp_path / "thesis.tex").touch()
    assert main(["train", "taxi-qlearning", "--run", str(tmp_path)]) == 2
    assert "resume" not in one_line(capsys)


def full(*_, **__):
    raise OSError(28, "No space left on device", "somewhere")


def test_a_full_disk_is_one_line_whatever_the_command(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("protogoal.files.os.fsync", full)
    monkeypatch.setattr("protogoal.record.gif.encode_gif", full)
    for words in (["train", "taxi-qlearning", "--run", str(tmp_path / "new")], ["resume", str(run), "--steps", "9000"],
                  ["report", str(run), "--out", "/dev/full/x.html"]):
        assert main(words) == 2
        one_line(capsys)


def test_a_file_that_a_full_disk_does_not_take_is_named(tmp_path, monkeypatch):
    def full_without_a_name(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("protogoal.files.os.fsync", full_without_a_name)
    with pytest.raises(OSError, match=r"No space left on device: .*config\.json"):
        write_whole(tmp_path / "config.json", "{}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_one_line(run, capsys):
    run.chmod(0o555)
    try:
        assert main(["resume", str(run), "--steps", "9000"]) == 2
        one_line(capsys)
    finally:
        run.chmod(0o755)


@pytest.mark.parametrize("damage", ["empty", "noise", "cut", "page"])
def test_a_damaged_record_is_one_line_and_can_be_moved_away(run, damage, capsys):
    file = run / "run.db"
    data = bytearray(file.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    if damage == "page":
        data[page: 12 * page] = os.urandom(11 * page)
    file.write_bytes({"empty": b"", "noise": os.urandom(5000), "cut": data[: len(data) // 2], "page": data}[damage])
    for words in (["resume", str(run), "--steps", "7000"], ["goals", str(run)]):
        assert main(words) == 2
        one_line(capsys)
    file.unlink()
    with pytest.warns(UserWarning, match="the record has lost its end"):
        assert main(["resume", str(run), "--steps", "7000"]) == 0


@pytest.mark.skipif(os.name != "posix", reason="no pipes that are files there")
@pytest.mark.parametrize("name", ["run.db.lock", "weights.safetensors", "checkpoints/000000006000/manifest.json",
                                  "checkpoints/000000006000/arrays.npz"])
def test_a_pipe_or_a_device_in_place_of_a_file_is_never_waited_for(run, name, capsys):
    for put in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        (run / name).unlink(missing_ok=True)
        put(run / name)
        assert main(["resume", str(run), "--steps", "7000"]) == 2
        assert f"{name} is no file but a pipe or a device" in one_line(capsys)


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_a_link_where_a_file_is_written_first_leads_to_no_other_file(run, tmp_path):
    (tmp_path / "mine").write_text("mine")
    for name in ("config.json", "report.html"):
        (run / f".{name}.{os.getpid()}").symlink_to(tmp_path / "mine")
    assert main(["resume", str(run), "--steps", "7000"]) == 0
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_directory_removed_under_a_run_is_noticed(tmp_path, monkeypatch, capsys):
    path = tmp_path / "run"
    update = training.Progress.update

    def removing(self, step, **facts):
        update(self, step, **facts)
        if step == 1000:
            shutil.rmtree(path)

    monkeypatch.setattr(training.Progress, "update", removing)
    monkeypatch.setattr(training.time, "monotonic", iter(range(0, 10**9, 2)).__next__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["train", "taxi-qlearning", "--run", str(path), *OPTIONS]) == 2
    assert "was removed or moved" in one_line(capsys)
    assert not path.exists()


@pytest.mark.parametrize("error", [MemoryError("100 GB"), RecursionError(), sqlite3.OperationalError("disk I/O error"),
                                   PermissionError(13, "Permission denied", "x")], ids=lambda e: type(e).__name__)
def test_what_a_machine_can_do_to_a_command_is_one_line(monkeypatch, error, capsys):
    def fail(*_):
        raise error

    monkeypatch.setattr("protogoal.api.load", fail)
    assert main(["eval", "x"]) == 2
    one_line(capsys)


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("protogoal.api.load", fail)
    with pytest.raises(ZeroDivisionError):
        main(["eval", "x"])


# --- two at once ------------------------------------------------------------------------------------------------------------


def create(path, seed, start, answers):
    import dataclasses

    start.wait()
    try:
        RunDirectory.create(path, "taxi-protogoal", dataclasses.replace(PRESETS["taxi-protogoal"], seed=seed))
        answers.put(seed)
    except ValueError as error:
        answers.put(str(error))


def test_of_two_that_begin_in_one_directory_one_is_refused(tmp_path):
    context = multiprocessing.get_context("fork")
    for attempt in range(10):
        start, answers = context.Event(), context.Queue()
        both = [context.Process(target=create, args=(tmp_path / str(attempt), seed, start, answers)) for seed in (1, 2)]
        for process in both:
            process.start()
        start.set()
        found = [answers.get(timeout=30) for _ in both]
        for process in both:
            process.join()
        winners = [answer for answer in found if isinstance(answer, int)]
        assert len(winners) == 1, found
        assert RunDirectory.open(tmp_path / str(attempt)).config.seed == winners[0]
        assert os.listdir(tmp_path / str(attempt)) == ["config.json"]


@pytest.mark.parametrize("name", ["000000009600-best", "9600", "000000000001x", ".writing-mine", "best"])
def test_what_a_user_puts_beside_the_checkpoints_stays(tmp_path, name):
    kept = tmp_path / name
    kept.mkdir()
    (kept / "notes.txt").write_text("my best")
    for step in (1, 2, 3, 4):
        checkpoint.save(tmp_path, step, {"step": step})
    assert (kept / "notes.txt").read_text() == "my best"
    assert checkpoint.load_latest(tmp_path)[0] == 4
    assert sorted(p.name for p in Path(tmp_path).iterdir() if p.name != name) == ["000000000003", "000000000004"]


# --- systems that lack something ----------------------------------------------------------------------------------------------


def test_without_hard_links_creation_is_still_exclusive(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("protogoal.files.os.link", no_links)
    RunDirectory.create(tmp_path / "run", "taxi-protogoal", PRESETS["taxi-protogoal"])
    assert os.listdir(tmp_path / "run") == ["config.json"]
    monkeypatch.setattr(RunDirectory, "check_free", staticmethod(lambda path: None))  # as if both had looked before
    with pytest.raises(ValueError, match="another process has begun a run there"):
        RunDirectory.create(tmp_path / "run", "taxi-protogoal", PRESETS["taxi-protogoal"])


@pytest.mark.skipif(os.name != "posix", reason="other locks there")
def test_a_file_system_without_locks_has_no_run_rather_than_two(tmp_path, monkeypatch):
    import fcntl

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    with pytest.raises(ValueError, match="has no locks, choose another"):
        Store.create(tmp_path / "run.db")


@pytest.mark.parametrize(("words", "said"), [
    (["--run", "a" * 300], "File name too long"),
    (["--pge.p_task", "("], r"could not convert string to float: '\('"),
])
def test_names_that_no_disk_takes_and_values_cut_short_are_one_line(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "taxi-protogoal", "--steps", "1000", *words]) == 2
    line = capsys.readouterr().err.strip()
    assert re.search(said, line)
    assert len(line.splitlines()) == 1
