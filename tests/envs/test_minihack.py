"""The river: the same game as MiniHack's own environment, reproducible from seeds, and honest about how episodes end."""

import copy
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest

pytest.importorskip("nle")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("minihack")
    from minihack.envs.river import MiniHackRiver

from gymnasium.utils.env_checker import check_env
from nle import nethack

import protogoal.envs  # noqa: F401  (registers the environments)
from protogoal.envs.episodes import episode_seed
from protogoal.envs.minihack import COLUMNS, ROWS, RiverEnv, river_batch, word_space
from protogoal.envs.minihack import glyphs as g
from protogoal.envs.minihack.egocentric import KINDS, EgocentricView
from protogoal.envs.minihack.game import ROOM, SCENARIOS, RiverGame
from protogoal.envs.minihack.render import HEIGHT, WIDTH
from protogoal.goals.active import dense_bits

EAST, WEST = 1, 3


_made: list[RiverEnv] = []


def river(*args, **kwargs) -> RiverEnv:
    """An environment that is closed when the test is over."""
    _made.append(RiverEnv(*args, **kwargs))
    return _made[-1]


@pytest.fixture(autouse=True)
def _close_what_was_made():
    yield
    while _made:
        _made.pop().close()


def play(env: RiverEnv, actions: np.ndarray, seed: int) -> list:
    """What is seen, said and earned, over as many episodes as the actions last."""
    observation, _ = env.reset(seed=seed)
    trace = [observation]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(int(action))
        trace.append((observation, reward, terminated, truncated, info["end"]))
        if terminated or truncated:
            trace.append(env.reset()[0])
    return trace


def assert_same(a: list, b: list) -> None:
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        x, y = (x if isinstance(x, tuple) else (x,)), (y if isinstance(y, tuple) else (y,))
        assert x[1:] == y[1:]
        for name in x[0]:
            np.testing.assert_array_equal(x[0][name], y[0][name])


def without_descriptions(env):
    """Takes one buffer away: to describe cells NetHack writes where a missile in flight is kept, and some then fly elsewhere."""
    nethack = env.unwrapped.nethack
    nethack._pynethack.set_buffers(**{k: v for k, v in nethack._obs_buffers.items() if k != "screen_descriptions"})


@pytest.mark.parametrize("looks", [True, False])
def test_minihack_changes_its_game_by_describing_cells(looks):
    """A dart that misses where MiniHack looks at the cells, and hits where nobody does, as in ours."""
    seeds, moves = (1114090217954572702, 1701141672522297397, 1444582322397769671), (6, 0, 1)
    theirs = MiniHackRiver(observation_keys=("glyphs", "blstats", "message"), n_monster=4, fix_moon_phase=True,
                           **SCENARIOS["narrow-river"])
    if not looks:
        without_descriptions(theirs)
    ours = river("narrow-river", 4)
    theirs.seed(seeds[0], seeds[1], False, seeds[2])
    theirs.reset()
    ours.reset(options={"seeds": seeds})
    for move in moves:
        said = bytes(theirs.step(move)[0]["message"]).split(b"\0")[0].decode("latin-1")
        observation = ours.step(move)[0]
    assert (observation["message"] == said) is not looks
    theirs.close()


