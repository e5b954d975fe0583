"""Figures of a deep run between two reports: rates, losses, success by kind of goal, and where the time went.

Both engines fill a `RunLog` and put its `metrics` into the store at each evaluation. It is saved with the run, so that
the figures of a resumed run are those of one that never stopped (but for the seconds).
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.plausibility import Verdict
from protogoal.goals.table import TASK

if TYPE_CHECKING:
    from protogoal.deep.act import Evaluation

RECENT_SECONDS = 10.0
LARGEST = 2**63 - 1  # of a number in a saved log


class RunLog:
    """Sums since the last report; `facts` are what a progress display shows."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._began: dict[str, float] = {}  # parts that are under way: since when, or since the last report
        self._figures: dict[str, float] = defaultdict(float)  # sums over updates
        self._kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])  # pursuits, successes
        self._kind_of: dict[int, str] = {}
        self._updates = 0
        self._returns, self._finished = 0.0, 0
        self._episodes = self._wins = 0  # since the start of the run
        self._last_step = 0
        self._cpu_since = time.process_time()  # minus what was spent before a resume
        self._tick = Recent()

    @contextlib.contextmanager
    def timing(self, part: str) -> Iterator[None]:
        """Adds the time spent in a with-block to a part of the loop."""
        self.begin(part)
        try:
            yield
        finally:
            self.end(part)

    def begin(self, part: str) -> None:
        """A part of the loop is under way from here on."""
        self._began[part] = time.perf_counter()

    def end(self, part: str) -> None:
        """It is over."""
        self.spent(part, time.perf_counter() - self._began.pop(part))

    def _split(self) -> None:
        """Counts what is under way up to now; the rest of it belongs to the next report."""
        for part in list(self._began):
            self.end(part)
            self.begin(part)

    def spent(self, part: str, seconds: float) -> None:
        """The same for time that was measured elsewhere."""
        self._seconds[part] += seconds

    def learned(self, figures: Mapping[str, float], updates: int = 1) -> None:
        """Figures of an update; of several, their sums."""
        self._updates += updates
        self._tick.add(updates=updates, loss=figures.get("loss", 0.0))
        for name, value in figures.items():
            self._figures[name] += value

    def acted(self, episode_return: np.ndarray, episode_success: np.ndarray) -> None:
        """Returns of the episodes that ended, [n], and their success: 1, 0, or −1 where nothing is called that."""
        wins, judged = int((episode_success == 1).sum()), int((episode_success >= 0).sum())
        self._tick.add(episodes=len(episode_return), returns=float(episode_return.sum()), wins=wins, judged=judged)
        self._returns += float(episode_return.sum())
        self._finished += len(episode_return)
        self._episodes += len(episode_return)
        self._wins += wins

    def evaluated(self, result: Evaluation) -> dict[str, float]:
        """An evaluation of the task: the facts that it changes, and its points of curves."""
        self.facts.pop("success", None)
        self.facts |= ({} if result.successes is None else {"success": result.success_rate}) | {"mean_return": result.mean_return}
        return result.metrics

    def pursued(self, goals: np.ndarray, success: np.ndarray, evaluator: ProtoGoalEvaluator) -> None:
        """Pursuits that ended: goal ids [n], whether attained [n]."""
        for goal, won in zip(goals.tolist(), success.tolist(), strict=True):
            if goal == TASK:
                continue
            kind = self._kind_of.get(goal) or self._kind_of.setdefault(goal, evaluator.kind(goal))
            tally = self._kinds[kind]
            tally[0] += 1
            tally[1] += won
            self._tick.add(pursuits=1, attained=won)

    def recent(self, step: int) -> dict[str, float]:
        """Every few seconds the figures of those seconds, else nothing."""
        return self._tick.figures(step)

    def metrics(self, step: int) -> dict[str, float]:
        """The figures since the last call, which starts them anew; all of them are of one span of time, which ends now."""
        self._split()
        loop = max(self._seconds["loop"], 1e-9)
        values = {
            "steps_per_second": (step - self._last_step) / loop,
            "updates_per_second": self._updates / loop,
            "train_episodes": float(self._episodes),
            "train_wins": float(self._wins),
        }
        values |= {f"time/{part}": spent / loop for part, spent in self._seconds.items() if part != "loop"}
        values["time/cpu_seconds"] = self.cpu_seconds
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

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of this process since the start of the run; environments in processes of their own are not in it."""
        return time.process_time() - self._cpu_since

    _NUMBERS = ("_updates", "_returns", "_finished", "_episodes", "_wins", "_last_step")

    def state_dict(self) -> dict[str, Any]:
        """The sums, as JSON-able values."""
        numbers = {name: getattr(self, name) for name in self._NUMBERS}
        tallies = {kind: list(tally) for kind, tally in self._kinds.items()}
        return numbers | {"seconds": dict(self._seconds), "cpu_seconds": self.cpu_seconds, "figures": dict(self._figures),
                          "kinds": tallies, "facts": dict(self.facts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for name in self._NUMBERS:
            setattr(self, name, _number(state[name], name))
        self._cpu_since = time.process_time() - _number(state.get("cpu_seconds", 0.0), "cpu_seconds")
        self.facts = dict(state["facts"])
        for sums in (self._seconds, self._figures, self._kinds):
            sums.clear()
        self._seconds.update({part: _number(spent, part) for part, spent in state["seconds"].items()})
        self._figures.update({name: _number(total, name) for name, total in state["figures"].items()})
        self._kinds.update({kind: [_number(n, kind) for n in tally] for kind, tally in state["kinds"].items()})


def _number(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
        raise ValueError(f"stored {name} is {str(value)[:40]}; it must be a number")
    return value


class Recent:
    """Sums of the last seconds, for those who watch; by the clock, so no two runs have the same."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._since, self._step = time.monotonic(), -1

    def add(self, **sums: float) -> None:
        for name, value in sums.items():
            self._sums[name] += value

    def figures(self, step: int) -> dict[str, float]:
        """Rates and means since the last answer, which starts them anew; nothing before RECENT_SECONDS have gone by."""
        seconds = time.monotonic() - self._since
        if seconds < RECENT_SECONDS:
            return {}
        sums = self._sums
        ratios = {"return": ("returns", "episodes"), "wins": ("wins", "judged"), "pursuit_success": ("attained", "pursuits"),
                  "loss": ("loss", "updates")}
        values = {name: sums[part] / sums[whole] for name, (part, whole) in ratios.items() if sums[whole]}
        values |= {"pursuits": sums["pursuits"], "updates_per_second": sums["updates"] / seconds}
        if self._step >= 0:
            values["steps_per_second"] = (step - self._step) / seconds
        self._sums, self._since, self._step = defaultdict(float), time.monotonic(), step
        return {f"recent/{name}": value for name, value in values.items()}


