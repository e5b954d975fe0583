"""Every `# DEVIATION(Dn)` in the code has an entry Dn in PAPER.md, and the other way round."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def in_code() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "protogoal").rglob("*.py")):
        for name in re.findall(r"DEVIATION\((D\d+)\)", path.read_text()):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    return found


def in_paper() -> list[str]:
    return re.findall(r"^\*\*(D\d+)\.", (ROOT / "PAPER.md").read_text(), re.MULTILINE)


def test_every_deviation_in_the_code_is_explained_in_the_map_of_the_paper():
    explained = set(in_paper())
    missing = {name: files for name, files in in_code().items() if name not in explained}
    assert not missing, f"PAPER.md has no entry for {missing}"


def test_every_deviation_in_the_map_of_the_paper_is_marked_in_the_code():
    missing = [name for name in in_paper() if name not in in_code()]
    assert not missing, f"no # DEVIATION(…) in the code for {missing}"


def test_deviations_are_numbered_once():
    names = in_paper()
    assert len(names) == len(set(names))


def test_every_file_that_the_map_names_exists():
    named = re.findall(r"`((?:protogoal|tests)/[^`]*)`", (ROOT / "PAPER.md").read_text())
    assert len(named) > 30
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing, f"PAPER.md names {missing}"


def defined(path: Path) -> set[str]:
    """Functions and classes of a file, and methods as `Class.method`."""
    top = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {node.name for node in top} | {f"{node.name}.{inner.name}" for node in top if isinstance(node, ast.ClassDef)
                                          for inner in node.body if isinstance(inner, ast.FunctionDef)}


def test_every_function_that_the_map_names_is_in_its_file():
    """`name`, `Class.name` (D1): `protogoal/…/file.py`"""
    rows = re.findall(r"((?:`[\w.]+`(?: \(D\d+\))?(?:, )?)+): `(protogoal/[\w/]+\.py)`", (ROOT / "PAPER.md").read_text())
    named = [(name, file) for names, file in rows for name in re.findall(r"`([\w.]+)`", names)]
    assert len(named) > 50
    assert len(rows) == len(re.findall(r": `protogoal/", (ROOT / "PAPER.md").read_text()))  # none is overlooked
    missing = [f"{name} in {file}" for name, file in named if name not in defined(ROOT / file)]
    assert not missing, f"PAPER.md names {missing}"
