"""The folder beside a report: each figure as PNG, each figure's numbers as CSV. Called by record/report.py."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from protogoal.files import write_whole
from protogoal.record.figures import as_png, as_svg


class FigureFiles:
    """Collects files, and writes them all at the end. `folder` None keeps nothing."""

    def __init__(self, folder: Path | None):
        self._folder = folder
        self._files: dict[str, bytes] = {}

    def keep(self, name: str, figure: Figure) -> None:
        """Keep the figure as PNG."""
        if self._folder is not None:
            self._files[f"{name}.png"] = as_png(figure)

    def draw(self, name: str, figure: Figure) -> str:
        """Keep the figure as PNG; returns it as SVG for a page."""
        self.keep(name, figure)
        return as_svg(figure)

    def table(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        """Keep the rows as CSV."""
        if self._folder is None:
            return
        rows = list(rows)
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows({name: _harmless(cell) for name, cell in row.items()} for row in rows)
        self._files[f"{name}.csv"] = text.getvalue().encode()

    def write(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._files.items():
            write_whole(self._folder / name, content)


def _harmless(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula, marked as text: names of goals may come from anywhere."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
