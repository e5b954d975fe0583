"""How the network sees the parts of an observation."""

import numpy as np
import pytest
from gymnasium import spaces

from protogoal.envs.readers import kind_of, reader, shrunk
from protogoal.goals.derived.pictures import PictureCells


def test_the_channels_of_a_grid_have_ids_of_their_own():
    space = spaces.Box(np.zeros((2, 3, 2), np.uint8), np.tile([4, 9], (2, 3, 1)).astype(np.uint8), dtype=np.uint8)
    spec, read = reader("view", space)
    assert (spec.kind, spec.shape, spec.num_values, spec.dtype) == ("grid", (2, 2, 3), 5 + 10, np.uint8)
    array = np.zeros((1, 2, 3, 2), np.uint8)
    array[0, 1, 2] = [4, 7]
    ids = read(array)
    assert ids[0, :, 1, 2].tolist() == [4, 5 + 7]
    assert ids[0, :, 0, 0].tolist() == [0, 5]


def test_a_grid_with_negative_values_begins_at_its_least():
    spec, read = reader("board", spaces.Box(-2, 3, (2, 2), np.int64))
    assert read(np.full((1, 2, 2), -2)).tolist() == [[[0, 0], [0, 0]]]
    assert spec.num_values == 6


def test_large_pictures_become_grey_means_of_blocks():
    picture = np.zeros((1, 210, 160, 3), np.uint8)
    picture[0, :4, :4] = [30, 60, 90]
    spec, read = reader("screen", spaces.Box(0, 255, (210, 160, 3), np.uint8))
    small = read(picture)
    assert small.shape == (1, *spec.shape) == (1, 1, 52, 40)
    assert small[0, 0, 0, 0] == 60
    assert small.sum() == 60
    assert shrunk(np.full((1, 1, 5, 5), 7, np.uint8), 2, 2).tolist() == [[[[7, 7], [7, 7]]]]


def test_numbers_are_measured_by_the_first_steps():
    moments = {"x": (np.array([10.0, 0.0]), np.array([2.0, 1.0]))}
    _, read = reader("x", spaces.Box(-np.inf, np.inf, (2,)), lambda: moments)
    np.testing.assert_allclose(read(np.array([[12.0, 0.0], [10.0, 1e6]])), [[np.arcsinh(1), 0], [0, np.arcsinh(1e6)]], rtol=1e-6)


def test_words_are_the_same_ids_wherever_they_stand():
    spec, read = reader("said", spaces.Text(20))
    texts = [b"open the door", b"The door: open!", b""]
    array = np.zeros((3, 20), np.uint8)
    for row, text in zip(array, texts, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    ids = read(array)
    assert ids.shape == (3, *spec.shape)
    assert ids[0].tolist() == ids[1].tolist()
    assert (ids[0] >= 0).sum() == 3
    assert (ids[2] == -1).all()


@pytest.mark.parametrize(("shape", "channels", "small"), [
    ((4, 84, 84), 4, (42, 42)), ((84, 84, 4), 4, (42, 42)), ((8, 84, 84), 8, (42, 42)), ((2, 40, 40), 2, (40, 40)),
    ((4, 84, 84, 3), 4, (42, 42)), ((4, 3, 84, 84), 4, (42, 42)), ((4, 84, 84, 1), 4, (42, 42)), ((2, 40, 40, 3), 6, (40, 40)),
    ((84, 84, 3), 1, (42, 42)), ((64, 64, 3), 3, (64, 64)),
])
def test_frames_of_a_stack_stay_apart_and_only_colours_become_grey(shape, channels, small):
    spec, read = reader("screen", spaces.Box(0, 255, shape, np.uint8))
    assert (spec.kind, spec.shape) == ("picture", (channels, *small))
    assert read(np.full((2, *shape), 9, np.uint8)).tolist() == np.full((2, channels, *small), 9).tolist()


def test_the_last_frame_is_the_newest_and_has_the_goals():
    space = PictureCells("picture")
    for shape in ((4, 40, 40), (40, 40, 4), (4, 40, 40, 3), (4, 3, 40, 40)):
        stack = np.zeros((1, *shape), np.uint8)
        frames = np.moveaxis(stack, 3 if shape == (40, 40, 4) else 1, 1)
        frames[:, -1] = 255
        assert {space.name(int(i))[-6:] for i in space.active(None, None, stack)[0]} == {"7 of 7"}


def test_fractions_with_many_channels_are_numbers_while_they_are_few():
    assert kind_of(spaces.Box(0, 1, (16, 32, 32), np.float32)) == "numbers"
    assert kind_of(spaces.Box(0, 1, (8, 84, 84), np.float32)) == "picture"
