"""The README of a comparison: how well each arm did, whether the first leads by more than chance, and what made the runs.

Everything is read from the CSV. `arms.run` calls `describe`; other experiments take the table.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protogoal.experiments import arms, finished
from protogoal.experiments.arms import Comparison
from protogoal.experiments.curves import chance_of_lead, mean_of_end, on_grid, read_csv, solved_from, success_curves
from protogoal.files import write_whole
from protogoal.record.statistics import mean_interval, pooled_interquartile_mean, probability_of_improvement, stratified_bootstrap


def summary(comparison: Comparison, out: Path, share: float = 0.1) -> list[dict[str, Any]]:
    """For each arm success over the last tenth of its steps and over all of them, which tells fast arms from slow ones.

    Each is (mean over seeds, low, high) with the 95 % interval of `statistics.mean_interval`. The steps are those that every seed
    of it has made.
    `by_seed` has success over all of them, `solved` the step from which it won, for each seed.
    """
    curves = success_curves(read_csv(out / "curves.csv"))
    rows = []
    for arm in comparison.arms:
        if arm.label not in curves:
            continue
        of = curves[arm.label]
        steps = min(points[-1, 0] for points in of.values())
        last = np.array([mean_of_end(points, steps, share) for points in of.values()])
        whole = on_grid(of, np.linspace(0, steps, 200)).mean(1)
        rows.append({"arm": arm.label, "seeds": len(last), "steps": int(steps), "last": mean_interval(last),
                     "whole": mean_interval(whole), "by_seed": whole, "solved": [solved_from(points) for points in of.values()]})
    return rows


TABLE_HEAD = "| arm | seeds | steps | success, last tenth | 95 % interval | all of training | 95 % interval | ≥ 0.9 from, by seed |"


def table(comparison: Comparison, out: Path) -> list[str]:
    """The rows of a table in Markdown: arm, seeds, steps, success at the end and over all of training, when it was solved."""

    def cells(name: str, row: Mapping[str, Any]) -> str:
        mean, low, high = row[name]
        if not comparison.has_success:
            return "– | –"
        return f"{mean:.2f} | {'one seed' if np.isnan(low) else f'{low:.2f}–{high:.2f}'}"

    return [f"| {row['arm']} | {row['seeds']} | {row['steps']:,} | {cells('last', row)} | {cells('whole', row)} "
            f"| {when_solved(row['solved']) if comparison.has_success else '–'} |" for row in summary(comparison, out)]


def leads(comparison: Comparison, out: Path) -> list[str]:
    """Lines in Markdown: how likely chance alone would put the first arm as far ahead of each other one; none of single seeds."""
    first, *others = summary(comparison, out)
    if min(row["seeds"] for row in (first, *others)) < 2:
        return []
    found = ", ".join(f"{row['arm']} {_probability(chance_of_lead(first['by_seed'], row['by_seed']))}" for row in others)
    return [f"How likely chance alone would put {first['arm']} as far ahead over all of training (one-sided permutation test over "
            f"seeds): {found}. Not corrected for the number of comparisons.", ""]


def improvements(comparison: Comparison, out: Path) -> list[str]:
    """Lines in Markdown: how likely a run of the first arm is better over all of training than one of each other arm.

    Arms of several panels are one agent on several tasks: then the interquartile mean over tasks is told as well.
    """
    found = {row["arm"]: row["by_seed"] for row in summary(comparison, out)}
    agents: dict[str, dict[str, Any]] = {}
    for arm in comparison.arms:
        if arm.label in found:
            agents.setdefault(arm.name, {})[arm.panel] = found[arm.label]
    (first, own), *others = agents.items()
    if min(len(seeds) for tasks in agents.values() for seeds in tasks.values()) < 2 or not others:
        return []
    told, lines = [], []
    for name, tasks in others:
        both = [panel for panel in own if panel in tasks]
        if both:
            told.append(f"{name} {_improvement([own[panel] for panel in both], [tasks[panel] for panel in both])}")
    if told:
        lines += [f"Chance that a run of “{first}” does better over all of training than one of another arm (probability of "
                  f"improvement, ties half, 95 % bootstrap over seeds within tasks): {', '.join(told)}.", ""]
    if max(len(tasks) for tasks in agents.values()) > 1:
        means = ", ".join(f"{name} {_middle(list(tasks.values()))}" for name, tasks in agents.items())
        lines += [f"Interquartile mean of success over all of training, over the {len(own)} tasks: {means}.", ""]
    return lines


def _middle(tasks: list[Any]) -> str:
    """The interquartile mean over tasks, and its interval where the seeds of a task differ."""
    low, high = stratified_bootstrap(pooled_interquartile_mean, tasks)
    return f"{pooled_interquartile_mean(tasks):.2f} ({f'{low:.2f}–{high:.2f}' if low < high else 'all seeds of a task agree'})"


def _improvement(first: list[Any], other: list[Any]) -> str:
    """0.83 (0.61–1.00); where every pair says the same, how many there are, as redrawing them tells nothing."""
    value = probability_of_improvement(first, other)
    if value in (0.0, 1.0):
        return f"{value:.2f} (all {sum(len(x) * len(y) for x, y in zip(first, other, strict=True))} pairs)"
    low, high = stratified_bootstrap(probability_of_improvement, first, other)
    return f"{value:.2f} ({low:.2f}–{high:.2f})"


def seeds_in_words(comparison: Comparison, seeds: int) -> str:
    """Which seeds are reported, and which chose its settings."""
    reported = range(comparison.first_seed, comparison.first_seed + seeds)
    words = f"seeds {reported[0]}–{reported[-1]} are reported" if seeds > 1 else f"seed {reported[0]} is reported"
    if not comparison.chosen_on:
        return f"{words}; no setting was chosen by results"
    chosen = ", ".join(map(str, comparison.chosen_on))
    both = [seed for seed in reported if seed in comparison.chosen_on]
    warning = f"; {', '.join(map(str, both))} are among them: no test of these settings" if both else ""
    return f"{words}; settings were chosen on {chosen}{warning}"


def _probability(p: float) -> str:
    return "below 0.0001" if p < 1e-4 else f"{p:.1g}" if p < 0.01 else f"{p:.2f}"


def when_solved(steps: Sequence[float], most: int = 5) -> str:
    """From which step each seed was solved; of more than `most` seeds how many of them, the first and the last."""

    def words(step: float) -> str:
        return "not" if not np.isfinite(step) else f"{step / 1e6:.3g} M" if step >= 1e6 else f"{step / 1e3:.3g} k"

    if len(steps) <= most:
        return ", ".join(map(words, steps))
    found = sorted(step for step in steps if np.isfinite(step))
    ends = " to ".join(dict.fromkeys(words(found[i]) for i in (0, -1) if found))
    return f"{len(found)} of {len(steps)}" + (f", {ends}" if found else "")


ENDED = 0.98
"""A run of which so much was seen was seen to its end."""


def wall_time(out: Path) -> str:
    """From the fastest to the slowest run, and of all; as far as the runs were evaluated, which is said where they went on."""
    last: dict[tuple[str, str], tuple[int, float]] = {}
    for row in read_csv(out / "curves.csv"):
        last[row["arm"], row["seed"]] = int(row["step"]), float(row["seconds"])
    seconds = [spent for _, spent in last.values()]
    unit, name = (60.0, "minutes") if max(seconds) >= 120 else (1.0, "seconds")
    ends = dict.fromkeys(f"{spent / unit:.0f}" for spent in (min(seconds), max(seconds)))
    total = sum(seconds)
    big, large = (3600.0, "hours") if total >= 3600 else (60.0, "minutes") if total >= 120 else (1.0, "seconds")
    of_all = f"{total / big:.{int(large == 'hours')}f} {large}"
    words = f"{' to '.join(ends)} {name} a run"
    if len(last) > 1:
        words += f", {of_all} for the {len(last)} runs one after another"
    return words + _to_the_last(out, {run: step for run, (step, _) in last.items()}, "evaluation")


def cpu_time(out: Path) -> list[str]:
    """CPU seconds of a run of each arm, in the mean over seeds; nothing where runs did not record them."""
    last: dict[tuple[str, str], tuple[int, float]] = {}
    for row in read_csv(out / "metrics.csv"):
        if row["metric"] == "time/cpu_seconds":
            run = row["arm"], row["seed"]
            last[run] = max((int(row["step"]), float(row["value"])), last.get(run, (0, 0.0)))
    arms_of = dict.fromkeys(arm for arm, _ in last)
    means = [f"{arm} {np.mean([spent for (a, _), (_, spent) in last.items() if a == arm]):,.0f}" for arm in arms_of]
    end = _to_the_last(out, {run: step for run, (step, _) in last.items()}, "record of them")
    return [f"- CPU seconds of a run, mean: {', '.join(means)}{end}"] if means else []


def _to_the_last(out: Path, seen: Mapping[tuple[str, str], int], what: str) -> str:
    """Words for runs that went on after what was seen of them; none where all were seen to their end."""
    made = dict(seen)
    for name in ("curves", "metrics"):
        for row in read_csv(out / f"{name}.csv"):
            run = row["arm"], row["seed"]
            if run in made:
                made[run] = max(made[run], int(row["step"]))
    return f"; to the last {what}, after which a run went on" if any(seen[run] < ENDED * made[run] for run in seen) else ""


def _figure(out: Path, name: str, words: str) -> list[str]:
    return [f"![{words}]({name}.png)", ""] if (out / f"{name}.png").exists() else []


def describe(comparison: Comparison, scale: str, seeds: int, out: Path) -> None:
    """README.md: claim, table, command, commit; a hand-written notes.md beside it is included, and never overwritten."""
    rows = [TABLE_HEAD, "|---" * 8 + "|", *table(comparison, out)]
    notes = (out / "notes.md").read_text() if (out / "notes.md").exists() else ""
    figures = {"time": "learning curves against wall time", "goals": "goals discovered"}
    learning, others = [], [line for name, words in figures.items() for line in _figure(out, name, words)]
    for name, words in {"learning": "learning curves", "achievements": "achievements unlocked"}.items():
        learning += _figure(out, name, words)
    command = comparison.command or f"protogoal reproduce {comparison.name}"
    example = " ".join(arms.arguments(comparison, comparison.arms[0], comparison.first_seed, scale, Path("OUT")))
    text = "\n".join([
        f"# {comparison.title}", "", f"The paper: {comparison.claim}", "", *learning, *rows, "",
        *others, *improvements(comparison, out), *(leads(comparison, out) if comparison.tests_first else ()), notes,
        f"- command: `{command} --scale {scale} --seeds {seeds}`; one run of it: `protogoal {example}`",
        f"- commit: {', '.join(sorted(set(finished.commits(out).values()))) or 'unknown'}",
        f"- machine: {os.cpu_count()} CPU cores, no GPU; date {time.strftime('%Y-%m-%d')}",
        f"- wall time: {wall_time(out)}", *cpu_time(out),
        f"- {seeds_in_words(comparison, seeds)}",
        "- interval: 95 %, Student's t over seeds; where all seeds agree the exact one (Clopper and Pearson)",
        "- raw data: `curves.csv`, `metrics.csv`, `runs.csv`", ""])
    write_whole(out / "README.md", text)
