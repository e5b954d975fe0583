import json
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from protogoal import settings
from protogoal.cli import main
from protogoal.domains import user_env as own_domain
from protogoal.domains.domain import make_batch_env
from protogoal.domains.user_env import OwnSettings, own_environment
from protogoal.envs import user_envs as own
from protogoal.envs.user_envs import EnvReference, OwnDomain, announced_domains, make_space, own_batch
from protogoal.goals.spaces import BagOfWords
from protogoal.presets import announced_presets
from protogoal.registry import AGENTS

HERE = Path(__file__).parent
TINY = ["--actor.num_envs", "4", "--learner.batch_size", "4", "--learner.min_replay", "200", "--network.hidden", "16",
        "--network.rank", "8", "--refresh_every", "400", "--evaluation.every", "1000", "--evaluation.episodes", "4",
        "--evaluation.final_episodes", "4", "--steps", "1200"]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


def test_a_batch_is_made_from_two_names():
    batch = own_batch("own_corridor:make", "own_corridor:cells", 3)
    _, active = batch.reset(seed=0)
    assert (batch.num_envs, batch.num_actions, batch.num_bits) == (3, 2, 6)
    np.testing.assert_array_equal(active[:, 0], [0, 0, 0])
    assert batch.step(np.ones(3, int)).active[:, 0].tolist() == [1, 1, 1]
    batch.close()


def test_a_space_whose_names_are_no_text_is_refused_in_one_line(monkeypatch):
    class Numbered(BagOfWords):
        def name(self, i):
            return i

    monkeypatch.setattr(own, "load", lambda name: lambda env: Numbered(capacity=3))
    with pytest.raises(ValueError, match=r"name\(0\) of a:b gave a int; it must give text"):
        make_space("a:b", None)


def test_the_players_batch_shares_the_space():
    settings = OwnSettings("own_corridor:make", "own_corridor:cells")
    first, space = make_batch_env(settings, 2)
    second, shared = make_batch_env(settings, 2, space)
    assert shared is space
    first.close()
    second.close()


def test_the_network_can_read_the_bits_instead_of_the_observation():
    batch, _ = make_batch_env(OwnSettings("own_corridor:make", "own_corridor:cells", observation="bits"), 3)
    observation, active = batch.reset(seed=0)
    assert list(observation) == list(batch.observation_spec) == ["active"]
    np.testing.assert_array_equal(observation["active"], active)
    np.testing.assert_array_equal(batch.step(np.ones(3, int)).observation["active"], [[1]] * 3)
    batch.close()


def test_a_registered_environment_needs_no_factory():
    env = EnvReference("CartPole-v1")()
    assert env.action_space.n == 2
    env.close()


@pytest.mark.parametrize(("env", "space", "words"), [
    ("no_such_module:make", "own_corridor:cells", "cannot import 'no_such_module'"),
    ("own_corridor:gone", "own_corridor:cells", "has no 'gone'"),
    ("own_unfinished:make", "own_corridor:cells", "cannot import 'own_unfinished': NameError: name 'Maze' is not defined"),
    ("own_corridor:CELLS", "own_corridor:cells", "is a int, not a function"),
    ("own_corridor:broken", "own_corridor:cells", "own_corridor:broken raised RuntimeError: no such maze"),
    ("own_corridor:nothing", "own_corridor:cells", "must give a gymnasium.Env"),
    ("own_corridor:make", "own_corridor:nothing", "must give a ProtoGoalSpace"),
    ("NoSuchEnv-v0", "own_corridor:cells", "neither module:function nor a Gymnasium environment"),
])
def test_a_wrong_name_is_one_clear_line(env, space, words):
    with pytest.raises(ValueError, match=words):
        own_batch(env, space, 2)


def test_a_space_alone_is_no_environment():
    with pytest.raises(ValueError, match="name it: --env ID"):
        own_environment("", "own_corridor:cells")


def test_the_configuration_survives_json():
    config = own_environment("own_corridor:make", "own_corridor:cells")
    again = settings.from_dict(type(config), json.loads(json.dumps(settings.to_dict(config))))
    assert again == config


