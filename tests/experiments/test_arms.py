import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from protogoal.domains.default import DEFAULT
from protogoal.experiments import EXPERIMENTS, arms, arms_figures, arms_readme, curves, experiment, redraw
from protogoal.experiments.comparisons import COMPARISONS
from protogoal.experiments.drawing import pyplot
from protogoal.presets import PRESETS

TAXI = arms.Comparison(
    "toy", "Two arms on Taxi", "goals help.",
    [arms.Arm("proto-goal", "taxi-protogoal"), arms.Arm("p_task = 0.5", "taxi-protogoal", {"pge.p_task": 0.5, "pge.kinds": False})],
    {"smoke": arms.Scale(2000, 2)}, {"learning.eval_episodes": 10}, {"learning.eval_every": 1000})


def test_arms_are_trained_collected_drawn_and_skipped_when_finished(tmp_path):
    out = tmp_path / "toy"
    TAXI.run("smoke", None, out)
    rows = curves.read_csv(out / "curves.csv")
    assert {(row["arm"], row["seed"]) for row in rows} == {(arm, seed) for arm in ("proto-goal", "p_task = 0.5") for seed in "01"}
    assert {int(row["step"]) for row in rows} == {0, 1000, 2000}
    assert (out / "learning.png").read_bytes()[:4] == b"\x89PNG"
    text = (out / "README.md").read_text()
    assert "protogoal reproduce toy --scale smoke --seeds 2" in text
    assert "| proto-goal | 2 |" in text
    assert re.search(r"wall time: \d+( to \d+)? seconds a run, \d+ \w+ for the 4 runs one after another\n", text)
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*/run.db")}
    (out / "notes.md").write_text("Seen by eye: fine.\n")
    TAXI.run("smoke", None, out)  # nothing left to train
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*/run.db")} == before
    assert "Seen by eye" in (out / "README.md").read_text()
    other = replace(TAXI, name="other", arms=[arms.Arm("the same under another name", "taxi-protogoal", {"pge.p_task": 0.1})])
    other.run("smoke", None, tmp_path / "other")  # a neighbour has made these very runs
    assert all(path.is_symlink() for path in (tmp_path / "other" / "runs").iterdir())
    assert len(curves.read_csv(tmp_path / "other" / "curves.csv")) == len(rows) // 2


def test_finished_runs_of_deep_agents_are_found_again(tmp_path):
    """What their settings leave to the environment (network.core, replay's size) stands decided in config.json."""
    small = COMPARISONS["baba-small"]
    one = replace(small, arms=small.arms[:1], scales={"smoke": arms.Scale(1000, 1)})
    one.run("smoke", None, tmp_path / "one")
    record = next((tmp_path / "one" / "runs").glob("*/run.db"))
    before = record.stat().st_mtime_ns
    one.run("smoke", None, tmp_path / "one")
    assert record.stat().st_mtime_ns == before
    replace(one, name="other").run("smoke", None, tmp_path / "other")
    assert all(path.is_symlink() for path in (tmp_path / "other" / "runs").iterdir())


def test_seeds_are_added_to_numbers_that_were_made_elsewhere(tmp_path):
    out = tmp_path / "toy"
    TAXI.run("smoke", 1, out)
    before = {name: curves.read_csv(out / f"{name}.csv") for name in ("curves", "metrics", "goals", "runs")}
    assert [(row["arm"], row["seed"]) for row in before["runs"]] == [("proto-goal", "0"), ("p_task = 0.5", "0")]
    shutil.rmtree(out / "runs")
    TAXI.run("smoke", 2, out)
    assert sorted(path.parent.name for path in (out / "runs").glob("*/run.db")) == ["p_task--0.5-1", "proto-goal-1"]  # the new seed
    for name, rows in before.items():
        after = curves.read_csv(out / f"{name}.csv")
        assert [row for row in after if row["seed"] == "0"] == rows
        assert {row["seed"] for row in after} == {"0", "1"}
    assert "| proto-goal | 2 |" in (out / "README.md").read_text()


def test_numbers_made_with_other_settings_are_not_kept(tmp_path):
    out = tmp_path / "toy"
    TAXI.run("smoke", 1, out)
    shutil.rmtree(out / "runs")
    other = replace(TAXI, common={"learning.eval_episodes": 5})
    other.run("smoke", 1, out)
    assert {row["episodes"] for row in curves.read_csv(out / "curves.csv")} == {"5"}
    assert len(list((out / "runs").glob("*/run.db"))) == 2


def test_runs_of_another_scale_are_refused_and_not_mixed_in(tmp_path):
    short = replace(TAXI, scales={"smoke": arms.Scale(1000, 1), "cpu": arms.Scale(2000, 1)})
    short.run("smoke", None, tmp_path / "toy")
    with pytest.raises(ValueError, match=r"was made with .* not .*; remove it, or choose another --out"):
        short.run("cpu", None, tmp_path / "toy")


