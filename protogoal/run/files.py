"""Writing a file so that it is there whole or not at all, and on disk when the call returns."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, in place of one that is there."""
    with _temporary(path, data) as temporary:
        temporary.replace(path)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not be there yet: of two processes that try, one gets a FileExistsError."""
    with _temporary(path, data) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except (OSError, AttributeError):  # no hard links here: exclusive too, if not whole when the power fails
            with path.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())


def is_leftover(path: Path) -> bool:
    """Whether a file is what a killed writer of this package leaves behind."""
    name, _, number = path.name.removesuffix("-journal").rpartition(".")
    return (name.startswith(".") and number.isdecimal()) or path.name == "run.db.lock"


@contextlib.contextmanager
def _temporary(path: Path, data: bytes) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
