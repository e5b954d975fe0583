"""Runs whose task has dense rewards, or says itself what succeeds: what is recorded, printed and drawn of success and return."""

import itertools
import json
import sys
from pathlib import Path

import pytest

import protogoal
from protogoal.cli import main
from protogoal.record.reader import StoreReader
from protogoal.record.run_facts import run_facts

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "envs"))
import own_corridor

TINY = {"actor__num_envs": 4, "learner__min_replay": 200, "learner__batch_size": 8, "network__hidden": 16, "network__rank": 8,
        "network__goal_hidden": 8, "evaluation__final_episodes": 4, "evaluation__every": 400, "refresh_every": 400,
        "replay__capacity": 5000, "record": ()}


def trained(tmp_path, make, **more):
    run = tmp_path / "run"
    return run, protogoal.train(make, own_corridor.cells, steps=600, run=run, **TINY, **more)


def test_where_no_rule_fits_return_alone_is_shown(tmp_path, capsys):
    run, agent = trained(tmp_path, own_corridor.costly)
    result = agent.evaluate(4)
    assert (result["success"], result["low"], result["high"]) == (None, None, None)
    assert -20 <= result["mean_return"] <= -5
    assert main(["eval", str(run), "--episodes", "2", "--trust"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("mean return -")
    assert main(["eval", str(run), "--episodes", "2", "--json", "--trust"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["success"] is None
    with StoreReader(run) as reader:
        assert reader.rows("SELECT successes, low, high FROM evaluations") == [(None, None, None)] * 2
        assert reader.rows("SELECT count(*) FROM metrics WHERE name = 'success'") == [(0,)]
        assert reader.rows("SELECT count(*) FROM metrics WHERE name = 'return'") == [(2,)]
        facts = run_facts(reader)
        assert facts.success is None
        assert facts.mean_return < 0
        assert "rewards are dense" in facts.rule
        assert not facts.has_success
    assert main(["report", str(run), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "Return at the task" in page
    assert "Success at the task" not in page


def test_a_threshold_says_what_succeeds(tmp_path):
    run, agent = trained(tmp_path, own_corridor.costly, evaluation__success_return=-20.0)
    assert agent.evaluate(4)["success"] == 1.0
    with StoreReader(run) as reader:
        assert "a return of at least -20" in reader.rows("SELECT text FROM events ORDER BY id LIMIT 1")[0][0]


def test_what_the_environment_says_counts_more_than_its_rewards(tmp_path):
    run, agent = trained(tmp_path, own_corridor.strict)
    result = agent.evaluate(4)
    assert result["mean_return"] > 0
    assert result["success"] == 0.0
    with StoreReader(run) as reader:
        assert reader.rows("SELECT max(success) FROM pursuits WHERE goal = -1") == [(0,)]


def test_where_episodes_are_long_evaluations_are_seldom(tmp_path):
    """Each evaluation of 32 episodes takes over 160 steps; asked for every 40, they come no more often than they cost."""
    run = tmp_path / "run"
    fields = TINY | {"evaluation__every": 40, "evaluation__episodes": 32}
    protogoal.train(own_corridor.costly, own_corridor.cells, steps=1_200, run=run, **fields)
    steps = [int(step) for step in protogoal.read_run(run).evaluations["step"]]
    assert 2 <= len(steps) <= 1_200 / 160 + 1
    assert all(later - earlier >= 160 for earlier, later in itertools.pairwise(steps[:-1]))  # the last is the end's
