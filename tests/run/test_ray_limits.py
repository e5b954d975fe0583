"""What the Ray engine refuses, in one line and in time; roles that fail; Ctrl-C and SIGKILL."""

import dataclasses
import functools
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from reference.tiny_deep import FEW_CPUS, TINY

ray = pytest.importorskip("ray")

from protogoal.agents.blueprint import EnvSpaces  # noqa: E402
from protogoal.cli import main  # noqa: E402
from protogoal.config import RaySettings  # noqa: E402
from protogoal.domains.domain import make_batch_env  # noqa: E402
from protogoal.record.store import StoreReader  # noqa: E402
from protogoal.run import training, trust  # noqa: E402
from protogoal.run.ray import supervisor  # noqa: E402
from protogoal.run.ray.cluster import LINE  # noqa: E402
from protogoal.run.ray.learner import LearnerRole  # noqa: E402
from protogoal.run.ray.pge import PGERole  # noqa: E402
from protogoal.run.ray.session import RaySession  # noqa: E402
from protogoal.run.ray.shard import Shard  # noqa: E402
from protogoal.run.ray.supervisor import Published  # noqa: E402

PATIENCE = 600.0  # seconds for anything that is waited for
ALONE = ["--engine", "ray"]


def refused(capsys, *options):
    """Exit code 2 and one line."""
    assert main(["train", "baba-umaze-small-protogoal", "--run", "never-written", *ALONE, *options]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert not os.path.exists("never-written")
    return line


def test_without_ray_the_line_says_what_to_install(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "ray" else find(name, *a))
    assert "pip install 'protogoal[ray]'" in refused(capsys)


def test_an_address_nobody_answers_is_refused_at_once(capsys):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    assert f"nobody answers at {address}" in refused(capsys, "--address", address)
    assert "address must be auto or HOST:PORT" in refused(capsys, "--address", "somewhere")


def test_without_a_cluster_on_this_machine_auto_is_refused(capsys, monkeypatch):
    services = ray._private.services  # a cluster of another test may still be closing
    monkeypatch.setattr(services, "find_gcs_addresses", functools.cache(set))
    monkeypatch.setattr(services, "find_bootstrap_address", lambda temp_dir: None)
    assert "cannot use the Ray cluster at auto: Could not find any running Ray instance" in refused(capsys, "--address", "auto")


def test_an_address_where_something_else_listens_is_refused_in_time(capsys):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        start = time.monotonic()
        line = refused(capsys, "--address", address, "--ray.connect_seconds", "2")
        assert time.monotonic() - start < 60
    assert f"no Ray cluster answers at {address}" in line


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_gpu_that_the_learner_does_not_reserve_is_refused(capsys, device):
    line = refused(capsys, "--device", device)
    assert f"device must be auto or cpu where ray.learner_gpus = 0 (--ray.learner_gpus 1 reserves a GPU); got '{device}'" in line


def test_options_of_the_ray_engine_are_refused_elsewhere(capsys):
    assert main(["train", "taxi-protogoal", "--run", "never-written", "--workers", "2"]) == 2
    assert "--workers is for deep agents with --engine ray" in capsys.readouterr().err
    assert main(["train", "taxi-protogoal", "--run", "never-written", "--engine", "ray"]) == 2
    assert "engine must be local for the agent protogoal on taxi" in capsys.readouterr().err


# --- with Ray -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fields", "words"), [
    ({"workers": 100}, "needs 104 CPUs"),
    (FEW_CPUS | {"learner_gpus": 1.0}, "needs 1 GPUs"),
    (FEW_CPUS | {"learner_cpus": 4.0}, "the cluster has 3"),
])
def test_more_resources_than_the_cluster_has_are_refused(small_ray, fields, words):
    with pytest.raises(ValueError, match=words):
        RaySession(dataclasses.replace(TINY, ray=RaySettings(**fields)))
    assert ray.is_initialized()  # what was there before stays


