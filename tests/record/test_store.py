"""The run's SQLite file: written by one process, read by others, bounded, and never lost with the writer."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protogoal.record import goal_rows, store, table_limits
from protogoal.record.schema import SCHEMA_VERSION, STATE
from protogoal.record.statistics import wilson_interval
from protogoal.record.store import Store, StoreReader

BITS = 6


def snapshot(size: int = BITS, **columns: object) -> dict[str, np.ndarray]:
    """Goals 0 … size − 1, all of them told of."""
    return {"id": np.arange(size), "declared": size, **goal_rows.untouched(size),
            **{name: np.asarray(value) for name, value in columns.items()}}


def name(goal: int) -> tuple:
    if goal < BITS:
        return f"baba at ({goal // 3},{goal % 3})", "baba", (goal // 3, goal % 3), (goal,), ()
    return "", "and", None, (0, goal - BITS), (0, goal - BITS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def stored(path: Path, sql: str, *parameters: object) -> list[tuple]:
    with StoreReader(path) as reader:
        return reader.rows(sql, parameters)


def test_what_is_written_is_read_back(path):
    with Store.create(path, {"preset": "taxi-protogoal", "seed": 3}) as run:
        run.metrics(10, {"loss": 0.5, "speed": float("nan")})
        run.evaluation(10, episodes=20, successes=5, mean_return=0.25)
        run.event(10, "first win")
        run.pursuits(10, [2, 3], [True, False], [7, 9])
        run.clip(10, "pursuit", 2, True, b"GIF89a...")
        run.refresh(10, snapshot(count=[4, 0, 0, 0, 0, 0], verdict=[6, 0, 0, 0, 0, 0]), name, seconds=0.2)
    with StoreReader(path) as reader:
        meta = reader.meta()
        assert (meta["preset"], meta["seed"], meta["status"], meta["schema"]) == ("taxi-protogoal", 3, "finished", SCHEMA_VERSION)
        assert reader.rows("SELECT name, step, value FROM metrics") == [("loss", 10, 0.5), ("speed", 10, None)]
        low, high = wilson_interval(5, 20)
        assert reader.rows("SELECT successes, low, high FROM evaluations") == [(5, low, high)]
        assert reader.rows("SELECT step, goal, success, length FROM pursuits") == [(10, 2, 1, 7), (10, 3, 0, 9)]
        assert reader.records("SELECT kind, goal, gif FROM clips") == [
            {"kind": "pursuit", "goal": 2, "gif": b"GIF89a..."}
        ]
        assert reader.rows("SELECT text FROM events") == [("first win",)]
        sql = "SELECT name, kind, row, col, members, count, seek_max, observed_step FROM goals WHERE id IN (0, 4)"
        assert reader.rows(sql) == [
            ("baba at (0,0)", "baba", 0, 0, "[0]", 4, None, 10),
            ("baba at (1,1)", "baba", 1, 1, "[4]", 0, None, None),
        ]


def test_an_and_goal_is_named_after_its_members(path):
    with Store.create(path) as run:
        run.refresh(1, snapshot(BITS + 5), name)
    (row,) = stored(path, "SELECT name, members, parents FROM goals WHERE id = ?", BITS + 4)
    assert row == ("baba at (0,0) AND baba at (1,1)", "[0, 4]", "[0, 4]")


def test_a_word_gets_its_name_when_it_is_first_observed(path):
    words: dict[int, str] = {}

    def word(goal: int) -> tuple:
        return words.get(goal, f"word {goal} (not seen)"), "word", None, (goal,), ()

    with Store.create(path) as run:
        run.refresh(1, snapshot(2), word)
        words[1] = "boulder"
        run.refresh(2, snapshot(2, count=[0, 1]), word)
    assert stored(path, "SELECT name, created_step, observed_step FROM goals") == [
        ("word 0 (not seen)", 1, None),
        ("boulder", 1, 2),
    ]


def test_the_funnel_counts_every_stage(path):
    verdict, count = [0, 1, 2, 3, 4, 5, 6, 6, 0], [0, 0, 5, 5, 5, 5, 5, 5, 0]
    offered, mastered = [0, 0, 0, 0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0]
    state = snapshot(9, count=count, verdict=verdict, offered=offered, mastered=mastered)
    with Store.create(path) as run:
        run.refresh(7, state, name)
        state["seek_max"][4] = 0.2  # the paper's rule: what is not reached is not asked for control
        run.refresh(8, state, name)
    sql = "SELECT declared, observed, undecided, controllable, plausible, offered, mastered FROM refreshes"
    assert stored(path, sql) == [(9, 7, 1, 3, 2, 3, 1), (9, 7, 1, 2, 2, 3, 1)]


def test_only_what_is_told_of_has_a_row_and_the_rest_is_a_number(path):
    """A million goals are declared, three were observed; without pruning all of them are plausible."""
    some = snapshot(3, count=[4, 2, 1], verdict=[6, 6, 6], id=[7, 500_000, 999_999], declared=1_000_000)
    with Store.create(path) as run:
        tracemalloc.start()
        run.refresh(5, {**some, "plausible": 1_000_000}, lambda goal: (f"bit {goal}", "bit", None, (goal,), ()))
        assert tracemalloc.get_traced_memory()[1] < 500_000  # bytes, at most at once
        tracemalloc.stop()
    told = [(7, "bit 7", 4), (500_000, "bit 500000", 2), (999_999, "bit 999999", 1)]
    assert stored(path, "SELECT id, name, count FROM goals") == told
    assert stored(path, "SELECT declared, observed, plausible FROM refreshes") == [(1_000_000, 3, 1_000_000)]


@pytest.mark.parametrize("ids", [[2, 1], [1, 1], [-1, 2], [1, 6]])
def test_ids_that_are_none_are_refused(path, ids):
    with Store.create(path) as run, pytest.raises(ValueError, match="must ascend and lie in 0…5"):
        run.refresh(1, snapshot(2, id=ids, declared=6), name)


def test_many_new_goals_are_named_a_few_at_a_time_with_their_state_and_all_at_the_end(path, monkeypatch):
    monkeypatch.setattr(store, "NAMES_PER_REFRESH", 2)
    state = snapshot(count=[1, 2, 3, 4, 5, 6], verdict=[2, 6, 2, 6, 2, 2])
    run = Store.create(path)
    for step, told in ((1, [(1, 2), (3, 4)]), (2, [(0, 1), (1, 2), (2, 3), (3, 4)])):
        run.refresh(step, state, name)
        run.flush()
        assert stored(path, "SELECT id, count FROM goals") == told
    run.close()
    assert [row[0] for row in stored(path, "SELECT count FROM goals")] == [1, 2, 3, 4, 5, 6]


def test_the_table_of_goals_has_a_bound_and_the_likeliest_are_in_it(path, monkeypatch):
    monkeypatch.setattr(store, "GOALS", 3)
    with Store.create(path) as run:
        for step in range(3):
            run.refresh(step, snapshot(count=np.ones(BITS), verdict=[2, 2, 6, 5, 2, 6]), name)
    assert [row[0] for row in stored(path, "SELECT id FROM goals")] == [2, 3, 5]
    assert stored(path, "SELECT observed FROM refreshes LIMIT 1") == [(6,)]


def test_a_goal_offered_without_having_been_observed_is_told_and_withdrawn(path):
    with Store.create(path) as run:
        run.refresh(1, snapshot(1, id=[3], declared=6, verdict=[6], offered=[1], bucket=[0]), name)
        run.refresh(2, snapshot(0, declared=6), name)
    assert stored(path, "SELECT id, offered, bucket, observed_step FROM goals") == [(3, 0, -1, None)]


def test_a_static_goal_is_observed_though_it_never_turned_on(path):
    with Store.create(path) as run:
        run.refresh(3, snapshot(2, verdict=[1, 0]), name)
    assert stored(path, "SELECT observed_step FROM goals") == [(3,), (None,)]


def test_goals_nobody_has_met_have_no_history_and_nothing_known(path):
    values = {column: np.full(2, np.nan) for column in ("seek_max", "seek_mean", "avoid_mean")}
    zeros = {column: np.zeros(2) for column in STATE} | values | {"p": np.ones(2), "bucket": [-1, -1], "count": [0, 4]}
    zeros |= {"id": np.arange(2), "declared": 2}
    with Store.create(path) as run:
        run.refresh(3, zeros, name)
    assert stored(path, "SELECT goal FROM goal_history") == [(1,)]
    sql = "SELECT reward_mean, success, chance, events, nats, p FROM goals"
    assert stored(path, sql) == [(None,) * 6, (0.0, *(None,) * 5)]


def test_history_has_a_row_only_where_a_goal_changed_materially(path):
    with Store.create(path) as run:
        for step, count, seek in [(1, 100, 0.6), (2, 101, 0.62), (3, 120, 0.64), (4, 125, 0.64), (5, 126, 0.70)]:
            run.refresh(step, snapshot(1, count=[count], verdict=[6], events=[50.0], nats=[seek]), name)
        run.refresh(6, snapshot(1, count=[127], verdict=[2], events=[50.0], nats=[0.70]), name)
    assert stored(path, "SELECT step, count FROM goal_history") == [(1, 100), (4, 125), (5, 126), (6, 127)]
    assert stored(path, "SELECT count, updated_step FROM goals") == [(127, 6)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), min_size=4, max_size=4), min_size=1, max_size=8), st.integers(1, 3))
def test_goals_that_wait_their_turn_are_exact_in_the_end(tmp_path_factory, counts, limit):
    path = tmp_path_factory.mktemp("store") / "run.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "GOAL_ROWS_PER_REFRESH", limit)
        patch.setattr(store, "HISTORY_ROWS_PER_REFRESH", limit)
        with Store.create(path) as run:
            for step, count in enumerate(counts):
                run.refresh(step, snapshot(4, count=count), name)
    assert [row[0] for row in stored(path, "SELECT count FROM goals ORDER BY id")] == counts[-1]


def test_a_goal_that_changed_its_verdict_does_not_wait():
    new, old = goal_rows.untouched(10), goal_rows.untouched(10)
    new["count"][:] = 1
    new["verdict"][7] = 4
    waiting = goal_rows.changed(new, old)
    assert 7 in goal_rows.most_urgent(new, old, waiting, limit=1, turn=3)


def test_no_goal_waits_for_ever():
    new, old = goal_rows.untouched(10), goal_rows.untouched(10)
    new["count"][:] = 1
    waiting = np.ones(10, bool)
    turns = [goal_rows.most_urgent(new, old, waiting, limit=3, turn=turn) for turn in range(4)]
    assert set(np.concatenate(turns).tolist()) == set(range(10))


def test_every_table_keeps_its_bound(path, monkeypatch):
    for bound in ("METRIC_POINTS", "HISTORY_ROWS", "PURSUITS", "EVENTS"):
        monkeypatch.setattr(table_limits, bound, 16)
    monkeypatch.setattr(table_limits, "CLIPS_PER_KIND", 3)
    monkeypatch.setattr(table_limits, "CURVES", {"evaluations": 16, "refreshes": 16})
    with Store.create(path) as run:
        for step in range(100):
            run.metrics(step, {"loss": step})
            run.evaluation(step, 10, 5, 0.5)
            run.event(step, "x")
            run.pursuits(step, [1, 2], [0, 1], [3, 4])
            run.clip(step, "pursuit", 1, step % 2 == 0, b"GIF89a")
            run.refresh(step, snapshot(count=np.full(BITS, 2**step if step < 40 else 2**40)), name)
            run.flush()
    tables = {"metrics": 16, "evaluations": 16, "refreshes": 16, "events": 16, "pursuits": 16, "clips": 6}
    for table, bound in tables.items():
        (size,) = stored(path, f"SELECT count(*) FROM {table}")[0]
        assert bound / 2 <= size <= bound, table
    assert stored(path, "SELECT count(*) FROM goal_history")[0][0] <= 4 * BITS
    # A thinned curve still spans the run.
    assert stored(path, "SELECT min(step) FROM metrics")[0][0] == 0
    assert stored(path, "SELECT max(step) FROM refreshes")[0][0] == 99


def test_a_clip_that_is_too_large_is_told_and_not_kept(path, monkeypatch):
    monkeypatch.setattr(store, "CLIP_BYTES", 10)
    with Store.create(path) as run:
        run.clip(1, "pursuit", 1, True, b"GIF89a" + bytes(20))
        with pytest.raises(ValueError, match="no GIF"):
            run.clip(1, "pursuit", 1, True, b"<script>")
    assert stored(path, "SELECT count(*) FROM clips") == [(0,)]
    assert "not kept" in stored(path, "SELECT text FROM events")[0][0]


def test_a_resumed_run_forgets_what_it_will_live_again(path):
    def play(run: Store, steps: range) -> None:
        for step in steps:
            run.metrics(step, {"loss": step})
            run.evaluation(step, 10, step, 0.0)
            run.pursuits(step, [1], [1], [1])
            run.event(step, f"step {step}")
            count = np.arange(BITS + step) * 2**step
            run.refresh(step, snapshot(BITS + step, count=count, verdict=np.where(count > 0, 4, 0)), name)

    tables = ("metrics", "evaluations", "goals", "goal_history", "refreshes", "pursuits", "events")
    columns = {"metrics": "name, step, value", "evaluations": "step, successes", "events": "step, text"}
    columns |= {"pursuits": "step, goal", "refreshes": "step, declared, observed"}

    def everything(file: Path) -> dict[str, list[tuple]]:
        return {table: stored(file, f"SELECT {columns.get(table, '*')} FROM {table}") for table in tables}

    with Store.create(path) as run:
        play(run, range(5))
    uninterrupted = everything(path)
    other = path.with_name("other.db")
    with Store.create(other) as run:
        play(run, range(3))
        run.metrics(3, {"loss": -1.0})
        run.refresh(4, snapshot(BITS + 4, count=np.full(BITS + 4, 999), mastered=np.ones(BITS + 4)), name)
    with Store.open(other) as run:
        run.truncate_after(2)
        assert stored(other, "SELECT max(step) FROM metrics") == [(2,)]
        assert stored(other, "SELECT max(count), max(mastered) FROM goals") == [(7 * 4, 0)]
        play(run, range(3, 5))
    assert everything(other) == uninterrupted


def test_seconds_go_on_after_a_resume(path):
    now = [0.0]
    with Store.create(path, clock=lambda: now[0]) as run:
        now[0] = 1000.0
        run.metrics(1, {"loss": 1})
    with Store.open(path) as run:
        run.metrics(2, {"loss": 1})
    seconds = [row[0] for row in stored(path, "SELECT seconds FROM metrics ORDER BY step")]
    assert 1000 == seconds[0] <= seconds[1] < 1100


def test_a_reader_sees_new_numbers_while_the_run_writes(path):
    run = Store.create(path)
    with StoreReader(path) as reader:
        before = reader.revision()
        run.metrics(1, {"loss": 1.0})
        run.flush()
        assert reader.revision() > before
        assert reader.rows("SELECT value FROM metrics") == [(1.0,)]
        run.metrics(2, {"loss": 2.0})
        run.flush()
        assert len(reader.rows("SELECT value FROM metrics")) == 2
    run.close()


def test_a_reader_cannot_write(path):
    Store.create(path).close()
    with StoreReader(path) as reader, pytest.raises(ValueError, match="cannot be read"):
        reader.rows("DELETE FROM meta")


WRITER = """
import sys
from pathlib import Path
from protogoal.record.store import Store
run = Store.create(Path(sys.argv[1]))
for step in range(10**9):
    run.metrics(step, {"loss": 1.0})
    if step % 50 == 0:
        run.flush()
    if step == 500:
        print("ready", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_writer_leaves_a_file_that_opens(path, how):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, how)
    process.wait()
    process.stdout.close()
    assert stored(path, "SELECT count(*) FROM metrics")[0][0] >= 400
    assert stored(path, "PRAGMA integrity_check") == [("ok",)]
    with Store.open(path) as run:
        run.metrics(10**9, {"loss": 2.0})
    assert stored(path, "SELECT value FROM metrics WHERE step = ?", 10**9) == [(2.0,)]


