"""Puts tests/ on the path, so that slow versions are imported as `reference.…`; and lets Ctrl-C work in what tests start.

`make test` uses two processes (pytest-xdist), each file in one of them: tests of a file may share a fixture that changes. Those
that start Ray come first, as they take longest.
"""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# where the shell made Ctrl-C ignored, as for jobs in the background, the processes that tests start would ignore it too
signal.signal(signal.SIGINT, signal.default_int_handler)

# the first begins without any Ray, so none may run beside it
FIRST = ("test_ray_limits", "test_docs", "test_ray_engine", "test_ray_vocabulary", "test_scaling_experiment")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST))
