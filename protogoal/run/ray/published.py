"""Things of which there is one at a time and which many read: weights, goal sets, known goals.

Each version is put into the object store once; a reader fetches it once, when it sees a version it does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray


@dataclass(frozen=True)
class Published:
    """A version; 0 is what every process makes for itself at the start of a run."""

    version: int = 0
    box: tuple[Any, ...] = ()
    """The reference, wrapped so that Ray passes it on instead of what it refers to."""

    def next(self, reference: Any) -> Published:
        """The version after this one."""
        return Published(self.version + 1, (reference,))

    def fetch(self) -> Any:
        """What was published."""
        return ray.get(self.box[0])
