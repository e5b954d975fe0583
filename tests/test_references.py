"""Docstrings and pages name modules, functions and fields in backquotes: what they name is there."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest

import protogoal
from protogoal.config import DeepConfig, TabularConfig
from protogoal.settings import hints_of

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "protogoal"
DOTTED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`")
OTHERS = {"np", "nn", "gymnasium", "ray"}
"""Modules of other libraries."""
VARIABLES = {"agent", "config", "env", "exploration", "pge", "settings", "space"}
"""What examples and formulas speak of; and the section whose fields an agent has."""
DATA = (".csv", ".db", ".json", ".toml", ".txt")
OF_A_USER = {"my_module.py"}


def names_of(path: Path) -> dict[str, set[str]]:
    """What a module has at its top, and of each class what it has."""
    found: dict[str, set[str]] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {getattr(part, "attr", getattr(part, "name", getattr(part, "id", ""))) for part in ast.walk(node)}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = set()
        else:
            seen = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
            for name in (*seen, *(alias.asname or alias.name for alias in getattr(node, "names", ()))):
                found.setdefault(name, set())
    return found


MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): names_of(path)
           for path in PACKAGE.rglob("*.py")}
FILES = {path.name for folder in ("protogoal", "examples", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")}


def is_field(section: str, name: str) -> bool:
    """Whether it is a field of a configuration: `learner.batch_size`."""
    kinds = [hints_of(config).get(section) for config in (DeepConfig, TabularConfig)]
    return any(name in {f.name for f in dataclasses.fields(kind)} for kind in kinds if dataclasses.is_dataclass(kind))


def is_there(dotted: str) -> bool:
    """Whether the package has it, however much of its path is told."""
    parts = dotted.split(".")
    if dotted.endswith((".py", *DATA)):
        return dotted in FILES | OF_A_USER or dotted.endswith(DATA)
    if parts[0] in OTHERS | VARIABLES or is_field(*parts[:2]) or (parts[0] == "protogoal" and parts[1] in protogoal.__all__):
        return True
    for k in range(len(parts), -1 if parts[0][0].isupper() else 0, -1):  # a class alone says nothing of its module
        for names in (names for module, names in MODULES.items() if not k or f".{module}".endswith("." + ".".join(parts[:k]))):
            rest = parts[k:]
            if not rest or (rest[0] in names and (len(rest) == 1 or (k and not names[rest[0]]) or rest[1] in names[rest[0]])):
                return True
    return False


@pytest.mark.parametrize("file", sorted(
    path.relative_to(ROOT).as_posix() for path in [*PACKAGE.rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name != "CHANGELOG.md"))
def test_what_is_named_is_there(file):
    missing = [name for name in DOTTED.findall((ROOT / file).read_text()) if not is_there(name)]
    assert not missing, f"{file} names {missing}, which there are not"


@pytest.mark.parametrize("name", ["own.space_of", "act.Actress", "deep.act.Actor.colect", "Actor.colect", "Words.agree",
                                  "learner.batchsize", "protogoal.trian", "gone.py"])
def test_what_is_not_there_is_found(name):
    assert not is_there(name)
