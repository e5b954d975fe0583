import io
import json
import os
import pickle
import zipfile
from hashlib import blake2b

import numpy as np
import pytest

from protogoal.run import checkpoint
from protogoal.run.thin import thick, thin


def state(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "network": {"weight": rng.normal(size=(3, 4)).astype(np.float32), "bias": np.zeros(0)},
        "replay": {"bits": rng.random((5, 2)) < 0.5, "cursor": np.int64(7)},
        "rng": rng.bit_generator.state,
        "words": ["boulder", "water"], "empty": {}, "nothing": None, "rate": 0.1, "flag": True,
        "envs": [{"board": np.arange(3)}, {"board": np.arange(4)}],
    }


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return a == b


def test_a_round_trip_gives_the_same_arrays_and_values(tmp_path):
    checkpoint.save(tmp_path, 120, state())
    step, loaded = checkpoint.load_latest(tmp_path)
    assert step == 120
    expected = state()
    expected["replay"]["cursor"] = 7
    assert same(expected, loaded)
    one, two = np.random.default_rng(5), np.random.default_rng(6)
    one.bit_generator.state, two.bit_generator.state = loaded["rng"], state()["rng"]
    assert one.random() == two.random()


def test_the_last_two_are_kept_and_no_scrap_is_left(tmp_path):
    (tmp_path / ".writing-000000000001-99").mkdir()
    for step in (1, 20, 300):
        checkpoint.save(tmp_path, step, {"step": step})
    assert sorted(os.listdir(tmp_path)) == ["000000000020", "000000000300"]
    assert checkpoint.load_latest(tmp_path)[0] == 300


@pytest.mark.parametrize("name", ["arrays.npz", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, name, damage):
    checkpoint.save(tmp_path, 1, state(1))
    file = checkpoint.save(tmp_path, 2, state(2)) / name
    data = bytearray(file.read_bytes())
    if damage == "truncate":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        data[len(data) // 2] ^= 255
        file.write_bytes(data)
    else:
        file.unlink()
    with pytest.warns(UserWarning, match="trying the one before"):
        step, loaded = checkpoint.load_latest(tmp_path)
    assert step == 1
    assert same(state(1)["network"], loaded["network"])


def test_no_checkpoint_is_none(tmp_path):
    assert checkpoint.load_latest(tmp_path / "nothing") is None


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_pickle_in_a_checkpoint_is_refused_and_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "checkpoints"
    path = checkpoint.save(folder, 1, {"x": np.zeros(3)})
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path / "arrays.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue())
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["checksums"]["arrays.npz"] = blake2b((path / "arrays.npz").read_bytes()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest | {"checksum": None}))
    with pytest.raises(ValueError, match="allow_pickle"):
        checkpoint.load(path)
    (path / "arrays.npz").write_bytes(pickle.dumps(Bomb()))
    manifest["checksums"]["arrays.npz"] = blake2b((path / "arrays.npz").read_bytes()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest | {"checksum": None}))
    with pytest.raises(ValueError, match=r"damaged|pickle"):
        checkpoint.load(path)
    assert not (tmp_path / "exploded").exists()


def test_arrays_that_would_unpack_to_more_than_was_written_are_refused(tmp_path):
    path = checkpoint.save(tmp_path, 1, {"x": np.zeros(9_000)})
    with zipfile.ZipFile(path / "arrays.npz") as archive:
        array = archive.read("x.npy")
    with zipfile.ZipFile(path / "arrays.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", array)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["checksums"]["arrays.npz"] = blake2b((path / "arrays.npz").read_bytes()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest | {"checksum": None}))
    with pytest.raises(ValueError, match=r"arrays\.npz is compressed"):
        checkpoint.load(path)
    saved = tmp_path / "agent.npz"
    checkpoint.write_file(saved, {}, {"x": np.zeros(9)})
    assert checkpoint.read_file(saved)[1]["x"].shape == (9,)
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("y.npy", array)
    with pytest.raises(ValueError, match="is no saved agent, or is damaged"):
        checkpoint.read_file(saved)
    rows = {"blank": np.ones(1_000), "at": np.zeros(0, np.int32), "rows": np.zeros((0, 1_000))}
    with pytest.raises(ValueError, match=r"4,000,000 of 8,000 bytes; at most"):
        thick(4_000_000, rows)


@pytest.mark.parametrize("value", [np.array([object()]), {1, 2}, lambda: 0])
def test_anything_but_arrays_and_json_is_refused(tmp_path, value):
    with pytest.raises(ValueError, match="plain arrays and JSON"):
        checkpoint.save(tmp_path, 1, {"a": {"b": value}})
    assert not list(tmp_path.glob("[0-9]*"))


@pytest.mark.parametrize("array", [
    np.full(30_000, np.nan), np.zeros((20_000, 3), np.int16), np.arange(12_000), np.arange(12_000) % 3 == 0, np.zeros(5),
    np.zeros(()),
])
def test_arrays_that_are_mostly_one_row_come_back_whole(tmp_path, array):
    if array.ndim and array.dtype.kind != "b" and len(array) > 10_000:
        array[7] = 5
    _, state = checkpoint.load(checkpoint.save(tmp_path / "c", 1, {"it": array}))
    np.testing.assert_array_equal(state["it"], array)
    assert state["it"].dtype == array.dtype


def test_rows_of_nothing_are_not_written(tmp_path):
    rare = np.zeros((1_000_000, 4))
    rare[[3, 999_999]] = 1.0
    path = checkpoint.save(tmp_path / "c", 1, {"rare": rare})
    assert sum(file.stat().st_size for file in path.iterdir()) < 5_000


@pytest.mark.parametrize(("change", "words"), [
    ({"size": 10**12}, "number of rows"), ({"size": 5}, "places of rows"), ({"rows": np.zeros((2, 3))}, "blank one")])
def test_thin_arrays_that_do_not_fit_together_are_refused(change, words):
    rare = np.zeros((20_000, 4))
    rare[[3, 9_999]] = 1.0
    parts = {"size": len(rare)} | thin(rare) | change
    with pytest.raises(ValueError, match=words):
        thick(parts.pop("size"), parts)
