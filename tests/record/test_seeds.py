"""Runs that differ in their seed alone are told as one."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_runs import Bit, FakeRun

from protogoal.presets import PRESETS
from protogoal.record.report import report
from protogoal.record.run_facts import run_facts
from protogoal.record.seeds import groups, mean_curve, success_words
from protogoal.record.store import StoreReader
from protogoal.run.directory import RunDirectory


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Three seeds of one configuration, and a longer run."""
    out = tmp_path_factory.mktemp("seeds")
    bits = [Bit(f"cell {i}", "cell", (0, i), 1.0 + i) for i in range(6)]
    for seed, total in ((0, 12), (1, 12), (2, 12), (3, 16)):
        FakeRun(out / f"run-{seed}", "cells-protogoal", bits, seed=seed, total=total).play()
    return [out / f"run-{seed}" for seed in range(4)]


@pytest.fixture(scope="module")
def facts(paths):
    found = []
    for path in paths:
        with StoreReader(path) as reader:
            found.append(run_facts(reader))
    return found


def test_runs_that_differ_in_their_seed_alone_are_one_group(facts):
    told = [(group.label, group.members) for group in groups(facts)]
    assert told == [("cells-protogoal, seeds 0, 1, 2", (0, 1, 2)), ("run-3", (3,))]
    assert [group.members for group in groups([facts[3], facts[1], facts[0]])] == [(0,), (1, 2)]


def test_two_runs_of_one_seed_differ_in_something_else_and_stay_apart(facts):
    assert [group.members for group in groups([facts[0], replace(facts[1], seed=0)])] == [(0,), (1,)]
    assert [group.members for group in groups([facts[0], replace(facts[1], seed=None)])] == [(0,), (1,)]


def test_the_mean_curve_by_hand():
    """At 10 and 20 both were: 0.2 and 0.6, 0.4 and 0.8 in between; t(1, 0.975) = 12.706 makes the interval all of it."""
    one = {"step": np.array([0.0, 10, 20]), "seconds": np.array([0.0, 1, 2]), "success": np.array([0.0, 0.2, 0.4])}
    two = {"step": np.array([10.0, 15, 30]), "seconds": np.array([3.0, 4, 5]), "success": np.array([0.6, 0.7, 1.0])}
    mean = mean_curve([one, two], "success")
    np.testing.assert_allclose(mean["step"], [10, 15, 20])
    np.testing.assert_allclose(mean["success"], [(0.2 + 0.6) / 2, (0.3 + 0.7) / 2, (0.4 + 0.8) / 2])
    np.testing.assert_allclose(mean["seconds"], [2, 2.75, (2 + 4 + 1 / 3) / 2])
    assert (mean["low"] == 0).all()
    assert (mean["high"] == 1).all()
    later = {name: column + 100 for name, column in one.items()}
    assert len(mean_curve([one, later], "success")["step"]) == 0


def test_the_seeds_are_summed_up_in_words(facts):
    some = [replace(fact, success=success) for fact, success in zip(facts, (0.4, 0.5, 0.6), strict=False)]
    assert success_words(some) == "mean 50 % (25–75 %) of 3 seeds"
    assert success_words([*some[:2], replace(some[2], success=None)]) == ""
    assert success_words(some[:1]) == ""


def test_a_report_of_several_seeds_draws_their_mean(paths, tmp_path):
    report(paths, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<b>cells-protogoal, seeds 0, 1, 2</b>: success mean " in page
    assert "of several seeds the mean with its t interval" in page
    assert {"success.png", "success.csv", "metrics.csv"} <= {file.name for file in (tmp_path / "report_files").iterdir()}


def test_a_configuration_is_all_settings_but_the_seed(tmp_path):
    config = PRESETS["taxi-protogoal"]
    runs = [RunDirectory(tmp_path, "taxi-protogoal", changed)
            for changed in (config, replace(config, seed=7), replace(config, steps=config.steps + 1))]
    assert runs[0].configuration == runs[1].configuration != runs[2].configuration
