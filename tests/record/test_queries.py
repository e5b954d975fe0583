"""The questions of a run: what they answer is what was written."""

import json
import sqlite3

import numpy as np
import pytest
from synthetic_runs import Bit, FakeRun

from protogoal.goals.table import TASK
from protogoal.record import queries, terms
from protogoal.record.goal_page import SORTS, GoalFilter, goal_page
from protogoal.record.run_facts import labels, run_facts
from protogoal.record.schema import STATE
from protogoal.record.statistics import wilson_interval
from protogoal.record.store import Store, StoreReader

GOT_SOMEWHERE = "met a reward, or ended early what only costs (its share of choices follows that)"


@pytest.fixture
def baba(runs):
    with StoreReader(runs["baba"]) as reader:
        yield reader


@pytest.fixture
def facts(baba):
    return run_facts(baba)


def test_the_success_curve_has_the_interval_of_each_evaluation(baba):
    curve = queries.success_curve(baba)
    assert len(curve["step"]) == 6
    for success, episodes, low, high in zip(curve["success"], curve["episodes"], curve["low"], curve["high"], strict=True):
        assert (low, high) == wilson_interval(round(success * episodes), int(episodes))


def test_the_funnel_only_narrows_up_to_plausible_and_undecided_is_beside_it(baba):
    curve = queries.funnel_curves(baba)
    stages = np.stack([curve[name] for name in ("declared", "observed", "controllable", "plausible")])
    assert (np.diff(stages, axis=0) <= 0).all()
    assert (curve["undecided"] + curve["controllable"] <= curve["observed"]).all()
    assert curve["undecided"].any()


def test_metrics_are_listed_and_read_by_name(baba):
    assert queries.metric_names(baba) == ["episode_length", "loss", "return", "speed"]
    assert len(queries.metric_curve(baba, "loss")["value"]) == 24
    assert len(queries.metric_curve(baba, "no such metric")["value"]) == 0


def test_facts_say_where_the_run_stands(facts):
    assert (facts.label, facts.preset, facts.seed, facts.status) == ("baba", "baba-umaze-medium-protogoal", 0, "finished")
    assert facts.step == facts.total_steps == 48_000
    assert facts.progress == 1.0
    assert facts.speed == pytest.approx(2_000 / 6, rel=0.1)
    assert facts.funnel is not None
    assert facts.funnel["declared"] >= 693


def test_between_two_points_of_the_curves_the_run_still_moves(tmp_path):
    now = [0.0]
    run = Store.create(tmp_path / "run.db", clock=lambda: now[0])
    run.metrics(100, {"loss": 1.0})
    now[0] = 10.0
    run.progress(1_100)
    run.flush()
    with StoreReader(tmp_path) as reader:
        facts = run_facts(reader)
        assert (facts.step, round(facts.seconds)) == (1_100, 10)
        assert facts.speed == pytest.approx(100, rel=0.1)
        before = reader.revision()
        run.flush()
        assert reader.revision() == before
    run.truncate_after(100)
    with StoreReader(tmp_path) as reader:
        assert run_facts(reader).step == 100
    run.close()


def test_a_run_that_writes_no_more_is_called_busy_where_it_is_known_to_live_and_silent_elsewhere(tmp_path):
    run = Store.create(tmp_path / "run.db")
    run.metrics(5, {"loss": 1.0})
    run.flush()
    with StoreReader(tmp_path) as reader:
        assert run_facts(reader).status == "running"
    with sqlite3.connect(tmp_path / "run.db") as database:
        database.execute("UPDATE meta SET value = value - 1000 WHERE key = 'updated'")
    with StoreReader(tmp_path) as reader:
        facts = run_facts(reader)
    assert facts.status == "busy"
    assert terms.status_words(facts).startswith("busy, nothing written for 16 min ")
    with sqlite3.connect(tmp_path / "run.db") as database:
        database.execute("UPDATE meta SET value = '[\"another machine\", 1]' WHERE key = 'process'")
    with StoreReader(tmp_path) as reader:
        facts = run_facts(reader)
    assert facts.status == "silent"
    assert "it was probably killed" in terms.status_words(facts)
    run.close("stopped")
    with StoreReader(tmp_path) as reader:
        assert run_facts(reader).status == "stopped"


def test_an_empty_store_has_facts_too(tmp_path):
    Store.create(tmp_path / "run.db").close()
    with StoreReader(tmp_path) as reader:
        facts = run_facts(reader)
        assert (facts.step, facts.success, facts.funnel, facts.speed) == (0, None, None, None)
        assert goal_page(reader, facts) == ([], 0)
        assert queries.kinds(reader) == []
        assert len(queries.refresh_steps(reader)) == 0


def test_runs_of_one_name_get_labels_that_differ(tmp_path):
    paths = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "other"]
    assert labels(paths) == ["a/run", "b/run", "other"]
    assert len(set(labels([paths[0], paths[0]]))) == 2


