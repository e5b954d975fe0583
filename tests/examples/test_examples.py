"""Every example runs, in a small size."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *arguments):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={"PATH": "", "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_single_file_dqn_runs():
    pytest.importorskip("torch")
    words = run("cleanrl_style.py", "--total-steps", 1_300, "--learning-starts", 800, "--batch-size", 32,
                "--test-episodes", 1)
    assert "drive to a cell" in words


def test_the_stable_baselines_example_runs():
    pytest.importorskip("stable_baselines3")
    words = run("sb3_her.py", "--steps", 1_100, "--test-episodes", 1)
    assert "drive to a cell" in words


def test_the_tutorials_file_shows_its_proto_goals():
    pytest.importorskip("minigrid")
    words = run("minigrid_keycorridor.py")
    assert "171 proto-goals" in words
    assert "carrying nothing" in words


def test_agents_are_compared_on_an_environment_of_ones_own(tmp_path):
    pytest.importorskip("minigrid")
    run("keycorridor_comparison.py", "--scale", "smoke", "--out", tmp_path)
    (tmp_path / "learning.png").unlink()
    run("keycorridor_comparison.py", "--redraw", "--out", tmp_path)
    assert {"curves.csv", "learning.png", "README.md"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "curves.csv").read_text().count("R2D2") >= 2
