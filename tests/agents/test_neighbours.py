"""The search for the nearest states: exact whatever the states, however they came, on any processor."""

import os
import subprocess
import sys

import numpy as np
import pytest

from protogoal.agents.agent57.neighbours import Neighbours, plain_nearest, search


def full_sort(states, query, k):
    """Of one environment."""
    least = np.sort(np.square(states.astype(float) - query.astype(float)).sum(-1))[:k]
    return np.append(least, np.full(k - len(least), np.inf))


def holding(states, held):
    neighbours = Neighbours(*states.shape)
    neighbours.load_rows(states, np.asarray(held))
    return neighbours


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("sizes", [(3, 60, 8), (5, 333, 32), (1, 1, 1), (2, 32, 5), (2, 2000, 3)])
def test_nearest_distances_are_those_of_a_full_sort(sizes, k):
    rng = np.random.default_rng(0)
    n, capacity, size = sizes
    states, query = rng.normal(size=sizes).astype(np.float32), rng.normal(size=(n, size)).astype(np.float32)
    held = np.minimum([capacity, 4, 0, 33, 132][:n], capacity)
    found = holding(states, held).nearest(query, k)
    for i in range(n):
        np.testing.assert_allclose(found[i], full_sort(states[i, : held[i]], query[i], k), rtol=1e-5)


ODD_STATES = {
    "few that repeat": lambda x: np.round(x),
    "all the same": lambda x: np.ones_like(x),
    "all zero": lambda x: np.zeros_like(x),
    "all with one code": lambda x: 1000.0 + 0.01 * x,
    "tight clusters": lambda x: np.round(x) + 1e-4 * x,
    "one that is huge": lambda x: np.where(np.arange(len(x))[:, None] == 7, 1e15, x),
    "all huge": lambda x: 1e15 * x,
    "all tiny": lambda x: 1e-15 * x,
}


@pytest.mark.parametrize("states", ODD_STATES.values(), ids=ODD_STATES)
def test_the_search_is_exact_whatever_the_states(states):
    x = states(np.random.default_rng(0).normal(size=(700, 6))).astype(np.float32)
    for query in (x[5], x[500] + 0.3, np.zeros(6, np.float32), np.full(6, 1e15, np.float32)):
        found = holding(x[None], [700]).nearest(query[None].astype(np.float32), 10)[0]
        np.testing.assert_allclose(found, full_sort(x, query.astype(np.float32), 10), rtol=1e-5, atol=1e-36)


def test_states_put_one_by_one_are_found_while_they_grow_and_wrap_and_are_forgotten():
    rng = np.random.default_rng(0)
    neighbours, kept = Neighbours(2, 50, 4), [[], []]
    for t in range(300):
        state = (rng.normal(size=(2, 4)) * 1.02**t).astype(np.float32)  # ever larger: units must follow
        place = np.array([len(kept[0]) % 50, len(kept[1]) % 50])
        neighbours.put(place, state)
        for i in range(2):
            kept[i].append(state[i])
        query = state + np.float32(0.1)
        for i, found in enumerate(neighbours.nearest(query, 6)):
            np.testing.assert_allclose(found, full_sort(np.array(kept[i][-50:]), query[i], 6), rtol=1e-5)
        if t == 100:
            neighbours.clear(np.array([1]))
            kept[1] = []
            assert neighbours.held.tolist() == [50, 0]


def test_few_states_are_compared_exactly():
    rng = np.random.default_rng(0)
    states, query = rng.normal(size=(1, 5000, 32)).astype(np.float32), rng.normal(size=32).astype(np.float32)
    places = holding(states, [5000]).candidates(0, query, 10)
    assert 10 <= len(places) < 100
    nearest = np.square(states[0] - query).sum(-1).argsort()[:10]
    assert set(nearest) <= set(places)


def test_where_the_search_cannot_be_compiled_a_plain_one_finds_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    states, query = rng.normal(size=(4, 70, 5)).astype(np.float32), rng.normal(size=(4, 5)).astype(np.float32)
    held = [70, 9, 10, 0]
    compiled = holding(states, held).nearest(query, 9)
    search.cache_clear()
    monkeypatch.setitem(sys.modules, "protogoal.agents.agent57.neighbours_compiled", None)  # its import fails
    try:
        with pytest.warns(UserWarning, match="cannot be compiled"):
            plain = holding(states, held).nearest(query, 9)
        assert search() is plain_nearest
    finally:
        search.cache_clear()
    np.testing.assert_allclose(plain, compiled, rtol=1e-5)


def test_states_come_back_as_they_were_put():
    states = np.random.default_rng(0).normal(size=(3, 70, 4)).astype(np.float32)
    np.testing.assert_array_equal(holding(states, [70, 70, 70]).rows(), states)
    some = holding(states, [33, 1, 0]).rows()
    assert some.shape == (3, 33, 4)
    np.testing.assert_array_equal(some[0], states[0, :33])
    np.testing.assert_array_equal(some[1, 0], states[1, 0])
    assert not some[1, 1:].any()
    assert not some[2].any()


def test_distances_are_the_same_on_the_plainest_processor(tmp_path):
    script = """
import numpy as np
from protogoal.agents.agent57.neighbours import Neighbours
rng = np.random.default_rng(0)
states, query = rng.normal(size=(2, 500, 32)).astype(np.float32), rng.normal(size=(2, 32)).astype(np.float32)
neighbours = Neighbours(*states.shape)
neighbours.load_rows(states, np.array([500, 77]))
for held, x, q, found in zip([500, 77], states, query, neighbours.nearest(query, 10)):
    np.testing.assert_allclose(found, np.sort(np.square(x[:held] - q).sum(-1))[:10], rtol=1e-5)
"""
    environment = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
