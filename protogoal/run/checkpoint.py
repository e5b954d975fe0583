"""Checkpoints: the whole state of a run as arrays and JSON, from which it goes on as if it had never stopped.

checkpoints/000000120000/ holds state.json (numbers, strings, lists, and the places of the arrays), arrays.npz (plain
arrays, never objects) and manifest.json (format, checksums, the revision of the record that it goes on from). It is written
under a temporary name and renamed, so it is there whole or not at all; the last two are kept. What is damaged all the same (a
checksum differs), or goes on from more than the record holds, is passed over with a warning for the one before; one of another
run or version is refused. Nothing in a checkpoint can execute code: no pickle, `allow_pickle` is off.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from protogoal import __version__
from protogoal.files import synced, write_whole
from protogoal.goals.stored import stored_number
from protogoal.record.terms import printable
from protogoal.run.checksums import KEY, Changed, seal, unseal
from protogoal.run.thin import THIN, thick, thin

FORMAT = 4  # 1 had no checksum of the manifest, and no revision; 2 every row of a goal table; 3 no null of earlier actions
KEPT = 2
MOST_TEXT = 10**8  # bytes of a saved agent's texts
ARRAY = "$array"  # {"$array": "replay/actions"} stands in state.json where an array belongs


class Mismatch(ValueError):
    """A whole checkpoint, but of another run or another version of this package."""


def save(
    folder: Path, step: int, state: Mapping[str, Any], about: Mapping[str, str] | None = None, revision: int = 0
) -> Path:
    """Write the state of a run at `step`; nested mappings of arrays and JSON-able values.

    `about` says which run this is (its preset and so on); `load_latest` refuses a checkpoint that says otherwise. `revision` is
    that of the record as it was then.
    """
    arrays: dict[str, np.ndarray] = {}
    tree = _split(state, "", arrays)
    target = folder / f"{step:012d}"
    temporary = folder / f".writing-{step:012d}-{os.getpid()}"
    try:
        folder.mkdir(exist_ok=True)
        for stale in folder.iterdir():
            if re.fullmatch(r"\.writing-\d{12,}-\d+", stale.name):
                shutil.rmtree(stale, ignore_errors=True)
        temporary.mkdir()
        with synced(temporary / "arrays.npz") as file:
            _write_arrays(file, arrays)
        with synced(temporary / "state.json") as file:
            file.write(json.dumps(tree).encode())
        checksums = {name: _checksum(temporary / name) for name in ("arrays.npz", "state.json")}
        manifest = {"format": FORMAT, "version": __version__, "about": dict(about or {}), "step": step, "revision": revision,
                    "checksums": checksums}
        with synced(temporary / "manifest.json") as file:
            file.write(seal(manifest).encode())
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
        _sync(folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise ValueError(f"cannot write a checkpoint to {folder}: {error.strerror}") from None
    for old in _all(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def save_weights(path: Path, weights: Mapping[str, np.ndarray]) -> None:
    """The weights alone, as safetensors, for whoever wants to read them with something else."""
    from safetensors.numpy import save as encode

    if wrong := [name for name, array in weights.items() if np.asarray(array).dtype.kind not in "fiub"]:
        raise ValueError(f"the weights {wrong[0]} are no numbers that can be learned")
    data = encode({name: np.asarray(array, order="C") for name, array in weights.items()})
    try:
        if not path.exists() or path.read_bytes() != data:
            write_whole(path, data)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None


def write_file(path: Path, about: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """A state as one file, an .npz with two texts in it: about.json and state.json."""
    arrays: dict[str, np.ndarray] = {}
    tree = _split(state, "", arrays)
    buffer = io.BytesIO()
    _write_arrays(buffer, arrays)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.json", json.dumps(about))
        archive.writestr("state.json", json.dumps(tree))
    try:
        write_whole(path, buffer.getvalue())
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `write_file` wrote, as (about, state); a ValueError in one line where it is something else."""
    try:
        with zipfile.ZipFile(path) as archive:
            if _unpacks_to_more(archive):
                raise ValueError("its arrays are compressed")
            about, tree = (json.loads(archive.read(name)) for name in ("about.json", "state.json"))
        with np.load(path, allow_pickle=False) as arrays:
            return about, _join(tree, arrays)
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no saved agent, or is damaged ({type(error).__name__})") from None


def _unpacks_to_more(archive: zipfile.ZipFile) -> bool:
    """Whether reading it takes much more memory than the file is long: arrays are never compressed, and texts are short."""
    members = archive.infolist()
    packed = [member for member in members if member.compress_type != zipfile.ZIP_STORED]
    return any(member.filename.endswith(".npy") for member in packed) or sum(member.file_size for member in packed) > MOST_TEXT


