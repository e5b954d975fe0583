"""Every file of a run with a bit flipped or its end cut: the run goes on to the very numbers it would have had, or says one line.

The record has no checksums of its own: what is asked of run.db is that no command ends in a traceback.
"""

import shutil
import sqlite3
import warnings

import numpy as np
import pytest
from amount import amount
from reference.tiny_deep import differences

from protogoal import cli
from protogoal.record.store import StoreReader
from protogoal.run import checkpoint

FLIPS, CUTS = {"taxi": amount(5, 200), "baba": amount(1, 60)}, {"taxi": amount(2, 50), "baba": amount(1, 15)}
STEPS = {"taxi": 6500, "baba": 1300}  # the victims have made 6000 and 1200
FILES = [("taxi", name) for name in ("config.json", "manifest.json", "state.json", "arrays.npz", "run.db")] + [
         ("baba", name) for name in ("config.json", "manifest.json", "state.json", "arrays.npz", "weights.safetensors", "run.db")]


def numbers(path):
    """What a run has come to: its last state but for its clocks, its weights, its evaluations."""
    state = checkpoint.load_latest(path / "checkpoints")[1]
    for name in ("seconds", "cpu_seconds"):
        state.get("log", {}).pop(name, None)
    weights = path / "weights.safetensors"
    with StoreReader(path / "run.db") as reader:
        played = reader.rows("SELECT step, episodes, successes FROM evaluations ORDER BY step")
    return {"state": state, "weights": np.frombuffer(weights.read_bytes() if weights.exists() else b"", np.uint8), "played": played}


def resumed(path, steps, capsys):
    """The exit code of `resume`, and the lines it said in the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = cli.main(["resume", str(path), "--steps", str(steps)])
    return code, [line for line in capsys.readouterr().err.splitlines() if line.startswith("protogoal: ")]


@pytest.fixture(scope="module")
def whole(victims, tmp_path_factory):
    """The numbers of each run as it goes on untouched."""
    found = {}
    for name, steps in STEPS.items():
        path = tmp_path_factory.mktemp("whole") / "run"
        shutil.copytree(victims[name], path)
        assert cli.main(["resume", str(path), "--steps", str(steps)]) == 0
        found[name] = numbers(path)
    return found


def test_the_files_named_here_are_all_there_are(victims):
    for name in STEPS:
        there = {path.name for path in victims[name].rglob("*") if path.is_file()}
        beside = {"run.db.lock", "run.db-wal", "run.db-shm", "report.html"}  # a lock, SQLite's own, and what another test drew
        assert there - beside == {file for run, file in FILES if run == name}


@pytest.mark.parametrize(("run", "name"), FILES)
def test_a_file_with_a_bit_flipped_or_its_end_cut_never_gives_other_numbers(run, name, victims, whole, tmp_path, capsys):
    rng = np.random.default_rng(sum(name.encode()))
    flips, cuts = FLIPS[run], CUTS[run]
    said_so = 0
    for attempt in range(flips + cuts):
        path = tmp_path / "run"
        shutil.copytree(victims[run], path)
        file = path / name if (path / name).exists() else max((path / "checkpoints").iterdir()) / name
        data = bytearray(file.read_bytes())
        place = int(rng.integers(len(data)))
        if attempt < flips:
            data[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(data if attempt < flips else data[:place])
        where = f"{run}, {name}, {'flip' if attempt < flips else 'cut'} at {place}"
        code, said = resumed(path, STEPS[run], capsys)
        assert (code, len(said)) in ((0, 0), (2, 1)), (where, code, said)
        said_so += code == 2
        if code == 0 and name != "run.db":
            assert differences(numbers(path), whole[run]) == [], where
        if name == "run.db":
            for command in (["goals", str(path)], ["goals", str(path), "--json"]):
                assert cli.main(command) in (0, 2), where
                assert "Traceback" not in capsys.readouterr().err, where
        shutil.rmtree(path)
    assert said_so > 0 or name in ("run.db", "weights.safetensors")  # weights are written anew, from the checkpoint


def test_a_record_that_somebody_crafted_is_one_line(victims, tmp_path, capsys):
    crafted = {
        "a view without end": "ALTER TABLE meta RENAME TO m2; CREATE VIEW meta(key, value) AS WITH RECURSIVE r(x) AS "
                              "(SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT 'schema', x FROM r WHERE x < 0",
        "a trigger": "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM evaluations; END",
        "text for a number": "UPDATE goals SET count = 'many', verdict = 'good'",
        "a blob for a name": "UPDATE goals SET name = x'00ff'",
        "meta of no JSON": "UPDATE meta SET value = '{' WHERE key = 'preset'",
        "a place outside its grid": "UPDATE goals SET col = -124 WHERE id = 3",
        "half a place": "UPDATE goals SET col = NULL WHERE id = 3",
        "a wild verdict": "UPDATE goals SET verdict = 99",
        "no goals": "DROP TABLE goals",
        "negative steps": "UPDATE evaluations SET step = -step",
    }
    for what, sql in crafted.items():
        path = tmp_path / "run"
        shutil.copytree(victims["taxi"], path)
        database = sqlite3.connect(path / "run.db")
        database.executescript(sql)
        database.close()
        page = ["report", str(path), "--out", str(tmp_path / "x.html")]
        for words in (["goals", str(path)], ["goals", str(path), "--why", "0"], page, ["resume", str(path)]):
            code = cli.main(words)
            said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("protogoal: ")]
            assert (code, len(said)) in ((0, 0), (2, 1)), (what, words, said)
        shutil.rmtree(path)
