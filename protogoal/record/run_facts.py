"""What a run is and how far it has come, in a few numbers: the head of the page, of the report and of the table.

Read from the store alone. Called by record/goals_table.py, record/report.py and record/inspector/.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from protogoal.goals.table import TASK
from protogoal.record.connection import lives
from protogoal.record.reader import StoreReader
from protogoal.record.schema import FUNNEL

SILENT_SECONDS = 120.0  # a running run that wrote nothing for so long is busy, or was killed
SPEED_POINTS = 20  # the speed is that of the last so many points of a curve
TASK_TRIES = 100


@dataclass(frozen=True)
class RunFacts:
    """The run as its writer described it, and where it stands."""

    label: str  # the directory's name
    preset: str
    agent: str
    seed: int | None
    configuration: str  # alike for runs that differ in their seed alone
    status: str  # running, busy (it lives, and has not written for long), silent (nobody knows whether it lives), finished, stopped
    quiet_seconds: float | None  # since the last commit, while it runs
    total_steps: int | None
    step: int
    seconds: float  # of training
    speed: float | None  # steps a second, recently
    success: float | None  # of the last evaluation
    low: float | None
    high: float | None
    episodes: int
    mean_return: float | None
    rule: str  # what counts as success, in words
    task_tries: int  # the last pursuits of the task itself, at most TASK_TRIES
    task_wins: int  # how many of them got somewhere (`SuccessRule.of_pursuit`)
    has_success: bool  # whether those succeeded by the run's rule; else they met a reward, or ended early what only costs
    thresholds: tuple[float, float] | None  # of V_seek and of control, where the paper's rule judges; else None
    funnel: dict[str, int] | None  # after the last refresh

    @property
    def progress(self) -> float | None:
        """The share of the planned steps that is done, 0 … 1."""
        return min(1.0, self.step / self.total_steps) if self.total_steps else None


def labels(run_dirs: list[Path]) -> list[str]:
    """A short name for each run directory: its own name, with its parent's where two are called alike."""
    names = [path.resolve().name for path in run_dirs]
    doubled = {name for name in names if names.count(name) > 1}
    longer = [f"{path.resolve().parent.name}/{name}" if name in doubled else name
              for path, name in zip(run_dirs, names, strict=True)]
    return [f"{name} ({index + 1})" if longer.count(name) > 1 else name for index, name in enumerate(longer)]


def run_facts(reader: StoreReader, label: str | None = None) -> RunFacts:
    """The facts of the run behind `reader`; what the writer did not say is None or the paper's default."""
    meta = reader.meta()
    status, quiet = str(meta.get("status", "stopped")), None
    if status == "running":
        quiet = max(0.0, time.time() - float(meta.get("updated", meta.get("started", 0.0))))
        if quiet > SILENT_SECONDS:
            status = "busy" if lives(meta.get("process")) else "silent"
    points = [reader.rows(f"SELECT step, seconds FROM {table} ORDER BY step DESC LIMIT 1")
              for table in ("evaluations", "refreshes")]
    recent = reader.rows(
        "SELECT step, seconds FROM metrics WHERE name = (SELECT name FROM metrics ORDER BY name LIMIT 1) "
        "ORDER BY step DESC LIMIT ?", (SPEED_POINTS,))
    if "progress" in meta and (not recent or meta["progress"][0] > recent[0][0]):
        recent.insert(0, (int(meta["progress"][0]), float(meta["progress"][1])))
    step, seconds = max([(0, 0.0), *recent[:1], *(row[0] for row in points if row)])
    evaluation = reader.rows("SELECT successes, episodes, low, high, mean_return FROM evaluations ORDER BY step DESC LIMIT 1")
    successes, episodes, low, high, mean_return = evaluation[0] if evaluation else (None, 0, None, None, None)
    stages = reader.rows(f"SELECT {', '.join(FUNNEL)} FROM refreshes ORDER BY step DESC LIMIT 1")
    last = "SELECT success FROM pursuits WHERE goal = ? ORDER BY id DESC LIMIT ?"
    tries, wins = reader.rows(f"SELECT count(*), sum(success) FROM ({last})", (TASK, TASK_TRIES))[0]
    thresholds = float(meta.get("reachability_threshold", 0.5)), float(meta.get("controllability_threshold", 0.1))
    seed, total = meta.get("seed"), meta.get("total_steps")
    return RunFacts(
        label=label or reader.path.resolve().parent.name,
        preset=str(meta.get("preset", "")),
        agent=str(meta.get("agent", "")),
        seed=None if seed is None else int(seed),
        configuration=str(meta.get("configuration") or [meta.get(name) for name in ("preset", "agent", "total_steps")]),
        status=status,
        quiet_seconds=quiet,
        total_steps=None if total is None else int(total),
        step=step,
        seconds=seconds,
        speed=_speed(recent) or (step / seconds if seconds > 0 else None),
        success=successes / episodes if episodes and successes is not None else None,
        low=low,
        high=high,
        episodes=episodes,
        mean_return=mean_return,
        rule=str(meta.get("success", "")),
        task_tries=tries,
        task_wins=wins or 0,
        has_success=meta.get("success_kind") not in ("threshold", "none"),
        thresholds=thresholds if reader.rows("SELECT 1 FROM goals WHERE seek_max IS NOT NULL LIMIT 1") else None,
        funnel=dict(zip(FUNNEL, stages[0], strict=True)) if stages else None,
    )


def _speed(recent: list[tuple[int, float]]) -> float | None:
    """Steps a second between the first and the last of some points (step, seconds), newest first."""
    if len(recent) < 2 or recent[0][1] <= recent[-1][1]:
        return None
    return (recent[0][0] - recent[-1][0]) / (recent[0][1] - recent[-1][1])
