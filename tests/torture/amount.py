"""How much of each attack is made: a little in `make test`, all of it in `make torture`."""

import os

FULL = os.environ.get("PROTOGOAL_TORTURE") == "full"


def amount(short: int, full: int) -> int:
    """Attempts to make."""
    return full if FULL else short
