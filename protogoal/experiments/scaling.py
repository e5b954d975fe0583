"""Scaling out: both engines compared, the Ray engine under the load of 128 actors, and memory over a long run.

Four parts: `load` (simulated actors, see `scaling_load`), `speed` (steps and CPU seconds of both engines), `soak` (memory of
every process of a run) and `engines` (the same runs learned by both engines on the small U-Maze). Each has its CSV, all but
`speed` a figure. docs/scaling.md reads the numbers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protogoal.experiments import arms, arms_readme, scaling_figures
from protogoal.experiments.arms import Arm, Comparison, Scale
from protogoal.experiments.curves import read_csv, write_csv
from protogoal.files import write_whole
from protogoal.run.directory import commit

PRESET = "baba-umaze-small-protogoal"
ENGINES = Comparison(
    name="engines",
    title="The same run in both engines: U-Maze small",
    claim="its actors, learner, replay, PGE and player are processes of their own; which process does the work must not matter.",
    arms=(Arm("local", PRESET), Arm("ray, 2 workers", PRESET, {"engine": "ray", "workers": 2})),
    scales={"smoke": Scale(3_000, 1), "cpu": Scale(400_000, 3), "paper": Scale(400_000, 10)},
    smoke={"evaluation.every": 1_000, "evaluation.episodes": 2, "evaluation.final_episodes": 2, "learner.min_replay": 1_500},
    command="protogoal reproduce scaling",
)
RATES = (2_000, 4_000, 8_000, 16_000, 33_280, 66_560)  # steps a second offered by the simulated actors
LOAD_SECONDS = {"smoke": 3.0, "cpu": 20.0, "paper": 60.0}
SPEED_STEPS = {"smoke": 8_000, "cpu": 100_000, "paper": 1_000_000}
WARM_STEPS = 20_000
SPEED_REPEATS = {"smoke": 1, "cpu": 3, "paper": 3}
SOAK_MINUTES = {"smoke": 0.5, "cpu": 25.0, "paper": 120.0}
SAMPLE_SECONDS = 5.0
SOAK = ("engine", "seconds", "step", "process", "megabytes", "cpu_seconds")
LOAD = ("offered", "achieved", "process", "cpus")
KEPT = ("offered", "achieved", "held_by_storing", "held_by_counting", "held_by_learning", "goal_sets", "goal_sets_due", "uncounted")
ALONE = ("component", "cpu_seconds")
SIZES = ("what", "bytes_or_operations")
SPEED = ("engine", "repeat", "process", "steps", "seconds", "cpu_seconds")


def run(scale: str, seeds: int | None, out: Path) -> None:
    """Each part that is not there yet."""
    if not (out / "load.csv").exists():
        measure_load(out, LOAD_SECONDS[scale], RATES[:2] if scale == "smoke" else RATES)
    if not (out / "speed.csv").exists():
        measure_speed(out, SPEED_STEPS[scale], SPEED_REPEATS[scale])
    if not (out / "soak.csv").exists():
        soak(out, SOAK_MINUTES[scale])
    arms.run(ENGINES, scale, seeds, out / "engines", processes=1)  # one after another: each has the machine to itself
    plot(out)
    describe(out, scale)


def plot(out: Path) -> None:
    """Draw the figures from the CSV alone."""
    for name, draw in (("load", scaling_figures.draw_load), ("soak", scaling_figures.draw_soak)):
        if (out / f"{name}.csv").is_file():
            draw(out)
    if (out / "engines" / "curves.csv").is_file():
        ENGINES.plot(out / "engines")


# --- load ---------------------------------------------------------------------------------------------------------


def measure_load(out: Path, seconds: float, rates: tuple[int, ...]) -> None:
    """components.csv, sizes.csv; load.csv and kept.csv."""
    from protogoal.experiments import scaling_load, scaling_parts

    parts = scaling_parts.Parts(scaling_load.paper_config())
    write_csv(out / "components.csv", ALONE, list(scaling_parts.components(parts).items()))
    write_csv(out / "sizes.csv", SIZES, list(scaling_parts.sizes(parts).items()))
    load: list[tuple[Any, ...]] = []
    kept: list[tuple[Any, ...]] = []
    for rate in rates:
        found = scaling_load.drive(rate, seconds)
        load += [(rate, found.achieved, process, cpus) for process, cpus in found.load.items()]
        held = (found.held.get(reason, 0.0) for reason in ("storing", "counting", "learning"))
        kept.append((rate, found.achieved, *held, found.goal_sets, found.goal_sets_due, found.uncounted))
        print(f"offered {rate:,} steps/s, made {found.achieved:,.0f}: "
              + ", ".join(f"{name} {cpus:.2f}" for name, cpus in found.load.items()), file=sys.stderr)
        if found.achieved < 0.7 * rate:  # full: more would only queue
            break
    write_csv(out / "load.csv", LOAD, load)
    write_csv(out / "kept.csv", KEPT, kept)


# --- speed --------------------------------------------------------------------------------------------------------


def measure_speed(out: Path, steps: int, repeats: int) -> None:
    """speed.csv: seconds and CPU seconds that each engine needs for the same steps, after a start that is not counted."""
    from protogoal.config import DeepConfig
    from protogoal.experiments.scaling_load import cpu_by_process
    from protogoal.presets import PRESETS
    from protogoal.run.ray.session import RaySession
    from protogoal.run.training import make_session

    config: DeepConfig = dataclasses.replace(PRESETS[PRESET], steps=WARM_STEPS + steps)
    rows: list[tuple[Any, ...]] = []
    for engine, repeat in itertools.product(("local", "ray"), range(repeats)):
        with contextlib.closing(make_session(config, engine)) as session:
            def spent(session: Any = session) -> dict[str, float]:
                return cpu_by_process(session) if isinstance(session, RaySession) else {"session": time.process_time()}

            training = session.train()
            while session.step < WARM_STEPS:
                next(training)
            first, start, before = session.step, time.perf_counter(), spent()
            for _ in training:
                pass
            made, seconds = session.step - first, time.perf_counter() - start
            rows += [(engine, repeat, name, made, seconds, cpu - before.get(name, 0.0)) for name, cpu in spent().items()]
        print(f"{engine}: {made / seconds:,.0f} steps/s", file=sys.stderr)
    write_csv(out / "speed.csv", SPEED, rows)


# --- soak ---------------------------------------------------------------------------------------------------------


def soak(out: Path, minutes: float, engines: Sequence[str] = ("ray", "local"), changed: Sequence[str] = ()) -> None:
    """soak.csv: memory and CPU time of each process, every few seconds of a long run, and Ray's shared store.

    changed: options for `train` beside the preset's.
    """
    rows: list[tuple[Any, ...]] = []
    for engine in engines:
        run_path = out / "runs" / f"soak-{engine}-{int(time.time())}"
        run_path.parent.mkdir(parents=True, exist_ok=True)
        options = ["--engine", engine, "--steps", str(10**9), *changed]
        command = [sys.executable, "-m", "protogoal.cli", "train", PRESET, "--run", str(run_path), *options]
        with (run_path.parent / f"{run_path.name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})
            try:
                rows += _watch(process, engine, minutes * 60, run_path)
            finally:
                process.send_signal(signal.SIGINT)
                process.wait()
        write_csv(out / "soak.csv", SOAK, rows)


def _watch(process: subprocess.Popen[bytes], engine: str, seconds: float, run_path: Path) -> list[tuple[Any, ...]]:
    import psutil

    rows: list[tuple[Any, ...]] = []
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        time.sleep(SAMPLE_SECONDS)
        if process.poll() is not None:
            raise ValueError(f"the run {run_path} ended early; see its log")
        now, step = round(time.monotonic() - start, 1), arms.last_step(run_path)
        main = psutil.Process(process.pid)
        for child in [main, *main.children(recursive=True)]:
            try:
                command = child.cmdline()
                name = "session" if child.pid == process.pid else role_of(command)
                if command and command[0].endswith("/raylet"):
                    rows.append((engine, now, step, "object store", _shared_bytes(child.pid) / 1e6, 0.0))
                if name:
                    spent = child.cpu_times()
                    rows.append((engine, now, step, name, child.memory_full_info().uss / 1e6, spent.user + spent.system))
            except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
                continue
    return rows


def _shared_bytes(process: int) -> int:
    """Memory in use by the files under /dev/shm that a process has open: where Ray's raylet keeps all objects."""
    found: dict[int, int] = {}
    for file in Path(f"/proc/{process}/fd").iterdir():
        if os.readlink(file).startswith("/dev/shm/"):
            stat = os.stat(file)
            found[stat.st_ino] = stat.st_blocks * 512
    return sum(found.values())


