import json
import os
import sys
import warnings

import pytest

from protogoal import cli
from protogoal.cli import main


@pytest.fixture(scope="module")
def taxi_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "taxi"
    assert main(["train", "taxi-protogoal", "--run", str(path), "--steps", "6000", "--learning.eval_every", "2000"]) == 0
    return path


def test_a_run_directory_has_its_files(taxi_run):
    assert {"config.json", "run.db", "checkpoints", "report.html"} <= set(os.listdir(taxi_run))
    record = json.loads((taxi_run / "config.json").read_text())
    assert record["preset"] == "taxi-protogoal"
    assert record["config"]["steps"] == 6000
    assert "numpy" in record["versions"]


def test_envs_lists_domains_with_sizes(capsys):
    assert main(["envs", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["taxi"]["size"] == 34
    assert rows["baba-umaze-medium"]["size"] == 693
    assert "taxi-qlearning" in rows["taxi"]["presets"]
    assert main(["envs"]) == 0


def test_warnings_of_ours_are_one_line_and_those_of_others_as_python_writes_them(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # put back afterwards
    assert main(["envs", "--json"]) == 0
    assert warnings.formatwarning("some episodes were cut", UserWarning, cli.__file__, 1) == "protogoal: some episodes were cut\n"
    assert "json" in warnings.formatwarning("of others", UserWarning, json.__file__, 1)


def test_envs_says_what_is_installed_and_what_to_install(capsys, monkeypatch):
    from protogoal.domains import installed

    monkeypatch.setattr(installed, "is_installed", lambda module: module == "torch")
    assert main(["envs", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["taxi"]["missing"], rows["deep-sea"]["missing"]) == ("", "")
    assert rows["minihack-narrow-river"]["missing"] == "minihack"
    assert main(["envs"]) == 0
    told = capsys.readouterr().out
    assert '✕ pip install "protogoal[minihack]"' in told
    assert "✕ pip install 'protogoal[atari]'" in told
    assert '✕ pip install "protogoal[render]"' in told
    assert "✕ pip install vizdoom" in told
    assert "✓ installed" in told


def test_the_papers_settings_are_one_option_away(capsys):
    assert main(["train", "baba-umaze-small-protogoal", "--scale", "paper", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "(default: lstm)" in words
    assert "(default: 200000000)" in words
    assert main(["train", "taxi-protogoal", "--scale", "paper"]) == 2
    assert "has the paper's settings already" in capsys.readouterr().err


def test_eval_prints_json_with_an_interval(taxi_run, capsys):
    assert main(["eval", str(taxi_run), "--episodes", "20", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {"success", "low", "high", "mean_return", "episodes", "steps"}
    assert result["low"] <= result["success"] <= result["high"]
    assert (result["episodes"], result["steps"]) == (20, 6000)


def test_goals_and_why_speak_in_words(taxi_run, capsys):
    assert main(["goals", str(taxi_run)]) == 0
    assert "taxi at (0,0)" in capsys.readouterr().out
    assert main(["goals", str(taxi_run), "--why", "destination R"]) == 0
    assert "destination R" in capsys.readouterr().out
    assert main(["goals", str(taxi_run), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["goals"]) == 34


def test_watch_writes_a_gif_for_the_task_and_for_a_goal(taxi_run, tmp_path, capsys):
    for n, extra in enumerate(([], ["--goal", "3"], ["--goal", "taxi at (0,3)"])):
        file = tmp_path / f"clip{n}.gif"
        assert main(["watch", str(taxi_run), "--out", str(file), *extra]) == 0
        assert file.read_bytes()[:6] == b"GIF89a"


def test_watching_what_is_no_goal_is_one_clear_line(taxi_run, tmp_path, capsys):
    for goal in ("-1", "99999"):
        assert main(["watch", str(taxi_run), "--out", str(tmp_path / "clip.gif"), "--goal", goal]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert main(["watch", str(taxi_run), "--out", str(tmp_path / "clip.gif"), "--goal", "taxi at 0,3"]) == 2
    assert "did you mean 'taxi at (0,3)' or " in capsys.readouterr().err


def test_watching_without_pygame_says_what_to_install(taxi_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    assert main(["watch", str(taxi_run), "--out", str(tmp_path / "clip.gif")]) == 2
    assert "pip install 'protogoal[render]'" in capsys.readouterr().err


def test_report_writes_one_self_contained_page(taxi_run, tmp_path):
    file = tmp_path / "report.html"
    assert main(["report", str(taxi_run), "--out", str(file)]) == 0
    text = file.read_text()
    assert "taxi at (0,0)" in text
    assert 'src="http' not in text
    assert 'href="http' not in text


def test_resuming_a_finished_run_says_so(taxi_run, capsys):
    assert main(["resume", str(taxi_run)]) == 0
    assert "already" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "words"), [
    (["train", "taxi-protgoal"], "did you mean taxi-protogoal"),
    (["train"], "which preset"),
    (["train", "taxi-protogoal", "--pge.p_task", "3"], "p_task must be in [0.0, 1.0]"),
    (["train", "minihack-narrow-river-protogoal", "--env.monsters", "9"], "RiverSettings.monsters must be in [0, 4]; got 9"),
    (["train", "minihack-narrow-river-protogoal", "--env.level", "small"], "Unrecognized options: --env.level"),  # Baba's
    (["train", "taxi-protogoal", "--pge.controllability_threshold", "-1"], "controllability_threshold"),
    (["train", "taxi-protogoal", "--pge.bogus", "3"], "--pge.bogus"),
    (["train", "taxi-protogoal", "--steps", "many"], "--steps"),
    (["train", "taxi-protogoal", "--steps", "0"], "steps must be at least 1"),
    (["train", "taxi-protogoal", "--run", "/proc/nothing/here"], "cannot write"),
    (["eval", "no-such-run"], "not a run"),
    (["goals", "no-such-run"], "not a run"),
    (["report", "no-such-run", "--out", "x.html"], "not a run"),
    (["watch", "no-such-run", "--out", "x.gif"], "not a run"),
    (["resume", "no-such-run", "--steps", "0"], "must be a whole number of at least 1; got 0"),
    (["resume", "no-such-run"], "not a run"),
    (["reproduce", "taxy"], "did you mean taxi"),
    (["bench", "nothing"], "unknown benchmark"),
    (["eval", "x", "--episodes", "0"], "at least 1"),
    (["eval", "x", "--frobnicate"], "--frobnicate"),
    (["inspect", "no-such-run"], "no-such-run"),
    (["play", "no-such-level", "--moves", "r"], "no-such-level"),
    (["dance"], "dance"),
])
def test_a_mistake_gives_one_line_and_exit_code_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())  # nothing half-written


def test_a_used_directory_is_refused_and_untouched(taxi_run, capsys):
    before = (taxi_run / "config.json").read_bytes()
    assert main(["train", "taxi-protogoal", "--run", str(taxi_run)]) == 2
    assert "in use already" in capsys.readouterr().err
    assert (taxi_run / "config.json").read_bytes() == before


@pytest.mark.parametrize("content", ["{", "[]", '{"class": "TabularConfig"}', '{"class": "os.system", "config": {}, "format": 1}'])
def test_a_damaged_config_is_one_line(content, tmp_path, capsys):
    (tmp_path / "config.json").write_text(content)
    assert main(["eval", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_damaged_store_is_one_line(taxi_run, tmp_path, capsys):
    (tmp_path / "config.json").write_bytes((taxi_run / "config.json").read_bytes())
    (tmp_path / "run.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)
    assert main(["goals", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "run.db" in error
    assert error.count("\n") == 1


def test_help_shows_every_field_with_words(capsys):
    assert main(["train", "taxi-protogoal", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--pge.p_task" in text
    assert "Share of following the task reward" in text


def test_a_wrong_field_names_a_command_that_exists(capsys):
    assert main(["train", "--env=a:b", "--space=c:d", "--run", "never-written", "--nonsense", "1"]) == 2
    assert "--nonsense, 1 (protogoal train --env … --help lists all fields)" in capsys.readouterr().err
    assert main(["train", "--env", "a:b", "--space", "c:d", "--help"]) == 0