def test_a_run_joins_the_cluster_at_an_address_and_killed_goes_on_from_its_last_checkpoint(small_ray, tmp_path):
    run = tmp_path / "run"
    fields = FEW_CPUS | {"workers": 1, "envs_per_worker": 4, "address": ray.get_runtime_context().gcs_address}
    code = f"""
import dataclasses, pathlib, sys
sys.path.insert(0, sys.argv[2])
from reference.tiny_deep import TINY_AGENT57
from protogoal.run import training
training.CHECKPOINT_SECONDS, training.CHECKPOINT_SHARE = 0.1, 1.0
training.train(pathlib.Path(sys.argv[1]), "tiny", dataclasses.replace(TINY_AGENT57, steps=10**7), "ray", {fields!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(run), str(Path(__file__).parents[1])],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and not list(run.glob("checkpoints/[0-9]*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    while ray.available_resources().get("CPU") != 3.0 and time.monotonic() < deadline:  # its roles end with it
        time.sleep(0.1)
    step = latest(run)
    assert step > 0
    training.resume(run, steps=step + 200, granted=trust.EVERYTHING)  # on Ray, as before
    assert latest(run) >= step + 200
    assert ray.is_initialized()


LEAVING = """
import os, sys
from protogoal.run.ray.cluster import Witness
witness = Witness()
if sys.argv[1] == "dismissed":
    witness.dismiss()
    witness.dismiss()
os._exit(1)  # as Ray does
"""


@pytest.mark.parametrize("how", ["dismissed", "ended"])
def test_a_process_that_is_ended_at_once_has_a_last_line(how):
    done = subprocess.run([sys.executable, "-c", LEAVING, how], capture_output=True, text=True)  # until all who write have gone
    assert (done.returncode, done.stderr) == (1, "" if how == "dismissed" else f"{LINE}\n")


def test_a_killed_raylet_ends_the_run_with_a_line_and_it_is_stopped_and_goes_on(tmp_path):
    run = tmp_path / "run"
    code = """
