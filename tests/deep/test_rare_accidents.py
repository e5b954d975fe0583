"""Replay drawn by outcome makes a rare accident look likely; its weights undo that. A world in which the truth is known."""

import numpy as np
import torch

from protogoal.deep.learn import Learner
from protogoal.deep.network import make_network
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.replay import Replay
from protogoal.deep.segments import Segments, Sizes
from protogoal.deep.settings import LearnerSettings, NetworkSettings, ReplaySettings
from protogoal.envs.vector import ArraySpec

TRUTH, ACCIDENT, USUAL = 0.01, 0, 1
SPEC = {"cell": ArraySpec((1,), np.dtype(np.int16), "active", 1)}
GOALS = np.array([[ACCIDENT], [USUAL]], np.int32)
KNOWN = KnownGoals(np.arange(2), GOALS, GOALS, np.zeros(2, np.int32), np.ones(2, int), np.ones(2, bool), np.ones(2, bool), 2)


def one_step_episodes(n, rng):
    """In the one state, whatever is done, the accident happens with probability 0.01, else the usual; then the episode ends."""
    bit = np.where(rng.random(n) < TRUTH, ACCIDENT, USUAL).astype(np.int16)
    yes, no = np.ones((1, n), bool), np.zeros((1, n), bool)
    return Segments(
        {"cell": np.zeros((2, n, 1), np.int16)}, np.ones((2, n), bool), rng.integers(2, size=(1, n)).astype(np.int16),
        np.zeros((1, n), np.float32), yes, no, bit[None, :, None], yes[..., None], np.full((1, n), -1, np.int32),
        np.zeros(n, np.int16), np.zeros(n, np.float32), np.ones(n, np.float32), np.zeros((n, 0, 0), np.float16),
        np.ones(n, np.float32))


def learned_value(correction, episodes=200_000, updates=250):
    """V(s, accident) as the learner comes to believe it from such a replay."""
    rng = np.random.default_rng(0)
    settings = ReplaySettings(capacity=episodes, trace_length=1, novelty_share=0.5, novelty_exponent=1.0, correction=correction)
    replay = Replay(Sizes(SPEC, 2, 1, (0, 0)), settings)
    replay.add(one_step_episodes(episodes, rng))
    small = NetworkSettings(hidden=8, rank=4, goal_hidden=4)
    networks = [make_network(SPEC, 2, 2, small, np.random.SeedSequence(0)) for _ in range(2)]
    learner = Learner(*networks, LearnerSettings(relabel="all", learning_rate=1e-2, adam_epsilon=1e-8, weight_decay=0.0), 0)
    found = []
    for k in range(updates):
        batch = replay.sample(256, rng)
        learner.update(batch, KNOWN)
        if k >= updates // 2:
            with torch.no_grad():
                z = torch.zeros(1, 1, 1, dtype=torch.int16)
                state = learner.network.unroll({"cell": z}, torch.zeros(1, 1, dtype=torch.int16), torch.zeros(1, 1),
                                               torch.ones(1, 1, dtype=torch.bool), learner.network.initial_core(1))[0][0]
                found.append(float(learner.network.q_all(state, torch.from_numpy(GOALS))[0, :, 0].max()))
    return float(np.mean(found))


def test_the_value_of_a_rare_accident_is_near_the_truth_with_the_correction_and_far_off_without():
    torch.set_num_threads(1)
    assert learned_value(correction=1.0) < 3 * TRUTH
    assert learned_value(correction=0.0) > 10 * TRUTH
