"""Episodes that never end, environments that hang: an evaluation ends, and two Ctrl-C are always enough."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from reference.tiny_deep import TINY  # noqa: E402

from protogoal import config as config_module  # noqa: E402
from protogoal.agents.r2d2 import R2D2  # noqa: E402
from protogoal.deep.act import WantedGoal, evaluate  # noqa: E402
from protogoal.domains.user_env import OwnSettings  # noqa: E402
from protogoal.envs.user_envs import own_batch  # noqa: E402
from protogoal.presets import PRESETS  # noqa: E402
from protogoal.run import local  # noqa: E402

HERE = Path(__file__).parent
OWN = ["--space", "bad_envs:cells", "--actor.num_envs", "2", "--network.hidden", "16", "--network.rank", "8",
       "--learner.batch_size", "4", "--learner.min_replay", "40", "--evaluation.episodes", "3", "--evaluation.final_episodes", "3"]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


def played(kind, episodes, max_steps, wanted=None):
    env = own_batch(f"bad_envs:{kind}", "bad_envs:cells", 2)
    network = R2D2.make_network(TINY, env)
    return evaluate(network, env, episodes, 1.0, np.random.default_rng(0), max_steps, wanted=wanted)


def test_an_episode_that_never_ends_is_cut():
    result = played("never_ends", 5, 30)
    assert (result.episodes, result.cut, result.mean_length) == (5, 5, 30.0)


def test_a_pursuit_that_never_ends_is_cut():
    nowhere = WantedGoal(np.array([10**6]), np.array([0], np.int32))  # a bit that is never on
    result = played("never_ends", 5, 30, nowhere)
    assert (result.episodes, result.cut, result.successes, result.mean_length) == (5, 5, 0, 30.0)


def test_of_episodes_that_sometimes_end_all_are_counted_once():
    result = played("ends_sometimes", 9, 25)
    assert 0 < result.cut < 9
    assert result.mean_length <= 25


def test_an_evaluation_takes_no_more_than_ten_times_its_run():
    config = PRESETS["baba-umaze-small-protogoal"]
    limits = [dataclasses.replace(config, steps=steps).longest_played for steps in (3_000, 50_000, 10**6)]
    assert limits == [1_000, 5_000, 10_000]
    short = dataclasses.replace(config.evaluation, max_steps=200)
    assert dataclasses.replace(config, evaluation=short, steps=3_000).longest_played == 200


def test_every_evaluation_of_a_run_has_the_same_limit(monkeypatch):
    limits = set()

    def played(network, env, episodes, epsilon, rng, max_steps, rule, wanted=None):
        limits.add(max_steps)
        return evaluate(network, env, 1, epsilon, rng, 100, rule, wanted)

    monkeypatch.setattr(local, "evaluate", played)
    config = dataclasses.replace(TINY, steps=3_000, evaluation=dataclasses.replace(TINY.evaluation, episodes=2, final_episodes=4))
    session = local.LocalSession(config)
    for episodes in (2, 4, 50):
        session.evaluate(episodes, seed=0, as_in_run=True)
    assert limits == {7_500}
    session.evaluate(2, seed=0)
    session.close()
    assert limits == {7_500, 10_000}, "who asks for an evaluation has the setting alone"


def test_it_is_said_which_limit_cut_an_evaluation(monkeypatch):
    monkeypatch.setattr(config_module, "LEAST_PLAYED", 30)
    config = dataclasses.replace(TINY, env=OwnSettings("bad_envs:never_ends", "bad_envs:cells"), steps=6)
    short = dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, max_steps=20))
    said = []
    for some in (config, short):
        session = local.LocalSession(some)
        with pytest.warns(UserWarning, match="were cut there") as caught:
            session.evaluate(1, seed=0, as_in_run=True)
        said.append(str(caught[0].message))
        session.close()
    assert "within 30 steps (all that a run of 6 steps allows; evaluation.max_steps is 10,000)" in said[0]
    assert "within 20 steps (evaluation.max_steps)" in said[1]


def test_episodes_that_end_are_played_as_without_a_limit():
    assert played("corridor", 7, 10**6) == played("corridor", 7, 20)


def start(folder, kind, *more):
    code = "import sys; from protogoal.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "train", "--env", f"bad_envs:{kind}", "--run", str(folder / "run"), *OWN, *more]
    environment = os.environ | {"PYTHONPATH": str(HERE), "BAD_ENVS_MARK": str(folder / "hangs")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 60
    while not (folder / "hangs").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    return process


@pytest.mark.parametrize(("kind", "threads"), [("hangs", "1"), ("hangs", "2"), ("hangs_deaf", "1")])
def test_two_interrupts_are_enough_while_an_environment_hangs(kind, threads, tmp_path):
    process = start(tmp_path, kind, "--threads", threads)
    process.send_signal(signal.SIGINT)
    time.sleep(0.7)
    assert process.poll() is None  # it would like to save
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Ctrl-C again stops at once" in said
    assert "Traceback" not in said


def test_one_interrupt_is_enough_where_an_evaluation_is_endless(tmp_path):
    process = start(tmp_path, "never_ends", "--evaluation.every", "100", "--evaluation.max_steps", "2000", "--steps", "100000000")
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "did not end within 2,000 steps" in said
    assert f"protogoal resume {tmp_path / 'run'} --trust" in out
