"""SparseTaxi: reward and endings, Gymnasium's checks, its tables and its 34 bits."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import protogoal.envs  # noqa: F401
from protogoal.envs.taxi import IN_TAXI, PICK_UP, PUT_DOWN, SparseTaxi, TaxiSpace, decode
from protogoal.tabular.tables import TransitionTables

ID = "protogoal/SparseTaxi-v0"


def at(env, row, column, passenger, destination):
    """Put an environment into a state."""
    env.reset(seed=0)
    env.unwrapped.s = env.unwrapped.encode(row, column, passenger, destination)
    return env


def test_gymnasiums_own_check_finds_nothing():
    pytest.importorskip("pygame")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of pygame's imports
        warnings.filterwarnings("ignore", message="pkg_resources")
        check_env(gymnasium.make(ID, disable_env_checker=True).unwrapped)


def test_the_right_put_down_pays_and_ends():
    _, reward, terminated, truncated, _ = at(gymnasium.make(ID), 0, 4, IN_TAXI, 1).step(PUT_DOWN)
    assert (reward, terminated, truncated) == (1.0, True, False)


@pytest.mark.parametrize("ends", [True, False])
def test_a_wrong_put_down_pays_nothing_and_ends_only_if_it_should(ends):
    env = at(gymnasium.make(ID, wrong_put_down_ends=ends), 0, 0, IN_TAXI, 1)
    state, reward, terminated, truncated, _ = env.step(PUT_DOWN)
    assert (reward, terminated, truncated) == (0.0, ends, False)
    assert decode([state]).tolist() == [[0, 0, 1]]  # the passenger stands at R


@pytest.mark.parametrize(("place", "action"), [((2, 2, IN_TAXI, 1), PUT_DOWN), ((2, 2, 0, 1), PICK_UP), ((0, 0, 2, 1), PUT_DOWN)])
def test_an_illegal_action_does_nothing(place, action):
    env = at(gymnasium.make(ID), *place)
    before = env.unwrapped.s
    state, reward, terminated, truncated, _ = env.step(action)
    assert (state, reward, terminated, truncated) == (before, 0.0, False, False)


def test_two_hundred_steps_truncate_and_do_not_terminate():
    env = gymnasium.make(ID)
    env.reset(seed=1)
    for step in range(1, 201):
        _, _, terminated, truncated, _ = env.step(PICK_UP if step % 2 else 0)
        assert (terminated, truncated) == (False, step == 200)


def test_the_same_seed_gives_the_same_start():
    env = gymnasium.make(ID)
    starts = [env.reset(seed=seed)[0] for seed in (3, 3, 4)]
    assert starts[0] == starts[1] != starts[2]


def test_it_is_drawn_as_text_and_as_pixels():
    pytest.importorskip("pygame")
    text, pixels = gymnasium.make(ID, render_mode="ansi"), gymnasium.make(ID, render_mode="rgb_array")
    text.reset(seed=0)
    pixels.reset(seed=0)
    assert "+---------+" in text.render()
    assert pixels.render().shape == (350, 550, 3)
    pixels.close()


def test_the_tables_step_as_the_environment_does():
    env = gymnasium.make(ID)
    tables = TransitionTables.from_gymnasium(env)
    rng = np.random.default_rng(0)
    state, _ = env.reset(seed=0)
    for _ in range(3_000):
        action = int(rng.integers(6))
        outcome = env.step(action)
        expected = tables.next_state[state, action], tables.reward[state, action], tables.terminated[state, action]
        assert outcome[:3] == expected
        state = outcome[0]
        if outcome[2] or outcome[3]:
            state, _ = env.reset()
            assert state in tables.initial_states
    assert tables.time_limit == 200
    assert len(tables.initial_states) == 300


def test_what_has_no_deterministic_table_is_refused():
    with pytest.raises(ValueError, match="no transition table"):
        TransitionTables.from_gymnasium(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="no time limit"):
        TransitionTables.from_gymnasium(SparseTaxi())
    with pytest.raises(ValueError, match="3 outcomes"):
        TransitionTables.from_gymnasium(gymnasium.make("FrozenLake-v1"))


def test_the_space_has_34_named_bits_of_three_kinds():
    space = TaxiSpace()
    names = [space.name(i) for i in range(space.size)]
    assert len(set(names)) == 34
    assert names[2 * 5 + 3] == "taxi at (2,3)"
    assert names[25:30] == ["passenger at R", "passenger at G", "passenger at Y", "passenger at B", "passenger in taxi"]
    assert names[30:] == ["destination R", "destination G", "destination Y", "destination B"]
    assert [space.kind(i) for i in (0, 24, 25, 29, 30, 33)] == ["taxi"] * 2 + ["passenger"] * 2 + ["destination"] * 2
    assert space.cell(26) == (0, 4)
    assert space.cell(29) is None
    assert space.grid == (5, 5)


def test_every_state_has_one_bit_of_each_kind_and_no_two_states_the_same():
    bits = TaxiSpace().bits(None, None, np.arange(500))
    assert [bits[:, part].sum(1).tolist() for part in (slice(0, 25), slice(25, 30), slice(30, 34))] == [[1] * 500] * 3
    assert len(np.unique(bits, axis=0)) == 500
    env = SparseTaxi()
    row, column, passenger, destination = env.decode(347)
    assert np.flatnonzero(bits[347]).tolist() == [row * 5 + column, 25 + passenger, 30 + destination]


def test_a_state_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="0…499"):
        TaxiSpace().bits(None, None, [500])