def role_of(command: list[str]) -> str:
    """What a process of Ray is, in a word; empty for those that only come and go."""
    words = " ".join(command)
    if words.startswith("ray::"):
        name = words.removeprefix("ray::").split(".")[0].split("(")[0].strip()
        return {"Worker": "workers", "LearnerRole": "learner", "PGERole": "proto-goal evaluator", "Shard": "replay shard",
                "PlayerRole": "player"}.get(name, "Ray's own" if name.endswith("Agent") else "")
    if "gcs_server" in words.split(" ")[0]:
        return "Ray's directory server"
    return "Ray's own" if "ray" in words else ""


# --- words --------------------------------------------------------------------------------------------------------


def describe(out: Path, scale: str) -> None:
    """README.md: the numbers, and what made them; a hand-written notes.md beside it is included, and never overwritten."""
    lines = ["# Scaling out", "", "What the numbers mean is in docs/scaling.md.", ""]
    for part, words in (("load", _load_words), ("speed", _speed_words), ("soak", _soak_words)):
        if (out / f"{part}.csv").is_file():
            lines += [*words(out), ""]
    if (out / "engines" / "curves.csv").is_file():
        lines += _engines_words(out / "engines")
    made = f"commit: {commit()}"
    if (out / "notes.md").is_file():
        lines += [(out / "notes.md").read_text()]
        made = "commits: named part by part above"
    lines += [f"- command: `protogoal reproduce scaling --scale {scale}`", f"- {made}",
              f"- machine: {os.cpu_count()} CPU cores, no GPU", ""]
    write_whole(out / "README.md", "\n".join(lines))