@pytest.mark.parametrize(("scenario", "monsters"), [("narrow-river", 0), ("narrow-river", 4), ("wide-river-lava", 0)])
def test_the_game_is_key_by_key_the_one_that_minihack_plays(scenario, monsters):
    theirs = MiniHackRiver(observation_keys=("glyphs", "blstats", "message"), n_monster=monsters, fix_moon_phase=True,
                           **SCENARIOS[scenario])
    without_descriptions(theirs)
    ours = river(scenario, monsters)
    rng = np.random.default_rng(7)
    endings = set()
    for episode in range(16):
        core, shown, level = seeds = tuple(rng.integers(2**62, size=3).tolist())
        theirs.seed(core, shown, False, level)
        their_observation, _ = theirs.reset()
        observation, _ = ours.reset(options={"seeds": seeds})
        while True:
            x, y = their_observation["blstats"][:2]
            expected = g.glyph_classes()[their_observation["glyphs"][ROOM]]
            expected[y - ROOM[0].start, x - ROOM[1].start] = g.YOU
            np.testing.assert_array_equal(observation["map"], expected)
            action = int(rng.choice([EAST] * (episode % 4) + list(range(8))))
            their_observation, their_reward, _, _, their_info = theirs.step(action)
            observation, reward, terminated, truncated, info = ours.step(action)
            status = their_info["end_status"].name
            said = bytes(their_observation["message"]).split(b"\0")[0].decode("latin-1")
            assert info["end"] == {"RUNNING": "running", "DEATH": "death", "TASK_SUCCESSFUL": "goal", "ABORTED": "limit"}[status]
            assert reward == (status == "TASK_SUCCESSFUL") == (their_reward > 0.5)
            assert terminated == (status in ("DEATH", "TASK_SUCCESSFUL"))
            assert truncated == (status == "ABORTED")
            if terminated or truncated:
                endings.add(status)
                break
            assert observation["message"] == said
    assert len(endings) > 1
    theirs.close()


def test_the_same_seed_gives_the_same_episodes_and_another_seed_gives_others():
    actions = np.random.default_rng(0).integers(0, 8, 900)
    env, other = river("narrow-river", 2), river("narrow-river", 2)
    first = play(env, actions, seed=3)
    assert sum(isinstance(step, dict) for step in first) > 2  # it spans several episodes
    assert_same(first, play(env, actions, seed=3))  # whatever was played before
    assert_same(first, play(other, actions, seed=3))
    different = play(env, actions, seed=4)
    assert not np.array_equal(first[0]["map"], different[0]["map"])


def test_the_same_seed_gives_the_same_episode_in_another_process():
    code = ("import hashlib, numpy as np; from protogoal.envs.minihack import RiverEnv; e = RiverEnv('wide-river-lava');"
            "o, _ = e.reset(seed=11); h = hashlib.sha256(o['map'].tobytes())\n"
            "for a in np.random.default_rng(1).integers(0, 8, 200):\n"
            "    o, r, te, tr, i = e.step(int(a)); h.update(o['map'].tobytes() + o['message'].encode())\n"
            "    if te or tr: e.reset()\n"
            "print(h.hexdigest())")
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert len(runs[0].strip()) == 64
    assert runs[0] == runs[1]


def test_every_episode_is_a_new_level():
    env = river("wide-river-lava")
    maps = [env.reset(seed=5)[0]["map"].tobytes()] + [env.reset()[0]["map"].tobytes() for _ in range(19)]
    assert len(set(maps)) == 20


def test_the_step_limit_truncates_and_does_not_terminate():
    env = river("narrow-river", max_steps=5)
    env.reset(seed=0)
    steps = [env.step(WEST) for _ in range(5)]
    assert [(te, tr) for _, _, te, tr, _ in steps] == [(False, False)] * 4 + [(False, True)]
    assert steps[-1][4]["end"] == "limit"


def test_walking_into_lava_is_a_termination_without_reward_that_still_shows_the_map():
    env = river("wide-river-lava", pages="all")
    rng = np.random.default_rng(0)
    deaths = 0
    for seed in range(40):
        env.reset(seed=seed)
        for _ in range(60):
            observation, reward, terminated, truncated, info = env.step(int(rng.choice([EAST, EAST, EAST, 4, 5])))
            if terminated or truncated:
                break
        if info["end"] == "death":
            deaths += 1
            assert (reward, terminated, truncated) == (0.0, True, False)
            assert "lava" in observation["message"]
            assert (observation["map"] == g.LAVA).any()
    assert deaths > 10


