"""Opening a run's SQLite file: to read beside its writer, or to write as the only one.

Called by record/reader.py and record/store.py.
"""

from __future__ import annotations

import errno
import os
import socket
import sqlite3
import sys
from pathlib import Path
from typing import IO, Any

from protogoal.record.schema import SCHEMA_VERSION


def open_to_read(path: Path) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=5.0, check_same_thread=False)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        return connection
    except sqlite3.OperationalError:
        connection.close()
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise
        # A closed file in a directory that cannot be written: SQLite cannot make its index there, and needs none.
        return sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def this_process() -> list[Any]:
    """Machine and number of the process that writes, as the record says them."""
    return [socket.gethostname(), os.getpid()]


def lives(process: Any) -> bool | None:
    """Whether a process that a record names lives on this machine; None where nobody can tell."""
    if os.name != "posix" or not isinstance(process, list) or len(process) != 2 or process[0] != socket.gethostname():
        return None
    try:
        os.kill(int(process[1]), 0)
        return True
    except ProcessLookupError:
        return False
    except (OSError, ValueError, TypeError, OverflowError):
        return None


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise ValueError with one line unless the file is a run of this schema."""
    try:
        more = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') LIMIT 1").fetchone()
        if more is not None:  # it would compute for as long as its author likes
            raise ValueError(f"{path} is not a run's store: it has a view or trigger, {str(more[0])[:40]!r}, a run writes none")
        found = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is not a run's store, or is damaged ({error})") from None
    if found is None:
        raise ValueError(f"{path} is not a run's store: it says no schema version")
    if str(found[0]) != str(SCHEMA_VERSION):
        raise ValueError(
            f"{path} has schema version {found[0]}; this protogoal reads version {SCHEMA_VERSION} only, "
            "look at the run with the protogoal that wrote it")


def open_to_write(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10.0, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    # A killed process loses nothing that was committed; a power cut may lose the last seconds.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA journal_size_limit = 16000000")
    return connection


def only_writer(path: Path) -> IO[str]:
    """Hold a lock while this process lives. Locks end with it, however it ends, and no fork inherits them."""
    try:
        file = open(path.with_name(path.name + ".lock"), "a")  # noqa: SIM115  (held until the store closes)
    except OSError as error:
        raise ValueError(f"{path.parent} cannot be written: {error.strerror}") from None
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):  # a file system without locks: better no run than two
            raise ValueError(f"{path} cannot be locked ({error.strerror}): its file system has no locks, choose another") from None
        raise ValueError(f"{path} is being written by another process; one run has one writer") from None
    return file
