"""Writing a file so that it is there whole or not at all, and on disk when the call returns."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary name to write to; at the end of the block the file is on disk, and has its own name."""
    temporary = _temporary(path)
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say for which file
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def synced(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """A file to write, which is on disk at the end of the block."""
    with path.open(mode) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file, in place of one that is there."""
    with whole(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not be there yet: of two processes that try, one gets a FileExistsError."""
    temporary = _temporary(path)
    try:
        with synced(temporary) as file:
            file.write(data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except (OSError, AttributeError):  # no hard links here: exclusive too, if not whole when the power fails
            with synced(path, "xb") as file:
                file.write(data)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    """The name to write to first; nothing is there, not even a link that would lead the writer to another file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    return temporary


def is_leftover(path: Path) -> bool:
    """Whether a file is what a killed writer of this package leaves behind."""
    name, _, number = path.name.removesuffix("-journal").rpartition(".")
    return (name.startswith(".") and number.isdecimal()) or path.name == "run.db.lock"
