"""Benchmarks run, in their quick form, and say what they promise; how fast anything is, no test asks."""

import numpy as np
import pytest

from protogoal.benchmarking import benchmarks, measure


@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_runs_in_its_quick_form(name):
    rows = measure(name, quick=True)
    assert len({(row["case"], row["unit"]) for row in rows}) == len(rows)
    for row in rows:
        assert {"case", "value", "unit"} <= set(row)
        assert row["value"] is None or np.isfinite(row["value"])
