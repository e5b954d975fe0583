"""The goal table in the terminal, and the words that all of the record shares."""

import json
import math
import re

import pytest
from synthetic_runs import Bit, FakeRun

from protogoal.goals.plausibility import Verdict
from protogoal.goals.spaces import ObjectGrid
from protogoal.record import queries, terms
from protogoal.record.goal_rows import untouched
from protogoal.record.goals_table import goals_table
from protogoal.record.schema import FUNNEL, STATE
from protogoal.record.store import Store, StoreReader


def test_the_table_shows_goals_with_their_verdict(runs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    assert goals_table(runs["taxi"]) is None
    shown = capsys.readouterr().out
    assert "Goals of taxi at step 48,000" in shown
    assert "destination R" in shown
    assert "≈ not controllable" in shown
    assert "✓ plausible" in shown
    assert "declared" in shown
    assert headings(shown) == "id goal count pursuits success V_seek V_avoid control verdict bucket age"


def headings(shown: str) -> str:
    return " ".join(next(line for line in shown.splitlines() if line.strip().startswith("id ")).split())


def test_the_table_shows_the_figures_that_decided(runs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    goals_table(runs["baba"])
    shown = capsys.readouterr().out
    assert headings(shown) == "id goal count pursuits success chance trials nats p verdict bucket age"
    assert "of its last 96 tries succeeded" in shown
    way = next(line for line in shown.splitlines() if line.startswith("declared"))
    stages = [part.split()[0] for part in re.split("→|;", way)]
    assert stages == ["declared", "observed", "controllable", "plausible", "offered", "mastered", "undecided"]
    monkeypatch.setenv("COLUMNS", "80")
    goals_table(runs["baba"])
    narrow = capsys.readouterr().out
    assert headings(narrow) == "id goal count success nats verdict"
    assert "…" not in narrow


def test_why_tells_a_pruned_goals_story(runs):
    told = goals_table(runs["taxi"], why="destination R")
    assert told is not None
    assert told.startswith("destination R  (goal 30, destination, run taxi at step 48,000)")
    assert "Not controllable: the largest V_seek is " in told
    assert "avoiding still" in told
    assert re.search(r"step +count +success +control +verdict", told)
    assert "…" not in told


def test_why_tells_of_parents_and_mastery(runs):
    with StoreReader(runs["baba"]) as reader:
        goal = reader.rows("SELECT id FROM goals WHERE parents <> '[]' ORDER BY id LIMIT 1")[0][0]
        mastered = reader.rows("SELECT id FROM goals WHERE mastered LIMIT 1")[0][0]
    assert "of two mastered goals" in goals_table(runs["baba"], why=str(goal))
    assert "it is mastered" in goals_table(runs["baba"], why=str(mastered))


def test_why_in_json_has_the_same_words(runs):
    told = json.loads(goals_table(runs["taxi"], why="30", as_json=True))
    assert told["name"] == "destination R"
    assert told["verdict"] == "not controllable"
    assert told["reason"] == told["why"][0]
    with StoreReader(runs["taxi"]) as reader:
        history = queries.goal_history(reader, 30)
        assert told["why"] == terms.why(queries.goal(reader, 30), history)


def test_json_has_every_goal(runs):
    told = json.loads(goals_table(runs["baba"], as_json=True))
    assert told["run"] == "baba"
    assert len(told["goals"]) == told["funnel"]["observed"] < told["funnel"]["declared"]
    assert {"id", "name", "count", "pursuits", "success", "chance", "events", "nats", "p", "seek_max", "seek_mean", "avoid_mean",
            "verdict", "reason"} <= set(told["goals"][0])
    assert set(told["funnel"]) == set(FUNNEL)
    assert {goal["verdict"] for goal in told["goals"]} <= set(terms.VERDICTS.values())


def test_a_run_without_goals_says_so(runs):
    assert "no goals were recorded" in goals_table(runs["qlearning"])


def test_a_name_that_is_not_there_is_one_line(runs, tmp_path):
    with pytest.raises(ValueError, match="no goal is called 'boulder', observed or not"):
        goals_table(runs["taxi"], why="boulder", space=space)
    with pytest.raises(ValueError, match="does not exist"):
        goals_table(tmp_path)


def space() -> ObjectGrid:
    return ObjectGrid(["baba", "wall"], 3, 4)


def refuses() -> ObjectGrid:
    raise ValueError("it names code to import")


def few_of_many(path, declared: int = 24):
    """Two of many goals were observed."""
    known = {column: array[[5, 7]] for column, array in untouched(declared).items()} | {"count": [3, 1], "verdict": [6, 5]}
    with Store.create(path / "run.db") as store:
        store.refresh(90, {"id": [5, 7], "declared": declared, **known}, lambda i: (space().name(i), "baba", None, (i,), ()))
    return path


def test_a_goal_never_observed_is_told_so_by_number_and_by_name(tmp_path):
    run = few_of_many(tmp_path)
    assert goals_table(run, why="5", space=refuses).startswith("baba at (1,1)  (goal 5, baba, ")
    never = "Unobserved: it was not on in any of the 90 steps."
    assert goals_table(run, why="12", space=space) == f"wall at (0,0)  (goal 12, wall, run {run.name} at step 90)\n  {never}"
    assert goals_table(run, why="Wall at (0,0)", space=space) == goals_table(run, why="12", space=space)
    assert goals_table(run, why="12", space=refuses).startswith("goal 12  (goal 12, declared, ")
    unknown = goals_table(run, why="boulder", space=refuses)
    assert unknown.startswith(f"boulder  (goal ?, not known whether declared, run {run.name} at step 90)\n  {never}")
    assert unknown.endswith("Its name is not looked up in the run's proto-goal space: it names code to import.")
    told = json.loads(goals_table(run, why="12", as_json=True, space=space))
    assert (told["id"], told["name"], told["verdict"], told["reason"]) == (12, "wall at (0,0)", "unobserved", never)


@pytest.mark.parametrize(("why", "make", "told"), [
    ("24", space, "there is no goal 24; the run has declared 24 goals"),
    ("wall", space, "12 goals have 'wall' in their name, none of them observed"),
    ("boulder", space, "no goal is called 'boulder', observed or not")])
def test_what_was_not_declared_is_one_line(tmp_path, why, make, told):
    with pytest.raises(ValueError, match=told) as error:
        goals_table(few_of_many(tmp_path), why=why, space=make)
    assert "\n" not in str(error.value)


def test_a_name_cannot_move_the_cursor(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    FakeRun(tmp_path / "run", "p", [Bit("\x1b[2Jgone\r\x07", "k\x1b[0m", None, 1.0)] * 3, total=2).play()
    goals_table(tmp_path / "run")
    assert "\x1b[2J" not in capsys.readouterr().out
    assert "\x1b" not in goals_table(tmp_path / "run", why="0")


@pytest.mark.parametrize(("seconds", "told"), [(None, "–"), (12.4, "12 s"), (200, "3 min 20 s"), (3725, "1 h 02 min")])
def test_durations(seconds, told):
    assert terms.duration(seconds) == told


@pytest.mark.parametrize(("number", "told"), [(None, "–"), (math.nan, "–"), (950, "950"), (34_000, "34 k"), (1.23e6, "1.23 M")])
def test_short_numbers(number, told):
    assert terms.short(number) == told


def test_signs_and_words_cover_every_verdict():
    assert set(terms.VERDICTS) == set(terms.SIGNS) == set(terms.MEANINGS) == set(terms.DECIDED) == set(range(7))
    assert len(set(terms.SIGNS.values())) == 7
    assert {column for columns in terms.DECIDED.values() for column in columns} <= set(terms.FIGURES)
    assert set(terms.STAGES) == set(FUNNEL)
    assert terms.decimal(-0.5) == "−0.50"


@pytest.mark.parametrize(("p", "told"), [
    (None, "–"), (math.nan, "–"), (1.0, "1"), (0.6234, "0.62"), (0.00431, "0.0043"), (2.6e-8, "3e−8"), (1e-98, "1e−98"),
    (0.0, "< 1e−99")])
def test_probabilities(p, told):
    assert terms.probability(p) == told


def told_of(verdict: Verdict, **known) -> str:
    goal = {**dict.fromkeys(STATE), "count": 40, "pursuits": 0, "bucket": -1, "offered": 0, "mastered": 0, "parents": [],
            "created_step": 0, "observed_step": 5, "verdict": int(verdict), **known}
    return terms.why(goal)[0]


def test_each_verdict_is_told_with_the_figures_that_decided():
    trials = {"events": 30.0, "nats": 0.05, "p": 0.4}
    assert told_of(Verdict.UNOBSERVED, count=0) == "Unobserved: it was never on."
    assert told_of(Verdict.STATIC, count=0).startswith("Static: it was on, but no transition")
    assert re.search(r"Not controllable: .*0.05 nats.*p = 0.4, 30 trials", told_of(Verdict.UNCONTROLLABLE, **trials))
    assert "its kind): 3 trials are too few" in told_of(Verdict.UNCONTROLLABLE_KIND, events=3.0, nats=0.0, p=1.0)
    in_vain = told_of(Verdict.UNREACHED, pursuits=21, success=0.1, chance=0.25, **trials)
    assert re.search(r"Not reached in practice: .* chance, 25 %, .* 10 % succeeded \(21 in all\)", in_vain)
    with_its_kind = told_of(Verdict.UNREACHED, count=3, pursuits=2, success=0.0, chance=0.001, **trials)
    assert "turned on 3 times, it was pursued 2 times in vain, and pursuits of such rare goals" in with_its_kind
    assert "not pursued yet" in told_of(Verdict.UNREACHED, count=1, success=0.0, chance=0.0, **trials)
    rare = told_of(Verdict.UNDECIDED, events=3.0, nats=0.9, p=0.02)
    assert re.search(r"Undecided: turned on 40 times, 3 trials: .*p = 0.02", rare)
    assert "0 trials" in told_of(Verdict.UNDECIDED)
    assert re.search(r"Plausible: .*1.20 nats \(p = 1e-09, 30 trials", told_of(Verdict.PLAUSIBLE, events=30.0, nats=1.2, p=1e-9))


def test_an_and_goal_is_told_by_its_bits():
    parents = {"parents": [(3, "a"), (4, "b")]}
    assert told_of(Verdict.PLAUSIBLE, **parents) == "Plausible: all of its bits are (turned on 40 times)."
    assert told_of(Verdict.UNDECIDED, **parents) == "Undecided: one of its bits is (turned on 40 times)."
    assert told_of(Verdict.UNOBSERVED, count=0, **parents) == "Unobserved: it was never on."
    assert "no better than chance, 5 %" in told_of(Verdict.UNREACHED, pursuits=9, success=0.0, chance=0.05, **parents)
    assert "V_seek is 0.90" in told_of(Verdict.PLAUSIBLE, seek_max=0.9, **parents)