def test_runs_of_an_older_preset_are_refused_too(tmp_path):
    arms.run(TAXI, "smoke", 1, tmp_path / "toy")
    file = arms.run_path(tmp_path / "toy", TAXI.arms[0], 0) / "config.json"
    record = json.loads(file.read_text())
    record["config"]["learning"]["discount"] = 0.5
    file.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"was made with learning.discount = 0.5, not"):
        arms.run(TAXI, "smoke", 1, tmp_path / "toy")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_from_the_terminal_every_run_makes_a_checkpoint_first(tmp_path, number):
    script = f"""
from pathlib import Path
from protogoal.experiments import arms
long = arms.Comparison("long", "", "", [arms.Arm("taxi", "taxi-protogoal")], {{"cpu": arms.Scale(10**9, 1)}})
arms.run(long, "cpu", 1, Path({str(tmp_path)!r}))
"""
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True, stderr=subprocess.DEVNULL)
    log = tmp_path / "runs" / "taxi-0.log"
    deadline = time.monotonic() + 60
    while not (log.exists() and "steps" in log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    assert process.wait(60) != 0
    assert list((tmp_path / "runs" / "taxi-0" / "checkpoints").iterdir())


def test_a_run_that_was_stopped_does_not_count_as_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(arms, "arguments", lambda *_: ["envs"])  # ends well without having trained
    with pytest.raises(ValueError, match="was stopped; the same command goes on with it"):
        arms.run(TAXI, "smoke", 1, tmp_path / "toy", processes=1)


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write to"):
        TAXI.run("smoke", None, tmp_path / "file" / "toy")


def test_fields_become_options():
    command = arms.arguments(TAXI, TAXI.arms[1], 3, "smoke", arms.Path("out"))
    assert command[:2] == ["train", "taxi-protogoal"]
    assert "--pge.no_kinds" in command
    assert command[command.index("--seed") + 1] == "3"
    assert command[command.index("--learning.eval_every") + 1] == "1000"


def test_at_the_papers_scale_the_papers_settings_run_on_ray():
    comparison = COMPARISONS["ablation-p-task"]
    command = arms.arguments(comparison, comparison.arms[0], 0, "paper", arms.Path("out"))
    assert [command[command.index(word) + 1] for word in ("--scale", "--engine", "--steps")] == ["paper", "ray", "200000000"]
    assert "--scale" not in arms.arguments(comparison, comparison.arms[0], 0, "cpu", arms.Path("out"))


def test_curves_hold_their_last_value_and_start_at_zero():
    seeds = {0: np.array([[10.0, 0.5], [20.0, 1.0]])}
    np.testing.assert_allclose(curves.on_grid(seeds, np.array([0.0, 10.0, 15.0, 99.0])), [[0.0, 0.5, 0.5, 1.0]])


def test_seeds_of_different_length_are_compared_over_the_steps_that_all_have_made(tmp_path):
    rows = [("proto-goal", 0, step, 1.0, 10, won) for step, won in ((50, 0), (95, 2), (100, 4))]
    rows += [("proto-goal", 1, step, 1.0, 10, won) for step, won in ((50, 0), (98, 6), (150, 10), (200, 10))]
    curves.write_csv(tmp_path / "curves.csv", arms.CURVES, rows)
    [row] = arms_readme.summary(TAXI, tmp_path)
    assert row["steps"] == 100
    assert row["last"][0] == pytest.approx((0.3 + 0.6) / 2)  # 0.2 and 0.4 of one seed, 0.6 of the other
    assert row["solved"] == [np.inf, 150.0]


def test_solved_is_from_where_no_evaluation_falls_back():
    points = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.5], [4.0, 0.95], [5.0, 0.9]])
    assert curves.solved_from(points) == 4.0
    assert curves.solved_from(points[:3]) == np.inf
    assert curves.solved_from(points[3:]) == 4.0


def test_when_it_was_solved_is_said_seed_by_seed_and_summed_up_for_many():
    assert arms_readme.when_solved([np.inf, 82_211.0, 1_200_640.0]) == "not, 82.2 k, 1.2 M"
    assert arms_readme.when_solved([np.inf] * 2 + [9e4, 4e4] * 3) == "6 of 8, 40 k to 90 k"
    assert arms_readme.when_solved([np.inf] * 5 + [14e5]) == "1 of 6, 1.4 M"
    assert arms_readme.when_solved([np.inf] * 6) == "0 of 6"


def written(out, finals, arms_of=TAXI):
    """curves.csv of arms whose seeds succeed in so many of ten episodes throughout."""
    rows = [(arm, seed, step, 1.0, 10, won) for arm, seeds in finals.items() for seed, won in enumerate(seeds) for step in (0, 100)]
    curves.write_csv(out / "curves.csv", arms.CURVES, rows)
    return arms_of


