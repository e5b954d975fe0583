"""The runs that a page shows: opened by their place in the list, so that a browser can name no other file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from protogoal.record.reader import StoreReader
from protogoal.record.run_facts import labels

Answer = TypeVar("Answer")


class Runs:
    """The given run directories; each must be a run when the page starts."""

    def __init__(self, run_dirs: list[Path]):
        if not run_dirs:
            raise ValueError("name at least one run directory")
        paths = list(dict.fromkeys(Path(path).resolve() for path in run_dirs))
        for path in paths:
            if not path.is_dir():
                raise ValueError(f"{path} is not a directory")
            StoreReader(path).close()
        self._paths = paths
        self.labels = labels(paths)

    def __len__(self) -> int:
        return len(self._paths)

    def open(self, index: int) -> StoreReader:
        """A reader of one run, to be closed by the caller. Each request opens its own: SQLite does that in a moment."""
        if not 0 <= index < len(self._paths):
            raise ValueError(f"there is no run {index}")
        return StoreReader(self._paths[index])

    def ask(self, index: int, question: Callable[[StoreReader], Answer], otherwise: Any) -> Answer:
        """What a query says of one run; `otherwise` where it cannot be read."""
        try:
            with self.open(index) as reader:
                return question(reader)
        except ValueError:
            return otherwise

    def pulse(self) -> list[int]:
        """A number for each run that grows with each commit of its writer; −1 where it cannot be read."""
        return [self.ask(index, StoreReader.revision, -1) for index in range(len(self))]
