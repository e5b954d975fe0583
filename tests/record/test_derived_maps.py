"""Proto-goals that follow from a grid are drawn as maps: their cells lie on it, and no two of a kind in one cell."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from protogoal.envs.derive import derive
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.record import queries
from protogoal.record.reader import StoreReader
from protogoal.record.store import Store


class Shown(gymnasium.Env):
    """Shows what its space samples."""

    action_space = spaces.Discrete(2)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def stored(space, path):
    """A store in which every goal of the space was seen."""
    evaluator = ProtoGoalEvaluator(space, 2)
    evaluator.table.see(np.arange(space.size)[None])
    with Store.create(path) as store:
        store.refresh(0, evaluator.snapshot(), evaluator.describe)


def test_a_picture_becomes_a_map_for_each_brightness(tmp_path):
    both = spaces.Dict({"seen": spaces.Box(0, 255, (32, 40, 3), np.uint8), "place": spaces.Discrete(3)})
    stored(derive(Shown(both)).space, tmp_path / "run.db")
    with StoreReader(tmp_path / "run.db") as reader:
        kinds = queries.kinds(reader)
        maps = [kind for kind in kinds if kind["rows"]]
        assert [kind["kind"] for kind in maps] == [f"seen brightness {level} of 7" for level in range(8)]
        assert {(kind["rows"], kind["cols"], kind["goals"]) for kind in maps} == {(8, 8, 64)}
        assert [kind["kind"] for kind in kinds if not kind["rows"]] == ["place"]
        for step in (None, 0):
            goals = queries.goals_at(reader, "seen brightness 3 of 7", step)
            assert len({*zip(goals["row"], goals["col"], strict=True)}) == len(goals["name"]) == 64
            assert all(name.endswith("brightness 3 of 7") for name in goals["name"])
            assert len(queries.goals_at(reader, "place", step)["name"]) == 3


@pytest.mark.parametrize(("env", "grid"), [
    (lambda: Shown(spaces.Box(0, 4, (3, 5), np.uint8)), (3, 5)),
    (lambda: Shown(spaces.MultiBinary([2, 3, 4])), (3, 4)),
    (lambda: gymnasium.make("FrozenLake-v1"), (4, 4)),
])
def test_a_derived_grid_becomes_maps(env, grid, tmp_path):
    space = derive(env()).space
    assert space.grid == grid
    cells = [(space.kind(i), space.cell(i)) for i in range(space.size) if space.cell(i) is not None]
    assert len(set(cells)) == len(cells)
    assert all(0 <= row < grid[0] and 0 <= column < grid[1] for _, (row, column) in cells)
    stored(space, tmp_path / "run.db")
    with StoreReader(tmp_path / "run.db") as reader:
        maps = {kind["kind"]: (kind["rows"], kind["cols"]) for kind in queries.kinds(reader) if kind["rows"]}
    assert set(maps) == {kind for kind, _ in cells}
    assert set(maps.values()) == {grid}
