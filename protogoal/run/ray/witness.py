"""A last line where Ray ends this process itself: when its raylet dies, Ray leaves at once and gives Python no turn.

A tiny process beside the run holds the other end of a pipe. Dismissed, it goes without a word; where the pipe just closes, whatever
the reason, it says the line. `RaySession` has one for as long as it lives.
"""

from __future__ import annotations

import subprocess
import sys

LINE = ("protogoal: the run was ended from outside, or by Ray because its raylet died; it is kept up to its last checkpoint, "
        "and protogoal resume goes on from there")
_CODE = "import sys\nif not sys.stdin.read(): print(sys.argv[1], file=sys.stderr)"


class Witness:
    """Says `LINE` when this process ends, unless it was dismissed before."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", "-c", _CODE, LINE]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # Ctrl-C is not for it

    def dismiss(self) -> None:
        """Ends it in silence. Safe to call twice."""
        if self._process.returncode is None:
            self._process.communicate(b"dismissed")