def test_three_seeds_that_agree_are_no_point(tmp_path):
    table = arms_readme.table(written(tmp_path, {"proto-goal": [10, 10, 10], "p_task = 0.5": [4]}), tmp_path)
    assert "| 3 | 100 | 1.00 | 0.29–1.00 | 1.00 | 0.29–1.00 |" in table[0]
    assert "| 1 | 100 | 0.40 | one seed |" in table[1]


def test_the_probability_of_improvement_is_told_with_its_interval_or_its_pairs(tmp_path):
    ahead = written(tmp_path, {"proto-goal": [9, 8, 10], "p_task = 0.5": [1, 0, 2]})
    assert "p_task = 0.5 1.00 (all 9 pairs)." in arms_readme.improvements(ahead, tmp_path)[0]
    mixed = written(tmp_path, {"proto-goal": [9, 8, 0], "p_task = 0.5": [1, 0, 2]})
    [line, _] = arms_readme.improvements(mixed, tmp_path)
    assert re.search(r"p_task = 0\.5 0\.72 \(0\.\d\d–1\.00\)", line)  # 6 of 9 pairs ahead, one tie
    assert arms_readme.improvements(written(tmp_path, {"proto-goal": [9], "p_task = 0.5": [1]}), tmp_path) == []


def test_panels_are_tasks_of_one_agent_and_are_summed_up(tmp_path):
    both = [arms.Arm(f"{name}, {panel}", "taxi-protogoal", {}, panel) for name in ("ours", "other") for panel in ("one", "two")]
    finals = {"ours, one": [10, 10], "ours, two": [4, 6], "other, one": [5, 5], "other, two": [0, 0]}
    lines = arms_readme.improvements(written(tmp_path, finals, replace(TAXI, arms=both)), tmp_path)
    assert "other 1.00 (all 8 pairs)" in lines[0]
    assert "over the 2 tasks: ours 0.80 (" in lines[2]  # the middle two of 0.4, 0.6, 1, 1
    assert "other 0.25 (all seeds of a task agree)" in lines[2]


def test_the_seeds_that_chose_the_settings_are_named_and_not_reported():
    assert arms_readme.seeds_in_words(TAXI, 2) == "seeds 0–1 are reported; no setting was chosen by results"
    chosen = replace(TAXI, first_seed=60, chosen_on=(40, 41))
    assert arms_readme.seeds_in_words(chosen, 3) == "seeds 60–62 are reported; settings were chosen on 40, 41"
    assert "41 are among them: no test" in arms_readme.seeds_in_words(replace(chosen, first_seed=41), 1)
    for name, comparison in COMPARISONS.items():
        reported = range(comparison.first_seed, comparison.first_seed + comparison.scales["cpu"].seeds)
        assert comparison.chosen_on, name
        assert name == "agent57" or not set(reported) & set(comparison.chosen_on), name  # agent57-fresh is the test of that one


def test_times_are_told_as_far_as_runs_were_seen(tmp_path):
    def evaluated(*runs):
        curves.write_csv(tmp_path / "curves.csv", arms.CURVES, [("ours", seed, 100, seconds, 10, 1) for seed, seconds in runs])

    def measured(last):
        rows = [("ours", 0, 100, "time/cpu_seconds", 7.0), ("ours", 0, last, "loss", 1.0)]
        curves.write_csv(tmp_path / "metrics.csv", arms.METRICS, rows)

    measured(101)
    evaluated((0, 660.0))
    assert arms_readme.wall_time(tmp_path) == "11 minutes a run"
    assert arms_readme.cpu_time(tmp_path) == ["- CPU seconds of a run, mean: ours 7"]
    evaluated((0, 3.0), (1, 8.0))
    assert arms_readme.wall_time(tmp_path) == "3 to 8 seconds a run, 11 seconds for the 2 runs one after another"
    measured(400)
    assert arms_readme.wall_time(tmp_path).endswith("; to the last evaluation, after which a run went on")
    assert "to the last record of them" in arms_readme.cpu_time(tmp_path)[0]


def test_figures_that_the_csv_do_not_allow_are_removed(tmp_path):
    for name in ("learning.png", "goals.png"):
        (tmp_path / name).write_text("an old one")
    curves.write_csv(tmp_path / "curves.csv", arms.CURVES, [("proto-goal", 0, 100, 1.0, 10, 0)])  # one point is no curve
    curves.write_csv(tmp_path / "achievements.csv", ("achievement", "per cent of 9 episodes"), [("wood", 22.2), ("coal", 0.0)])
    never = replace(TAXI, shows_goals=False, has_success=False)
    arms_figures.draw(never, tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"achievements.png"}
    assert arms_readme.table(never, tmp_path) == ["| proto-goal | 1 | 100 | – | – | – | – | – |"]


