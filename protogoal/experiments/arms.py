"""Experiments that compare arms: presets with some fields changed, several seeds each, one figure of learning curves.

An experiment is data: `Comparison(arms, steps, seeds, …)`. `run` trains every arm and seed in processes of their own, two at
a time on two cores, through the same `train` and `resume` as the command line, so it can be stopped and started again at any
moment: what is finished is skipped, what was interrupted goes on. A run that a sibling of OUT has finished with the very same
configuration is linked instead of made again: most ablations have the unchanged agent as one of their arms; one whose numbers
OUT has already is not made again either (`finished`). Runs lie under OUT/runs; `collect` makes the CSV of them, `plot` the figure
of the CSV alone, `arms_readme` the words.
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

from protogoal.domains.domain import settled
from protogoal.experiments import discovered, finished
from protogoal.experiments.curves import write_csv
from protogoal.presets import PRESETS
from protogoal.record.reader import StoreReader
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
    has_success: bool = True
    """Whether the task can be won; where it pays nothing, tables have a dash."""
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
        """learning.png, and time.png and goals.png where they are asked for: what the CSV allow, from them alone."""
        from protogoal.experiments import arms_figures

        arms_figures.draw(self, out)


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
    kept = _kept(comparison, scale, jobs, out)
    missing = [(arm, seed) for arm, seed in jobs if (arm.label, seed) not in kept]
    one_by_one = scale == "paper"  # each on the whole cluster
    if missing:
        _train_all(comparison, scale, missing, out, processes or (1 if one_by_one else os.cpu_count() or 1))
    collect(comparison, scale, jobs, out)
    comparison.plot(out)
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
    path = run_path(out, arm, seed)
    if path.is_symlink() or path.exists():
        return
    wanted = _recorded_config(comparison, arm, seed, scale)
    if wanted is None:
        return
    for file in sorted(out.parent.glob("*/runs/*/config.json")):
        record = json.loads(file.read_text())
        if record.get("engine") == "local" and record.get("config") == wanted and _is_finished(file.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(os.path.relpath(file.parent, path.parent))
            return


def _config(comparison: Comparison, arm: Arm, seed: int, scale: str) -> Any:
    """The configuration that is asked for; None where options beside it decide (another engine, an own environment)."""
    fields = _changed_fields(comparison, arm, seed, scale)
    if arm.preset not in PRESETS or "engine" in fields or scale == "paper":
        return None
    return with_fields(PRESETS[arm.preset], fields)


def _recorded_config(comparison: Comparison, arm: Arm, seed: int, scale: str) -> dict[str, Any] | None:
    """The same as its run will record it, with what is left to the environment decided."""
    config = _config(comparison, arm, seed, scale)
    return None if config is None else json.loads(json.dumps(to_dict(settled(config))))


def _fingerprint(comparison: Comparison, arm: Arm, seed: int, scale: str) -> str:
    config = _config(comparison, arm, seed, scale)
    return finished.fingerprint(_changed_fields(comparison, arm, seed, scale) if config is None else to_dict(config))


def _kept(comparison: Comparison, scale: str, jobs: Sequence[tuple[Arm, int]], out: Path) -> set[finished.Run]:
    """Runs that are not here, but whose numbers are."""
    elsewhere = {(arm.label, seed): _fingerprint(comparison, arm, seed, scale)
                 for arm, seed in jobs if not (run_path(out, arm, seed) / "config.json").exists()}
    return finished.kept(out, elsewhere)


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
                bar.update(sum(last_step(run_path(out, arm, seed)) for arm, seed in jobs), running=len(children))
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
    if (path / "config.json").exists():
        wanted = _recorded_config(comparison, arm, seed, scale)
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


def _is_finished(path: Path) -> bool:
    if not (path / "run.db").exists():
        return False
    with StoreReader(path) as store:
        return bool(store.meta().get("status") == "finished")


def last_step(path: Path) -> int:
    """The last step that a run has recorded; 0 before there is any."""
    try:
        with StoreReader(path) as store:
            return int(store.rows("SELECT max(step) FROM metrics")[0][0] or 0)
    except ValueError:  # not there yet, or just being made
        return 0


# --- CSV ----------------------------------------------------------------------------------------------------------

CURVES = ("arm", "seed", "step", "seconds", "episodes", "successes")
METRICS = ("arm", "seed", "step", "metric", "value")


def collect(comparison: Comparison, scale: str, jobs: Sequence[tuple[Arm, int]], out: Path) -> None:
    """curves.csv: every evaluation of every run; metrics.csv: goals and success by kind, rates, shares of time.

    goals.csv: the first arm's goals, and when they were discovered. runs.csv: what made each run. Rows of runs that were made
    elsewhere stay.
    """
    kept = _kept(comparison, scale, jobs, out)
    before = {name: finished.rows_of(out / f"{name}.csv", kept) for name in ("curves", "metrics", "goals", "runs")}
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in before}
    for arm, seed in jobs:
        path, run_of = run_path(out, arm, seed), (arm.label, seed)
        for name in rows if run_of in kept else ():
            rows[name] += before[name][run_of]
        if not (path / "run.db").exists():
            continue
        commit = json.loads((path / "config.json").read_text())["commit"] or "unknown"
        rows["runs"].append((*run_of, commit, _fingerprint(comparison, arm, seed, scale)))
        with StoreReader(path) as store:
            curves = store.rows("SELECT step, seconds, episodes, successes FROM evaluations ORDER BY step")
            metrics = store.rows("SELECT step, name, value FROM metrics ORDER BY name, step")
            shows_goals = comparison.shows_goals and arm is comparison.arms[0]
            found = {"curves": curves, "metrics": metrics, "goals": discovered.discoveries(store) if shows_goals else []}
            for name, of_run in found.items():
                rows[name] += [(*run_of, *row) for row in of_run]
    headers = {"curves": CURVES, "metrics": METRICS, "goals": discovered.GOALS, "runs": finished.RUNS}
    for name, header in headers.items():
        if rows[name] or name != "goals":
            write_csv(out / f"{name}.csv", header, rows[name])
