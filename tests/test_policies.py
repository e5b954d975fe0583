"""The agents that come with the repository: each does what its card says, from its file alone."""

from pathlib import Path

import pytest

import protogoal
from protogoal.cli import main

pytest.importorskip("torch")
POLICIES = Path(__file__).parents[1] / "policies"


def test_every_file_has_a_card():
    cards = (POLICIES / "README.md").read_text()
    files = sorted(file.name for file in POLICIES.glob("*.npz"))
    assert files
    assert all(f"## {name}" in cards for name in files)


def test_the_medium_maze_is_won_and_seen(tmp_path, capsys):
    file = str(POLICIES / "umaze-medium.npz")
    assert main(["watch", file, "--out", str(tmp_path / "win.gif")]) == 0
    assert "won" in capsys.readouterr().out
    agent = protogoal.load(file)
    assert agent.evaluate(4)["success"] == 1.0
    assert len(agent.goals(as_table=False)["name"]) == 252
    assert agent.goal_id("FLAG at (4,4)") is not None