def test_an_arm_has_a_band_only_of_many_seeds_and_a_mark_where_it_was_cut_short():
    def drawn(seeds, **options):
        axis = pyplot().figure().add_subplot()
        is_cut = arms_figures.draw_arm(axis, {k: np.array([[1.0, 0.0], [end, 1.0]]) for k, end in enumerate(seeds)}, 1.0, 0, "ours",
                                       0.1, **options)
        return is_cut, len(axis.lines), len(axis.collections)

    assert drawn([9.0] * 3) == (False, 4, 0)
    assert drawn([9.0] * 5) == (False, 1, 1)
    assert drawn([9.0, 5.0], cut=8.0) == (True, 4, 0)  # the mean, two seeds, a cross
    assert drawn([9.0] * 3, has_mean=False) == (False, 3, 0)


def test_a_csv_survives_a_round_trip(tmp_path):
    curves.write_csv(tmp_path / "x.csv", ("a", "b"), [("one, two", 0.25), ("three", 3)])
    assert curves.read_csv(tmp_path / "x.csv") == [{"a": "one, two", "b": "0.25"}, {"a": "three", "b": "3"}]
    with pytest.raises(ValueError, match="is missing"):
        curves.read_csv(tmp_path / "y.csv")


def test_every_named_comparison_exists_and_its_arms_are_presets_with_known_fields():
    named = {entry.partition(":")[2] for entry in EXPERIMENTS.values()} - {""}
    assert named <= set(COMPARISONS)
    for name in named:
        comparison = experiment(name)
        assert {"smoke", "cpu", "paper"} <= set(comparison.scales)
        assert len({arm.label for arm in comparison.arms}) == len(comparison.arms)
        for arm in comparison.arms:
            assert (arm.preset in PRESETS) != ("env" in arm.fields)
            start = PRESETS[arm.preset] if arm.preset else DEFAULT
            named = () if arm.preset else ("agent", "env", "info")  # options that are no settings
            for dotted in {**comparison.common, **arm.fields, **comparison.smoke}.keys() - named:
                value = start
                for part in dotted.split("."):
                    value = getattr(value, part)


def test_nothing_to_redraw_is_said(tmp_path):
    with pytest.raises(ValueError, match="no results"):
        redraw(tmp_path)


def test_chance_of_a_lead_is_the_share_of_splits_that_have_it():
    ahead, behind = np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.2, 0.0])
    assert curves.chance_of_lead(ahead, behind) == pytest.approx(1 / 20)  # one split of the twenty
    assert curves.chance_of_lead(behind, ahead) == pytest.approx(1.0)
    assert curves.chance_of_lead(ahead, ahead) > 0.5
    assert curves.chance_of_lead(np.zeros(3), np.zeros(3)) == pytest.approx(1.0)
    many = np.random.default_rng(0).normal(size=(2, 40))
    drawn = curves.chance_of_lead(many[0] + 0.4, many[1])  # too many splits: drawn at random, alike each time
    assert drawn == curves.chance_of_lead(many[0] + 0.4, many[1])
    difference = many[0].mean() + 0.4 - many[1].mean()
    spread = np.sqrt((many[0].var(ddof=1) + many[1].var(ddof=1)) / 40)
    assert drawn == pytest.approx(0.5 * math.erfc(difference / spread / math.sqrt(2)), abs=0.01)


def test_an_experiment_may_begin_at_a_later_seed_and_tell_its_first_arm_from_chance(tmp_path):
    fresh = replace(TAXI, first_seed=7, tests_first=True)
    fresh.run("smoke", 2, tmp_path / "toy")
    assert {row["seed"] for row in curves.read_csv(tmp_path / "toy" / "curves.csv")} == {"7", "8"}
    text = (tmp_path / "toy" / "README.md").read_text()
    assert "would put proto-goal as far ahead" in text
    assert "p_task = 0.5 0." in text or "p_task = 0.5 1." in text
    assert "--seed 7`" in text
    assert "commit: unknown" not in text


def test_the_main_results_are_drawn_in_one_figure(tmp_path):
    assert arms_figures.draw_summary(tmp_path) is None
    rows = [(arm, seed, step, 1.0, 32, wins) for arm, wins in (("proto-goal R2D2", 16), ("R2D2", 0)) for seed in (70, 71)
            for step in (1, 2)]
    for name in ("baba", "keycorridor"):
        (tmp_path / name).mkdir()
        curves.write_csv(tmp_path / name / "curves.csv", arms.CURVES, rows)
    file = arms_figures.draw_summary(tmp_path)
    assert file.read_bytes()[:4] == b"\x89PNG"
    width, height = struct.unpack(">II", file.read_bytes()[16:24])
    assert width == 900  # two panels of three inches
    assert height < width
