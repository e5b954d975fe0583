import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protogoal.goals.spaces import BagOfWords, CounterThresholds, Factor, NamedCallables, ObjectGrid, OneHotFactors, Union


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


@given(st.lists(st.text(max_size=30), max_size=10))
def test_the_same_texts_give_the_same_vocabulary(texts):
    one, two = BagOfWords(8), BagOfWords(8)
    np.testing.assert_array_equal(one.bits_from_text(texts), two.bits_from_text(texts))
    two.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(one.bits_from_text(texts), two.bits_from_text(texts))


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
    (lambda: BagOfWords(0), "at least 1 bit"),
    (lambda: BagOfWords(1).load_state_dict({"vocabulary": ["a", "b"], "overflow": 0}), "at most 1"),
])
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(ValueError, match=words):
        make()