def _table(*header: str) -> list[str]:
    return [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]


def _load_words(out: Path) -> list[str]:
    lines = ["## The rate of 128 actors", "",
             "Actors are simulated; messages, replay, counting, refreshes, goal sets and weights are real.", "",
             "![steps kept, and CPU time of each process against the rate of acting](load.png)", "",
             *_table("offered, steps/s", "made", "acting waited for storing", "for counting", "for learning", "goal sets published",
                     "goal sets due", "most steps uncounted")]
    for row in read_csv(out / "kept.csv"):
        shares = (f"{float(row[f'held_by_{what}']):.0%}" for what in ("storing", "counting", "learning"))
        lines.append(f"| {int(row['offered']):,} | {float(row['achieved']):,.0f} | {' | '.join(shares)} | {row['goal_sets']} | "
                     f"{float(row['goal_sets_due']):.1f} | {int(row['uncounted']):,} |")
    lines += ["", *_table("process", "CPU µs a step", "full at steps/s")]
    lines += [f"| {name} | {cost * 1e6:.1f} | {1 / cost:,.0f} |" for name, cost in scaling_figures.costs(out).items()]
    lines += ["", *_table("component alone, paper's settings", "CPU seconds")]
    lines += [f"| {row['component']} | {float(row['cpu_seconds']):.3g} |" for row in read_csv(out / "components.csv")]
    lines += ["", *_table("what", "bytes, or operations")]
    return lines + [f"| {row['what']} | {float(row['bytes_or_operations']):,.0f} |" for row in read_csv(out / "sizes.csv")]


def _speed_words(out: Path) -> list[str]:
    """Means over the repeats."""
    rows = read_csv(out / "speed.csv")
    seconds = {(row["engine"], row["repeat"]): (int(row["steps"]), float(row["seconds"])) for row in rows}
    rate: dict[str, float] = {}
    cpu: dict[str, float] = {}  # CPU seconds for a thousand steps
    for engine in dict.fromkeys(row["engine"] for row in rows):
        runs = [value for (name, _), value in seconds.items() if name == engine]
        steps = sum(made for made, _ in runs)
        rate[engine] = steps / sum(took for _, took in runs)
        cpu[engine] = 1000 * sum(float(row["cpu_seconds"]) for row in rows if row["engine"] == engine) / steps
    lines = ["## Both engines on this machine", "", *_table("engine", "steps/s", "CPU seconds for 1,000 steps")]
    lines += [f"| {engine} | {rate[engine]:,.0f} | {_digits(cpu[engine])} |" for engine in rate]
    if {"local", "ray"} <= set(rate):
        lines += ["", f"Ray makes {rate['ray'] / rate['local']:.2f} of the steps a second at {cpu['ray'] / cpu['local']:.2f} times "
                  "the CPU time."]
        lines += ["", *_table("process of the Ray engine", "CPU seconds for 1,000 steps")]
        steps = sum(made for (engine, _), (made, _) in seconds.items() if engine == "ray")
        for name in dict.fromkeys(row["process"] for row in rows if row["engine"] == "ray"):
            spent = sum(float(row["cpu_seconds"]) for row in rows if row["engine"] == "ray" and row["process"] == name)
            lines.append(f"| {scaling_figures.called(name)} | {_digits(1000 * spent / steps)} |")
    return lines


def _digits(number: float) -> str:
    return f"{number:.3f}" if number < 1 else f"{number:.1f}"


def _soak_words(out: Path) -> list[str]:
    lines = ["## Memory over a long run", "", "![memory of each process over time](soak.png)", "",
             *_table("engine", "process", "MB after half", "MB at the end")]
    return lines + [f"| {engine} | {name} | {half:,.0f} | {end:,.0f} |" for engine, name, half, end in scaling_figures.growth(out)]


def _engines_words(out: Path) -> list[str]:
    """When each run solved the task, and how it ended."""
    return ["## What both engines learn", "", "![learning curves of both engines](engines/learning.png)", "",
            arms_readme.TABLE_HEAD, "|---" * 8 + "|", *arms_readme.table(ENGINES, out), ""]