def test_a_death_has_words_only_when_all_pages_are_read():
    def words_of_deaths(pages: str) -> set[str]:
        env, said = river("wide-river-lava", pages=pages), set()
        for seed in range(15):
            env.reset(seed=seed)
            terminated = truncated = False
            while not (terminated or truncated):
                observation, _, terminated, truncated, info = env.step(EAST if seed % 2 else 5)
            if info["end"] == "death":
                said.add(observation["message"])
        return said

    assert words_of_deaths("last") == {""}
    assert any("burn to a crisp" in text for text in words_of_deaths("all"))


def test_standing_on_the_stairs_ends_the_episode_with_reward_one():
    env = river("narrow-river")
    rng = np.random.default_rng(0)
    wins = 0
    for seed in range(300):
        env.reset(seed=seed)
        terminated = truncated = False
        while not (terminated or truncated):  # eastward drunkard: falls into the river and is sometimes washed across
            observation, reward, terminated, truncated, info = env.step(int(rng.choice([EAST, EAST, EAST, *range(8)])))
            assert reward == (info["end"] == "goal")
        if info["end"] == "goal":
            wins += 1
            assert terminated
            assert tuple(observation["position"]) == (2, 24)
            break
    assert wins


def test_water_and_lava_are_told_apart_although_their_character_is_the_same():
    table = g.glyph_classes()
    cmap = nethack.GLYPH_CMAP_OFF
    assert table[cmap + 32] == g.WATER
    assert table[cmap + 34] == g.LAVA
    env = river("wide-river-lava")
    seen = np.zeros((ROWS, COLUMNS), np.uint8)
    for seed in range(30):
        cells = env.reset(seed=seed)[0]["map"]
        wet = np.isin(cells, (g.WATER, g.LAVA))
        seen[wet] = cells[wet]
    assert (seen[[2, 4], 18:21] == g.WATER).all()
    assert np.isin(seen[[0, 1, 3, 5, 6], 18:21], (g.LAVA, 0)).all()


def test_classes_fit_their_declared_number_and_monsters_keep_their_letter():
    table = g.glyph_classes()
    assert table.max() < g.NUM_CLASSES
    newt, lizard, jackal = (next(i for i in range(nethack.NUMMONS) if nethack.permonst(i).mname == name)
                            for name in ("newt", "lizard", "jackal"))
    assert table[nethack.GLYPH_MON_OFF + newt] == table[nethack.GLYPH_MON_OFF + lizard]  # both ":"
    assert table[nethack.GLYPH_MON_OFF + newt] != table[nethack.GLYPH_MON_OFF + jackal]
    assert table[nethack.GLYPH_PET_OFF + newt] == table[nethack.GLYPH_MON_OFF + newt]


def test_the_crop_is_the_map_around_the_player():
    env = river("narrow-river", crop=7)
    observation, _ = env.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(100):
        row, column = observation["position"]
        assert observation["crop"][3, 3] == g.YOU
        for i in range(7):
            for j in range(7):
                r, c = row + i - 3, column + j - 3
                inside = 0 <= r < ROWS and 0 <= c < COLUMNS
                assert observation["crop"][i, j] == (observation["map"][r, c] if inside else g.BEYOND)
        observation, _, terminated, truncated, _ = env.step(int(rng.integers(8)))
        if terminated or truncated:
            observation, _ = env.reset()


