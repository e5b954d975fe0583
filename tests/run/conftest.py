"""A small Ray of this process, for the files that need one."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def small_ray():
    import ray

    os.environ |= {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    here = Path(__file__).parent
    with pytest.MonkeyPatch.context() as patch:  # the roles import test files, for their environments
        patch.setenv("PYTHONPATH", os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")]))
        ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()
