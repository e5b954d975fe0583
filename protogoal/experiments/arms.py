"""Experiments that compare arms: presets with some fields changed, several seeds each, one figure of learning curves.

An experiment is data: `Comparison(arms, steps, seeds, …)`. `run` trains every arm and seed in processes of their own, two at
a time on two cores, through the same `train` and `resume` as the command line, so it can be stopped and started again at any
moment: what is finished is skipped, what was interrupted goes on. A run that a sibling of OUT has finished with the very same
configuration is linked instead of made again: most ablations have the unchanged agent as one of their arms. Runs lie under
OUT/runs; `collect` makes the CSV of them, `plot` the figure of the CSV alone, `arms_readme` the words.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from protogoal.experiments import discovered
from protogoal.experiments.curves import write_csv
from protogoal.presets import PRESETS
from protogoal.settings import to_dict, with_fields


@dataclass(frozen=True)
class Arm:
    """One line of the figure: a preset with fields changed, by their dotted names.

    An environment of one's own has no preset: the fields `env`, `space` and `agent` then name it (docs/tutorial.md).
    """

    label: str
    preset: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    panel: str = ""
    """The part of the figure it is drawn in, with this title; the label is then "NAME, PANEL"."""

    @property
    def name(self) -> str:
        """What the legend of its panel says."""
        return self.label.removesuffix(f", {self.panel}")


@dataclass(frozen=True)
class Scale:
    """How much of an experiment: environment steps of a run, and seeds."""

    steps: int
    seeds: int


@dataclass(frozen=True)
class Comparison:
    """Arms on one axis of frames."""

    name: str
    title: str
    claim: str
    """What the paper says, in our words."""
    arms: Sequence[Arm]
    scales: Mapping[str, Scale]
    common: Mapping[str, Any] = field(default_factory=dict)
    """Fields changed in every arm."""
    smoke: Mapping[str, Any] = field(default_factory=dict)
    """Fields changed besides at scale smoke, so that a run takes seconds."""
    command: str = ""
    """What makes it, where it is not `protogoal reproduce NAME`."""
    shows_goals: bool = True
    """Whether to write down and draw what its first arm discovered when."""
    shows_time: bool = False
    """Whether to draw success against wall time as well."""
    tests_first: bool = False
    """Whether to say for each other arm how likely chance alone would put the first as far ahead of it."""
    first_seed: int = 0
    """Seeds count from here: others than an experiment was designed on are a test of it."""
    chosen_on: Sequence[int] = ()
    """Seeds that its settings were chosen on; none of them should be reported."""

    def run(self, scale: str, seeds: int | None, out: Path) -> None:
        run(self, scale, seeds, out)

    def plot(self, out: Path) -> None:
        plot(self, out)


def run(comparison: Comparison, scale: str, seeds: int | None, out: Path, processes: int | None = None) -> None:
    """Train what is missing, then write the CSV, the figure and the README."""
    from protogoal.experiments import arms_readme

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from None
    size = comparison.scales[scale]
    number = seeds or size.seeds
    jobs = [(arm, comparison.first_seed + k) for k in range(number) for arm in comparison.arms]
    one_by_one = scale == "paper"  # each on the whole cluster
    _train_all(comparison, scale, jobs, out, processes or (1 if one_by_one else os.cpu_count() or 1))
    collect(comparison, jobs, out)
    plot(comparison, out)
    arms_readme.describe(comparison, scale, number, out)


def run_path(out: Path, arm: Arm, seed: int) -> Path:
    """Where the run of an arm and seed lies."""
    return out / "runs" / f"{arm.label.replace(' ', '-').replace('=', '').replace(',', '')}-{seed}"


def arguments(comparison: Comparison, arm: Arm, seed: int, scale: str, out: Path) -> list[str]:
    """The command that makes one run; the README prints it."""
    fields = _changed_fields(comparison, arm, seed, scale)
    options = [word for name, value in fields.items() for word in _option(name, value)]
    if scale == "paper" and arm.preset in PRESETS and not PRESETS[arm.preset].has_paper_settings and "engine" not in fields:
        options = ["--scale", "paper", "--engine", "ray", *options]
    return ["train", *([arm.preset] if arm.preset else []), "--run", str(run_path(out, arm, seed)), *options]


def _changed_fields(comparison: Comparison, arm: Arm, seed: int, scale: str) -> dict[str, Any]:
    small = comparison.smoke if scale == "smoke" else {}
    return {**comparison.common, **arm.fields, **small, "steps": comparison.scales[scale].steps, "seed": seed}


def _link_equal_run(comparison: Comparison, arm: Arm, seed: int, scale: str, out: Path) -> None:
    """Where an experiment beside this one has finished the same run, it becomes this one's too."""
    path, wanted = run_path(out, arm, seed), _whole_config(comparison, arm, seed, scale)
    if path.is_symlink() or path.exists() or wanted is None:
        return
    for file in sorted(out.parent.glob("*/runs/*/config.json")):
        record = json.loads(file.read_text())
        if record.get("engine") == "local" and record.get("config") == wanted and _is_finished(file.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(os.path.relpath(file.parent, path.parent))
            return


def _whole_config(comparison: Comparison, arm: Arm, seed: int, scale: str) -> dict[str, Any] | None:
    """The configuration that a run will record; None where options beside it decide (another engine, an own environment)."""
    fields = _changed_fields(comparison, arm, seed, scale)
    if arm.preset not in PRESETS or "engine" in fields or scale == "paper":
        return None
    config: dict[str, Any] = json.loads(json.dumps(to_dict(with_fields(PRESETS[arm.preset], fields))))
    return config


def _option(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        section, _, last = name.rpartition(".")
        return [f"--{name}" if value else f"--{section}{'.' if section else ''}no_{last}"]
    return [f"--{name}", str(value)]


def _train_all(comparison: Comparison, scale: str, jobs: Sequence[tuple[Arm, int]], out: Path, processes: int) -> None:
    from protogoal.run.progress import Progress

    total = comparison.scales[scale].steps * len(jobs)
    pending: set[Future[None]] = set()
    with _sigterm_as_interrupt(), ThreadPoolExecutor(processes) as pool, Progress(total, comparison.name) as bar:
        children: dict[int, subprocess.Popen[bytes]] = {}
        try:
            pending = {pool.submit(_train_one, comparison, arm, seed, scale, out, children) for arm, seed in jobs}
            while pending:
                done, pending = wait(pending, timeout=2.0, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                bar.update(sum(_last_step(run_path(out, arm, seed)) for arm, seed in jobs), running=len(children))
        except BaseException:
            for future in pending:
                future.cancel()
            for child in list(children.values()):  # each makes a checkpoint and ends; it can be resumed
                child.terminate()
            raise


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """While it lasts SIGTERM is a KeyboardInterrupt, so that no runs are left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _train_one(comparison: Comparison, arm: Arm, seed: int, scale: str, out: Path, children: dict[int, Any]) -> None:
    path = run_path(out, arm, seed)
    _link_equal_run(comparison, arm, seed, scale, out)
    wanted = _whole_config(comparison, arm, seed, scale)
    _check_settings(path, _changed_fields(comparison, arm, seed, scale) if wanted is None else dict(_leaves(wanted)))
    if _is_finished(path):
        return
    words = ["resume", str(path)] if (path / "config.json").exists() else arguments(comparison, arm, seed, scale, out)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # one core a run; seeds fill the others
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f"{path.name}.log").open("ab") as log:
        # a session of its own: Ctrl-C in the terminal must reach it once, through us, as the second signal kills it
        child = subprocess.Popen([sys.executable, "-m", "protogoal.cli", *words], stdout=log, stderr=log, env=environment,
                                 start_new_session=True)
        children[child.pid] = child
        code = child.wait()
        children.pop(child.pid, None)
    if code != 0:
        last = (path.parent / f"{path.name}.log").read_text(errors="replace").strip().splitlines()[-1:]
        raise ValueError(f"the run {path} ended with code {code}: {' '.join(last)}")
    if not _is_finished(path):
        raise ValueError(f"the run {path} was stopped; the same command goes on with it")


def _check_settings(path: Path, fields: Mapping[str, Any]) -> None:
    """A run that is there already must have been made with these fields; at another scale, or by an older preset, it was not."""
    if not (path / "config.json").exists():
        return
    recorded = json.loads((path / "config.json").read_text())["config"]
    for name, value in fields.items():
        made: Any = recorded
        for part in name.split("."):
            made = made.get(part) if isinstance(made, dict) else None
        if made is not None and not isinstance(made, dict) and made != value:
            raise ValueError(f"{path} was made with {name} = {made}, not {value}; remove it, or choose another --out")


def _leaves(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _reader(path: Path) -> Any:
    from protogoal.record.store import StoreReader

    return StoreReader(path / "run.db")


def _is_finished(path: Path) -> bool:
    if not (path / "run.db").exists():
        return False
    with _reader(path) as store:
        return bool(store.meta().get("status") == "finished")


def _last_step(path: Path) -> int:
    if not (path / "run.db").exists():
        return 0
    try:
        with _reader(path) as store:
            row = store.rows("SELECT max(step) FROM metrics")
            return int(row[0][0] or 0)
    except ValueError:  # just being made
        return 0


# --- CSV ----------------------------------------------------------------------------------------------------------

CURVES = ("arm", "seed", "step", "seconds", "episodes", "successes")
METRICS = ("arm", "seed", "step", "metric", "value")


def collect(comparison: Comparison, jobs: Sequence[tuple[Arm, int]], out: Path) -> None:
    """curves.csv: every evaluation of every run; metrics.csv: goals and success by kind, rates, shares of time.

    goals.csv: the first arm's goals, and when they were discovered.
    """
    curves: list[tuple[Any, ...]] = []
    metrics: list[tuple[Any, ...]] = []
    goals: list[tuple[Any, ...]] = []
    for arm, seed in jobs:
        path = run_path(out, arm, seed)
        if not (path / "run.db").exists():
            continue
        with _reader(path) as store:
            for row in store.rows("SELECT step, seconds, episodes, successes FROM evaluations ORDER BY step"):
                curves.append((arm.label, seed, *row))
            wanted = "SELECT step, name, value FROM metrics ORDER BY name, step"
            metrics.extend((arm.label, seed, *row) for row in store.rows(wanted))
            if comparison.shows_goals and arm is comparison.arms[0]:
                goals.extend((arm.label, seed, *row) for row in discovered.discoveries(store))
    write_csv(out / "curves.csv", CURVES, curves)
    write_csv(out / "metrics.csv", METRICS, metrics)
    if goals:
        write_csv(out / "goals.csv", discovered.GOALS, goals)


# --- figure ---------------------------------------------------------------------------------------------------------

def plot(comparison: Comparison, out: Path) -> None:
    """learning.png, time.png where wall time is asked for, goals.png where goals were written down; from the CSV alone."""
    from protogoal.experiments import arms_figures

    arms_figures.draw(comparison, out)
