"""What people see of a long job: a bar with facts and the time left; without a terminal, a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from protogoal.record.events import Recorder
from protogoal.record.terms import printable

LINE_SECONDS = 5.0


class Progress(Recorder):
    """`with Progress(total, "taxi-protogoal") as bar: bar.update(step, success=0.9)`; writes to stderr.

    As a recorder of a run it begins by itself.
    """

    def __init__(self, total: int, what: str, unit: str = "steps"):
        self.total, self.what, self.unit = max(1, total), printable(what), unit
        self.facts: dict[str, Any] = {}
        self._start = self._last_line = time.monotonic()
        self._first_step: int | None = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=None),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("[cyan]{task.fields[facts]}"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
                console=Console(stderr=True), expand=True)
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=self.total, facts="")
        return self

    def progress(self, step: int, facts: Mapping[str, Any]) -> None:
        if self._first_step is None:
            self.__enter__()
        self.update(step, **facts)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Between two evaluations: how training goes."""
        shown = {"recent/return": "training return", "recent/pursuit_success": "pursuits", "recent/loss": "loss"}
        self.facts.update({words: values[name] for name, words in shown.items() if name in values})

    def update(self, step: int, **facts: Any) -> None:
        """Where the job is, and what is worth knowing now; facts stay until they are replaced."""
        self.facts.update(facts)
        if self._first_step is None:
            self._first_step = step  # a resumed job does not start at 0
        if self._bar is not None:
            self._bar.update(self._task, completed=step, facts=self._words())
        elif time.monotonic() - self._last_line >= LINE_SECONDS or step >= self.total:
            self._last_line = time.monotonic()
            line = f"{self.what}: {step:,} of {self.total:,} {self.unit}  {self._words()}  {self._left(step)}"
            print(line, file=sys.stderr, flush=True)

    def _words(self) -> str:
        return "  ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in self.facts.items())

    def _left(self, step: int) -> str:
        done = step - (self._first_step or 0)
        if done <= 0:
            return ""
        seconds = (time.monotonic() - self._start) / done * max(0, self.total - step)
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} left"

    def close(self, status: str) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __exit__(self, *_: object) -> None:
        self.close("")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
