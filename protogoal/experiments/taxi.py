"""SparseTaxi, both tabular agents, 20 seeds (paper §6.1): learning curves, and how the goal space is refined.

`protogoal reproduce taxi` and `make demo` call `run`. Seeds are trained on all cores, each leaves a file under OUT/seeds
when it is finished, so a run that was stopped goes on where it was. Of these files the CSV are made, of the CSV alone the
figures (taxi_figures.py), of both README.md and report.html.
"""

from __future__ import annotations

import base64
import html
import json
import multiprocessing
import os
import platform
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from protogoal.config import TabularConfig
from protogoal.experiments import cores
from protogoal.experiments.arms import Scale
from protogoal.experiments.curves import on_grid, read_csv, success_curves, write_csv
from protogoal.files import write_whole
from protogoal.record.statistics import mean_interval
from protogoal.run.directory import commit

AGENTS = {"proto-goal": "protogoal", "Q-learning": "qlearning"}  # name in the figure → preset's agent
SCALES = {"smoke": Scale(20_000, 2), "cpu": Scale(300_000, 20), "paper": Scale(300_000, 20)}
REPORTED = (50_000, 100_000, 200_000, 300_000)  # steps of the closing table
SNAPSHOTS = 60  # moments of training at which the goal space is kept, evenly spaced on a logarithmic axis
SETTLED = 10_000  # steps after which the goal space must not hold what cannot be controlled

CURVES = ("arm", "seed", "step", "seconds", "episodes", "successes")
GOAL_SPACE = ("seed", "step", "verdicts")
GOALS = ("seed", "goal", "kind", "place", "first_plausible", "last_plausible", "count", "pursuits", "success")


@dataclass(frozen=True)
class Job:
    """One agent with one seed."""

    label: str
    config: TabularConfig
    file: Path

    @property
    def key(self) -> dict[str, Any]:
        """What the job's result depends on; a file that was made with something else is made again."""
        return {"format": 1, "label": self.label, "config": asdict(self.config)}


def run(scale: str, seeds: int | None, out: Path) -> None:
    """Train what is missing, write CSV, figures, README.md and report.html, and print the closing table."""
    size, out, start = SCALES[scale], Path(out), time.monotonic()
    base = TabularConfig(steps=size.steps)
    jobs = [
        Job(label, replace(base, agent=agent, seed=seed), out / "seeds" / f"{agent}-{seed}.json")  # type: ignore[arg-type]
        for seed in range(seeds or size.seeds) for label, agent in AGENTS.items()
    ]
    try:
        (out / "seeds").mkdir(parents=True, exist_ok=True)
        results = _train_all(jobs)
        _write_csv(results, out)
        plot(out)
        command = f"protogoal reproduce taxi --scale {scale} --seeds {len(jobs) // len(AGENTS)}"
        _describe(command, time.monotonic() - start, out)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from None
    _print_table(out)


def plot(out: Path) -> None:
    """Draw learning.png and goal_space.png from the CSV alone."""
    from protogoal.experiments import taxi_figures

    taxi_figures.draw_learning(out)
    taxi_figures.draw_goal_space(out)


# --- training -----------------------------------------------------------------------------------------------------