def test_gymnasium_finds_nothing_to_warn_about():
    env = gymnasium.make("protogoal/MiniHackRiver-v0", scenario="narrow-river", monsters=1, render_mode="rgb_array",
                         disable_env_checker=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # observation parts that are not pictures
        warnings.filterwarnings("ignore", message=".*Box observation space .* unconventional shape.*")
        check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize(("wrong", "said"), [
    ({"scenario": "ocean"}, "scenario"), ({"monsters": 5}, "monsters"), ({"monsters": -1}, "monsters"),
    ({"max_steps": 0}, "max_steps"),
    ({"crop": 8}, "crop"), ({"pages": "first"}, "pages"), ({"render_mode": "human"}, "render_mode"),
])
def test_a_wrong_setting_is_refused_by_its_name(wrong, said):
    with pytest.raises(ValueError, match=said):
        RiverEnv(**wrong)


def test_pictures_show_the_room_and_the_message():
    env = river("wide-river-lava", render_mode="rgb_array")
    env.reset(seed=2)
    silent = env.render()
    assert silent.shape == (HEIGHT, WIDTH, 3)
    assert silent.dtype == np.uint8
    for _ in range(40):
        env.step(WEST)  # ends at the edge: "It's solid stone."
    spoken = env.render()
    assert (spoken != silent).any(axis=2)[7 * 24 + 24:7 * 24 + 40].any()
    text = river("wide-river-lava", render_mode="ansi")
    text.reset(seed=2)
    assert "@" in text.render()


def test_many_restarts_in_the_middle_of_a_game_do_not_grow_memory():
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    game = RiverGame("narrow-river", 0)
    for seed in range(50):
        game.start((seed, 0, seed))
    before = resident()
    for seed in range(300):
        game.start((seed, 0, seed))
    game.close()
    assert (resident() - before) * 4 < 256  # KiB; without the quit command it is 540


def test_words_of_the_message_are_the_bits_of_the_transition():
    batch = river_batch("narrow-river", num_envs=4, num_workers=0)
    observation, active = batch.reset(seed=0)
    assert set(observation) == {"map", "crop", "position", "status"} == set(batch.observation_spec)
    assert (active == -1).all()  # the greeting is no event
    space = batch.space
    stone = 0
    for _ in range(60):
        step = batch.step(np.full(4, WEST))
        for bits, message in zip(dense_bits(step.final_active, batch.num_bits), batch.pool.final["message"], strict=True):
            words = {space.name(i).removeprefix("word: ") for i in np.flatnonzero(bits)}
            text = bytes(message).rstrip(b"\0").decode("latin-1")
            assert words == set(space.WORD.findall(text.lower()))
            stone += "stone" in words
    assert stone > 10
    assert "stone" in space.vocabulary
    for name, spec in batch.observation_spec.items():
        assert step.observation[name].shape == (4, *spec.shape)
        assert step.observation[name].dtype == spec.dtype
    batch.close()


def test_the_position_is_a_row_and_a_column_id():
    batch = river_batch("narrow-river", num_envs=3)
    observation, _ = batch.reset(seed=1)
    spec = batch.observation_spec["position"]
    assert (spec.kind, spec.num_values) == ("active", ROWS + COLUMNS)
    row, column = np.nonzero(observation["map"] == g.YOU)[1:]
    np.testing.assert_array_equal(observation["position"], np.stack([row, ROWS + column], 1))
    batch.close()


def test_resuming_a_batch_goes_on_to_the_bit():
    actions = np.random.default_rng(2).integers(0, 8, (700, 3))
    whole = river_batch("narrow-river", 3, num_envs=3)
    whole.reset(seed=9)
    for a in actions[:450]:
        whole.step(a)
    state = whole.get_state()
    rest = [copy.deepcopy(whole.step(a)) for a in actions[450:]]
    resumed = river_batch("narrow-river", 3, num_envs=3, space=word_space())
    observation, _ = resumed.set_state(state)
    assert set(observation) == {"map", "crop", "position", "status"}
    for a, step in zip(actions[450:], rest, strict=True):
        again = resumed.step(a)
        for name, array in step.final_observation.items():
            np.testing.assert_array_equal(again.final_observation[name], array)
        np.testing.assert_array_equal(again.final_active, step.final_active)
        np.testing.assert_array_equal(again.terminated, step.terminated)
        np.testing.assert_array_equal(again.truncated, step.truncated)
    whole.close()
    resumed.close()


@pytest.mark.parametrize("reach", [3, 24])
def test_the_view_from_the_player_lists_what_lies_around_by_kind_and_offset(reach):
    batch = river_batch("wide-river-lava", num_envs=3)
    view = EgocentricView(batch, reach, length=256)
    observation, active = view.reset(seed=4)
    rng = np.random.default_rng(0)
    kinds = {g.UNSEEN: "unseen", g.WATER: "water", g.LAVA: "lava", g.BOULDER: "boulder", g.STAIRS_DOWN: "stairs down",
             g.STAIRS_UP: "stairs up"}
    cells_in_view = 13 * (2 * reach + 1)
    for _ in range(40):
        for n in range(3):
            cells, (row, column) = batch.pool.observation["map"][n], batch.pool.observation["position"][n]
            expected = set()
            for r in range(ROWS):
                for c in range(COLUMNS):
                    if cells[r, c] in kinds and abs(c - column) <= reach:
                        kind = KINDS.index(kinds[cells[r, c]])
                        expected.add((kind * 13 + r - row + 6) * (2 * reach + 1) + c - column + reach)
            after = len(KINDS) * cells_in_view
            expected |= {after + row, after + ROWS + column, after + ROWS + COLUMNS + 7}  # in full health
            expected |= {after + ROWS + COLUMNS + 9 + word for word in active[n] if word >= 0}
            listed = observation["active"][n]
            listed = listed[listed >= 0].tolist()
            assert len(listed) == len(set(listed))
            assert set(listed) == expected
        step = view.step(rng.integers(0, 8, 3))
        observation, active = step.observation, step.active
    spec = view.observation_spec["active"]
    assert (observation["active"].shape, observation["active"].dtype) == ((3, *spec.shape), spec.dtype)
    assert observation["active"].max() < spec.num_values
    view.close()


def test_moving_a_whole_scene_does_not_change_how_it_looks_from_the_player():
    view = EgocentricView(river_batch("narrow-river", num_envs=1), reach=5)
    scene = np.full((1, ROWS, COLUMNS), g.FLOOR, np.uint8)
    scene[0, 2, 8], scene[0, 3, 11] = g.BOULDER, g.WATER
    moved = np.roll(scene, (1, 4), (1, 2))

    def around(cells, position):
        observation = {"map": cells, "position": np.array([position]), "status": np.array([[1.0, 0.0]])}
        ids = view.read(observation, np.empty((1, 0), int))["active"]
        return sorted(ids[(ids >= 0) & (ids < len(KINDS) * 13 * 11)].tolist())

    seen = around(scene, (3, ROWS + 7))
    assert seen == around(moved, (4, ROWS + 11))
    assert len(seen) == 2
    view.close()


def test_where_the_list_is_too_short_unseen_cells_are_left_out():
    short, long = (EgocentricView(river_batch("wide-river-lava", num_envs=8), 24, length=length) for length in (64, 400))
    (seen, _), (everything, _) = short.reset(seed=0), long.reset(seed=0)
    unseen = 13 * 49
    assert ((everything["active"] >= 0).sum(1) > 64).any()
    for few, many in zip(seen["active"], everything["active"], strict=True):
        assert set(few[few >= unseen]) == set(many[many >= unseen])
        assert set(few) <= set(many) | {-1}
    short.close()
    long.close()


def test_a_batch_shows_the_last_state_of_an_episode_although_the_next_one_has_begun():
    view = EgocentricView(river_batch("narrow-river", num_envs=1, max_steps=3, render_mode="ansi"))
    view.reset(seed=0)
    pictures = [view.picture()]
    for _ in range(3):
        step = view.step(np.array([WEST]))
        pictures.append(view.picture())
    assert step.truncated[0]
    alone = river("narrow-river", max_steps=3, render_mode="ansi")
    alone.reset(seed=episode_seed(0, 0, 0))
    expected = [alone.render()]
    for _ in range(3):
        alone.step(WEST)
        expected.append(alone.render())
    assert pictures == expected
    view.step(np.array([WEST]))
    assert view.picture() != expected[-1]
    view.close()
