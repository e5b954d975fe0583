"""Proto-goals that follow from an observation space: one test a kind of observation; and the door by which environments come in."""

import dataclasses
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from protogoal.cli import main
from protogoal.domains.domain import make_batch_env, settled
from protogoal.domains.user_env import OwnSettings, own_environment
from protogoal.envs import first_steps
from protogoal.envs.counters import INFO, Counters
from protogoal.envs.derive import derive
from protogoal.envs.failure import failure
from protogoal.envs.packages import registering_packages
from protogoal.envs.readable import readable
from protogoal.envs.readers import reader
from protogoal.envs.user_envs import EnvReference, own_batch, reference, shows_a_part, space_of
from protogoal.goals.derived.nethack import NetHackMap
from protogoal.goals.derived.numbers import Numbers


class Observing(gymnasium.Env):
    """Gives samples of a space; `seen` may say what instead. Two actions, episodes of eight steps."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, seen=None, info=None):
        self.observation_space, self.seen, self.info = space, seen, info or (lambda t: {})

    def _observation(self):
        return self.observation_space.sample() if self.seen is None else self.seen(self.t)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self._observation(), self.info(0)

    def step(self, action):
        self.t += 1
        return self._observation(), 0.0, False, self.t >= 8, self.info(self.t)


def names_on(space, observation):
    """Names of what is on in one state."""
    return [space.name(int(i)) for i in space.active(None, None, observation)[0] if i >= 0]


def derived(space, **more):
    return derive(readable(Observing(space, **more)))


def test_every_value_of_discrete_parts():
    made = derived(spaces.Dict({"room": spaces.Discrete(3, start=5), "hands": spaces.MultiDiscrete([2, 4])})).space
    assert made.size == 3 + 2 + 4
    assert names_on(made, {"room": np.array([6]), "hands": np.array([[1, 3]])}) == ["hands 0 = 1", "hands 1 = 3", "room = 6"]
    assert {made.kind(i) for i in range(made.size)} == {"room", "hands 0", "hands 1"}  # trials pool by component


def test_taxis_one_number_is_told_by_its_parts():
    space = space_of("Taxi-v3").space
    assert space.size == 25 + 5 + 4
    assert names_on(space, np.array([(2 * 5 + 3) * 20 + 4 * 4 + 1])) == ["taxi at (2,3)", "passenger in taxi", "destination G"]


def test_every_bit_that_is_on():
    made = derived(spaces.MultiBinary(4)).space
    assert names_on(made, np.array([[0, 1, 0, 1]])) == ["bit 1 is on", "bit 3 is on"]
    planes = derived(spaces.MultiBinary((2, 3, 2))).space
    board = np.zeros((1, 2, 3, 2))
    board[0, 1, 0, 1] = 1
    assert names_on(planes, board) == ["plane 1 at (0,1)", "plane 1 present"]
    assert planes.cell(7) == (0, 1)


@pytest.mark.parametrize("space", [spaces.MultiBinary((4, 4, 16)), spaces.Box(0, 1, (4, 4, 16), np.bool_)])
def test_planes_may_come_last_beside_a_square(space):
    made = derived(space).space
    board = np.zeros((1, 4, 4, 16), space.dtype)
    board[0, 1, 3, 11] = 1
    assert names_on(made, board) == ["plane 11 at (1,3)", "plane 11 present"]
    assert [made.kind(made.size - 1), made.cell(made.size - 1)] == ["plane present", None]
    assert made.grid == (4, 4)
    spec, read = reader("board", space)
    assert (spec.kind, spec.shape) == ("planes", (16, 4, 4))
    assert np.argwhere(read(board)).tolist() == [[0, 11, 1, 3]]


def test_planes_have_the_names_that_their_game_gives_them():
    env = Observing(spaces.Box(0, 1, (3, 3, 2), np.bool_))
    env.game = SimpleNamespace(env=SimpleNamespace(channels={"wall": 1, "ball": 0}))  # as MinAtar's
    board = np.zeros((1, 3, 3, 2), np.bool_)
    board[0, 2, 1, 1] = True
    assert names_on(derive(env).space, board) == ["wall at (2,1)", "wall present"]


def test_the_planes_of_baba_have_names():
    space = space_of("protogoal/Baba-v0?level=umaze-small").space
    assert {"FLAG present", "WIN present"} <= {space.name(i) for i in range(space.size)}


def test_whole_numbers_of_a_small_range_have_every_value_and_others_bins():
    made = derived(spaces.Box(np.array([0, -2]), np.array([5, 2]), dtype=np.int64)).space
    assert names_on(made, np.array([[3, -2]])) == ["state[0] = 3", "state[1] = -2"]
    assert made.size == 6 + 5
    wide = derived(spaces.Box(0, 1_000, (2,), np.int64), seen=lambda t: np.array([t, 2 * t])).space
    assert "state[0] ≤ 0" in names_on(wide, np.zeros((1, 2), np.int64))


def test_numbers_of_a_table_have_their_row_and_column():
    made = derived(spaces.Box(-1.0, 1.0, (2, 3)), seen=lambda t: np.full((2, 3), t / 8, np.float32)).space
    assert "state[1,2] ≥ 1" in names_on(made, np.ones((1, 2, 3)))


def test_a_part_with_too_many_numbers_is_left_out_before_anything_is_played():
    long = spaces.Box(-1.0, 1.0, (20_000,))
    made = derived(spaces.Dict({"cell": spaces.Discrete(3), "scan": long}))
    assert made.left_out == {"scan": "has 20,000 numbers, and at most 16,384 are read that are no picture and no grid"}
    with pytest.raises(ValueError, match="nothing of the observation can be read: observation has 20,000 numbers"):
        derived(long)


def test_every_value_of_every_byte():
    made = derived(spaces.Box(0, 255, (128,), np.uint8)).space
    assert made.size == 128 * 256
    memory = np.zeros((1, 128), np.uint8)
    memory[0, 17] = 42
    assert "byte 17 = 42" in names_on(made, memory)
    assert len(names_on(made, memory)) == 128


def test_values_of_a_small_grid_are_present_and_have_places():
    made = derived(spaces.Box(0, 4, (2, 3), np.int8)).space
    grid = np.array([[[0, 0, 0], [0, 4, 0]]], np.int8)
    on = names_on(made, grid)
    assert {"state 0 present", "state 4 present", "state 4 at (1,1)", "state 0 at (0,0)"} <= set(on)
    assert len(on) == 2 + 6


def test_in_a_large_grid_only_what_is_rare_has_a_place():
    made = derived(spaces.Box(0, 9, (20, 20), np.int16)).space
    grid = np.zeros((1, 20, 20), np.int16)
    grid[0, 3, 4] = 7
    assert names_on(made, grid) == ["state 0 present", "state 7 present", "state 7 at (3,4)"]


def test_numbers_have_bins_of_the_first_steps_and_records_beyond_them():
    made = derived(spaces.Box(-10.0, 10.0, (1,)), seen=lambda t: np.array([t / 8], np.float32)).space
    assert names_on(made, np.array([[0.0]])) == ["state < 0.125", "state ≤ 0"]
    assert names_on(made, np.array([[0.3]])) == ["state 0.25 … 0.375"]
    assert names_on(made, np.array([[1.6]])) == ["state ≥ 0.875", "state ≥ 1", "state ≥ 1.125", "state ≥ 1.25", "state ≥ 1.5"]
    assert names_on(made, np.array([[-0.3]])) == ["state < 0.125", "state ≤ 0", "state ≤ -0.125", "state ≤ -0.25"]
    again = derived(spaces.Box(-10.0, 10.0, (1,)), seen=lambda t: np.array([t / 2], np.float32)).space
    again.load_state_dict(made.state_dict())  # what was found first stays
    assert [again.name(i) for i in range(again.size)] == [made.name(i) for i in range(made.size)]
    assert again.moments["observation"][0] == made.moments["observation"][0]


def test_what_is_seldom_seen_is_a_goal_and_between_the_bins_and_what_was_never_seen_are_levels():
    made = derived(spaces.Box(0.0, 1.0, (1,)), seen=lambda t: np.array([t == 8], np.float32)).space  # seldom on
    assert names_on(made, np.array([[1.0]])) == ["state ≥ 1"]
    assert names_on(made, np.array([[0.0]])) == []
    often = derived(spaces.Box(0.0, 1.0, (1,)), seen=lambda t: np.array([t % 2], np.float32)).space
    assert names_on(often, np.array([[1.0]])) == ["state ≥ 1"]
    assert names_on(often, np.array([[0.0]])) == ["state < 1"]
    seen = np.linspace(0, 1, 1001)[:, None]
    ladder = Numbers.fit(["x"], seen, np.array([-1.0]), np.array([9.0]), False)
    assert names_on(ladder, np.array([[9.0]])) == [
        "x ≥ 0.875", "x ≥ 0.938", "x ≥ 0.969", "x ≥ 1", "x ≥ 1.125", "x ≥ 1.25", "x ≥ 1.5", "x ≥ 2", "x ≥ 3"]


def test_whole_numbers_that_did_not_change_have_records_one_by_one():
    made = derived(spaces.Box(-(2**31), 2**31 - 1, (1,), np.int64), seen=lambda t: np.array([3])).space
    assert names_on(made, np.array([[5]])) == ["state ≥ 4", "state ≥ 5"]
    assert names_on(made, np.array([[3]])) == []


def test_of_many_numbers_those_that_change_have_goals_and_stay_the_same_ones():
    def changing(first):
        return derived(spaces.Box(-9, 9, (300,)), seen=lambda t: np.where(np.arange(300) >= first, t, 0).astype(np.float32)).space

    late, early = changing(250), changing(50)
    assert "state[299] ≥ 7" in names_on(late, np.full((1, 300), 8.0))
    early.load_state_dict(late.state_dict())  # as a run that goes on
    assert [early.name(i) for i in range(early.size)] == [late.name(i) for i in range(late.size)]
    assert names_on(early, np.full((1, 300), 8.0)) == names_on(late, np.full((1, 300), 8.0))


def test_a_number_that_did_not_change_has_no_bins_and_says_so():
    space = derived(spaces.Box(-np.inf, np.inf, (1,), np.float32), seen=lambda t: np.ones(1, np.float32)).space
    assert all(space.name(i).endswith("(not possible)") for i in range(space.size))


def test_the_first_steps_of_a_slow_environment_are_played_once_and_announced(monkeypatch, capsys):
    steps = []

    class Slow(Observing):
        def step(self, action):
            steps.append(action)
            return super().step(action)

    monkeypatch.setattr(first_steps, "PATIENCE", 0.0)
    name = reference(lambda: Slow(spaces.Box(-1, 1, (2,), np.float32)), must_last=False)
    first, again = (space_of(name).space for _ in range(2))
    assert len(steps) == first_steps.STEPS
    assert first is not again
    assert [first.name(i) for i in range(first.size)] == [again.name(i) for i in range(again.size)]
    assert capsys.readouterr().err.count("looking at the environment's first 1,000 random steps") == 1


def test_cells_of_a_picture():
    made = derived(spaces.Box(0, 255, (64, 48, 3), np.uint8)).space
    picture = np.zeros((1, 64, 48, 3), np.uint8)
    picture[0, :8, 42:] = 255
    on = names_on(made, picture)
    assert len(on) == 64
    assert "picture (0,7) brightness 7 of 7" in on


def test_a_picture_has_no_cells_where_numbers_of_info_are_named():
    shows = Observing(spaces.Box(0, 255, (64, 48, 3), np.uint8), info=lambda t: {"wood": t // 4})
    made = derive(Counters(readable(shows), ("wood",)))
    assert {made.space.kind(i) for i in range(made.space.size)} == {"wood"}
    assert made.left_out == {"observation": "the network reads it; goals are those of info"}


def test_words_of_a_text_that_changes_and_none_of_one_that_does_not():
    letters = spaces.Text(20, min_length=0)
    both = spaces.Dict({"said": letters, "place": spaces.Discrete(3)})
    changing = derived(both, seen=lambda t: {"said": f"step{'s' * t}", "place": 0})
    assert "said" in changing.parts
    assert names_on(changing.space, {"said": ["open"], "place": np.array([1])}) == ["place = 1", "word: open"]
    fixed = derived(both, seen=lambda t: {"said": "go", "place": 0})
    assert "never changes" in fixed.left_out["said"]


def test_words_of_several_texts_are_told_apart():
    letters = spaces.Text(20, min_length=0)
    both = derived(spaces.Dict({"said": letters, "seen": letters}), seen=lambda t: {"said": "s" * t, "seen": "o" * t})
    assert names_on(both.space, {"said": ["open"], "seen": ["open"]}) == ["said: open", "seen: open"]
    assert [both.parts[name].kind(0) for name in ("said", "seen")] == ["said", "seen"]


def make_with_info():
    return Observing(spaces.Discrete(2), info=lambda t: {"inventory": {"wood": t, "axe": 0}, "depth": 0.5 * t, "words": "none"})


def test_numbers_of_info_are_goals_and_hidden_from_the_network():
    name = reference(make_with_info, must_last=False)
    batch = own_batch(name, "", 1, info="inventory,depth")
    assert list(batch.observation_spec) == ["observation"]
    _, active = batch.reset(seed=0)
    assert "wood ≥ 1" not in [batch.space.name(int(i)) for i in active[0] if i >= 0]
    step = batch.step(np.array([0]))
    on = {batch.space.name(int(i)) for i in step.final_active[0] if i >= 0}
    assert {"wood ≥ 1", "wood rises"} <= on
    assert "axe rises" not in on
    assert batch.read_raw(1)[2]  # as the environment itself gives it, without info
    batch.close()
    with pytest.raises(ValueError, match=r"--info gold: there are no numbers of that name .* there are inventory, depth"):
        space_of(name, info="gold")


def test_a_space_of_ones_own_replaces_the_derived_one_or_adds_to_it(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    alone, both = (space_of("own_corridor:make", name).space for name in ("own_corridor:cells", "+own_corridor:cells"))
    assert (alone.size, both.size) == (6, 12)
    assert names_on(both, np.array([[2]])) == ["state = 2", "cell 2"]


STRANGE = {
    "nested": spaces.Dict({"a": spaces.Tuple([spaces.Discrete(2), spaces.Dict({"b": spaces.MultiBinary(2)})]),
                           "c": spaces.Discrete(2)}),
    "names that torch keeps": spaces.Dict({"keys": spaces.Discrete(2), "a.b": spaces.Box(-1, 1, (2,)), "type": spaces.Text(4)}),
    "a part that cannot be read": spaces.Dict({"g": spaces.Graph(spaces.Discrete(2), None), "c": spaces.Discrete(2),
                                               "s": spaces.Sequence(spaces.Discrete(2))}),
    "booleans": spaces.Box(0, 1, (3,), np.bool_),
    "a board of booleans": spaces.Box(0, 1, (4, 4, 2), np.bool_),
    "one number": spaces.Box(-1, 1, (), np.float64),
    "no bounds": spaces.Box(-np.inf, np.inf, (2, 2)),
    "a great many values": spaces.Dict({"id": spaces.Discrete(10**12), "c": spaces.Discrete(2)}),
    "signed bytes": spaces.Box(-128, 127, (3, 3), np.int8),
    "a fraction picture": spaces.Box(0, 1, (3, 40, 40), np.float32),
    "large whole numbers": spaces.Box(0, 2**40, (3,), np.int64),
    "four axes": spaces.Box(0, 5, (2, 2, 2, 2), np.int64),
    "text alone": spaces.Text(8),
    "no numbers": spaces.Dict({"empty": spaces.Box(-1, 1, (0,)), "c": spaces.Discrete(3)}),
    "a tuple": spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 255, (4,), np.uint8)]),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_whatever_is_observed_is_stepped_read_and_named(kind):
    torch = pytest.importorskip("torch")
    from protogoal.deep.act import read_states
    from protogoal.deep.network import make_network
    from protogoal.deep.settings import NetworkSettings

    made = reference(lambda: Observing(STRANGE[kind]), must_last=False)
    batch = own_batch(made, "", 2)
    observation, _ = batch.reset(seed=0)
    step = batch.step(np.array([0, 1]))
    assert all(batch.space.name(int(i)) and batch.space.kind(int(i)) for i in step.final_active.ravel() if i >= 0)
    assert set(observation) == set(batch.observation_spec)
    settings = NetworkSettings(hidden=8, channels=(2,), rank=4)
    network = make_network(batch.observation_spec, 2, batch.num_bits, settings, np.random.SeedSequence(0))
    nothing = np.zeros(2, np.int16), np.zeros(2, np.float32), np.zeros(2, bool)
    z, _ = read_states(network, step.observation, *nothing, network.initial_core(2))
    assert torch.isfinite(z).all()
    raw, _ = Observing(STRANGE[kind]).reset(seed=1)
    read, _, is_single = batch.read_raw(raw)  # with the parts that were left out
    assert is_single
    assert {name: array.shape[1:] for name, array in read.items()} == {n: spec.shape for n, spec in batch.observation_spec.items()}
    batch.close()


def test_what_is_left_out_is_said_with_the_reason():
    made = derived(STRANGE["a part that cannot be read"])
    assert list(made.parts) == ["c"]
    assert made.left_out["g"].startswith("is Graph, which is none of Box")
    with pytest.raises(ValueError, match="nothing of the observation can be read"):
        derived(spaces.Graph(spaces.Discrete(2), None))


def test_a_whole_map_is_hidden_from_the_network_only_beside_what_lies_around_the_hero():
    made = reference(lambda: Observing(spaces.Dict({"glyphs": spaces.Box(0, 5976, (5, 5), np.int16)})), must_last=False)
    batch = own_batch(made, "", 1)
    assert set(batch.observation_spec) == {"glyphs"}
    batch.close()


def test_one_number_of_many_values_has_goals_as_several_have():
    assert derived(spaces.Discrete(100_000)).space.size == 100_000
    assert derived(spaces.MultiDiscrete([100_000, 7])).space.size == 100_007


@pytest.mark.parametrize(("actions", "count", "last"), [
    (spaces.MultiDiscrete([2, 3]), 6, [1, 2]),
    (spaces.MultiBinary(2), 4, [1, 1]),
    (spaces.Box(-1, 3, (1,), np.int32), 5, [3]),
])
def test_several_actions_at_once_are_their_combinations(actions, count, last):
    taken = []

    class Many(Observing):
        action_space = actions

        def step(self, action):
            taken.append(np.asarray(action).tolist())
            return super().step(action)

    batch = own_batch(reference(lambda: Many(spaces.Discrete(2)), must_last=False), "", 1)
    batch.reset(seed=0)
    assert batch.num_actions == count
    batch.step(np.array([count - 1]))
    assert taken[-1] == last
    assert batch.own_actions[count - 1].tolist() == last  # what an agent that is asked answers
    batch.close()


# --- the door ---------------------------------------------------------------------------------------------------------


def test_arguments_follow_a_question_mark():
    assert space_of("FrozenLake-v1?map_name=8x8").space.size == 64
    with pytest.raises(ValueError, match="write FrozenLake-v1\\?key=value"):
        space_of("FrozenLake-v1?map")


def spaceless():
    return Observing(None)


def blind():
    return Observing(spaces.Dict({}), seen=lambda t: {})


def typing():
    env = Observing(spaces.Discrete(2))
    env.action_space = spaces.Box(-(2**63), 2**63 - 1, (2,), np.int64)
    return env


@pytest.mark.parametrize(("env", "words"), [
    ("Pendulum-v1", "the action space must be Discrete; got Box"),
    ("test_derive:typing", "at most 1,024 are possible"),
    ("Nothing-v0", "neither module:function nor a Gymnasium environment"),
    ("gymnasium:CartPole-v77", "no environment of that name is registered; did you mean CartPole-v1"),
    ("MiniWorld-Hallway-v0", "comes with the package miniworld: pip install miniworld"),
    ("no_such_package:Env-v0", "cannot import 'no_such_package'"),
    ("FrozenLake-v1?map_name=9x9", "FrozenLake-v1 raised KeyError: '9x9' (frozen_lake.py, line "),
    ("FrozenLake-v1?size=3", "FrozenLake-v1 does not take all of the arguments size"),
    ("test_derive:spaceless", "the observation_space of test_derive:spaceless is none of Gymnasium's spaces"),
    ("test_derive:blind", "it observes nothing"),
])
def test_what_cannot_be_trained_is_one_line(env, words, capsys, tmp_path):
    if env.startswith("MiniWorld") and importlib.util.find_spec("miniworld"):
        pytest.skip("miniworld is installed")
    assert main(["train", "--env", env, "--run", str(tmp_path / "run")]) == 2
    line = capsys.readouterr().err
    assert words in line
    assert line.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_package_and_id_import_the_package():
    assert space_of("gymnasium:CartPole-v1").space.size == 96


def test_an_installed_package_that_registers_is_found_by_the_id_alone(tmp_path, monkeypatch, capsys):
    about = {"Unheard": "gymnasium>=1.0", "silent": "gymnasium>=1.0", "other": "gymnasium-like", "deeper": "gymnasium"}
    for name, needs in about.items():
        (tmp_path / f"pack_{name}").mkdir()
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        (tmp_path / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\nRequires-Dist: {needs}\n")
        (tmp_path / f"{name}-1.0.dist-info" / "RECORD").write_text(f"pack_{name}/__init__.py,,\n")
    (tmp_path / "pack_deeper" / "envs").mkdir()
    (tmp_path / "pack_deeper" / "envs" / "__init__.py").write_text("from . import all_of_them")
    (tmp_path / "pack_deeper" / "envs" / "maze").mkdir()
    (tmp_path / "pack_deeper" / "envs" / "maze" / "__init__.py").write_text("register('Unheard-v0')")
    (tmp_path / "deeper-1.0.dist-info" / "RECORD").write_text(
        "pack_deeper/__init__.py,,\npack_deeper/envs/__init__.py,,\npack_deeper/envs/maze/__init__.py,,\n")
    for name in ("silent", "other", "deeper"):
        (tmp_path / f"pack_{name}" / "__init__.py").write_text("print('a package that talks')\nraise RuntimeError")
    (tmp_path / "pack_Unheard" / "__init__.py").write_text(
        "import gymnasium\ngymnasium.register('Unheard-v0', 'gymnasium.envs.classic_control:CartPoleEnv')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = [module for module in registering_packages("Unheard-v0") if module.startswith("pack_")]
    assert found == ["pack_Unheard", "pack_deeper.envs.maze", "pack_deeper.envs"]
    assert not [module for module in registering_packages("Heard-v0") if module.endswith("maze")]
    assert space_of("Unheard-v0").space.size == 96
    gymnasium.registry.pop("Unheard-v0")
    with pytest.raises(ValueError, match="nor a Gymnasium environment"):
        space_of("NobodysMaze-v0")
    assert capsys.readouterr() == ("", "")  # packages that are not the one say nothing


class Careless(Observing):
    """Rewards and ends as arrays of one number, an observation of another type; with `level`, which must be given."""

    def __init__(self, level):
        super().__init__(spaces.Box(0, 9, (2,), np.float32), seen=lambda t: np.array([t, level]))

    def step(self, action):
        if action == 1 and self.t == 7:
            raise RuntimeError("the floor is wet")
        seen, _, ended, late, info = super().step(action)
        return seen, np.array([1.0]), np.array([ended]), np.array([late]), info


@pytest.fixture
def careless():
    gymnasium.register("Careless-v0", Careless)
    yield
    gymnasium.registry.pop("Careless-v0")


@pytest.mark.filterwarnings("error")
def test_what_a_registered_environment_does_carelessly_is_taken_as_meant_and_without_warnings(careless):
    batch = own_batch("Careless-v0?level=3", "", 1, shared=derived(spaces.Discrete(2)).space)
    batch.reset(seed=0)
    steps = [batch.step(np.array([0])) for _ in range(8)]
    assert [step.reward.tolist() for step in steps] == [[1.0]] * 8
    assert steps[-1].truncated.tolist() == [True]
    batch.close()


def test_what_fails_in_a_registered_environment_is_told_without_gymnasiums_own_lines(careless):
    with pytest.raises(ValueError, match="the floor is wet") as caught:
        space_of("Careless-v0?level=3")
    assert "test_derive.py" in str(caught.value)
    assert "wrappers" not in str(caught.value)


def test_an_error_within_an_installed_package_is_one_line_through_wrappers_of_ours():
    env = gymnasium.Wrapper(Counters(gymnasium.make("CartPole-v1", disable_env_checker=True), ()))
    env.reset(seed=0)
    with pytest.raises(AssertionError) as caught:
        env.step(7)
    told = str(failure(caught.value.with_traceback(caught.value.__traceback__.tb_next), "it"))
    assert told.startswith("it raised AssertionError: 7")
    assert "(cartpole.py, line " in told
    assert "\n" not in told


def test_arguments_that_an_environment_must_have_are_asked_for(careless):
    with pytest.raises(ValueError, match=r"has to be told more: .*'level'; write Careless-v0\?key=value") as caught:
        space_of("Careless-v0")
    assert "\n" not in str(caught.value)


def test_space_prints_kinds_names_what_is_on_and_what_is_left_out(capsys):
    assert main(["space", "--env", "CartPole-v1"]) == 0
    text = capsys.readouterr().out
    assert "96 proto-goals, 2 actions" in text
    assert "pole angle" in text
    assert "on at the start (4)" in text
    assert "info has numbers" not in text
    assert main(["space", "--env", "FrozenLake-v1"]) == 0
    assert "info has numbers too; their goals: --info prob" in capsys.readouterr().out
    assert main(["space"]) == 2
    assert "which environment?" in capsys.readouterr().err


def test_a_run_of_pictures_keeps_as_many_as_fit():
    config = settled(own_environment(reference(lambda: Observing(STRANGE["a fraction picture"]), must_last=False)))
    assert config.replay.capacity < 1_000_000
    assert config.replay.most_gigabytes == 0
    assert settled(config) == config
    assert config.network.core == "none"
    recurrent = settled(own_environment("CartPole-v1").with_agent("r2d2"))
    assert recurrent.network.core == "none"


def test_the_core_follows_from_the_environment_or_from_its_setting():
    for partial, core, burn_in in (("auto", "none", 0), ("yes", "lstm", 5), ("no", "none", 0)):
        config = own_environment("CartPole-v1")
        config = settled(dataclasses.replace(config, env=OwnSettings("CartPole-v1", partial=partial)))
        assert (config.network.core, config.replay.burn_in) == (core, burn_in)


# --- MiniGrid ---------------------------------------------------------------------------------------------------------


def view(*things):
    """A view of MiniGrid with things at (x, y)."""
    from protogoal.goals.derived import minigrid as m

    image = np.zeros((1, 7, 7, 3), np.uint8)
    image[..., 0] = m.EMPTY
    for (x, y), thing in things:
        image[0, x, y] = thing
    return image


def test_minigrid_is_told_in_words():
    from protogoal.goals.derived import minigrid as m

    space = m.MiniGridView(7, 7, key=None)
    purple = m.COLOURS.index("purple")
    on = names_on(space, view(((3, 6), (m.KEY, purple, 0)), ((3, 5), (m.DOOR, 0, 1)), ((2, 6), (m.BALL, 2, 0)),
                              ((1, 1), (m.GOAL, 1, 0))))
    assert {"purple key carried", "key carried", "red closed door ahead", "closed door ahead", "red closed door in sight",
            "goal in sight", "blue ball beside", "goal 5 ahead, 2 left"} <= set(on)
    assert not any(name.startswith("purple key in sight") for name in on)
    assert "wall ahead" in names_on(space, view(((3, 5), (m.WALL, 5, 0))))


def test_what_happens_in_minigrid_is_an_event():
    from protogoal.goals.derived import minigrid as m

    space = m.MiniGridView(7, 7, key=None)
    closed, opened = view(((3, 5), (m.DOOR, 0, 1))), view(((3, 5), (m.DOOR, 0, 0)))
    empty, held = view(), view(((3, 6), (m.KEY, 4, 0)))

    def happened(s, a, s_next):
        return [space.name(int(i)) for i in space.active(s, np.array([a]), s_next)[0] if i >= 0 and space.kind(int(i)) == "event"]

    assert happened(closed, 5, opened) == ["red door opened", "a door opened"]
    assert happened(view(((3, 5), (m.DOOR, 0, 2))), 5, opened) == ["red door opened", "a door opened", "a door unlocked"]
    assert happened(opened, 5, closed) == ["a door closed"]
    assert happened(opened, m.FORWARD, empty) == ["red doorway entered", "a doorway entered"]
    assert happened(empty, 3, held) == ["key picked up"]
    assert happened(held, 4, empty) == ["key put down"]
    assert happened(closed, 0, closed) == []


def test_the_whole_grid_of_minigrid_is_told_by_its_cells():
    from protogoal.goals.derived import minigrid as m

    space = m.MiniGridMap(7, 7, key=None)
    on = names_on(space, view(((2, 1), (m.AGENT, 0, 3)), ((5, 4), (m.KEY, 4, 0))))
    assert on == ["agent at (1,2)", "yellow key somewhere", "key somewhere", "yellow key at (4,5)"]


def test_minigrids_mission_is_read_and_its_view_is_partial():
    minigrid = pytest.importorskip("minigrid")
    batch, space = make_batch_env(OwnSettings("MiniGrid-MultiRoom-N2-S4-v0"), 1)
    kinds = {name: spec.kind for name, spec in batch.observation_spec.items()}
    assert kinds == {"direction": "active", "image": "grid", "mission": "active", "way": "active"}
    assert any(space.name(i) == "purple key carried" for i in range(space.size))
    batch.close()
    assert settled(own_environment("MiniGrid-MultiRoom-N2-S4-v0")).network.core == "lstm"
    whole = reference(lambda: minigrid.wrappers.FullyObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0")), must_last=False)
    assert settled(own_environment(whole)).network.core == "none"
    assert any(space_of(whole).space.name(i) == "agent at (1,1)" for i in range(60))


def test_nethack_is_told_in_words():
    pytest.importorskip("nle")
    pytest.importorskip("minihack")
    batch = own_batch("MiniHack-Room-5x5-v0", "", 1)
    batch.reset(seed=0)
    names = {batch.space.name(i) for i in range(batch.space.size)}
    assert {"stairs down in sight", "wall beside", "depth ≥ 2", "at (10,40)", "long sword in sight"} <= names
    assert {"water in sight", "potion of water in sight", "wand of cold carried"} <= names
    assert set(batch.observation_spec) == {"blstats", "glyphs_crop", "message"}
    assert "glyphs" not in batch.observation_spec
    assert INFO not in batch.observation_spec
    raw, _ = gymnasium.make("MiniHack-Room-5x5-v0").reset(seed=0)
    assert batch.read_raw(raw)[2]
    batch.close()


def test_the_drafts_that_babyai_throws_away_are_not_printed(capsys):
    pytest.importorskip("minigrid")
    env = EnvReference("BabyAI-GoToSeqS5R2-v0")()
    for seed in range(30):
        env.reset(seed=seed)
    assert not capsys.readouterr().out


def test_an_argument_that_an_atari_game_refuses_is_called_so():
    pytest.importorskip("ale_py")
    with pytest.raises(ValueError, match=r"ALE/Pong-v5 cannot be made: Invalid observation type: nonsense"):
        space_of("ALE/Pong-v5?obs_type=nonsense")


def test_a_number_without_bins_has_no_name_with_infinity():
    seen = np.stack([np.full(20, 5.0), np.arange(20.0)], 1)  # the first does not change
    numbers = Numbers.fit(["strength", "depth"], seen, np.full(2, -np.inf), np.full(2, np.inf), True)
    names = [numbers.name(i) for i in range(numbers.size)]
    assert not [name for name in names if "inf" in name]
    assert names[0] == "strength, bin 1 (not possible)"
    assert names[8].startswith("depth < ")
    assert names[15].startswith("depth ≥ ")


ROOM = "MiniHack-Room-5x5-v0?observation_keys="


@pytest.mark.parametrize(("keys", "told", "read"), [
    ('["glyphs_crop","message"]', "stairs down in sight", {"glyphs_crop", "message"}),
    ('["glyphs_crop","blstats"]', "at (9,36)", {"glyphs_crop", "blstats"}),
    ('["glyphs","inv_strs"]', "stairs down in sight", {"glyphs"}),
    ('["chars_crop","message","tty_chars"]', "chars_crop: '>' present", {"chars_crop", "message"}),
])
def test_nethack_is_told_in_words_whatever_of_it_is_observed(keys, told, read):
    pytest.importorskip("minihack")
    made = space_of(ROOM + keys)
    batch = own_batch(ROOM + keys, "", 1, shared=made.space)
    _, active = batch.reset(seed=0)
    names = [made.space.name(int(i)) for i in active[0] if i >= 0]
    assert told in names
    assert any(name.startswith("word: ") for name in names) == ("message" in read)
    assert set(batch.observation_spec) == read
    assert {why.partition(";")[0] for why in made.left_out.values()} <= {"is a screen or book-keeping of NetHack"}
    assert shows_a_part(ROOM + keys)
    batch.close()


def test_what_lies_around_nethacks_hero_has_the_hero_in_the_middle_and_nothing_off_the_map():
    kinds, table = ("giant ant", "hero", "wall"), np.array([0, 1, 2, -1])
    crop = np.full((1, 5, 5), 3)
    crop[0, :2], crop[0, 2, 2], crop[0, 3, 2] = 0, 1, 2  # two rows are off the map
    space = NetHackMap(kinds, table, 21, 79, "glyphs_crop", has_status=False)
    assert names_on(space, {"glyphs_crop": crop}) == ["wall in sight", "wall beside"]
    crop[0, 4, 4] = 0
    assert "giant ant in sight" in names_on(space, {"glyphs_crop": crop})


def test_the_river_by_its_id_shows_a_part_and_tells_its_cells_in_words():
    pytest.importorskip("minihack")
    made = space_of("protogoal/MiniHackRiver-v0")
    names = {made.space.name(i) for i in range(made.space.size)}
    assert {"map: water present", "crop: boulder at (4,5)", "map: monster u present"} <= names
    assert shows_a_part("protogoal/MiniHackRiver-v0")


@pytest.mark.parametrize(("wrapper", "way"), [("SymbolicObsWrapper", False), ("OneHotPartialObsWrapper", False),
                                              ("RGBImgPartialObsWrapper", False), ("ViewSizeWrapper", True)])
def test_only_minigrids_own_numbers_are_told_as_its_things(wrapper, way):
    wrappers = pytest.importorskip("minigrid.wrappers")
    made = reference(lambda: getattr(wrappers, wrapper)(gymnasium.make("MiniGrid-Empty-5x5-v0")), must_last=False)
    told = space_of(made)
    names = {told.space.name(i) for i in range(told.space.size)}
    assert any("red locked door" in name for name in names) == way
    assert ("way" in told.parts) == way


def test_the_sparse_taxi_is_told_as_the_other_is():
    for env in ("Taxi-v3", "protogoal/SparseTaxi-v0"):
        told = space_of(env).space
        assert [told.name(0), told.size] == ["taxi at (0,0)", 34]


def test_a_part_of_very_many_bytes_has_no_goals_and_the_others_keep_theirs():
    made = derived(spaces.Dict({"screen": spaces.Box(0, 255, (100_800,), np.uint8), "room": spaces.Discrete(2)}))
    assert list(made.parts) == ["room"]
    assert made.left_out["screen"].startswith("has 100,800 bytes, too many to list")
    with pytest.raises(ValueError, match=r"observation \(has 100,800 bytes, too many to list; .*--space"):
        derived(spaces.Box(0, 255, (100_800,), np.uint8))


def test_where_all_parts_have_too_many_goals_together_the_largest_are_left_out():
    made = derived(spaces.Dict({str(n): spaces.Box(0, 255, (n,), np.uint8) for n in (15_000, 15_500, 16_000)}))
    assert set(made.parts) == {"15000", "15500"}
    assert made.left_out["16000"] == "has 4,096,000 proto-goals; all parts together may have 10,000,000"


def test_parts_of_one_name_stay_apart():
    made = derived(spaces.Dict({"a/b": spaces.Discrete(3), "a": spaces.Dict({"b": spaces.Discrete(2)})}))
    assert {name: part.size for name, part in made.parts.items()} == {"a/b": 3, "a/b'": 2}