def _train_all(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The result of every job, from its file where there is one; the others are trained on all cores."""
    from protogoal.run.progress import Progress

    results = {job: _finished(job) for job in jobs}
    missing = [job for job, result in results.items() if result is None]
    total = sum(job.config.steps for job in jobs)
    done = total - sum(job.config.steps for job in missing)
    with Progress(total, "SparseTaxi") as bar:
        bar.update(done, runs=f"{len(jobs) - len(missing)} of {len(jobs)}")
        for job, result in _train_missing(missing):
            results[job] = result
            done += job.config.steps
            ready = {k: v for k, v in results.items() if v is not None}
            success = {label: f"{np.mean(final):.2f}" for label in AGENTS
                       if (final := [r["curve"][-1][3] / r["curve"][-1][2] for j, r in ready.items() if j.label == label])}
            bar.update(done, runs=f"{len(ready)} of {len(jobs)}", **success)
    return [result for result in results.values() if result is not None]


def _train_missing(jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
    processes = min(cores(), len(jobs))
    if processes == 0:
        return
    _warm_up()  # here, once: workers would each compile, and at the same time
    if processes == 1:
        for job in jobs:
            yield job, _train(job)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, initializer=_leave_interrupts_to_the_parent) as pool:
        futures = {pool.submit(_train, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise ValueError("a training process was killed (out of memory?); start again to go on") from None
        finally:  # Ctrl-C: the seeds that run now are finished, a second or two, the others are left for the next time
            pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _warm_up() -> None:
    for agent in AGENTS.values():
        _agent(TabularConfig(agent=agent, steps=1)).advance(1_000)  # type: ignore[arg-type]


def _agent(config: TabularConfig) -> Any:
    from protogoal.run.tabular import TabularSession

    return TabularSession(config).agent


def _finished(job: Job) -> dict[str, Any] | None:
    try:
        result: dict[str, Any] = json.loads(job.file.read_text())
    except (OSError, ValueError):
        return None
    return result if result.get("key") == json.loads(json.dumps(job.key)) else None


def _train(job: Job) -> dict[str, Any]:
    """One run, into its file: the learning curve and, with goals, the history of the goal space."""
    from protogoal.tabular.agent import train

    agent = _agent(job.config)
    start, curve = time.perf_counter(), []
    episodes = job.config.learning.eval_episodes
    for step, metrics in train(agent, job.config.steps):
        curve.append([step, round(time.perf_counter() - start, 4), episodes, round(metrics["success"] * episodes)])
    result = {"key": job.key, "seed": job.config.seed, "label": job.label, "curve": curve}
    if agent.evaluator is not None:
        result |= _goal_history(agent, job.config.steps)
    write_whole(job.file, json.dumps(result))
    return result


def _goal_history(agent: Any, steps: int) -> dict[str, Any]:
    """The verdicts at some moments, as a digit for each proto-goal; and for each when it was plausible."""
    from protogoal.experiments.taxi_figures import PICTURES
    from protogoal.goals.plausibility import Verdict

    refreshes, table, space = agent.take_refreshes(), agent.evaluator.table, agent.evaluator.space
    grid = np.geomspace(agent.settings.refresh_every, steps, SNAPSHOTS).round(-2).astype(int)
    moments = np.unique(np.concatenate([grid, [step for step in PICTURES if step <= steps]]))
    last = np.searchsorted(refreshes.step, moments, side="right") - 1
    snapshots = [[int(step), "".join(map(str, refreshes.verdict[k])) if k >= 0 else "0" * space.size]
                 for step, k in zip(moments, last, strict=True)]
    plausible = refreshes.verdict == Verdict.PLAUSIBLE
    goals = []
    for i in range(space.size):
        when = refreshes.step[plausible[:, i]]
        first, final = (int(when[0]), int(when[-1])) if len(when) else (-1, -1)
        place = space.name(i).removeprefix(f"{space.kind(i)} ").removeprefix("at ").replace(",", " ")
        goals.append([i, space.kind(i), place, first, final, int(table.count[i]), int(table.pursuits[i]),
                      float(table.success_rate[i])])
    return {"goal_space": snapshots, "goals": goals}


def _write_csv(results: Sequence[dict[str, Any]], out: Path) -> None:
    write_csv(out / "curves.csv", CURVES, [(r["label"], r["seed"], *point) for r in results for point in r["curve"]])
    with_goals = [r for r in results if "goals" in r]
    write_csv(out / "goal_space.csv", GOAL_SPACE, [(r["seed"], *row) for r in with_goals for row in r["goal_space"]])
    write_csv(out / "goals.csv", GOALS, [(r["seed"], *row) for r in with_goals for row in r["goals"]])


# --- words --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """What the CSV say, in a few numbers."""

    steps: tuple[int, ...]
    success: dict[str, np.ndarray]  # agent → [seeds, steps]
    found: dict[str, float]  # kind → plausible at the end, mean over seeds
    total: dict[str, int]  # kind → proto-goals there are
    last_destination: int  # the last step at which a destination was plausible in any seed; −1 for never
    all_found: int  # seeds in which every taxi cell and passenger place was plausible at the end

    def cell(self, agent: str, k: int) -> str:
        values = self.success[agent][:, k]
        return f"{values.mean():.2f} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else f"{values[0]:.2f}"


def summarise(out: Path) -> Summary:
    """Read the CSV."""
    from protogoal.experiments.taxi_figures import read_goal_space

    curves = success_curves(read_csv(out / "curves.csv"))
    last = max(points[-1, 0] for points in curves["proto-goal"].values())
    steps = tuple(step for step in REPORTED if step <= last) or (int(last),)
    goals = read_csv(out / "goals.csv")
    kinds = [row["kind"] for row in goals if row["seed"] == goals[0]["seed"]]
    final = read_goal_space(out)[1][:, -1]  # plausible at the last moment kept, [seeds, B]
    of = {kind: np.array([k == kind for k in kinds]) for kind in dict.fromkeys(kinds)}
    wanted = ~of["destination"]
    return Summary(
        steps, {agent: on_grid(curves[agent], np.array(steps)) for agent in AGENTS},
        {kind: float(final[:, mask].sum(1).mean()) for kind, mask in of.items()},
        {kind: int(mask.sum()) for kind, mask in of.items()},
        max(int(row["last_plausible"]) for row in goals if row["kind"] == "destination"),
        int(final[:, wanted].all(1).sum()))


def _findings(s: Summary) -> list[str]:
    """Two sentences that compare with the paper, made of the numbers."""
    seeds, k = len(s.success["proto-goal"]), len(s.steps) - 1
    k = s.steps.index(100_000) if 100_000 in s.steps else k
    ours, theirs = (s.success[agent][:, k].mean() for agent in AGENTS)
    faster = "confirmed" if ours - theirs > 0.2 else "not confirmed at this scale"
    pruned = s.last_destination < SETTLED and s.all_found == seeds
    verdict = "not confirmed at this scale"
    if pruned:
        verdict = "confirmed" if s.last_destination < 0 else "confirmed, but for that beginning"
    never = "was never plausible" if s.last_destination < 0 else f"was last judged plausible at step {s.last_destination:,}"
    return [
        f"The paper: exploration with proto-goals learns SparseTaxi with fewer samples than ε-greedy Q-learning. Here, after "
        f"{s.steps[k]:,} steps, {ours:.2f} against {theirs:.2f}: {faster}.",
        f"The paper: the goal space grows from taxi cells to passenger places and never holds destinations. Here a destination "
        f"{never} in any of {seeds} seeds (at first an action not tried yet looks like a way to avoid anything), and in "
        f"{s.all_found} of {seeds} all 25 taxi cells and 5 passenger places were plausible at the end: {verdict}.",
    ]


def _table(out: Path) -> list[list[str]]:
    s = summarise(out)
    return [["agent", *(f"{step // 1000}k steps" for step in s.steps)],
            *([agent, *(s.cell(agent, k) for k in range(len(s.steps)))] for agent in AGENTS)]


def _found(s: Summary) -> str:
    return ", ".join(f"{s.found[kind]:.4g} of {s.total[kind]} {words}" for kind, words in
                     (("taxi", "taxi cells"), ("passenger", "passenger places"), ("destination", "destinations")))


def _describe(command: str, seconds: float, out: Path) -> None:
    """README.md and report.html: figures, table, interval, command, commit; a hand-written notes.md beside them is included."""
    s, table = summarise(out), _table(out)
    notes = (out / "notes.md").read_text().strip() if (out / "notes.md").exists() else ""
    findings = _findings(s)
    intervals = {agent: [mean_interval(seeds)[1:] for seeds in s.success[agent].T] for agent in AGENTS}
    rows = [[agent, *(f"{low:.2f}–{high:.2f}" for low, high in intervals[agent])] for agent in AGENTS]
    facts = [
        f"goals found at the end, mean over seeds: {_found(s)}",
        f"command: `{command}`", f"commit: {commit()}", f"seeds: 0–{len(s.success['proto-goal']) - 1}",
        f"machine: {os.cpu_count()} CPU cores, Python {platform.python_version()}; {seconds:.0f} s for what was not done before",
        "± is the standard error, the interval the 95 % t interval over seeds, exact where all agree; a test is one greedy "
        "episode from each of the 300 start states",
        "raw data: `curves.csv` (every test), `goal_space.csv` (verdicts over training: 0 unobserved, 1 static, "
        "2 not controllable, 4 not reachable, 6 plausible; 25 taxi cells row by row, 5 passenger places, 4 destinations), "
        "`goals.csv` (each "
        "proto-goal at the end)",
    ]

    def markdown(lines: list[list[str]]) -> list[str]:
        head, *body = ("| " + " | ".join(line) + " |" for line in lines)
        return [head, "|" + "---|" * len(lines[0]), *body]

    write_whole(out / "README.md", "\n".join([
        "# SparseTaxi: exploration with proto-goals against ε-greedy Q-learning", "", *findings, "",
        "![learning curves](learning.png)", "", "![the goal space over training](goal_space.png)", "",
        "Success of the greedy task policy, mean over seeds:", "", *markdown(table), "", "95 % interval:", "",
        *markdown([table[0], *rows]), "", *([notes, ""] if notes else []), *(f"- {fact}" for fact in facts), ""]))
    write_whole(out / "report.html", _page(findings, [*table, *rows], facts, out))


def _page(findings: list[str], table: list[list[str]], facts: list[str], out: Path) -> str:
    def picture(name: str, words: str) -> str:
        return f'<img alt="{words}" src="data:image/png;base64,{base64.b64encode((out / name).read_bytes()).decode()}">'

    cells = ["<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
             for row, tag in zip(table, ["th"] + ["td"] * len(table), strict=False)]
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>SparseTaxi</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}}
img{{max-width:100%}}table{{border-collapse:collapse}}td,th{{padding:.3rem .8rem;border-bottom:1px solid #d5d9df;text-align:left}}
li{{color:#57606a}}</style>
<h1>SparseTaxi: exploration with proto-goals</h1>
{''.join(f'<p>{html.escape(sentence)}</p>' for sentence in findings)}
{picture('learning.png', 'learning curves')}<table>{''.join(cells)}</table>
{picture('goal_space.png', 'the goal space over training')}
<ul>{''.join(f'<li>{html.escape(fact)}</li>' for fact in facts)}</ul></html>
"""


def _print_table(out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    s, rows = summarise(out), _table(out)
    table = Table(title=f"SparseTaxi: success of the greedy policy, {len(s.success['proto-goal'])} seeds, ± standard error",
                  title_justify="left")
    for k, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if k else "left")
    for row in rows[1:]:
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(f"goals found: {_found(s)}", highlight=False)
    console.print(f"report: {out / 'report.html'}   figures: {out / 'learning.png'}, {out / 'goal_space.png'}", highlight=False,
                  soft_wrap=True)
