"""The batch: endings, autoreset, what the actor sees, states, bad input, memory."""

import copy
import tracemalloc

import numpy as np
import pytest

from protogoal.envs.baba import BabaBatch, Legend, Level, engine, load_level
from protogoal.envs.baba.game import actions_of
from protogoal.envs.baba.levels import NOUNS
from protogoal.goals.active import dense_bits

NOOP = 4


def solve(batch, upto=None):
    for action in actions_of(batch.level.solution)[:upto]:
        step = batch.step(np.full(batch.num_envs, action))
    return step


def test_the_start_of_the_u_maze_is_what_the_level_file_shows():
    batch = BabaBatch("medium", 2)
    assert batch.planes.shape == (2, 7, 9, 11)
    on = {(batch.space.kind(i), batch.space.cell(i)) for i in np.flatnonzero(batch.bits[0])}
    assert on == {("baba", (2, 5)), ("flag", (8, 10)), ("BABA", (0, 4)), ("IS", (0, 5)), ("YOU", (0, 6)), ("FLAG", (4, 5)),
                  ("IS", (8, 1)), ("WIN", (8, 2))}


def test_bits_are_the_planes_flattened_and_have_readable_names():
    batch = BabaBatch("medium", 1)
    assert np.shares_memory(batch.bits, batch.planes)
    flag = batch.plane_names.index("FLAG")
    i = (flag * 9 + 8) * 11 + 0
    assert (batch.space.name(i), batch.space.kind(i), batch.space.cell(i)) == ("FLAG at (8,0)", "FLAG", (8, 0))
    assert batch.space.size == batch.num_bits == 693


def test_winning_terminates_with_reward_one_and_starts_anew_in_the_same_step():
    batch = BabaBatch("medium", 3)
    start = batch.planes.copy()
    step = solve(batch)
    assert step.reward.tolist() == [1, 1, 1]
    assert step.terminated.all()
    assert not step.truncated.any()
    assert (batch.planes == start).all()
    assert batch.final_planes[0, 0, 8, 10] == 1, "baba stands on the flag in the state that won"
    assert batch.episode_steps.tolist() == [0, 0, 0]


def test_nothing_is_you_terminates_without_reward():
    batch = BabaBatch("medium-breakable", 1)
    step = batch.step(np.array([0]))
    assert (step.reward[0], step.terminated[0], step.truncated[0]) == (0, True, False)


def test_the_step_limit_truncates_and_never_together_with_terminated():
    batch = BabaBatch("medium", 1, max_episode_steps=3)
    ends = []
    for _ in range(6):
        step = batch.step(np.array([NOOP]))
        ends.append((bool(step.terminated[0]), bool(step.truncated[0])))
    assert ends == [(False, False), (False, False), (False, True)] * 2
    exact = BabaBatch("medium", 1, max_episode_steps=31)
    step = solve(exact)
    assert (bool(step.terminated[0]), bool(step.truncated[0])) == (True, False)


def test_final_views_are_the_next_state_and_equal_the_observation_while_the_episode_goes_on():
    rng = np.random.default_rng(0)
    batch = BabaBatch("small-breakable", 64, max_episode_steps=40)
    start_planes, start_active = batch.planes[0].copy(), batch.active[0].copy()
    ended_once = 0
    for _ in range(300):
        before = batch.get_state()
        actions = rng.integers(0, 5, 64)
        step = batch.step(actions)
        single = BabaBatch("small-breakable", 64, autoreset=False)
        single.set_state(before)
        single.step(actions)
        ended = step.terminated | step.truncated
        ended_once += ended.sum()
        assert (batch.final_planes == single.planes).all()
        assert (batch.planes[~ended] == batch.final_planes[~ended]).all()
        assert (batch.active[~ended] == batch.final_active[~ended]).all()
        assert (batch.planes[ended] == start_planes).all()
        assert (batch.active[ended] == start_active).all()
        assert (dense_bits(step.active, batch.num_bits) == batch.bits.astype(bool)).all()
        assert (dense_bits(step.final_active, batch.num_bits) == batch.final_bits.astype(bool)).all()
    assert ended_once > 100


def test_many_games_play_like_one_game_each():
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 5, (200, 8))
    together = BabaBatch("move", 8)
    singly = [BabaBatch("move", 1) for _ in range(8)]
    for row in actions:
        together.step(row)
        for n, batch in enumerate(singly):
            batch.step(row[n : n + 1])
            assert (batch.planes[0] == together.planes[n]).all()


def test_terrain_is_a_plane_only_when_asked_for():
    batch = BabaBatch("medium", 2, terrain_plane=True)
    assert batch.plane_names[-1] == "terrain"
    assert (batch.planes[:, 7] == load_level("medium").terrain).all()
    solve(batch, 20)
    assert (batch.planes[:, 7] == load_level("medium").terrain).all()
    assert (dense_bits(batch.active, batch.num_bits) == batch.bits.astype(bool)).all()


def test_stacked_things_of_one_kind_are_listed_once():
    batch = BabaBatch(Level.parse("legend: x = rock + rock\n\nBIY.\nbx..\n"), 1)
    ids = [i for i in batch.active[0].tolist() if i >= 0]
    assert sorted(ids) == np.flatnonzero(batch.bits[0]).tolist()


