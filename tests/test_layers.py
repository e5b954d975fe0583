"""Who may import whom: goals settings alone; tabular, deep and envs goals; agents those; run agents; the command line run."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "protogoal"

# layer → layers it may import, besides itself
ALLOWED: dict[str, set[str]] = {
    "registry": set(),  # names alone: what they stand for is loaded when it is asked for
    "files": set(),
    "settings": {"registry"},
    "goals": {"settings"},
    "envs": {"files", "goals"},
    "tabular": {"goals", "settings"},
    "deep": {"goals", "envs", "settings"},  # envs.vector: the interface that actors step
    "config": {"registry", "settings", "goals", "tabular", "deep"},
    "domains": {"registry", "settings", "goals", "envs", "deep", "config"},
    "presets": {"registry", "settings", "goals", "deep", "config"},
    "agents": {"settings", "goals", "envs", "deep", "config"},
    "record": {"files", "goals"},
    "run": {"files", "registry", "settings", "goals", "envs", "tabular", "deep", "config", "domains", "agents", "record"},
    "experiments": {"files", "registry", "settings", "goals", "envs", "tabular", "deep", "config", "domains", "presets", "agents",
                    "record", "run"},
    "api": {"config", "domains", "envs", "presets", "record", "run", "settings"},
    "interop": {"envs", "goals", "settings"},
    "benchmarking": set(),
    "cli": {"api", "registry", "domains", "presets", "run", "record", "experiments", "benchmarking", "envs"},
    "__init__": {"api", "goals", "interop", "record"},
}


def imports(path: Path) -> set[str]:
    """Modules of ours that a file imports, wherever in the file; what is for type checkers alone is left out."""
    tree = ast.parse(path.read_text())
    skipped = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
               for inner in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            found |= {f"protogoal.{name.name}" for name in node.names} if module == "protogoal" else {module}
    return {name for name in found if name.split(".")[0] == "protogoal"}


def layer_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES)
def test_a_file_imports_only_layers_below_its_own(file):
    own = file.split("/")[0].removesuffix(".py")
    assert own in ALLOWED, f"protogoal/{own} is not placed in a layer; add it to ALLOWED"
    for module in imports(PACKAGE / file):
        layer = layer_of(module)
        if layer in ("__init__", "__version__", own):
            continue
        allowed = ", ".join(sorted(ALLOWED[own])) or "nothing"
        assert layer in ALLOWED[own], f"protogoal/{file} imports {module}; {own} may import {allowed}"


def test_layers_have_no_cycle():
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        free = {layer for layer, below in ALLOWED.items() if layer not in done and below <= done}
        assert free, f"a cycle among {sorted(set(ALLOWED) - done)}"
        done |= free


def class_names(folder: Path) -> set[str]:
    return {node.name for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ClassDef)}


def is_agents_name(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) == "agent"


def has_words(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value for part in ast.walk(node))


def asks_which_agent(tree: ast.Module, classes: set[str]) -> list[int]:
    """Lines where code asks which agent it has: `isinstance(…, an agent's class)`, `….agent == "name"`,
    `….agent in ("name", …)`, or `match ….agent` with names."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            named = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node.args[1])}
            found += [node.lineno] if named & classes else []
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            sides = [node.left, *node.comparators]
            is_agent = any(is_agents_name(side) for side in sides)
            found += [node.lineno] if is_agent and any(isinstance(side, ast.Constant) and side.value for side in sides) else []
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            found += [node.lineno] if is_agents_name(node.left) and has_words(node.comparators[0]) else []
        elif isinstance(node, ast.Match) and is_agents_name(node.subject):
            found += [node.lineno] if any(has_words(case.pattern) for case in node.cases) else []
    return found


def test_only_agents_know_which_agent_it_is():
    classes = class_names(PACKAGE / "agents") | class_names(PACKAGE / "tabular")
    for file in FILES:
        if not file.startswith(("agents/", "tabular/", "experiments/")):  # experiments compare agents by name
            lines = asks_which_agent(ast.parse((PACKAGE / file).read_text()), classes)
            assert not lines, f"protogoal/{file} asks in line {lines[0]} which agent it has; the agent should say what it does"


@pytest.mark.parametrize("code", [
    "isinstance(x, Agent57)", "isinstance(x, a.Agent57)", "c.agent == 'rnd'", "'rnd' != agent", "c.agent in ('rnd', 'r2d2')",
    "agent not in ['rnd']", "match c.agent:\n    case 'rnd' | 'r2d2': pass",
])
def test_such_a_question_is_found(code):
    assert asks_which_agent(ast.parse(code), {"Agent57"}) == [1]


@pytest.mark.parametrize("code", ["c.agent in AGENTS", "'evaluator' in agent", "match c.agent:\n    case name: pass"])
def test_another_question_is_none(code):
    assert asks_which_agent(ast.parse(code), {"Agent57"}) == []


def test_agent57_is_named_by_its_folder_the_registry_and_experiments_alone():
    named = {file.split("/")[0] for file in FILES if "agent57" in (PACKAGE / file).read_text().lower() and "/agent57/" not in file}
    assert named == {"registry.py", "experiments"}
