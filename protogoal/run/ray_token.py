"""A token for a Ray of one's own: it listens on all interfaces and cannot be told not to, so it answers only who knows this.

Ray reads the variables when it is imported, so `training.make_session` sets them before. Where it was imported already, or where a
cluster is joined, nothing is changed.
"""

from __future__ import annotations

import os
import secrets
import sys


def ask_for_token(address: str) -> None:
    """Makes a Ray that this process will start ask for a token that only its own processes know."""
    if address or "ray" in sys.modules:
        return
    if os.environ.setdefault("RAY_AUTH_MODE", "token") == "token":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
