"""Made-up runs that the tests of the page, the report and the table look at; written once a session, never changed."""

from pathlib import Path

import pytest
from synthetic_runs import FakeRun, baba_bits, taxi_bits, word_bits

REFRESHES = 24


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("runs")
    FakeRun(out / "baba", "baba-umaze-medium-protogoal", baba_bits(), total=REFRESHES).play()
    FakeRun(out / "rivers", "minihack-narrow-river-protogoal", word_bits(), seed=2, total=REFRESHES).play()
    FakeRun(out / "taxi", "taxi-protogoal", taxi_bits(), seed=3, total=REFRESHES, by_values=True).play()
    FakeRun(out / "qlearning", "taxi-qlearning", taxi_bits(), seed=4, total=REFRESHES, plain=True).play()
    return {name: out / name for name in ("baba", "rivers", "taxi", "qlearning")}
