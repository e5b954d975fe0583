"""The Gymnasium environments, pictures, and the terminal."""

import io
import json
import os
import pty
import select
import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import protogoal.envs  # noqa: F401 (registers)
from protogoal.envs.baba import Game, Level, load_level
from protogoal.envs.baba.env import BabaEnv, BabaVectorEnv
from protogoal.envs.baba.game import actions_of
from protogoal.envs.baba.levels import NOUNS
from protogoal.envs.baba.play import play, screen
from protogoal.envs.baba.render import active_words, ansi, frame, things_in
from protogoal.envs.baba.rules import OPERATORS, PROPERTIES
from protogoal.envs.baba.sprites import TILE, lettering, object_tile, word_tile

BABA = "protogoal/Baba-v0"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", ["rgb_array", "ansi", None])
def test_gymnasiums_checker_finds_nothing(mode):
    check_env(gym.make(BABA, level="small", render_mode=mode).unwrapped, skip_render_check=mode is None)


def test_the_registered_environment_is_won_by_the_solution():
    env = gym.make(BABA, level="umaze-medium")
    observation, _ = env.reset(seed=0)
    assert observation.shape == (7, 9, 11)
    assert observation.dtype == np.uint8
    for action in actions_of(load_level("medium").solution):
        observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info["won"]) == (1.0, True, False, True)


@pytest.mark.parametrize("make", [
    lambda: gym.make(BABA, level="small", max_episode_steps=7),
    lambda: BabaEnv("small", max_episode_steps=7),
])
def test_the_step_limit_is_an_argument(make):
    env = make()
    env.reset()
    assert [env.step(4)[3] for _ in range(7)] == [False] * 6 + [True]


def test_the_default_limit_is_a_thousand_and_make_may_raise_it():
    def length(env):
        env.reset()
        return next(k for k in range(1, 2000) if env.step(4)[3])

    assert length(gym.make(BABA, level="small")) == 1000
    assert length(gym.make(BABA, level="small", max_episode_steps=1500)) == 1500
    assert length(BabaEnv("small")) == 1000
    assert gym.make_vec(BABA, num_envs=2, level="small").batch.max_episode_steps == 1000
    assert gym.make_vec(BABA, num_envs=2, level="small", max_episode_steps=1500).batch.max_episode_steps == 1500


def test_the_same_seed_and_actions_give_the_same_play():
    def play_once():
        env = gym.make(BABA, level="small-breakable")
        env.reset(seed=5)
        env.action_space.seed(5)
        return [env.step(env.action_space.sample())[0] for _ in range(60)]

    first = play_once()
    assert len({observation.tobytes() for observation in first}) > 5
    assert all((a == b).all() for a, b in zip(first, play_once(), strict=True))


@pytest.mark.parametrize("action", [-1, 5, 1.5, "up", None, np.array([0])])
def test_a_wrong_action_is_refused(action):
    env = BabaEnv("small")
    env.reset()
    with pytest.raises(ValueError, match="actions are 0 to 4"):
        env.step(action)


def test_levels_nobody_can_play_and_unknown_modes_are_refused():
    with pytest.raises(ValueError, match="nothing is YOU"):
        BabaEnv(Level.parse("BIY\n.f."))
    with pytest.raises(ValueError, match="render_mode"):
        BabaEnv("small", render_mode="human")
    with pytest.raises(ValueError, match="render_mode"):
        BabaVectorEnv(2, "small", render_mode="human")


def test_the_vector_environment_resets_in_the_same_step_and_keeps_the_final_observation():
    env = gym.make_vec(BABA, num_envs=3, level="small", render_mode="rgb_array")
    assert isinstance(env, BabaVectorEnv)
    assert env.metadata["autoreset_mode"] is gym.vector.AutoresetMode.SAME_STEP
    first, _ = env.reset(seed=0)
    assert env.observation_space.contains(first)
    for action in actions_of(load_level("small").solution):
        observation, reward, terminated, truncated, infos = env.step(np.array([action, 4, action]))
    assert terminated.tolist() == [True, False, True]
    assert reward.tolist() == [1.0, 0.0, 1.0]
    assert not truncated.any()
    assert (observation == first).all()
    assert infos["_final_obs"].tolist() == [True, False, True]
    assert infos["final_obs"][0, 0, 6, 6] == 1, "baba on the flag"
    frames = env.render()
    assert len(frames) == 3
    assert (frames[0] == frames[1]).all()


def test_vector_observations_are_copies_unless_asked_otherwise():
    copied, shared = BabaVectorEnv(2, "small"), BabaVectorEnv(2, "small", copy=False)
    for env, same in ((copied, False), (shared, True)):
        before, _ = env.reset()
        after = env.step(np.array([3, 3]))[0]
        assert np.shares_memory(before, after) == same


def test_vector_games_can_be_reset_by_a_mask():
    env = BabaVectorEnv(2, "small")
    first, _ = env.reset()
    env.step(np.array([3, 3]))
    observation, _ = env.reset(options={"reset_mask": np.array([True, False])})
    assert [bool((observation[n] == first[n]).all()) for n in range(2)] == [True, False]


