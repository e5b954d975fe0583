"""Lets the files here import each other, and makes the small runs that are attacked."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

TAXI = ["--steps", "6000", "--learning.eval_every", "500", "--learning.eval_episodes", "10"]


@pytest.fixture(scope="session")
def victims(tmp_path_factory):
    """A finished run of each kind, by name."""
    from reference.tiny_deep import TINY, TINY_AGENT57

    from protogoal.cli import main
    from protogoal.run import training

    path = tmp_path_factory.mktemp("victims")
    assert main(["train", "taxi-protogoal", "--run", str(path / "taxi"), *TAXI]) == 0
    training.train(path / "baba", "tiny", TINY)
    training.train(path / "agent57", "tiny-agent57", TINY_AGENT57)
    return {name: path / name for name in ("taxi", "baba", "agent57")}
