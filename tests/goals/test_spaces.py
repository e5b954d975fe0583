import contextlib
import importlib
import pkgutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import protogoal
from protogoal.envs.junk import JunkSpace
from protogoal.goals.spaces import (
    BagOfWords,
    CounterThresholds,
    Factor,
    NamedCallables,
    ObjectGrid,
    OneHotFactors,
    ProtoGoalSpace,
    Union,
)


class Silent(ProtoGoalSpace):
    """Says nothing."""

    def __init__(self):
        super().__init__(4)

    name = kind = lambda self, i: "it"


class Given(Silent):
    """Says what it was told to say, in ids."""

    def __init__(self, ids):
        self.ids = ids
        super().__init__()

    def _active(self, s, a, s_next):
        return self.ids


class Dense(Given):
    """The same as a matrix."""

    def _bits(self, s, a, s_next):
        return self.ids


@settings(deadline=None)
@given(arrays(bool, st.tuples(st.integers(1, 5), st.just(4))))
def test_a_space_may_give_ids_or_a_matrix(bits):
    dense = Dense(bits)
    sparse = Given(dense.active(None, None, None))
    np.testing.assert_array_equal(sparse.bits(None, None, None), bits)
    both = Union([dense, sparse, dense])
    np.testing.assert_array_equal(both.bits(None, None, None), np.tile(bits, 3))


def test_one_hot_factors_light_one_bit_a_factor():
    space = OneHotFactors([Factor.positions("taxi", 2, 2), Factor("door", ("door open", "door shut"))], grid=(2, 2))
    bits = space.bits(None, None, np.array([[3, 0], [0, 1]]))
    assert bits.astype(int).tolist() == [[0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 0, 1]]
    assert [space.name(i) for i in (3, 4)] == ["taxi at (1,1)", "door open"]
    assert (space.kind(5), space.cell(2), space.cell(4), space.grid) == ("door", (1, 0), None, (2, 2))


def test_object_grid_names_object_and_cell():
    space = ObjectGrid(["baba", "FLAG"], 2, 3)
    planes = np.zeros((1, 2, 2, 3), np.uint8)
    planes[0, 1, 1, 2] = 1
    assert np.flatnonzero(space.bits(None, None, planes)[0]).tolist() == [11]
    assert (space.name(11), space.kind(11), space.cell(11)) == ("FLAG at (1,2)", "FLAG", (1, 2))


def test_words_are_discovered_in_reading_order_and_bounded():
    space = BagOfWords(capacity=4)
    bits = space.bits(None, None, ["You see a boulder.", b"A Boulder! water\x00junk", ""])
    assert list(space.vocabulary) == ["you", "see", "a", "boulder"]
    assert bits.astype(int).tolist() == [[1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0]]
    assert space.overflow == 1  # water
    assert space.name(3) == "word: boulder"


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=10))
def test_the_same_texts_give_the_same_vocabulary(texts):
    one, two = BagOfWords(8), BagOfWords(8)
    np.testing.assert_array_equal(one.read_all(texts), two.read_all(texts))
    two.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(one.read_all(texts), two.read_all(texts))


def test_counters_pass_their_thresholds():
    space = CounterThresholds({"health": [1, 10], "gold": [5]})
    assert space.bits(None, None, np.array([[9.0, 5.0], [10.0, 0.0]])).astype(int).tolist() == [[1, 0, 1], [1, 1, 0]]
    assert [space.name(i) for i in range(3)] == ["health ≥ 1", "health ≥ 10", "gold ≥ 5"]


def test_callables_see_the_whole_transition():
    space = NamedCallables({"moved": lambda s, a, s2: s != s2, "jumped": lambda s, a, s2: a == 3})
    assert space.bits([0, 1], [3, 0], [1, 1]).astype(int).tolist() == [[1, 1], [0, 0]]


def test_a_union_concatenates_and_picks_parts_of_a_dictionary():
    space = Union([BagOfWords(4, key="message"), CounterThresholds({"hp": [1]}, key="status")])
    bits = space.bits(None, None, {"message": ["boulder"], "status": np.array([[3.0]])})
    assert bits.astype(int).tolist() == [[1, 0, 0, 0, 1]]
    assert [space.name(0), space.name(4), space.kind(4)] == ["word: boulder", "hp ≥ 1", "hp"]
    other = Union([BagOfWords(4, key="message"), CounterThresholds({"hp": [1]}, key="status")])
    other.load_state_dict(space.state_dict())
    assert other.name(0) == "word: boulder"


