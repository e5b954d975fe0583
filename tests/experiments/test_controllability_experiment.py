"""The controllability experiment: its score, its files, and that figures come from the CSV alone."""

import numpy as np
import pytest

from protogoal.experiments import controllability
from protogoal.experiments.curves import read_csv


def test_f1_is_that_of_the_textbook():
    truth = np.array([True, True, True, False, False])
    called = np.array([True, True, False, True, False])
    assert controllability.f1_score(called, truth) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert controllability.f1_score(truth, truth) == 1
    assert controllability.f1_score(~truth, truth) == 0
    assert controllability.f1_score(np.zeros(2, bool), np.zeros(2, bool)) == 1


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(controllability, "_all", lambda jobs: (controllability.judge(*job) for job in jobs))


def test_it_writes_csv_figures_and_a_readme_and_draws_again_from_the_csv(in_this_process, tmp_path, capsys):
    out = tmp_path / "controllability"
    controllability.run("smoke", 1, out)
    rows = read_csv(out / "f1.csv")
    assert {(r["domain"], r["estimator"]) for r in rows} == {
        (d, e) for d in ("static", "timer", "distractor") for e in ("crossfit", "lspi")
    }
    assert all(0 <= float(r["f1"]) <= 1 for r in rows)
    figures = [out / name for name in ("threshold.png", "values.png", "data.png")]
    assert all(figure.read_bytes().startswith(b"\x89PNG") for figure in figures)
    readme = (out / "README.md").read_text()
    assert "protogoal reproduce controllability --scale smoke --seeds 1" in readme
    assert "| timer | crossfit | all |" in capsys.readouterr().out
    for figure in figures:
        figure.unlink()
    controllability.plot(out)
    assert all(figure.exists() for figure in figures)


def test_the_default_estimator_is_right_where_lspi_is_not():
    size = controllability.Size(1, (20,), controllability.MAIN)
    for domain in ("timer", "distractor"):
        rows, _ = controllability.judge(domain, 3, size)
        score = {(label, batch): f1 for _, _, label, batch, _, _, threshold, f1 in rows if threshold == 0.1}
        assert score["crossfit", "all"] >= 0.95
        assert score["lspi", "all"] <= 0.7


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(in_this_process, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write to"):
        controllability.run("smoke", 1, tmp_path / "file" / "below")