def load_latest(
    folder: Path, about: Mapping[str, str] | None = None, revision: int | None = None
) -> tuple[int, dict[str, Any]] | None:
    """The newest checkpoint that is whole, as (step, state); None where there is none.

    `revision`: that of the record; a checkpoint that goes on from a later one is taken only where no other is left. A
    ValueError where none of those that are there can be read, or where one belongs to another run or version: a run must
    not begin again in silence.
    """
    ahead = None
    trouble = ""
    for path in reversed(_all(folder)):
        try:
            found = load(path, about)
            if revision is None or recorded(folder, found[0]) <= revision:
                return found
            trouble = f"the record has lost its end: checkpoint {path} goes on from what is no longer in it"
            ahead = ahead or found
        except Mismatch:
            raise
        except ValueError as error:
            trouble = printable(str(error))
        if path == _all(folder)[0]:
            break
        warnings.warn(f"{trouble}; trying the one before", stacklevel=2)
    if ahead is not None:
        warnings.warn(f"{trouble}; no other is left, so what it lost stays lost", stacklevel=2)
    elif trouble:
        raise ValueError(f"{trouble}; no other is left (to start again, remove {folder})")
    return ahead


def recorded(folder: Path, step: int) -> int:
    """The revision of the record that the checkpoint of that step goes on from."""
    return stored_number(unseal((folder / f"{step:012d}" / "manifest.json").read_bytes()).get("revision", 0), "revision")


def forget_after(folder: Path, step: int) -> None:
    """Removes checkpoints later than `step`: they were passed over, and the run lives those steps again."""
    for path in _all(folder):
        if int(path.name) > step:
            shutil.rmtree(path, ignore_errors=True)


def load(path: Path, about: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    """One checkpoint as (step, state); a ValueError in one line where it is damaged or of another format."""
    try:
        manifest = unseal((path / "manifest.json").read_bytes())
        if manifest["format"] != FORMAT:
            raise Mismatch(f"checkpoint {path} has format {manifest['format']} (written by protogoal "
                           f"{manifest.get('version', 'of another version')}); this is {__version__} and reads {FORMAT}")
        if KEY not in manifest or f"{manifest['step']:012d}" != path.name:
            raise ValueError(f"checkpoint {path} is damaged: its manifest has no checksum, or is another's")
        for key, expected in (about or {}).items():
            said = manifest.get("about", {}).get(key, expected)
            if said != expected:
                raise Mismatch(f"checkpoint {path} belongs to another run: its {key} is {said}, this run's is {expected}")
        for name, expected in manifest["checksums"].items():
            if Path(name).name != name or _checksum(path / name) != expected:
                raise ValueError(f"checkpoint {path} is damaged: {name} has the wrong checksum")
        tree = json.loads((path / "state.json").read_bytes())
        with zipfile.ZipFile(path / "arrays.npz") as archive:
            if _unpacks_to_more(archive):
                raise ValueError(f"checkpoint {path} is damaged: arrays.npz is compressed, which no run writes")
        with np.load(path / "arrays.npz", allow_pickle=False) as arrays:
            return int(manifest["step"]), _join(tree, arrays)
    except Changed:
        raise ValueError(f"checkpoint {path} is damaged: manifest.json has the wrong checksum") from None
    except (OSError, LookupError, TypeError, AttributeError, EOFError, MemoryError, OverflowError, RuntimeError,
            json.JSONDecodeError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise ValueError(f"checkpoint {path} is damaged: {type(error).__name__}") from None


def _all(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first: directories with exactly such a name, and nothing that a user put beside them."""
    found = [path for path in folder.iterdir() if re.fullmatch(r"[0-9]{12,}", path.name)] if folder.is_dir() else []
    return sorted((path for path in found if path.is_dir()), key=lambda path: int(path.name))


def _split(value: Any, place: str, arrays: dict[str, np.ndarray]) -> Any:
    """The value with its arrays moved into `arrays` under their place in the tree."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ValueError(f"{place} holds Python objects; a checkpoint takes plain arrays and JSON only")
        parts = thin(value)
        if parts is not None:
            arrays.update({f"{place}/{part}": array for part, array in parts.items()})
            return {THIN: place, "size": len(value)}
        arrays[place] = value
        return {ARRAY: place}
    if isinstance(value, Mapping):
        return {str(key): _split(item, f"{place}/{key}" if place else str(key), arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_split(item, f"{place}/{i}", arrays) for i, item in enumerate(value)]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{place} is of type {type(value).__name__}; a checkpoint takes plain arrays and JSON only")


def _join(tree: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(tree, dict):
        if set(tree) == {THIN, "size"}:
            return thick(tree["size"], {part: arrays[f"{tree[THIN]}/{part}"] for part in ("blank", "at", "rows")})
        return arrays[tree[ARRAY]] if set(tree) == {ARRAY} else {key: _join(item, arrays) for key, item in tree.items()}
    return [_join(item, arrays) for item in tree] if isinstance(tree, list) else tree


def _write_arrays(file: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """An .npz, as numpy.savez writes it, for any names."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _sync(folder: Path) -> None:
    """A rename in `folder` is on disk after this; Windows cannot be asked that of a directory."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum(path: Path) -> str:
    digest = hashlib.blake2b()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