@pytest.mark.parametrize("sort", list(SORTS))
@pytest.mark.parametrize("descending", [True, False])
def test_a_page_is_sorted_with_the_unknown_last(baba, facts, sort, descending):
    rows, total = goal_page(baba, facts, sort=sort, descending=descending, limit=10_000)
    assert len(rows) == total
    key = {"age": lambda r: r["age"], "success": lambda r: r["success"] if r["pursuits"] else None,
           "bucket": lambda r: None if r["bucket"] < 0 else r["bucket"],
           "name": lambda r: r["name"].lower(), "kind": lambda r: r["kind"].lower()}.get(sort, lambda r: r[sort])
    values = [key(row) for row in rows]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=descending)
    assert all(value is None for value in values[len(known):])


def test_pages_cut_one_list(baba, facts):
    whole, total = goal_page(baba, facts, limit=-1)
    parts = [row for offset in range(0, total, 100) for row in goal_page(baba, facts, offset=offset, limit=100)[0]]
    assert [row["id"] for row in parts] == [row["id"] for row in whole]


def test_filters_are_what_they_say(baba, facts):
    everything, _ = goal_page(baba, facts, limit=-1)
    cases = [
        (GoalFilter(search="baba (1,"), lambda r: "baba" in r["name"].lower() and "(1," in r["name"]),
        (GoalFilter(search="FLAG AND"), lambda r: "flag" in r["name"].lower() and "and" in r["name"].lower()),
        (GoalFilter(verdicts=(6, 1)), lambda r: r["verdict"] in (6, 1)),
        (GoalFilter(kinds=("baba", "IS")), lambda r: r["kind"] in ("baba", "IS")),
        (GoalFilter(joined=True), lambda r: len(r["members"]) > 1),
        (GoalFilter(joined=False), lambda r: len(r["members"]) == 1),
        (GoalFilter(offered=True, mastered=True), lambda r: r["offered"] and r["mastered"]),
        (GoalFilter(search="%"), lambda r: "%" in r["name"]),
        (GoalFilter(search="'; DROP TABLE goals; --"), lambda r: False),
    ]
    for chosen, wanted in cases:
        rows, total = goal_page(baba, facts, chosen, limit=-1)
        assert total == len(rows)
        assert {row["id"] for row in rows} == {row["id"] for row in everything if wanted(row)}, chosen
        assert (0 < total < len(everything)) == (chosen.search not in ("%", "'; DROP TABLE goals; --")), chosen


def test_what_nothing_is_known_of_is_unknown_and_unobserved_goals_have_no_row(baba, facts):
    rows, _ = goal_page(baba, facts, limit=-1)
    assert {row["verdict"] for row in rows} >= {1, 4, 5, 6}
    for row in rows:
        assert (row["success"] is None) == (row["chance"] is None) == (row["pursuits"] == 0)
        assert (row["nats"] is None) == (row["p"] is None) == (row["events"] is None)
        assert (row["reward_mean"] is None) == (row["count"] == 0)
        assert row["control"] is None


def test_thresholds_are_told_where_the_papers_rule_judged(runs, facts):
    assert facts.thresholds is None
    with StoreReader(runs["taxi"]) as reader:
        assert run_facts(reader).thresholds == (0.5, 0.1)
        rows, _ = goal_page(reader, run_facts(reader), limit=-1)
    assert all(row["events"] is None for row in rows)
    judged = [row for row in rows if row["seek_mean"] is not None]
    assert judged
    assert all(row["control"] == pytest.approx(row["seek_mean"] + row["avoid_mean"]) for row in judged)


def test_pursuits_of_the_task_are_told_apart(baba, facts):
    assert facts.task_tries == 96
    assert 0 < facts.task_wins < 96
    assert len(queries.goal_pursuits(baba, TASK, 200)) == 96
    assert queries.named(baba, [TASK, 0]) == [(TASK, "the task"), (0, "baba at (0,0)")]
    for text in ("the task", "-1"):
        with pytest.raises(ValueError, match="the task is no goal that is judged"):
            queries.find_goal(baba, text)


@pytest.mark.parametrize(("kind", "what"), [("above 0", "succeeded"), ("told", "succeeded"), ("threshold", GOT_SOMEWHERE),
                                            ("none", GOT_SOMEWHERE)])
def test_a_pursuit_that_met_a_reward_is_not_called_a_success_where_the_rule_asks_for_more(tmp_path, kind, what):
    with Store.create(tmp_path / "run.db", {"success_kind": kind}) as run:
        run.pursuits(10, [TASK, TASK, TASK], [1, 1, 0], [5, 5, 5])
    with StoreReader(tmp_path) as reader:
        facts = run_facts(reader)
    assert terms.task_words(facts) == f"The task itself was pursued too: 2 of its last 3 tries {what}."


