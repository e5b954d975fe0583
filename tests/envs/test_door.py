"""From a name to an environment: what follows the question mark."""

import gymnasium
import numpy as np
import pytest

from protogoal.envs.door import make_env
from protogoal.envs.user_envs import own_batch

given = {}


def make(render_mode=None, **arguments):
    given.clear()
    given.update(arguments, render_mode=render_mode)
    return gymnasium.make("FrozenLake-v1", render_mode=render_mode)


def make_any(**arguments):
    return make(**arguments)


@pytest.mark.parametrize(("words", "value"), [
    ("True", True), ("false", False), ("None", None), ("null", None), ("3", 3), ("-0.5", -0.5), ("Word", "Word"), ("4x4", "4x4"),
    ('["SFFF","FHFG"]', ["SFFF", "FHFG"]), ('"Quoted"', "Quoted"), ('{"Key":1}', {"Key": 1}),
])
def test_an_argument_is_read_as_it_is_written(words, value):
    make_env(f"{__name__}:make?value={words}")
    assert given["value"] == value
    assert type(given["value"]) is type(value)


def test_a_map_in_the_id_is_the_map_that_is_played():
    env = make_env('FrozenLake-v1?desc=["SFFF","FFFF","FFFF","FFFG"]&is_slippery=false')
    assert b"".join(env.unwrapped.desc.ravel()) == b"SFFFFFFFFFFFFFFG"


@pytest.mark.parametrize(("word", "meant"), [("no", "false"), ("OFF", "false"), ("yes", "true"), ("On", "true")])
def test_words_that_would_all_be_true_are_refused(word, meant):
    with pytest.raises(ValueError, match=f"^is_slippery={word} .* write is_slippery={meant}"):
        make_env(f"FrozenLake-v1?is_slippery={word}")


@pytest.mark.parametrize("name", ["FrozenLake-v1?render_mode=rgb_array", "FrozenLake-v1?render_mode=ansi",
                                  f"{__name__}:make?render_mode=ansi", f"{__name__}:make_any?render_mode=ansi"])
def test_pictures_are_drawn_whatever_render_mode_the_id_asks_for(name):
    batch = own_batch(name, "", 1, render_mode="rgb_array")
    batch.reset(seed=0)
    assert np.asarray(batch.pool.picture(0)).ndim == 3
    batch.close()
