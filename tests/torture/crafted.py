"""Checkpoints as an attacker would craft them: one leaf of the state is wild, and all checksums are right.

`python crafted.py RUN STEPS FIRST LAST` resumes RUN up to STEPS from the crafted checkpoints of seeds FIRST…LAST − 1 and prints a
line for each: seed, exit code, what was done, what was said. It runs in a process of its own, as a kernel that is led astray
may take the process with it.
"""

import contextlib
import copy
import io
import json
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

WILD_NUMBERS = [-1, -5, 10**6, 2**31, 2**62, 10**40, -(10**40), 0.5, 1e300, "x", None, [], {}, [1, 2], {"a": 1}, True]


def leaves(tree, place=()):
    """Every place of a state, groups too."""
    if place:
        yield place
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from leaves(tree[key], (*place, key))


def wild_array(array, rng):
    """The array with something wrong, and what."""
    array = np.array(array)
    kind = rng.integers(8)
    extremes = {"i": [-5, -1, 10**9, 2**62], "u": [255, 2**32], "f": [np.nan, np.inf, -1e30, 1e30], "b": [True]}
    value = rng.choice(extremes.get(array.dtype.kind, [0]))
    with np.errstate(all="ignore"):
        if kind <= 2 and array.size:
            array.flat[rng.integers(array.size)] = np.array(value).astype(array.dtype)
            return array, f"one element {value}"
        if kind == 3:
            array[...] = np.array(value).astype(array.dtype)
            return array, f"all elements {value}"
    if kind == 4:
        return array[..., None], "another axis"
    if kind == 5:
        return array[: len(array) // 2] if array.ndim else np.zeros(3), "cut"
    if kind == 6:
        return array.astype(rng.choice(["U5", "f8", "i8", "c16", "M8[s]", "?"])), "another type"
    return np.zeros((0, *array.shape[1:]), array.dtype), "empty"


def craft(state, seed):
    """A copy of a state with one wild place; what was done."""
    rng = np.random.default_rng(seed)
    state = copy.deepcopy(state)
    places = list(leaves(state))
    heavy = [place for place in places if len(place) > 1 and "rng" not in place and "optimizer" not in place]
    place = (heavy or places)[rng.integers(len(heavy or places))]
    holder = state
    for key in place[:-1]:
        holder = holder[key]
    value = holder[place[-1]]
    words = "/".join(map(str, place))
    if rng.random() < 0.1 and isinstance(holder, dict):
        del holder[place[-1]]
        return state, f"{words}: gone"
    if isinstance(value, np.ndarray):
        holder[place[-1]], what = wild_array(value, rng)
        return state, f"{words}: {what}"
    holder[place[-1]] = WILD_NUMBERS[rng.integers(len(WILD_NUMBERS))]
    return state, f"{words}: {holder[place[-1]]!r}"


def attempt(run, steps, seed):
    """Resume from a crafted checkpoint: exit code, what was done, what was said."""
    from protogoal.cli import main
    from protogoal.run import checkpoint
    from protogoal.run.directory import RunDirectory

    opened = RunDirectory.open(run)
    step, state = checkpoint.load_latest(opened.checkpoints)
    state, done = craft(state, seed)
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "run"
        shutil.copytree(run, copied)
        shutil.rmtree(copied / "checkpoints")
        checkpoint.save(copied / "checkpoints", step, state, about=opened.about)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                code = main(["resume", str(copied), "--steps", str(steps)])
            except BaseException as error:
                code, _ = -1, said.write(f"{type(error).__name__}: {error}")
    lines = [line for line in said.getvalue().splitlines() if "steps" not in line or "protogoal:" in line]
    return code, done, lines


if __name__ == "__main__":
    for seed in range(int(sys.argv[3]), int(sys.argv[4])):
        print(json.dumps([seed, "begins"]), flush=True)
        print(json.dumps([seed, *attempt(Path(sys.argv[1]), int(sys.argv[2]), seed)]), flush=True)
