"""Deep runs can be watched: the task and a goal, on Baba and on MiniHack."""

import numpy as np
import pytest

import protogoal
from protogoal.cli import main
from protogoal.run.playing import watch

SMALL = ["--actor.num_envs", "8", "--learner.min_replay", "300", "--learner.batch_size", "4", "--network.hidden", "32",
         "--evaluation.every", "5000", "--evaluation.final_episodes", "2", "--env.max_steps", "20", "--threads", "1"]


@pytest.mark.parametrize(("preset", "more"), [("baba-umaze-small-protogoal", []), ("baba-umaze-small-agent57", []),
                                              ("minihack-narrow-river-r2d2", ["--env.workers", "0"])])
def test_a_deep_run_is_watched_for_the_task_and_for_a_goal(preset, more, tmp_path, capsys):
    run, gif = str(tmp_path / "run"), tmp_path / "clip.gif"
    assert main(["train", preset, "--run", run, "--steps", "800", *SMALL, *more]) == 0
    assert main(["watch", run, "--out", str(gif)]) == 0
    assert gif.read_bytes()[:6] == b"GIF89a"
    assert "the task: step" in capsys.readouterr().out
    protogoal.load(run).save(tmp_path / "saved.npz")
    assert main(["watch", str(tmp_path / "saved.npz"), "--out", str(gif)]) == 0  # the file alone is enough
    assert "the task: step" in capsys.readouterr().out
    if preset.endswith("protogoal"):
        assert main(["watch", run, "--goal", "9", "--out", str(gif)]) == 0
        assert "baba at (1,2)" in capsys.readouterr().out
        assert main(["watch", run, "--goal", "99999", "--out", str(gif)]) == 2
    else:
        assert main(["watch", run, "--goal", "9", "--out", str(gif)]) == 2
        assert "has no goals" in capsys.readouterr().err


def test_the_name_of_a_goal_does_not_move_the_cursor(tmp_path):
    class Player:
        def play(self, goal, seed):
            yield np.zeros((8, 8, 3), np.uint8), "word: \x1b[2Jdoor: step 1"

    assert "\x1b" not in watch(Player(), 3, tmp_path / "clip.gif", 1)
