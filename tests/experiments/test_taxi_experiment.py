"""The Taxi experiment: CSV, figures from the CSV alone, resumption, words."""

import json

import pytest

from protogoal.experiments import taxi
from protogoal.experiments.arms import Scale


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A tiny experiment, in this process."""
    out = tmp_path_factory.mktemp("taxi") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(taxi.SCALES, "smoke", Scale(3_000, 2))
        patch.setattr(taxi, "cores", lambda: 1)
        taxi.run("smoke", None, out)
    return out


def test_raw_data_figures_and_words_are_written(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {"seeds", "curves.csv", "goal_space.csv", "goals.csv", "learning.png", "goal_space.png", "README.md",
                     "report.html"}
    text = (finished / "README.md").read_text()
    for words in ("protogoal reproduce taxi --scale smoke --seeds 2", "commit:", "t interval", "The paper:", "learning.png"):
        assert words in text
    assert "data:image/png;base64," in (finished / "report.html").read_text()


def test_the_csv_hold_every_test_and_every_proto_goal(finished):
    curves = taxi.read_csv(finished / "curves.csv")
    assert {(row["arm"], row["seed"]) for row in curves} == {(a, s) for a in taxi.AGENTS for s in "01"}
    assert [row["step"] for row in curves[:3]] == ["0", "2500", "3000"]
    goals = taxi.read_csv(finished / "goals.csv")
    assert len(goals) == 2 * 34
    places = [row["place"] for row in goals if row["seed"] == "0"]
    assert [places[i] for i in (13, 25, 29, 33)] == ["(2 3)", "R", "in taxi", "B"]
    assert {len(row["verdicts"]) for row in taxi.read_csv(finished / "goal_space.csv")} == {34}


def test_figures_are_redrawn_from_the_csv_alone(finished, tmp_path):
    for name in ("curves.csv", "goal_space.csv", "goals.csv"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    taxi.plot(tmp_path)
    for name in ("learning.png", "goal_space.png"):
        assert (tmp_path / name).read_bytes() == (finished / name).read_bytes()


def test_finished_seeds_are_skipped_and_changed_ones_are_trained_again(finished, monkeypatch):
    monkeypatch.setitem(taxi.SCALES, "smoke", Scale(3_000, 2))
    monkeypatch.setattr(taxi, "cores", lambda: 1)

    def written():
        return {path.name: path.stat().st_mtime_ns for path in (finished / "seeds").iterdir()}

    before, files = (finished / "goal_space.csv").read_text(), written()
    taxi.run("smoke", None, finished)
    assert written() == files
    damaged = finished / "seeds" / "protogoal-1.json"
    damaged.write_text(damaged.read_text()[:100])
    other = finished / "seeds" / "qlearning-0.json"
    other.write_text(json.dumps(json.loads(other.read_text()) | {"key": "something else"}))
    files = written()
    taxi.run("smoke", None, finished)
    assert {name for name, time in written().items() if time != files[name]} == {"protogoal-1.json", "qlearning-0.json"}
    assert (finished / "goal_space.csv").read_text() == before


def test_worker_processes_give_the_same_curves(finished, tmp_path, monkeypatch):
    monkeypatch.setitem(taxi.SCALES, "smoke", Scale(3_000, 2))
    monkeypatch.setattr(taxi, "cores", lambda: 2)
    taxi.run("smoke", None, tmp_path)

    def without_seconds(path):
        return sorted(tuple(v for k, v in row.items() if k != "seconds") for row in taxi.read_csv(path / "curves.csv"))

    assert without_seconds(tmp_path) == without_seconds(finished)
    assert (tmp_path / "goal_space.csv").read_text() == (finished / "goal_space.csv").read_text()


def test_the_closing_table_names_agents_goals_and_the_report(finished, monkeypatch, capsys):
    monkeypatch.setitem(taxi.SCALES, "smoke", Scale(3_000, 2))
    taxi.run("smoke", None, finished)  # all is there already
    said = capsys.readouterr().out
    for words in ("proto-goal", "Q-learning", "taxi cells", "destinations", "report.html"):
        assert words in said


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write to"):
        taxi.run("smoke", 1, tmp_path / "file")


def test_missing_results_are_one_clear_line(tmp_path):
    with pytest.raises(ValueError, match=r"curves\.csv is missing"):
        taxi.plot(tmp_path)
