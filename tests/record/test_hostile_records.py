"""Records that a stranger or a mishap made: half characters, formulas, endless views, text for numbers, a writer that is gone."""

import json
import socket
import sqlite3
import subprocess
import sys

import pytest

from protogoal.record.report_files import FigureFiles
from protogoal.record.store import Store, StoreReader
from protogoal.record.verify import check_record


def changed(path, sql):
    database = sqlite3.connect(path)
    database.executescript(sql)
    database.close()


@pytest.fixture
def record(tmp_path):
    with Store.create(tmp_path / "run.db", {"preset": "taxi"}) as store:
        store.metrics(1, {"loss": 0.5})
        store.event(1, "first win")
    return tmp_path / "run.db"


def test_half_a_character_in_a_name_is_written_as_a_question_mark(tmp_path):
    with Store.create(tmp_path / "run.db") as store:
        store.metrics(1, {"success/\ud800": 0.5})
        store.event(1, "the word \ud800 was read")
    with StoreReader(tmp_path / "run.db") as reader:
        assert reader.rows("SELECT name FROM metrics") == [("success/?",)]
        assert reader.rows("SELECT text FROM events") == [("the word ? was read",)]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"])
def test_a_name_that_is_a_formula_is_text_in_a_table(cell, tmp_path):
    files = FigureFiles(tmp_path)
    files.table("goals", [{"name": cell, "value": -1.5, "kind": "cell 3"}])
    files.write()
    assert (tmp_path / "goals.csv").read_text().splitlines()[1] == f"'{cell},-1.5,cell 3"


@pytest.mark.parametrize("sql", [
    "ALTER TABLE meta RENAME TO old; CREATE VIEW meta(key, value) AS WITH RECURSIVE r(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT 'schema', x FROM r WHERE x < 0",
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM evaluations; END",
])
def test_a_record_with_a_view_or_a_trigger_is_refused_before_it_computes(record, sql):
    changed(record, sql)
    for opening in (StoreReader, Store.open):
        with pytest.raises(ValueError, match="has a view or trigger"):
            opening(record)


def test_text_where_a_number_belongs_is_named(record):
    check_record(record)
    changed(record, "UPDATE events SET step = 'late'")
    with pytest.raises(ValueError, match=r"events.step holds text, a run writes 'integer'"):
        check_record(record)


def test_meta_that_is_no_json_is_named(record):
    changed(record, "UPDATE meta SET value = '{' WHERE key = 'preset'")
    with pytest.raises(ValueError, match="an entry of its table meta is no JSON"):
        check_record(record)


def test_a_run_whose_process_is_gone_is_not_running(record):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for process, status in ((gone.pid, "stopped"), (1, "running")):
        writer = json.dumps([socket.gethostname(), process])
        changed(record, f"UPDATE meta SET value = '\"running\"' WHERE key = 'status'; "
                        f"UPDATE meta SET value = '{writer}' WHERE key = 'process'")
        with StoreReader(record) as reader:
            assert reader.meta()["status"] == status


def test_a_sync_makes_a_revision_though_nothing_is_new(tmp_path):
    with Store.create(tmp_path / "run.db") as store:
        assert store.sync() + 1 == store.sync() == Store.revision_of(tmp_path / "run.db")
