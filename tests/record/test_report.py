"""The report: one file that needs nothing else, and the figures and tables beside it."""

import csv
import re
import subprocess
import sys

import pytest
from PIL import Image
from synthetic_runs import Bit, FakeRun

from protogoal.record import report_data
from protogoal.record.report import report
from protogoal.record.store import Store, StoreReader

EVIL = '</script><script>window.evil = 1</script><img src=x onerror="window.evil = 1">'


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "all.html"
    report([runs["baba"], runs["taxi"], runs["qlearning"]], out)
    return out


def test_nothing_is_loaded_from_anywhere(written):
    page = written.read_text()
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', page)
    assert not re.findall(r"url\((?!#)", page)
    addresses = set(re.findall(r"https?://[\w./-]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names of formats, never fetched


def test_each_figure_is_there_as_png_and_csv(written):
    folder = written.with_name("all_files")
    names = {file.name for file in folder.iterdir()}
    assert {"success.png", "success.csv", "metrics.png", "metrics.csv", "funnel-baba.png", "funnel-baba.csv", "goals-baba.csv",
            "maps-baba-verdict.png", "maps-baba-count.png", "maps-baba-success.png", "maps-baba-control.png",
            "pictures-baba.csv", "maps-taxi-count.png",
            "list-taxi-passenger.png", "list-taxi-destination.png"} <= names
    assert not [name for name in names if name.startswith(".")]
    for file in folder.glob("*.png"):
        with Image.open(file) as image:
            assert min(image.size) > 100


def test_the_tables_have_the_numbers_of_the_store(written, runs):
    folder = written.with_name("all_files")
    with StoreReader(runs["baba"]) as reader:
        stored = reader.rows("SELECT id, name, count FROM goals ORDER BY id")
        evaluations = reader.rows("SELECT step, low FROM evaluations ORDER BY step")
    with open(folder / "goals-baba.csv", newline="") as file:
        assert [(int(row["id"]), row["name"], int(row["count"])) for row in csv.DictReader(file)] == stored
    with open(folder / "success.csv", newline="") as file:
        rows = [(int(row["step"]), float(row["low"])) for row in csv.DictReader(file) if row["run"] == "baba"]
    assert rows == evaluations


def test_a_run_without_goals_has_a_report(runs, tmp_path):
    report([runs["qlearning"]], tmp_path / "deep" / "q.html")
    page = (tmp_path / "deep" / "q.html").read_text()
    assert "This run has no goals" in page
    assert "seed" not in page or "qlearning" in page


def test_an_empty_run_has_a_report(tmp_path):
    Store.create(tmp_path / "run.db").close()
    report([tmp_path], tmp_path / "report.html")
    assert "has not been played yet" in (tmp_path / "report.html").read_text()


def test_names_are_data(tmp_path):
    bits = [Bit(EVIL, EVIL, (0, i), 1.0) for i in range(3)] + [Bit(EVIL, "w" + EVIL, None, 1.0)]
    FakeRun(tmp_path / "run", EVIL, bits, total=6).play()
    report([tmp_path / "run"], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<img src=x" not in page
    assert page.count("</script>") == 2  # the data's and the script's own
    assert page.count("<script") == 2


def test_a_big_run_makes_a_bounded_report(tmp_path, monkeypatch):
    monkeypatch.setattr(report_data, "ROWS", 20)
    monkeypatch.setattr(report_data, "CELLS", 60)
    FakeRun(tmp_path / "run", "p", [Bit(f"{k}{i}", k, (i // 8, i % 8), 1.0) for k in "abc" for i in range(48)], total=3).play()
    report([tmp_path / "run"], tmp_path / "report.html", beside=False)
    page = (tmp_path / "report.html").read_text()
    assert "The 20 most counted of 14" in page
    assert '"left_out":2' in page
    assert not (tmp_path / "report_files").exists()


def test_what_is_no_run_is_one_line(tmp_path, runs):
    with pytest.raises(ValueError, match="does not exist"):
        report([tmp_path], tmp_path / "report.html")
    with pytest.raises(ValueError, match="at least one run"):
        report([], tmp_path / "report.html")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot write"):
        report([runs["qlearning"]], tmp_path / "file" / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_the_report_needs_the_light_core_only(runs, tmp_path):
    """No dash, no plotly, no torch: importing them fails here, and the report is written all the same."""
    code = (
        "import sys\n"
        "for name in ('dash', 'plotly', 'torch', 'ray', 'pandas', 'flask'): sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from protogoal.record.report import report\n"
        "from protogoal.record.inspector import inspect\n"
        "report([Path(sys.argv[1])], Path(sys.argv[2]), beside=False)\n"
        "try: inspect([Path(sys.argv[1])])\n"
        "except ValueError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", code, str(runs["taxi"]), str(tmp_path / "r.html")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pip install 'protogoal[inspect]'" in done.stdout
    assert (tmp_path / "r.html").stat().st_size > 10_000