def test_a_second_writer_is_refused_in_one_line(path):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        with pytest.raises(ValueError, match="another process"):
            Store.open(path)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_full_disk_is_one_warning_and_nothing_is_lost_when_there_is_room_again(path):
    run = Store.create(path)
    pages = run._connection.execute("PRAGMA page_count").fetchone()[0]
    run._connection.execute(f"PRAGMA max_page_count = {pages}")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(3):
            run.clip(step, "pursuit", 1, True, b"GIF89a" + bytes(50_000))
            run.flush()
    assert len(told) == 1
    assert "training goes on" in str(told[0].message)
    run._connection.execute("PRAGMA max_page_count = 1000000")
    run.close()
    assert stored(path, "SELECT count(*) FROM clips") == [(3,)]


def test_goals_forgotten_on_a_full_disk_are_told_anew(path, monkeypatch):
    monkeypatch.setattr(store, "QUEUE_ROWS", 2)
    run = Store.create(path)
    run._connection.execute("PRAGMA max_page_count = 1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(3):
            for index in range(2000):
                run.event(step, f"filler {index} " + "x" * 200)
            run.refresh(step, snapshot(count=np.full(BITS, 3 + step)), name)
            run.flush()
    run._connection.execute("PRAGMA max_page_count = 1000000")
    run.refresh(9, snapshot(count=np.full(BITS, 9)), name)
    run.close()
    assert stored(path, "SELECT count, name FROM goals WHERE id = 5") == [(9, "baba at (1,2)")]


def test_what_is_no_run_is_refused_in_one_line(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        StoreReader(tmp_path)
    text = tmp_path / "text.db"
    text.write_text("hello " * 1000)
    with pytest.raises(ValueError, match="not a run's store"):
        StoreReader(text)
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(ValueError, match="not a run's store"):
        Store.open(empty)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    connection.close()
    with pytest.raises(ValueError, match="no schema version") as told:
        StoreReader(other)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("version", [0, 99])
def test_another_schema_is_refused_with_its_version(path, version):
    with Store.create(path) as run:
        run.set_meta("schema", version)
    for opener in (StoreReader, Store.open):
        with pytest.raises(ValueError, match=f"schema version {version}"):
            opener(path)


def test_a_store_damaged_in_the_middle_says_so_in_one_line(path):
    with Store.create(path) as run:
        for step in range(3000):
            run.metrics(step, {"loss": step})
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : 2 * len(data) // 3] = b"\xff" * (2 * len(data) // 3 - len(data) // 3)
    path.write_bytes(bytes(data))
    with StoreReader(path) as reader, pytest.raises(ValueError, match="damaged") as told:
        reader.rows("SELECT sum(value) FROM metrics")
    assert "\n" not in str(told.value)


def test_a_store_is_created_once(path):
    Store.create(path).close()
    with pytest.raises(ValueError, match="exists already"):
        Store.create(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"count": None}, "lacks count"), ({"verdict": np.zeros(3)}, "verdict"), ({"count": np.zeros((2, 3))}, "shape")],
)
def test_a_bad_snapshot_is_told_by_name(path, change, told):
    arrays = {key: value for key, value in {**snapshot(), **change}.items() if value is not None}
    with Store.create(path) as run, pytest.raises(ValueError, match=told):
        run.refresh(1, arrays, name)


