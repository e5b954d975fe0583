"""Every file of a run with a bit flipped or its end cut: the run goes on to the very numbers it would have had, or says one line.

The record has no checksums of its own: what is asked of run.db is that no command ends in a traceback.
"""

import shutil
import warnings

import numpy as np
import pytest
from amount import amount
from reference.tiny_deep import differences

from protogoal import cli
from protogoal.run import checkpoint, training

FLIPS, CUTS = amount(5, 200), amount(2, 50)
STEPS = 6500  # the victim has made 6000
FILES = ["config.json", "manifest.json", "state.json", "arrays.npz", "run.db"]


def code_and_words(call, *arguments, **named):
    """What the command line would make of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*arguments, **named)
        return 0, ""
    except ValueError as error:
        return 2, str(error)
    except Exception as error:
        line = cli._trouble(error)
        if line is None:
            raise
        return 2, line


def evaluations(path):
    from protogoal.record.store import StoreReader

    with StoreReader(path / "run.db") as reader:
        return reader.rows("SELECT step, episodes, successes FROM evaluations ORDER BY step")


@pytest.fixture(scope="module")
def whole(victims, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    shutil.copytree(victims["taxi"], path)
    assert training.resume(path, steps=STEPS)
    return checkpoint.load_latest(path / "checkpoints")[1], evaluations(path)


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_bit_flipped_or_its_end_cut_never_gives_other_numbers(name, victims, whole, tmp_path, capsys):
    rng = np.random.default_rng(sum(name.encode()))
    ends = {0: 0, 2: 0}
    for attempt in range(FLIPS + CUTS):
        path = tmp_path / "run"
        shutil.copytree(victims["taxi"], path)
        file = path / name if (path / name).exists() else max((path / "checkpoints").iterdir()) / name
        data = bytearray(file.read_bytes())
        place = int(rng.integers(len(data)))
        if attempt < FLIPS:
            data[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(data if attempt < FLIPS else data[:place])
        where = f"{name}, {'flip' if attempt < FLIPS else 'cut'} at {place}"
        code, words = code_and_words(training.resume, path, steps=STEPS)
        assert code == 0 or words, where
        assert "\n" not in words, where
        ends[code] += 1
        if code == 0 and name != "run.db":
            assert differences(checkpoint.load_latest(path / "checkpoints")[1], whole[0]) == [], where
            assert evaluations(path) == whole[1], where
        if name == "run.db":
            for command in (["goals", str(path)], ["goals", str(path), "--json"]):
                assert cli.main(command) in (0, 2), where
                said = capsys.readouterr().err
                assert "Traceback" not in said, where
        shutil.rmtree(path)
    if name != "run.db":
        assert ends[2] > 0


def test_a_record_that_somebody_crafted_is_one_line(victims, tmp_path, capsys):
    import sqlite3

    crafted = {
        "a view without end": "ALTER TABLE meta RENAME TO m2; CREATE VIEW meta(key, value) AS WITH RECURSIVE r(x) AS "
                              "(SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT 'schema', x FROM r WHERE x < 0",
        "a trigger": "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM evaluations; END",
        "text for a number": "UPDATE goals SET count = 'many', verdict = 'good'",
        "a blob for a name": "UPDATE goals SET name = x'00ff'",
        "meta of no JSON": "UPDATE meta SET value = '{' WHERE key = 'preset'",
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
        for words in (["goals", str(path)], ["goals", str(path), "--why", "0"], page):
            code = cli.main(words)
            said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("protogoal: ")]
            assert (code, len(said)) in ((0, 0), (2, 1)), (what, words, said)
        shutil.rmtree(path)