@pytest.mark.parametrize(("make", "words"), [
    (lambda: OneHotFactors([Factor("x", ("a", "b"))]).bits(None, None, [[2]]), "outside its range"),
    (lambda: OneHotFactors([Factor("x", ("a", "b"))]).bits(None, None, [[0, 1]]), "1 factors"),
    (lambda: ObjectGrid(["a"], 2, 2).bits(None, None, np.zeros((1, 1, 2, 3))), "planes of shape"),
    (lambda: CounterThresholds({"x": [1]}).bits(None, None, [[float("nan")]]), "NaN"),
    (lambda: CounterThresholds({"x": [float("inf")]}), "finite"),
    (lambda: BagOfWords(0), "has 0 bits; allowed are 1…10,000,000"),
    (lambda: BagOfWords(2.5), "has 2.5 bits; allowed are 1…10,000,000"),
    (lambda: BagOfWords(float("nan")), "has nan bits; allowed are 1…10,000,000"),
    (lambda: BagOfWords(10**8), "has 100,000,000 bits; allowed are 1…10,000,000"),
    (Silent, "Silent says of no bit"),
    (lambda: Given([[0, 4]]).active(None, None, None), "the id 4; allowed are 0…3"),
    (lambda: Given([[-2]]).active(None, None, None), "the id -2; allowed are 0…3"),
    (lambda: Given([[0], [2]]).bits(None, None, None)[0, 1] or Given([[1, 1]]).active(None, None, None), "the id 1 twice"),
    (lambda: Given([[0, 1], [2, 1]]).active(None, None, None), "the id 1 after 2; ids must ascend"),
    (lambda: Given([[-1, 1]]).active(None, None, None), "the id 1 after -1"),
    (lambda: Given([0, 1]).active(None, None, None), "shape"),
    (lambda: Given([[0.0]]).active(None, None, None), "whole numbers"),
    (lambda: Dense(np.zeros((2, 3), bool)).active(None, None, None), r"bool \[N, 4\]"),
    (lambda: Dense(np.zeros((2, 4))).active(None, None, None), r"bool \[N, 4\]"),
    (lambda: BagOfWords(1).load_state_dict({"vocabulary": ["a", "b"], "overflow": 0}), "at most 1"),
])
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("space", [
    OneHotFactors([Factor.positions("taxi", 2, 2), Factor("door", ("door open", "door shut"))]),
    ObjectGrid(["baba", "FLAG"], 2, 3),
    Union([BagOfWords(3), CounterThresholds({"hp": [1, 2], "gold": [5]}), ObjectGrid(["a", "b"], 1, 2), JunkSpace(50)]),
])
def test_the_kinds_of_many_bits_are_those_of_each(space):
    some = np.arange(0, space.size, 1)
    assert list(space.kinds_of(some)) == [space.kind(i) for i in some.tolist()]
    assert list(space.kinds_of(some[1::3])) == [space.kind(i) for i in some[1::3].tolist()]


def test_room_is_made_for_what_is_usually_on():
    factors = OneHotFactors([Factor("x", ("a", "b")), Factor("y", ("c", "d"))])
    assert (factors.usual_active, BagOfWords(3).usual_active, BagOfWords(1000).usual_active) == (2, 3, 32)
    assert Union([factors, ObjectGrid(["a"], 10, 10)]).usual_active == 2 + 64


def test_every_space_of_the_package_gives_ids():
    for module in pkgutil.walk_packages(protogoal.__path__, "protogoal."):
        if module.name.split(".")[1] in ("goals", "envs"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)

    def below(cls):
        return {cls}.union(*map(below, cls.__subclasses__()))

    ours = [cls for cls in below(ProtoGoalSpace) - {ProtoGoalSpace} if cls.__module__.startswith("protogoal.")]
    assert len(ours) > 12
    for cls in ours:
        assert not any("_bits" in vars(base) for base in cls.__mro__ if base is not ProtoGoalSpace), cls
