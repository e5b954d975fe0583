"""Figures of a deep run between two reports: rates, losses, success by kind of goal, and where the time went.

Both engines fill a `RunLog` and put its `metrics` into the store at each evaluation. It is saved with the run, so that
the figures of a resumed run are those of one that never stopped (but for the seconds).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict


class RunLog:
    """Sums since the last report; `facts` are what a progress display shows."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._figures: dict[str, float] = defaultdict(float)  # sums over updates
        self._kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])  # pursuits, successes
        self._kind_of: dict[int, str] = {}
        self._updates = 0
        self._returns, self._finished = 0.0, 0
        self._episodes = self._wins = 0  # since the start of the run
        self._last_step = 0

    def timing(self, part: str) -> Timing:
        """Adds the time spent in a with-block to a part of the loop."""
        return Timing(self._seconds, part)

    def spent(self, part: str, seconds: float) -> None:
        """The same for time that was measured elsewhere."""
        self._seconds[part] += seconds

    def learned(self, figures: Mapping[str, float], updates: int = 1) -> None:
        """Figures of an update; of several, their sums."""
        self._updates += updates
        for name, value in figures.items():
            self._figures[name] += value

    def acted(self, episode_return: np.ndarray) -> None:
        """Returns of the episodes that ended, [n]."""
        self._returns += float(episode_return.sum())
        self._finished += len(episode_return)
        self._episodes += len(episode_return)
        self._wins += int((episode_return > 0).sum())

    def pursued(self, goals: np.ndarray, success: np.ndarray, evaluator: ProtoGoalEvaluator) -> None:
        """Pursuits that ended: goal ids [n], whether attained [n]."""
        for goal, won in zip(goals.tolist(), success.tolist(), strict=True):
            kind = self._kind_of.get(goal) or self._kind_of.setdefault(goal, evaluator.kind(goal))
            tally = self._kinds[kind]
            tally[0] += 1
            tally[1] += won

    def metrics(self, step: int) -> dict[str, float]:
        """The figures since the last call, which starts them anew."""
        loop = max(self._seconds["loop"], 1e-9)
        values = {
            "steps_per_second": (step - self._last_step) / loop,
            "updates_per_second": self._updates / loop,
            "train_episodes": float(self._episodes),
            "train_wins": float(self._wins),
        }
        values |= {f"time/{part}": spent / loop for part, spent in self._seconds.items() if part != "loop"}
        if self._finished:
            values["train_return"] = self._returns / self._finished
        if self._updates:
            values |= {name: total / self._updates for name, total in self._figures.items()}
        for kind, (pursuits, successes) in self._kinds.items():
            values[f"pursuits/{kind}"] = float(pursuits)
            values[f"success/{kind}"] = successes / pursuits
        for sums in (self._seconds, self._figures, self._kinds):
            sums.clear()
        self._updates, self._returns, self._finished, self._last_step = 0, 0.0, 0, step
        return values

    _NUMBERS = ("_updates", "_returns", "_finished", "_episodes", "_wins", "_last_step")

    def state_dict(self) -> dict[str, Any]:
        """The sums, as JSON-able values."""
        numbers = {name: getattr(self, name) for name in self._NUMBERS}
        tallies = {kind: list(tally) for kind, tally in self._kinds.items()}
        return numbers | {"seconds": dict(self._seconds), "figures": dict(self._figures), "kinds": tallies,
                          "facts": dict(self.facts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for name in self._NUMBERS:
            setattr(self, name, state[name])
        self.facts = dict(state["facts"])
        for sums in (self._seconds, self._figures, self._kinds):
            sums.clear()
        self._seconds.update(state["seconds"])
        self._figures.update(state["figures"])
        self._kinds.update({kind: list(tally) for kind, tally in state["kinds"].items()})


class Timing:
    """Adds the time spent in a with-block to one entry of a dict."""

    def __init__(self, seconds: dict[str, float], part: str):
        self._seconds, self._part = seconds, part

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._part] += time.perf_counter() - self._start


def goal_metrics(evaluator: ProtoGoalEvaluator) -> dict[str, float]:
    """How many goals there are by kind, and what share of those observed is pruned and why."""
    table, verdict = evaluator.table, evaluator.verdict
    observed = table.count[: len(verdict)] > 0
    total = max(1, int(observed.sum()))
    values = {
        "goals/observed": float(observed.sum()),
        "goals/offered": float(len(evaluator.goal_set)),
        "goals/conjunctions": float(table.size - table.num_bits),
        "goals/mastered": float(evaluator.mastered.sum()),
    }
    for reason in (Verdict.UNREACHABLE, Verdict.UNCONTROLLABLE, Verdict.UNSAMPLED, Verdict.PLAUSIBLE):
        values[f"share/{reason.name.lower()}"] = float((verdict[observed] == reason).sum()) / total
    by_kind: dict[str, int] = defaultdict(int)
    for goal in np.flatnonzero(observed[: table.num_bits]):
        by_kind[evaluator.kind(int(goal))] += 1
    return values | {f"observed/{kind}": float(count) for kind, count in by_kind.items()}
