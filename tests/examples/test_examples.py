"""Every example runs, in a small size."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from protogoal.experiments import curves

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


TINY = {"actor__num_envs": 2, "learner__min_replay": 100, "learner__batch_size": 4, "learner__replay_ratio": 1,
        "network__hidden": 16, "network__rank": 8, "network__channels": (4,), "evaluation__final_episodes": 1,
        "evaluation__max_steps": 20, "refresh_every": 200, "record": ()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "needs", "extra", "words"), [
    ("minigrid_view", "minigrid", "minigrid", "goals were seen"),
    ("minihack_corridor", "minihack", "minihack", "the task: "),
    ("crafter_achievements", "crafter", "crafter", "energy ≥ 9"),
    ("montezuma_ram", "ale_py", "atari", "0 new rooms"),
    ("text_quest", "textworld", "text", "go "),
])
def test_an_example_trains_a_little(name, needs, extra, words, monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip(needs, reason=f"the extra {extra} is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    importlib.import_module(name).main(300, **TINY)
    assert words in capsys.readouterr().out


def test_crafters_score_is_the_geometric_mean_that_its_authors_use(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from crafter_achievements import score

    assert score([0.0] * 22) == 0.0
    assert score([100.0] * 22) == pytest.approx(100.0)
    assert score([99.0] + [0.0] * 21) == pytest.approx(100 ** (1 / 22) - 1)


def test_the_corridors_file_shows_its_proto_goals():
    pytest.importorskip("minigrid")
    words = run("minigrid_keycorridor.py")
    assert "171 proto-goals" in words
    assert "carrying nothing" in words


@pytest.mark.filterwarnings("ignore")
def test_the_corridors_view_is_what_minigrid_says(monkeypatch):
    pytest.importorskip("minigrid")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import minigrid_keycorridor as corridor

    env = corridor.make_env()
    space = corridor.proto_goals(env)
    world = env.unwrapped
    observation, _ = env.reset(seed=3)
    opened = set()
    for action in np.random.default_rng(0).integers(6, size=2000):
        observation, _, terminated, truncated, _ = env.step(action)
        names = {space.name(i) for i in np.flatnonzero(space.bits(None, None, {k: v[None] for k, v in observation.items()})[0])}
        column, row = world.agent_pos
        ahead = world.grid.get(*world.front_pos)
        assert f"before {corridor.KINDS[corridor.kind(ahead)]}" in names
        assert {f"agent at ({row},{column})", f"looking {corridor.DIRECTIONS[world.agent_dir]}"} <= names
        assert f"carrying {world.carrying.type if world.carrying else 'nothing'}" in names
        assert ("key in no cell" in names) == ("carrying key" in names)
        assert (env.observation_space["seen"].nvec > observation["seen"]).all()
        opened |= {name for name in names if "doors open" in name}
        if terminated or truncated:
            env.reset()
    assert len(opened) > 2


def test_agents_are_compared_on_an_environment_of_ones_own(tmp_path):
    pytest.importorskip("minigrid")
    run("keycorridor_comparison.py", "--scale", "smoke", "--out", tmp_path)
    rows = curves.read_csv(tmp_path / "curves.csv")
    curves.write_csv(tmp_path / "curves.csv", list(rows[0]), [list(row.values()) for row in rows] + [
        list((row | {"step": int(row["step"]) + 1000}).values()) for row in rows])  # of two points there is a curve
    run("keycorridor_comparison.py", "--redraw", "--out", tmp_path)
    assert {"curves.csv", "learning.png", "README.md"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "curves.csv").read_text().count("R2D2") >= 2


def test_stable_baselines_is_compared_at_equal_frames(tmp_path):
    """One short run of an arm: its evaluations and CPU seconds are there, and it is not made twice."""
    pytest.importorskip("stable_baselines3")
    words = ("peer_comparison.py", "--out", tmp_path, "--seeds", "1", "--steps", "600", "--every", "300", "--episodes", "1",
             "--task", "KeyCorridor", "--arm", "Stable-Baselines3 DQN + HER")
    assert "at 300 steps" in run(*words)
    rows = curves.read_csv(tmp_path / "curves.csv")
    assert [row["step"] for row in rows] == ["300", "600"]
    assert float(rows[0]["cpu_seconds"]) > 0.0
    assert "steps" not in run(*words)
