"""Raw observations are read as a batch of environments reads them, in every domain."""

import gymnasium
import numpy as np
import pytest

import protogoal.envs  # noqa: F401  (registers them)
from protogoal.domains.baba import BabaSettings
from protogoal.domains.deep_sea import DeepSeaSettings
from protogoal.domains.domain import make_batch_env
from protogoal.envs.raw import read_raw


@pytest.mark.parametrize("observation", ["active", "planes"])
def test_baba_is_read_from_the_planes_of_its_environment(observation):
    batch, _ = make_batch_env(BabaSettings(level="umaze-small", observation=observation), 2)
    seen, _ = batch.reset(seed=0)
    raw, _ = gymnasium.make("protogoal/Baba-v0", level="umaze-small").reset(seed=0)
    read, is_single = read_raw(batch, raw)
    assert is_single
    for name, array in seen.items():
        assert np.array_equal(np.sort(read[name][0], axis=None), np.sort(array[0], axis=None))
    twice, is_single = read_raw(batch, np.stack([raw, raw]))
    assert not is_single
    assert np.array_equal(twice[name][1], read[name][0])
    with pytest.raises(ValueError, match="has shape"):
        read_raw(batch, raw[0])


def test_deep_sea_is_read_from_the_cell_of_the_diver():
    batch, _ = make_batch_env(DeepSeaSettings(size=4), 1)
    assert read_raw(batch, np.array([5]))[0]["active"].tolist() == [[5]]
    with pytest.raises(ValueError, match="values outside 0…15"):
        read_raw(batch, np.array([16]))


def test_the_river_is_read_from_its_environment():
    pytest.importorskip("minihack")
    from protogoal.domains.minihack import RiverSettings

    batch, _ = make_batch_env(RiverSettings(workers=0), 1)
    batch.reset(seed=0)
    env = gymnasium.make("protogoal/MiniHackRiver-v0", scenario="narrow-river")
    raw, _ = env.reset(seed=0)
    read, is_single = read_raw(batch, raw)
    assert is_single
    assert read["active"].shape == (1, *batch.observation_spec["active"].shape)
    batch.close()
    env.close()