def test_an_unknown_sort_is_refused(baba, facts):
    with pytest.raises(ValueError, match="cannot sort by"):
        goal_page(baba, facts, sort="count; DROP TABLE goals")


def test_a_goal_knows_its_parents_and_its_children(baba):
    child = baba.rows("SELECT id, parents FROM goals WHERE parents <> '[]' ORDER BY id LIMIT 1")[0]
    first, second = json.loads(child[1])
    record = queries.goal(baba, child[0])
    assert [parent for parent, _ in record["parents"]] == [first, second]
    assert record["name"].count(" AND ") == 1
    assert child[0] in [goal for goal, _ in queries.goal(baba, first)["children"]]


def test_a_goal_is_found_by_id_name_or_part_of_a_name(baba, tmp_path):
    assert queries.find_goal(baba, "12") == 12
    assert queries.find_goal(baba, "BABA at (0,4)") in (4, 301)
    for name in ("baba at (0,4)", "flag at (8,10)"):
        assert queries.goal(baba, queries.find_goal(baba, name))["name"] == name
    assert queries.find_goal(baba, " flag at (8,10) ") in (197, 296)
    with pytest.raises(ValueError, match=r"\d+ goals have 'baba at' in their name"):
        queries.find_goal(baba, "baba at")
    assert queries.find_goal(baba, "boulder") is None
    assert queries.find_goal(baba, "99999") is None
    with pytest.raises(ValueError, match="there is no goal 99999"):
        queries.goal(baba, 99_999)
    unobserved = min(set(range(693)) - {row[0] for row in baba.rows("SELECT id FROM goals")})
    with pytest.raises(ValueError, match=f"goal {unobserved} was never observed"):
        queries.goal(baba, unobserved)


def test_a_history_ends_with_the_state_of_now(baba):
    history, record = queries.goal_history(baba, 0), queries.goal(baba, 0)
    assert (np.diff(history["step"]) > 0).all()
    assert history["step"][-1] == 48_000
    assert history["count"][-1] == record["count"]


def test_goals_at_a_step_are_those_of_a_run_that_stopped_there(tmp_path, runs):
    """The state at refresh k, read from a whole run, against a run of the same seed that wrote no more than k refreshes."""
    bits = [Bit(f"x at (0,{i})", "x", (0, i), float(4 * i)) for i in range(6)]
    FakeRun(tmp_path / "whole", "p", bits, total=20).play()
    FakeRun(tmp_path / "part", "p", bits, total=20).play(7)
    with StoreReader(tmp_path / "whole") as whole, StoreReader(tmp_path / "part") as part:
        then, now = queries.goals_at(whole, "x", 7 * 2_000), queries.goals_at(part, "x")
        for name in ("verdict", "offered", "mastered"):
            np.testing.assert_array_equal(then[name], now[name])
        np.testing.assert_allclose(then["count"], now["count"], rtol=0.25)  # a smaller change is not worth a row
        for name in ("nats", "success", "chance"):
            np.testing.assert_allclose(then[name], now[name], atol=0.05)
        before = queries.goals_at(whole, "x", 0)
        assert set(before) == {"id", "row", "col", "name", *STATE}
        assert not before["verdict"].any()
        assert (before["bucket"] == -1).all()


def test_the_latest_picture_equals_the_goal_table(baba):
    for kind in queries.kinds(baba):
        now, at_end = queries.goals_at(baba, kind["kind"]), queries.goals_at(baba, kind["kind"], 48_000)
        assert len(now["id"]) == kind["goals"]
        np.testing.assert_array_equal(now["verdict"], at_end["verdict"])
        np.testing.assert_array_equal(now["name"], at_end["name"])


def test_kinds_know_their_grid(runs):
    with StoreReader(runs["taxi"]) as reader:
        kinds = {kind["kind"]: (kind["goals"], kind["rows"], kind["cols"]) for kind in queries.kinds(reader)}
    assert kinds == {"taxi": (25, 5, 5), "passenger": (5, 0, 0), "destination": (4, 0, 0)}


def test_clips_are_listed_newest_first_and_read_by_id(baba):
    won = queries.clips(baba, "player", True)
    assert [clip["step"] for clip in won] == sorted((clip["step"] for clip in won), reverse=True)
    assert all(clip["name"] == "the task" and clip["success"] for clip in won)
    every = queries.clips(baba, limit=100)
    assert queries.clip_gif(baba, every[0]["id"]).startswith(b"GIF8")
    assert queries.clip_gif(baba, 10**9) is None
    goal = next(clip["goal"] for clip in every if clip["kind"] == "pursuit")
    assert all(clip["goal"] == goal for clip in queries.goal_clips(baba, goal))


def test_reading_never_changes_the_file(runs):
    path = runs["taxi"] / "run.db"
    before = path.read_bytes()
    with StoreReader(path) as reader:
        facts = run_facts(reader)
        goal_page(reader, facts, limit=-1)
        queries.goal_history(reader, 3)
    assert path.read_bytes() == before
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
