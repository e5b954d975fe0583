"""Runs the benchmarks of the source checkout: each compares with a slow reference measured in the same run.

A benchmark is a file `benchmarks/NAME.py` with `run(quick) -> list of {"case", "value", "unit", "reference", "ratio"}`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def benchmarks() -> list[str]:
    """Names of all benchmarks; a ValueError where the package is not a source checkout."""
    folder = ROOT / "benchmarks"
    if not folder.is_dir():
        raise ValueError("benchmarks compare with the slow versions under tests/; they need the source checkout")
    return sorted(file.stem for file in folder.glob("*.py"))


def measure(name: str, quick: bool = False) -> list[dict[str, Any]]:
    """The rows of one benchmark."""
    tests = str(ROOT / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)  # the references
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows: list[dict[str, Any]] = module.run(quick)
    return rows


def run_benchmarks(names: Sequence[str], quick: bool, as_json: bool) -> None:
    """Measure one benchmark after the other and print tables, or JSON: one object for one name, else a list."""
    results = []
    for name in names:
        rows = measure(name, quick)
        results.append({"name": name, "results": rows})
        if not as_json:
            _print_table(name, rows)
    if as_json:
        print(json.dumps(results[0] if len(results) == 1 else results))


def _print_table(name: str, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=name, title_justify="left")
    table.add_column("case")
    for column in ("value", "unit", "reference", "ratio"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(str(row["case"]), *(_short(row.get(column)) for column in ("value", "unit", "reference", "ratio")))
    Console().print(table)


def _short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, (int, float)):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
