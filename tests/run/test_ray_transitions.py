"""Transitions of several shards become one batch, whose lists of bits are as wide as the widest."""

import numpy as np
import pytest

pytest.importorskip("ray")

from protogoal.goals.values import TransitionBatch
from protogoal.run.ray.pge import join_transitions


def shard(rows, active):
    seen = np.arange(2.0 * rows).reshape(rows, 2)
    return TransitionBatch(seen, np.zeros(rows, int), seen + 1, np.ones(rows, bool), active=np.array(active))


def test_transitions_of_shards_are_joined_in_their_order():
    joined = join_transitions([shard(1, [[3]]), shard(2, [[0, 4], [2, -1]])])
    assert joined.active.tolist() == [[3, -1], [0, 4], [2, -1]]
    assert joined.observation.tolist() == [[0, 1], [0, 1], [2, 3]]
    assert joined.next_observation.tolist() == [[1, 2], [1, 2], [3, 4]]
    assert len(joined.action) == len(joined.terminated) == 3
