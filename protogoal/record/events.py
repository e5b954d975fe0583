"""What a training run has to tell: a session's generator yields these, and recorders take in what they care for.

The loop knows neither files nor pages. An event goes `to` a recorder, which is anything with the methods of `Recorder`:
the run's `Store`, and those of `record.recorders`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Recorder:
    """Takes in what it overrides; a step is that of the run."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """A point of each named curve."""

    def evaluation(self, step: int, episodes: int, successes: int | None, mean_return: float) -> None:
        """Episodes were played for the task; `successes` is None where nothing is called success."""

    def pursuits(self, step: int, ids: Any, success: Any, lengths: Any) -> None:
        """Pursuits ended: goal ids, attained or not, lengths; [n] each."""

    def refresh(self, step: int, snapshot: Mapping[str, Any], names: Callable[[int], Any], took: float | None) -> None:
        """All goals were judged anew."""

    def event(self, step: int, text: str) -> None:
        """Something worth a line."""

    def progress(self, step: int, facts: Mapping[str, Any]) -> None:
        """How far the run is, and what is worth knowing now."""

    def close(self, status: str) -> None:
        """The run has `finished` or `stopped`."""


@dataclass(frozen=True)
class Event:
    """Something that happened at a step."""

    step: int

    def to(self, recorder: Any) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Measured(Event):
    values: Mapping[str, float]

    def to(self, recorder: Any) -> None:
        recorder.metrics(self.step, self.values)


@dataclass(frozen=True)
class Evaluated(Event):
    episodes: int
    successes: int | None
    mean_return: float

    def to(self, recorder: Any) -> None:
        recorder.evaluation(self.step, self.episodes, self.successes, self.mean_return)


@dataclass(frozen=True)
class Pursued(Event):
    goal: np.ndarray
    success: np.ndarray
    length: np.ndarray

    def to(self, recorder: Any) -> None:
        recorder.pursuits(self.step, self.goal, self.success, self.length)


@dataclass(frozen=True)
class Refreshed(Event):
    snapshot: Mapping[str, Any]
    names: Callable[[int], Any]
    took: float | None = None

    def to(self, recorder: Any) -> None:
        recorder.refresh(self.step, self.snapshot, self.names, self.took)


@dataclass(frozen=True)
class Happened(Event):
    text: str

    def to(self, recorder: Any) -> None:
        recorder.event(self.step, self.text)


@dataclass(frozen=True)
class Announced(Event):
    """What comes now may take a while."""

    facts: Mapping[str, Any] = field(default_factory=dict)

    def to(self, recorder: Any) -> None:
        recorder.progress(self.step, self.facts)


@dataclass(frozen=True)
class Progressed(Announced):
    """The session may be saved here."""


def last_evaluation(step: int, episodes: int) -> Announced:
    """Said before the final evaluation, which has many episodes."""
    return Announced(step, {"the last evaluation:": f"{episodes:,} episodes"})