def test_pursuits_of_different_lengths_are_refused(path):
    with Store.create(path) as run, pytest.raises(ValueError, match="different lengths"):
        run.pursuits(1, [1, 2], [True], [3, 4])


def test_the_writer_commits_by_itself_about_once_a_second(path, monkeypatch):
    monkeypatch.setattr(store, "COMMIT_SECONDS", 0.0)
    run = Store.create(path)
    run.metrics(1, {"loss": 1.0})
    assert stored(path, "SELECT count(*) FROM metrics") == [(1,)]
    monkeypatch.setattr(store, "COMMIT_SECONDS", 1000.0)
    run.metrics(2, {"loss": 1.0})
    time.sleep(0.01)
    assert stored(path, "SELECT count(*) FROM metrics") == [(1,)]
    run.close()


def test_meta_is_json(path):
    with Store.create(path, {"seeds": {"first": 5}}) as run:
        with pytest.raises(ValueError, match="JSON"):
            run.set_meta("x", float("nan"))
        run.set_meta("note", ["a", 1])
    with StoreReader(path) as reader:
        meta = reader.meta()
    assert meta["seeds"] == {"first": 5}
    assert meta["note"] == ["a", 1]
    json.dumps(meta)


def test_the_state_columns_are_those_of_the_snapshot():
    assert list(goal_rows.untouched(1)) == list(STATE)