def test_an_own_environment_is_trained_resumed_and_judged_from_the_command_line(tmp_path, capsys):
    pytest.importorskip("torch")
    names = ["--env", "own_corridor:make", "--space", "own_corridor:cells"]
    run = tmp_path / "run"
    assert main(["train", *names, "--run", str(run), *TINY]) == 0
    assert main(["resume", str(run), "--steps", "1400", *names]) == 0
    assert main(["eval", str(run), "--episodes", "8", "--json", *names]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["steps"] >= 1400
    assert main(["goals", str(run)]) == 0
    assert "cell 3" in capsys.readouterr().out
    assert main(["train", *names, "--run", str(tmp_path / "baseline"), "--agent", "r2d2", *TINY]) == 0
    assert json.loads((tmp_path / "baseline" / "config.json").read_text())["config"]["agent"] == "r2d2"


def test_an_environment_is_found_in_the_directory_of_the_command(tmp_path, monkeypatch):
    (tmp_path / "corridor_here.py").write_text((HERE / "own_corridor.py").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    EnvReference("corridor_here:make")().close()


def test_users_mistakes_get_one_line_and_exit_code_2(capsys):
    for words, said in (
        (["train", "--space", "own_corridor:cells"], "name it: --env"),
        (["train", "taxi-protogoal", "--env", "a:b", "--space", "c:d"], "not both"),
        (["train", "--env", "own_corridor:gone", "--space", "own_corridor:cells"], "has no 'gone'"),
    ):
        assert main(words) == 2
        line = capsys.readouterr().err
        assert said in line
        assert line.count("\n") == 1


def test_an_installed_package_announces_its_domain(tmp_path, monkeypatch):
    about = tmp_path / "corridors-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: corridors\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[protogoal.domains]\nlong-corridor = own_corridor:DOMAIN\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert announced_domains()["long-corridor"].proto_goals == "6 cells"


def announce(monkeypatch, *entries):
    points = metadata.EntryPoints(metadata.EntryPoint(name, value, own.GROUP) for name, value in entries)
    monkeypatch.setattr(own.metadata, "entry_points", lambda group: points)


def test_a_domain_of_another_package_stands_beside_ours(monkeypatch, capsys):
    announce(monkeypatch, ("corridor", "own_corridor:DOMAIN"))
    presets = announced_presets()
    assert set(presets) == {f"corridor-{agent}" for agent in AGENTS}
    assert presets["corridor-r2d2"].agent == "r2d2"
    assert presets["corridor-protogoal"].actor.num_envs == 4
    assert main(["envs", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)[-1]
    assert (row["name"], row["actions"], row["size"]) == ("corridor", 2, 6)
    assert row["presets"] == list(presets)
    assert main(["train", "corridor-protogoal", "--help"]) == 0
    assert main(["train", "corridor-protogaol"]) == 2
    assert "did you mean corridor-protogoal?" in capsys.readouterr().err


def test_a_domain_that_cannot_be_loaded_is_passed_over_and_named(monkeypatch):
    announce(monkeypatch, ("gone", "no_such_module:DOMAIN"), ("wrong", "own_corridor:CELLS"), ("corridor", "own_corridor:DOMAIN"))
    said = []
    assert set(announced_domains(said.append)) == {"corridor"}
    assert "gone" in said[0]
    assert "must be an OwnDomain" in said[1]


def test_a_domain_with_an_unknown_field_is_refused(monkeypatch):
    domain = OwnDomain("own_corridor:make", "own_corridor:cells", "cells", {"actor.number": 3})
    monkeypatch.setattr(own_domain, "announced_domains", lambda: {"bad": domain})
    with pytest.raises(ValueError, match=r"domain bad: actor.number"):
        announced_presets()


def test_pictures_are_drawn_where_the_factory_can_draw():
    env = EnvReference("CartPole-v1", "rgb_array")()
    assert env.render_mode == "rgb_array"
    env.close()
    assert EnvReference("own_corridor:make", "rgb_array")().render_mode is None  # it takes no such argument
    assert EnvReference("own_corridor:drawn", "rgb_array")().render_mode == "rgb_array"
    batch = own_batch("own_corridor:drawn", "own_corridor:cells", 1, render_mode="rgb_array")
    batch.reset(seed=0)
    batch.step(np.array([1]))
    assert batch.picture().shape == (2, 6, 3)
    batch.close()


def test_a_space_is_made_for_the_environment_it_gets():
    env = EnvReference("own_corridor:make")()
    assert make_space("own_corridor:cells", env).name(2) == "cell 2"
