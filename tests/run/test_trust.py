"""A run that somebody sent executes nothing and connects to nobody, unless its user says so."""

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from protogoal.cli import main
from protogoal.domains.user_env import own_environment
from protogoal.presets import PRESETS
from protogoal.run import checkpoint, trust
from protogoal.run.directory import RunDirectory

pytest.importorskip("torch")

OWN = Path(__file__).parents[1] / "envs" / "own_corridor.py"
EVIL = f"open('executed', 'w')\n{OWN.read_text()}"
TINY = ["--actor.num_envs", "4", "--learner.batch_size", "4", "--learner.min_replay", "100000", "--network.hidden", "16",
        "--network.rank", "8", "--evaluation.every", "1000", "--evaluation.episodes", "4", "--evaluation.final_episodes", "4",
        "--steps", "400", "--threads", "1"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A directory of its own, nothing of which stays imported."""
    monkeypatch.chdir(tmp_path)
    before, finders = set(sys.modules), list(sys.meta_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("runs", "mine", "evil", "link", "mine_too", "here"):
            del sys.modules[name]
    sys.meta_path[:] = finders
    trust.ImportGuard.directories.clear()


def downloaded(env: str, space: str, preset: str = "baba-umaze-small-protogoal", **ray) -> Path:
    """A run as an attacker would write it: any names, and a checkpoint, so that `eval` goes on."""
    config = own_environment(env, space)
    config = dataclasses.replace(config, ray=dataclasses.replace(config.ray, **ray))
    run = RunDirectory.create(Path("runs/nice"), preset, config, "ray" if ray else "local")
    (run.path / "evil.py").write_text(EVIL)
    checkpoint.save(run.checkpoints, 100, {"agent": {}}, about=run.about)
    return run.path


COMMANDS = (["eval", "runs/nice"], ["watch", "runs/nice", "--out", "x.gif"], ["resume", "runs/nice"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("name", ["runs.nice.evil:make", "os:abort", "http.server:test", "evil:Nice-v0", "CartPole-v1"])
def test_code_that_a_run_names_is_said_and_not_executed(command, name, capsys):
    downloaded(name, "runs.nice.evil:cells")
    assert main(command) == 2
    line = capsys.readouterr().err
    assert name in line
    assert "--trust" in line
    assert line.count("\n") == 1
    assert not Path("executed").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(("env", "space"), [("here:make", "here:cells"), ("CartPole-v1", "here:cells"), ("here:make", "")])
def test_a_name_that_stands_for_a_function_of_a_script_imports_no_module_so_called(command, env, space, monkeypatch, capsys):
    path = downloaded(env, space)
    (path / "evil.py").rename(path / "here.py")
    monkeypatch.chdir(path)
    assert main([command[0], ".", *command[2:]]) == 2
    assert "which this process does not have" in capsys.readouterr().err
    assert not Path("executed").exists()


@pytest.mark.parametrize("grant", [["--trust"], ["--env", "runs.nice.evil:make", "--space", "runs.nice.evil:cells"]], ids=len)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_code_from_below_a_run_is_never_imported(command, grant, capsys):
    downloaded("runs.nice.evil:make", "runs.nice.evil:cells")
    assert main([*command, *grant]) == 2
    assert "never imported" in capsys.readouterr().err
    assert not Path("executed").exists()


def test_nor_a_package_of_a_run_on_the_way_to_a_module(capsys):
    path = downloaded("runs.nice.evil:make", "runs.nice.evil:cells")
    (path / "__init__.py").write_text("open('executed', 'w')")
    assert main(["eval", "runs/nice", "--trust"]) == 2
    assert not Path("executed").exists()


def test_nor_through_a_link_or_from_inside_the_run(monkeypatch, capsys):
    path = downloaded("link:make", "link:cells")
    Path("link.py").symlink_to(path / "evil.py")
    assert main(["eval", "runs/nice", "--trust"]) == 2
    shutil.copy(path / "evil.py", path / "link.py")
    monkeypatch.chdir(path)
    assert main(["eval", ".", "--trust"]) == 2
    assert "another directory" in capsys.readouterr().err
    assert not Path("executed").exists()


def test_what_a_trusted_module_imports_does_not_come_from_the_run_either(monkeypatch, capsys):
    path = downloaded("mine_too:make", "mine_too:cells")
    monkeypatch.syspath_prepend(str(path))  # however it came there
    Path("mine_too.py").write_text("from evil import *")
    assert main(["eval", "runs/nice", "--trust"]) == 2
    assert not Path("executed").exists()


def test_an_address_that_a_run_names_is_not_connected_to(monkeypatch, capsys):
    downloaded("mine:make", "mine:cells", address="203.0.113.1:6379")
    Path("mine.py").write_text(OWN.read_text())
    names = ["--env", "mine:make", "--space", "mine:cells"]
    for words in (["resume", "runs/nice"], ["resume", "runs/nice", *names]):
        assert main(words) == 2
        assert "--address 203.0.113.1:6379" in capsys.readouterr().err


def test_ones_own_run_is_resumed_and_judged_with_trust_or_with_its_names_again(capsys):
    Path("mine.py").write_text(OWN.read_text())
    names = ["--env", "mine:make", "--space", "mine:cells"]
    assert main(["train", *names, "--run", "runs/mine", *TINY]) == 0
    capsys.readouterr()
    assert main(["eval", "runs/mine", "--episodes", "2", *names]) == 0
    assert main(["eval", "runs/mine", "--episodes", "2", "--trust"]) == 0
    assert "mine:make" in capsys.readouterr().err  # what is imported is said
    assert main(["resume", "runs/mine", "--steps", "800", "--trust"]) == 0
    assert main(["eval", "runs/mine", "--env", "os:abort", "--space", "mine:cells"]) == 2
    assert "is not what runs/mine was trained with: mine:make" in capsys.readouterr().err


def test_a_domain_that_an_installed_package_announces_needs_no_trust(monkeypatch):
    from protogoal.envs import user_envs as own

    domain = own.OwnDomain("mine:make", "mine:cells", "cells")
    monkeypatch.setattr(own, "announced_domains", lambda tell=None: {"corridor": domain})
    trust.check(Path("runs/nice"), own_environment("mine:make", "mine:cells"), "local", trust.NOTHING)
    with pytest.raises(ValueError, match="--trust"):
        trust.check(Path("runs/nice"), own_environment("mine:make", "evil:cells"), "local", trust.NOTHING)


def test_the_id_of_an_installed_environment_alone_names_no_code():
    trust.check(Path("runs/nice"), own_environment("CartPole-v1"), "local", trust.NOTHING)
    for name in ("evil:CartPole-v1", "CartPole-v1?render_mode=human"):
        with pytest.raises(ValueError, match="--trust"):
            trust.check(Path("runs/nice"), own_environment(name), "local", trust.NOTHING)


def test_our_own_presets_name_nothing():
    assert not any(trust.named(config, engine) for config in PRESETS.values() for engine in ("local", "ray"))
