"""Ctrl-C while training: the first ends the run at the next point where its state can be saved, the second at once.

Two are always enough. The first is answered by a line; after the second, whatever still hangs (an environment that does not
come back, or swallows the interrupt) is left behind after some seconds: what was saved is whole at any moment.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

PATIENCE = 5.0  # seconds between the second Ctrl-C and the end of a process that hangs
ACTING = "acting"  # how threads that step environments are named: one of them may hang
STOPPED = 130  # the exit code after Ctrl-C


class GracefulStop:
    """`with GracefulStop() as stop: … stop.listen() … if stop.requested: …`; SIGTERM counts as the first Ctrl-C."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}
        self._last_resort: threading.Timer | None = None

    def __enter__(self) -> GracefulStop:
        return self

    def listen(self) -> None:
        """From here on Ctrl-C is answered here; before, it acts as usual."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._first)

    def _first(self, number: int, frame: Any) -> None:
        self.requested = True
        self._restore()
        signal.signal(signal.SIGINT, self._second)
        _say("\nstopping at the next point where the run can be saved; Ctrl-C again stops at once")

    def _second(self, number: int, frame: Any) -> None:
        self._restore()
        self._last_resort = threading.Timer(PATIENCE, _leave)
        self._last_resort.daemon = True
        self._last_resort.start()
        raise KeyboardInterrupt

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __exit__(self, *_: object) -> None:
        self._restore()
        if self._last_resort is not None:
            self._last_resort.cancel()


def leave_hung_threads() -> None:
    """Ends the process where a thread still steps an environment: Python would wait for it for ever."""
    for thread in threading.enumerate():
        if thread.name.startswith(ACTING):
            thread.join(PATIENCE)
            if thread.is_alive():
                _leave()


def _leave() -> None:
    _say("an environment does not come back; leaving it")
    os._exit(STOPPED)


def _say(line: str) -> None:
    """Safe in a signal handler: what the handler interrupted may be writing itself."""
    sys.__stderr__ and os.write(sys.__stderr__.fileno(), f"{line}\n".encode())