def test_get_and_set_state_go_on_to_the_bit():
    rng = np.random.default_rng(2)
    batch = BabaBatch("shift", 16, max_episode_steps=50)
    for _ in range(70):
        batch.step(rng.integers(0, 5, 16))
    saved = {name: value.copy() for name, value in batch.get_state().items()}
    actions = rng.integers(0, 5, (120, 16))
    first = [(s.observation["planes"].copy(), s.reward.copy(), s.truncated.copy(), s.final_active.copy())
             for s in map(batch.step, actions)]
    other = BabaBatch("shift", 16, max_episode_steps=50)
    observation, active = other.set_state(saved)
    assert (dense_bits(active, other.num_bits) == observation["planes"].reshape(16, -1).astype(bool)).all()
    second = [(s.observation["planes"].copy(), s.reward.copy(), s.truncated.copy(), s.final_active.copy())
              for s in map(other.step, actions)]
    assert all((a == b).all() for x, y in zip(first, second, strict=True) for a, b in zip(x, y, strict=True))


def test_a_copy_goes_its_own_way_from_the_same_state():
    batch = BabaBatch("medium", 2, max_episode_steps=77, terrain_plane=True)
    solve(batch, 7)
    other = copy.deepcopy(batch)
    assert (other.planes == batch.planes).all()
    assert (other.max_episode_steps, other.plane_names) == (77, batch.plane_names)
    assert not np.shares_memory(other.planes, batch.planes)
    other.step(np.array([3, 3]))
    assert (other.planes != batch.planes).any()
    batch.step(np.array([3, 3]))
    assert (other.planes == batch.planes).all()


def test_reset_where_starts_only_some_games_anew():
    batch = BabaBatch("medium", 3)
    start = batch.planes[0].copy()
    solve(batch, 5)
    batch.reset_where(np.array([False, True, False]))
    assert (batch.planes[1] == start).all()
    assert (batch.planes[0] != start).any()
    assert batch.episode_steps.tolist() == [5, 0, 5]


@pytest.mark.parametrize("actions", [
    np.zeros(3, int), np.zeros((2, 1), int), np.zeros(2), np.array([0, 5]), np.array([-1, 0]), np.array([2**40, 0]), "up", None,
    np.array([True, False]), [[0], [1, 2]],
])
def test_wrong_actions_are_refused_and_nothing_moves(actions):
    batch = BabaBatch("medium", 2)
    before = batch.planes.copy()
    with pytest.raises(ValueError, match=r"action|inhomogeneous"):
        batch.step(actions)
    assert (batch.planes == before).all()
    assert batch.episode_steps.tolist() == [0, 0]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"num_envs": 0}, "num_envs"), ({"max_episode_steps": 0}, "max_episode_steps"), ({"level": "nowhere"}, "no level"),
    ({"seed": -1}, "seed"),
])
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        BabaBatch(**arguments)


def test_a_state_that_is_none_of_this_level_is_refused():
    batch = BabaBatch("medium", 2)
    good = batch.get_state()
    for name, value in (("cell", 99), ("kind", 7), ("face", 4)):
        bad = {key: array.copy() for key, array in good.items()}
        bad[name][1, 3] = value
        with pytest.raises(ValueError, match="out of range"):
            batch.set_state(bad)
    with pytest.raises(ValueError, match="'kind' must be"):
        batch.set_state({**good, "kind": good["kind"][:1]})
    with pytest.raises(ValueError, match="'steps' must be"):
        batch.set_state({k: v for k, v in good.items() if k != "steps"})
    inside_terrain = {key: array.copy() for key, array in good.items()}
    inside_terrain["cell"][:, 0] = 5 * 11 + 5
    with pytest.raises(ValueError, match="out of range"):
        batch.set_state(inside_terrain)


def test_a_step_keeps_no_memory():
    batch = BabaBatch("medium", 128)
    actions = np.random.default_rng(3).integers(0, 5, (64, 128))
    for row in actions:
        batch.step(row)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for row in actions:
        batch.step(row)
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert kept < 2_000


def test_another_level_compiles_nothing_new():
    BabaBatch("medium", 4).step(np.zeros(4, int))
    signatures = len(engine.step_all.signatures)
    for name in ("weak", "float", "umaze-paper"):
        BabaBatch(name, 3).step(np.zeros(3, int))
    assert len(engine.step_all.signatures) == signatures


def test_a_board_of_the_largest_size_with_dozens_of_types_is_played():
    symbols = {".": "empty", **{chr(0x100 + k): noun for k, noun in enumerate(NOUNS)},
               **{chr(0x200 + k): noun.upper() for k, noun in enumerate(NOUNS)}, "1": "IS", "2": "YOU", "5": "PUSH", "7": "MOVE"}
    rows = [["."] * 32 for _ in range(32)]
    rows[0][:3] = [chr(0x200), "1", "2"]
    rows[2][:3] = [chr(0x202), "1", "5"]
    rows[4][:3] = [chr(0x204), "1", "7"]
    for k in range(len(NOUNS)):
        rows[10][k], rows[14][k], rows[31][k] = chr(0x100 + k), chr(0x100 + k), chr(0x200 + k)
    level = Level.parse("\n".join("".join(row) for row in rows), Legend(symbols))
    batch = BabaBatch(level, 4)
    assert batch.active.dtype == np.int32
    rng = np.random.default_rng(0)
    for _ in range(200):
        batch.step(rng.integers(0, 5, 4))
    assert (dense_bits(batch.active, batch.num_bits) == batch.bits.astype(bool)).all()
