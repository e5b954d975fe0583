"""What the deep agent relies on: in Baba Is You, cells that it can walk to are offered, and what never moves is not."""

import numpy as np

from protogoal.envs.baba.batch import BabaBatch
from protogoal.goals.plausibility import Verdict, is_plausible, judge
from protogoal.goals.table import pack_columns
from protogoal.goals.values import EstimatorSettings, TransitionBatch, seek_avoid_values


def test_a_random_players_batch_finds_its_own_cells_plausible_and_fixed_things_not():
    rng = np.random.default_rng(0)
    env = BabaBatch("small", num_envs=64, max_episode_steps=200)
    steps = []
    for _ in range(200):
        before, action = env.bits.copy(), rng.integers(5, size=64)
        step = env.step(action)
        steps.append((before, action, env.final_bits.copy(), step.terminated.copy()))
    observation, action, following, terminated = (np.concatenate(part) for part in zip(*steps, strict=True))
    rows = rng.choice(len(action), 4096, replace=False)
    batch = TransitionBatch(observation[rows], action[rows], following[rows], terminated[rows], following[rows] > 0)
    found = seek_avoid_values(batch, pack_columns(batch.bits), 5, EstimatorSettings(), 0)
    verdict = judge((following > 0).sum(axis=0), found)
    plane = {name: slice(i * env.num_cells, (i + 1) * env.num_cells) for i, name in enumerate(env.plane_names)}

    def offered(name):
        seen = found.hits[plane[name]] > 0
        return is_plausible(verdict[plane[name]])[seen]

    assert offered("baba").mean() >= 0.9
    assert offered("FLAG").mean() > 0.3  # the word that is pushed: rare places stay plausible by optimism
    for fixed in ("flag", "YOU", "WIN"):
        at_start = np.flatnonzero(found.hits[plane[fixed]] > 4000)
        assert (verdict[plane[fixed]][at_start] == Verdict.UNCONTROLLABLE).all()
        assert len(at_start) == 1