def test_gymnasiums_own_vectorisation_works_too():
    env = gym.make_vec(BABA, num_envs=2, level="small", vectorization_mode="sync")
    env.reset(seed=0)
    assert env.step(np.array([0, 4]))[0].shape == (2, 7, 7, 7)


# Pictures


def test_a_frame_shows_every_thing_and_crosses_out_idle_words():
    game = Game("umaze-small")
    picture = frame(game.level, game.things(), scale=1, border=False)
    assert picture.shape == (7 * TILE, 7 * TILE, 3)

    def tile(r, c):
        return picture[r * TILE : (r + 1) * TILE, c * TILE : (c + 1) * TILE]

    drawn = word_tile("FLAG", False)
    opaque = drawn[..., 3] > 0
    assert (tile(2, 3)[opaque] == drawn[opaque, :3]).all(), "FLAG is part of no rule: crossed out"
    drawn = word_tile("BABA", True)
    assert (tile(0, 0)[drawn[..., 3] > 0] == drawn[drawn[..., 3] > 0, :3]).all()
    assert (word_tile("FLAG", True) != word_tile("FLAG", False)).any()
    assert frame(game.level, game.things(), scale=2).shape == ((7 * TILE + TILE // 2) * 2,) * 2 + (3,)


def test_words_of_a_rule_are_active_and_a_cancelled_rule_is_not():
    game = Game(Level.parse("BIY....\nHI6HI!6\nbw....."))
    active = active_words(game.things())
    assert ((0, 0), "BABA") in active
    assert ((1, 2), "STOP") not in active
    assert ((1, 6), "STOP") in active


def test_every_noun_and_word_can_be_drawn():
    for noun in NOUNS:
        assert {object_tile(noun, face).shape for face in range(4)} == {(TILE, TILE, 4)}
    for word in (*OPERATORS, *PROPERTIES, "TEXT", *(noun.upper() for noun in NOUNS)):
        assert lettering(word).any()
        assert word_tile(word, True).shape == word_tile(word, False).shape == (TILE, TILE, 4)


def test_planes_can_be_drawn_as_well_as_states():
    game = Game("umaze-small")
    assert (frame(game.level, things_in(game.level, game.planes)) == frame(game.level, game.things())).all()


def test_the_board_as_text_names_words_objects_and_terrain():
    game = Game("umaze-small")
    text = ansi(game.level, game.things(), colour=False)
    lines = text.split("\n")
    assert len(lines) == 7
    assert lines[0].startswith("BABA IS YOU")
    assert "flag" in lines[2], "an idle word in lower case"
    assert "(ba)" in lines[1]
    assert "████" in lines[3]
    assert "\x1b[" in ansi(game.level, game.things())
    assert len(ansi(game.level, game.things(), colour=False, wide=False).split("\n")[6]) == 14
    env = gym.make(BABA, level="small", render_mode="ansi")
    env.reset()
    assert "BABA" in env.render()


# The terminal


def test_moves_for_scripts_print_the_outcome(capsys):
    assert play("small", load_level("small").solution, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"won": True, "lost": False, "steps": 25}
    assert play("small", "rr") == 0
    assert "not won after 2 moves" in capsys.readouterr().out
    assert play("medium-breakable", "u") == 0
    assert "nothing is YOU" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "message"), [
    (("nowhere",), "no level 'nowhere'"), (("small", "xyz"), "move 0 is 'x'"), (("small",), "needs a terminal"),
])
def test_mistakes_are_one_line_and_exit_code_two(capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert play(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_screen_shows_title_rules_and_moves():
    game = Game("umaze-small")
    game.turn(3)
    shown = screen(game, "r")
    assert "U-Maze, small" in shown
    assert "BABA IS YOU" in shown
    assert "1 moves: r" in shown


def test_undo_and_reset_go_back():
    game = Game("umaze-small")
    boards = [game.things()]
    for action in (3, 3, 1):
        game.turn(action)
        boards.append(game.things())
    game.reset()
    assert game.things() == boards[0]
    assert game.undo()
    assert game.things() == boards[3]
    for expected in (2, 1, 0):
        assert game.undo()
        assert game.things() == boards[expected]
    assert not game.undo()


def test_a_person_can_play_in_a_terminal():
    leader, follower = pty.openpty()
    code = "import sys; from protogoal.envs.baba.play import play; sys.exit(play('move'))"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=follower, stdout=follower, stderr=follower,
                               env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "30"})
    os.close(follower)

    def read_until(text):
        shown, deadline = "", time.monotonic() + 120
        while text not in shown and time.monotonic() < deadline:
            if select.select([leader], [], [], 1.0)[0]:
                shown += os.read(leader, 65536).decode(errors="ignore")
        assert text in shown
        return shown

    try:
        read_until("0 moves")
        os.write(leader, b"\x1b[C")
        read_until("1 moves: r")
        os.write(leader, b"z")
        read_until("0 moves")
        os.write(leader, b"ddd")
        read_until("You win, in 3 moves.")
        os.write(leader, b"q")
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)
