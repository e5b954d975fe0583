"""Benchmarks run, in their quick form, and say what they promise; how fast anything is, no test asks."""

import importlib
import subprocess

import numpy as np
import pytest

from protogoal.benchmarking import ROOT, benchmarks, measure


@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_runs_in_its_quick_form(name):
    rows = measure(name, quick=True)
    assert len({(row["case"], row["unit"]) for row in rows}) == len(rows)
    for row in rows:
        assert {"case", "value", "unit"} <= set(row)
        assert row["value"] is None or np.isfinite(row["value"])


def test_a_vast_space_is_compared_with_the_version_before_where_the_history_has_it(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    vast = importlib.import_module("vast")
    asked = []

    def measured(package, script, size, steps):
        asked.append((package == ROOT, script.name, (package / "protogoal" / "presets.py").exists()))
        return {"steps": 300.0 if package == ROOT else 100.0}

    monkeypatch.setattr(vast, "measure_apart", measured)
    rows = vast.against_before({1_000: 50}, 2)
    if subprocess.run(["git", "-C", str(ROOT), "cat-file", "-e", vast.BEFORE], capture_output=True, check=False).returncode:
        assert rows == []
        return
    assert [row["ratio"] for row in rows] == [3.0]
    assert asked == 2 * [(True, "vast.py", True), (False, "vast_before.py", True)]