import dataclasses, pathlib, sys
sys.path.insert(0, sys.argv[2])
from reference.tiny_deep import FEW_CPUS, TINY
from protogoal.config import RaySettings
from protogoal.run import training
training.CHECKPOINT_SECONDS, training.CHECKPOINT_SHARE = 0.1, 1.0
small = dataclasses.replace(TINY, steps=10**7, ray=RaySettings(workers=1, envs_per_worker=4, **FEW_CPUS))
training.train(pathlib.Path(sys.argv[1]), "tiny", small, "ray", record=())
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(run), str(Path(__file__).parents[1])],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and not list(run.glob("checkpoints/[0-9]*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    [raylet] = [child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == "raylet"]
    raylet.kill()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert LINE in said.splitlines()
    with StoreReader(run) as reader:
        assert reader.meta()["status"] == "stopped"
    assert training.resume(run, "local", steps=latest(run))


def test_a_shard_larger_than_any_machine_is_refused(small_ray):
    huge = dataclasses.replace(TINY.replay, capacity=10**10)
    words = r"one process does not fit: replay shard .* GB \(replay.capacity = 10,000,000,000\), the largest machine of the cluster"
    with pytest.raises(ValueError, match=words):
        RaySession(dataclasses.replace(TINY, replay=huge, ray=RaySettings(**FEW_CPUS)))


def test_a_role_that_dies_again_and_again_ends_the_run_with_its_reason(small_ray):
    class Mortal(supervisor.Role):
        def work(self):
            os._exit(1)

    deaths = []
    people = supervisor.Supervisor(answer_seconds=60)
    process = people.add("mortal", lambda _: supervisor.start_role(Mortal, cpus=0.1), deaths.append)
    with pytest.raises(ValueError, match="mortal failed 3 times in a row"):  # noqa: PT012
        for _ in range(3):
            people.wait_ready()
            people.call(process, "work", process.handle.work.remote(), lambda _: None)
            people.settle()
    assert len(deaths) == 2
    people.disband()


def test_a_role_that_cannot_be_made_ends_the_run_with_its_reason(small_ray):
    class Stillborn(supervisor.Role):
        def __init__(self):
            raise RuntimeError("no such level")

    people = supervisor.Supervisor(answer_seconds=60)
    people.add("stillborn", lambda _: supervisor.start_role(Stillborn, cpus=0.1), lambda _: None)
    with pytest.raises(ValueError, match=r"stillborn failed 3 times in a row: .*RuntimeError: no such level"):
        people.wait_ready()
    people.disband()


def test_a_role_for_which_there_is_no_room_is_not_waited_for_longer_than_said(small_ray):
    given_up = []
    people = supervisor.Supervisor(answer_seconds=1.0)
    people.add("giant", lambda _: supervisor.start_role(supervisor.Role, cpus=50), lambda _: None, given_up.append)
    start = time.monotonic()
    while not given_up and time.monotonic() - start < 30:
        people.take(timeout=0.2)
    assert given_up == ["giant did not start within 1 s"]
    people.disband()


def test_a_shard_that_is_gone_or_empty_is_passed_over_and_a_mistake_in_its_code_ends_the_run(small_ray):
    class Mistaken(Shard):
        def sample(self, *_):
            raise TypeError("a mistake")

        sample_transitions = sample

    env, space = make_batch_env(TINY.env, 1)
    spaces = EnvSpaces.of(env)
    mistaken, empty, gone = (supervisor.start_role(cls, TINY, spaces, 0, cpus=0.1) for cls in (Mistaken, Shard, Shard))
    ray.kill(gone)
    by_values = dataclasses.replace(TINY, pge=dataclasses.replace(TINY.pge, pruning="values"))  # the rule that asks the shards
    learner, judge = LearnerRole(TINY, spaces), PGERole(by_values, spaces, space, None)
    for shard in (empty, gone):
        learner.set_shards({0: shard})
        judge.set_shards({0: shard})
        assert learner.learn(1, {0: 100}, Published())[0].updates == 0
        assert judge.refresh({0: 100}) is None
    judge.set_shards({0: mistaken})
    with pytest.raises(TypeError, match="a mistake"):
        judge.refresh({0: 100})
    people = supervisor.Supervisor(answer_seconds=60)
    process = people.add("learner", lambda _: supervisor.start_role(LearnerRole, TINY, spaces, cpus=0.1), lambda _: None)
    people.call(process, "set_shards", process.handle.set_shards.remote({0: mistaken}), lambda _: None)
    answer, *_ = process.handle.learn.options(num_returns=3).remote(1, {0: 100}, Published())
    people.call(process, "learn", answer, lambda _: None)
    with pytest.raises(TypeError, match="a mistake"):  # and not in silence
        people.settle()
    people.disband()
    for actor in (mistaken, empty):
        ray.kill(actor)


# --- from the command line ------------------------------------------------------------------------------------------


def test_ctrl_c_on_a_ray_run_leaves_a_checkpoint_that_either_engine_resumes(tmp_path):
    """The command starts a Ray of its own, and leaves none behind."""
    run = tmp_path / "run"
    code = """
import dataclasses, pathlib, sys
sys.path.insert(0, sys.argv[2])
from reference.tiny_deep import TINY
from protogoal.run import training
training.train(pathlib.Path(sys.argv[1]), "tiny", dataclasses.replace(TINY, steps=10**7), "ray", {"workers": 1})
"""
    command = [sys.executable, "-c", code, str(run), str(Path(__file__).parents[1])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    steps = ""
    while "ratio" not in steps and process.poll() is None:
        steps = process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # to the whole group, Ray's processes included, as a terminal sends it
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "go on with: protogoal resume" in output
    assert '"engine": "ray"' in (run / "config.json").read_text()
    assert main(["resume", str(run), "--engine", "local", "--steps", str(latest(run) + 200)]) == 0
    assert main(["eval", str(run), "--episodes", "2"]) == 0


def latest(run):
    return max(int(path.name) for path in (run / "checkpoints").glob("[0-9]*"))
