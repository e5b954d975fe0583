"""Tests use what the package offers: names that begin with an underscore are its own business, but for a few that are listed."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

# file → private names it may use, and why
LISTED: dict[str, dict[str, str]] = {
    "agents/test_agent57_agent.py": {"_targets": "nothing public tells the targets; compared with a slow version"},
    "deep/test_device.py": {"_python_dispatch": "PyTorch's own way to see every operation", "_pytree": "the same"},
    "envs/test_minihack.py": {"_obs_buffers": "NLE's own: the screens that it fills", "_pynethack": "the same"},
    "record/test_store.py": {"_connection": "a disk that is full, as SQLite sees it"},
    "run/test_ray_limits.py": {"_private": "Ray's own: the address of a cluster that another test left"},
    "torture/test_fuzz_commands.py": {"_SubParsersAction": "argparse's own: the grammar of the command", "_actions": "the same"},
}
NAMING = {"setattr", "getattr", "delattr"}
OF_OTHERS = {"_replace", "_asdict", "_fields", "_exit"}  # of named tuples and of os: they have no other names


def is_private(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.startswith("_") and not last.startswith("__") and last != "_" and last not in OF_OTHERS


def private_names(tree: ast.Module) -> set[str]:
    """Private names of something else than `self`: attributes, imports, and words given to `setattr` and its like."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            is_parents = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "super"
            found |= {node.attr} if not is_own and not is_parents else set()
        elif isinstance(node, ast.ImportFrom):
            found |= {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in NAMING:
            words = {word.value for word in node.args[:2] if isinstance(word, ast.Constant) and isinstance(word.value, str)}
            found |= {word.rpartition(".")[2] for word in words}
    return {name for name in found if is_private(name)}


@pytest.mark.parametrize("file", sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py")))
def test_a_test_uses_public_names_or_such_as_are_listed(file):
    used = private_names(ast.parse((TESTS / file).read_text()))
    listed = set(LISTED.get(file, {}))
    assert not used - listed, f"tests/{file} uses private names: {sorted(used - listed)}"
    assert not listed - used, f"tests/{file} uses these no more, they need not be listed: {sorted(listed - used)}"


@pytest.mark.parametrize("code", ["x._y", "x()._y", "from a import _y", "import a._y", "setattr(x, '_y', 1)", "setattr('a._y', 1)"])
def test_a_private_name_is_found(code):
    assert private_names(ast.parse(code)) == {"_y"}


@pytest.mark.parametrize("code", ["self._y", "super()._y()", "x.__y__", "x._replace(a=1)", "_y = 1", "for _ in x: pass"])
def test_what_is_ones_own_is_not(code):
    assert private_names(ast.parse(code)) == set()
