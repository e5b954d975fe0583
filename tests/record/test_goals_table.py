"""The goal table in the terminal, and the words that all of the record shares."""

import json
import math

import pytest
from synthetic_runs import Bit, FakeRun

from protogoal.record import queries, words
from protogoal.record.goals_table import goals_table
from protogoal.record.run_facts import run_facts
from protogoal.record.store import StoreReader


def test_the_table_shows_goals_with_their_verdict(runs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    assert goals_table(runs["taxi"]) is None
    shown = capsys.readouterr().out
    assert "Goals of taxi at step 48,000" in shown
    assert "destination R" in shown
    assert "≈ not controllable" in shown
    assert "✓ plausible" in shown
    assert "declared" in shown


def test_why_tells_a_pruned_goals_story(runs):
    told = goals_table(runs["taxi"], why="destination R")
    assert told is not None
    assert told.startswith("destination R  (goal 30, destination, run taxi at step 48,000)")
    assert "Pruned, not controllable" in told
    assert "short of 0.1" in told


def test_why_tells_of_parents_and_mastery(runs):
    with StoreReader(runs["baba"]) as reader:
        goal = reader.rows("SELECT id FROM goals WHERE parents <> '[]' ORDER BY id LIMIT 1")[0][0]
        mastered = reader.rows("SELECT id FROM goals WHERE mastered LIMIT 1")[0][0]
    assert "of two mastered goals" in goals_table(runs["baba"], why=str(goal))
    assert "so it is mastered" in goals_table(runs["baba"], why=str(mastered))


def test_why_in_json_has_the_same_words(runs):
    told = json.loads(goals_table(runs["taxi"], why="30", as_json=True))
    assert told["name"] == "destination R"
    assert told["verdict"] == "not controllable"
    assert told["reason"] == told["why"][0]
    with StoreReader(runs["taxi"]) as reader:
        history = queries.goal_history(reader, 30)
        assert told["why"] == words.why(queries.goal(reader, 30), run_facts(reader), history)


def test_json_has_every_goal(runs):
    told = json.loads(goals_table(runs["baba"], as_json=True))
    assert told["run"] == "baba"
    assert len(told["goals"]) >= 693
    assert {"id", "name", "count", "success", "seek_max", "avoid_mean", "verdict", "reason"} <= set(told["goals"][0])


def test_a_run_without_goals_says_so(runs):
    assert "no goals were recorded" in goals_table(runs["qlearning"])


def test_a_name_that_is_not_there_is_one_line(runs, tmp_path):
    with pytest.raises(ValueError, match="no goal is called 'boulder'"):
        goals_table(runs["taxi"], why="boulder")
    with pytest.raises(ValueError, match="does not exist"):
        goals_table(tmp_path)


def test_a_name_cannot_move_the_cursor(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    FakeRun(tmp_path / "run", "p", [Bit("\x1b[2Jgone\r\x07", "k\x1b[0m", None, 1.0)] * 3, total=2).play()
    goals_table(tmp_path / "run")
    assert "\x1b[2J" not in capsys.readouterr().out
    assert "\x1b" not in goals_table(tmp_path / "run", why="0")


@pytest.mark.parametrize(("seconds", "told"), [(None, "–"), (12.4, "12 s"), (200, "3 min 20 s"), (3725, "1 h 02 min")])
def test_durations(seconds, told):
    assert words.duration(seconds) == told


@pytest.mark.parametrize(("number", "told"), [(None, "–"), (math.nan, "–"), (950, "950"), (34_000, "34 k"), (1.23e6, "1.23 M")])
def test_short_numbers(number, told):
    assert words.short(number) == told


def test_signs_and_words_cover_every_verdict():
    assert set(words.VERDICTS) == set(words.SIGNS) == set(words.MEANINGS) == set(range(5))
    assert len(set(words.SIGNS.values())) == 5
    assert words.decimal(-0.5) == "−0.50"
    assert words.signed(0.123) == "+0.12"