def offered_metrics(evaluator: ProtoGoalEvaluator) -> dict[str, float]:
    """How many goals of each kind are on offer, and the probability of choosing the task."""
    by_kind: dict[str, int] = defaultdict(int)
    for goal in evaluator.goal_set.ids.tolist():
        by_kind[evaluator.kind(goal)] += 1
    return {f"offered/{kind}": float(count) for kind, count in by_kind.items()} | {"p_task": evaluator.goal_set.p_task}


def goal_metrics(evaluator: ProtoGoalEvaluator) -> dict[str, float]:
    """How many goals there are by kind, and what share of those observed is pruned and why."""
    table, verdict = evaluator.table, evaluator.verdict
    observed = table.observed[: len(verdict)]
    total = max(1, int(observed.sum()))
    values = {
        "goals/observed": float(observed.sum()),
        "goals/offered": float(len(evaluator.goal_set)),
        "goals/conjunctions": float(table.size - table.num_bits),
        "goals/mastered": float(evaluator.mastered.sum()),
    }
    for reason in list(Verdict)[1:]:
        values[f"share/{reason.name.lower()}"] = float((verdict[observed] == reason).sum()) / total
    kinds = np.bincount(evaluator.trials.kind_of[evaluator.trials.kind_of >= 0], minlength=len(evaluator.trials.kinds))
    return values | {f"observed/{kind}": float(count) for kind, count in zip(evaluator.trials.kinds, kinds, strict=True)}
