"""Pictures of environments: made ready to draw, brought into one form, and written as a GIF by `protogoal watch`."""

import os
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from protogoal.cli import main
from protogoal.domains.domain import make_batch_env, picture
from protogoal.domains.user_env import OwnSettings
from protogoal.envs.failure import close
from protogoal.envs.pictures import as_picture, without_window
from protogoal.envs.user_envs import EnvReference
from protogoal.envs.workers import WorkerPool

sys.path.insert(0, str(Path(__file__).parent))
import own_corridor


@pytest.mark.parametrize(("frame", "shape", "brightest"), [
    (np.full((200, 300, 3), 9, np.uint8), (200, 300, 3), 9),
    (np.full((2, 6, 3), 255, np.uint8), (52, 156, 3), 255),  # enlarged
    (np.ones((200, 200)), (200, 200, 3), 255),
    (np.full((200, 200, 4), 300), (200, 200, 3), 255),
    ([np.zeros((200, 200, 3)), np.ones((200, 200, 1), bool)], (200, 200, 3), 255),
])
def test_frames_of_any_form_become_pictures(frame, shape, brightest):
    picture = as_picture(frame)
    assert picture.shape == shape
    assert picture.dtype == np.uint8
    assert picture.max() == brightest


@pytest.mark.parametrize("frame", [None, [], "a text", np.zeros((3, 3, 3, 3)), np.zeros((2, 2, 7)), np.zeros((0, 5, 3))])
def test_what_is_no_picture_is_none(frame):
    assert as_picture(frame) is None


def no_argument():
    pytest.importorskip("pygame")
    return gymnasium.make("FrozenLake-v1")


def test_an_environment_whose_function_knows_no_render_mode_is_drawn_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "test_pictures", sys.modules[__name__])
    env = EnvReference("test_pictures:no_argument", "rgb_array")()
    env.reset(seed=0)
    assert as_picture(env.render()).shape == (256, 256, 3)
    assert EnvReference("test_pictures:no_argument")().render_mode is None


@pytest.mark.filterwarnings("ignore")
def test_nethack_is_drawn_where_pictures_are_wanted_and_prints_nothing_where_they_are_not(capfd):
    pytest.importorskip("minihack")
    env, _ = make_batch_env(OwnSettings("MiniHack-Room-5x5-v0"), 1, render_mode="rgb_array")
    env.reset(seed=0)
    assert picture(OwnSettings("MiniHack-Room-5x5-v0"), env, 0).shape[2] == 3
    pool = WorkerPool(EnvReference("MiniHack-Room-5x5-v0"), 1)
    pool.reset(seed=0)
    for _ in range(150):  # episodes are cut at 100 steps
        pool.step(np.zeros(1, int))
    pool.close()
    assert not capfd.readouterr().out


def blank():
    env = own_corridor.make()
    env.render = lambda: None
    return env


def unable():
    env = own_corridor.make()
    env.render = lambda: [][0]
    return env


def test_closing_an_environment_leaves_pygame_to_the_others():
    pygame = pytest.importorskip("pygame")
    without_window()

    class Drawn(gymnasium.Env):
        def close(self):
            pygame.display.quit()
            pygame.quit()

    pygame.init()
    screen = pygame.display.set_mode((8, 8))
    close(Drawn())
    assert screen.get_size() == (8, 8)
    pygame.quit()
    with pytest.raises(pygame.error):
        screen.get_size()


def test_pygame_does_not_warn_of_what_it_is_made_of():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        without_window()
        warnings.warn("pkg_resources is deprecated as an API", stacklevel=1)
    assert not heard


@pytest.mark.parametrize(("factory", "words"), [
    ("blank", "the environment draws no pictures: it must be able to render in the mode rgb_array"),
    ("unable", "the environment cannot be drawn: IndexError: list index out of range"),
])
def test_an_environment_that_draws_nothing_is_one_line(factory, words, monkeypatch):
    monkeypatch.setitem(sys.modules, "test_pictures", sys.modules[__name__])
    settings = OwnSettings(f"test_pictures:{factory}", "own_corridor:cells")
    env, _ = make_batch_env(settings, 1, render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=words):
        picture(settings, env)


def test_an_environment_that_draws_what_it_observes_opens_no_window(monkeypatch):
    for name in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
        monkeypatch.delenv(name, raising=False)
    EnvReference("own_corridor:make")().close()
    assert (os.environ["SDL_VIDEODRIVER"], os.environ["SDL_AUDIODRIVER"]) == ("dummy", "dummy")


def test_own_environments_are_watched(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    run, gif = str(tmp_path / "run"), tmp_path / "corridor.gif"
    assert main(["train", "--env", "own_corridor:drawn", "--space", "own_corridor:cells", "--run", run, "--steps", "400",
                 "--actor.num_envs", "4", "--learner.min_replay", "200", "--network.hidden", "16",
                 "--evaluation.final_episodes", "2"]) == 0
    assert main(["watch", run, "--out", str(gif), "--trust"]) == 0
    assert gif.read_bytes()[:6] == b"GIF89a"


def test_crafter_is_drawn_larger_than_it_is_seen():
    pytest.importorskip("crafter")
    from protogoal.envs.crafter import Crafter

    env = Crafter(render_mode="rgb_array")
    before, _ = env.reset(seed=1)
    assert env.render().shape == (256, 256, 3)
    again, _ = env.reset(seed=1)
    assert again.shape == before.shape == (64, 64, 3)
    assert (again == before).all()
