"""Puts tests/ on the path, so that slow versions are imported as `reference.…`; and lets Ctrl-C work in what tests start.

With `pytest -n 2` (pytest-xdist, as `make test` does) a file's tests stay in one process, as do all that start Ray: two Rays on
one machine find each other. Those come first, as they take longest.
"""

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# where the shell made Ctrl-C ignored, as for jobs in the background, the processes that tests start would ignore it too
signal.signal(signal.SIGINT, signal.default_int_handler)

ON_RAY = ("test_ray_limits", "test_ray_engine", "test_scaling_experiment")  # the first begins without any Ray


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group("ray" if item.path.stem in ON_RAY else str(item.path)))
    items.sort(key=lambda item: ON_RAY.index(item.path.stem) if item.path.stem in ON_RAY else len(ON_RAY))
