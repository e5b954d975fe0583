"""Can the evaluator tell what is controllable (paper §6.2, Figure 8)? F1 against threshold, three domains, both estimators.

`protogoal reproduce controllability` calls `run`. A random policy plays; after some numbers of episodes the estimators judge
every proto-goal that was attained so far, on all transitions (as the paper's appendix does) and on 1,024 of them (as the
evaluator does during training). A goal is called controllable if mean_s [V_seek + V_avoid] exceeds the threshold, or if the
estimator calls it undecided: the evaluator would offer it. docs/controllability.md discusses the outcome.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.envs.controllability import DOMAINS, collect, make_dynamics, take
from protogoal.experiments.curves import bootstrap, read_csv, write_csv
from protogoal.goals.plausibility import CONTROLLABILITY_THRESHOLD
from protogoal.goals.table import pack_columns
from protogoal.goals.values import EstimatorSettings, seek_avoid_values
from protogoal.run.directory import commit, write_text

EPISODES = (2, 5, 10, 20, 50)
THRESHOLDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BATCH = 1024  # transitions of one refresh during training (paper, Table 2)
F1 = ("seed", "domain", "estimator", "batch", "episodes", "transitions", "threshold", "f1")
VALUES = ("seed", "domain", "estimator", "bit", "controllable", "seek", "avoid")


@dataclass(frozen=True)
class Variant:
    """An estimator and the transitions it is given."""

    label: str
    settings: EstimatorSettings
    batches: tuple[str, ...] = ("all", str(BATCH))


PAPER = EstimatorSettings(method="lspi", whole_up_to=0)
MAIN = (Variant("crossfit", EstimatorSettings()), Variant("lspi", PAPER))
MORE = (
    Variant("crossfit, always decides", EstimatorSettings(min_evidence=0.0)),
    Variant("crossfit, 32 projections", EstimatorSettings(whole_up_to=0)),
    Variant("lspi, ridge 1", EstimatorSettings(method="lspi", whole_up_to=0, ridge=1.0)),
    Variant("lspi, ridge 100", EstimatorSettings(method="lspi", whole_up_to=0, ridge=100.0)),
    Variant("lspi, whole observation", EstimatorSettings(method="lspi"), (str(BATCH),)),
)


@dataclass(frozen=True)
class Size:
    """How much of the experiment."""

    seeds: int
    episodes: tuple[int, ...]
    variants: tuple[Variant, ...]


SCALES = {
    "smoke": Size(2, (2, 10), MAIN),
    "cpu": Size(20, EPISODES, MAIN),
    "paper": Size(20, EPISODES, MAIN + MORE),
}


def run(scale: str, seeds: int | None, out: Path) -> None:
    """Judge all proto-goals of all seeds, write f1.csv and values.csv, then the figures and README.md of them."""
    from protogoal.run.progress import Progress

    size, out, start = SCALES[scale], Path(out), time.monotonic()
    jobs = [(domain, seed, size) for seed in range(seeds or size.seeds) for domain in DOMAINS]
    rows: list[list[Any]] = []
    values: list[list[Any]] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with Progress(len(jobs), "controllability", "jobs") as bar:
            for done, (f1_rows, value_rows) in enumerate(_all(jobs), 1):
                rows += f1_rows
                values += value_rows
                bar.update(done)
        write_csv(out / "f1.csv", F1, rows)
        write_csv(out / "values.csv", VALUES, values)
        plot(out)
        _describe(f"protogoal reproduce controllability --scale {scale} --seeds {len(jobs) // len(DOMAINS)}", start, out)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from None
    print(_table(out))


def plot(out: Path) -> None:
    """Draw threshold.png, values.png and data.png from the CSV alone."""
    from protogoal.experiments import controllability_figures

    controllability_figures.draw_threshold(out)
    controllability_figures.draw_values(out)
    controllability_figures.draw_data(out)


def f1_score(predicted: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """2·TP / (2·TP + FP + FN); 1 if there is nothing to find and nothing was called."""
    hit = int((predicted & truth).sum())
    wrong = int((predicted != truth).sum())
    return 2 * hit / (2 * hit + wrong) if hit + wrong else 1.0


def judge(domain: str, seed: int, size: Size) -> tuple[list[list[Any]], list[list[Any]]]:
    """Rows of both CSV for one domain and one seed."""
    dynamics = make_dynamics(domain)
    rng = np.random.default_rng([seed, list(DOMAINS).index(domain)])
    experience = collect(dynamics, size.episodes[-1], rng)
    rows: list[list[Any]] = []
    values: list[list[Any]] = []
    for episodes in size.episodes:
        everything = experience.first(episodes)
        n = len(everything.action)
        some = take(everything, rng.choice(n, min(n, BATCH), replace=False))
        for variant in size.variants:
            for name, batch in (("all", everything), (str(BATCH), some)):
                if name not in variant.batches:
                    continue
                found = seek_avoid_values(batch, pack_columns(batch.bits), dynamics.num_actions, variant.settings, seed)
                seen = np.flatnonzero(found.hits > 0)
                control, truth = found.controllability[seen], dynamics.controllable[seen]
                for threshold in THRESHOLDS if variant in MAIN else (CONTROLLABILITY_THRESHOLD,):
                    called = ~(control <= threshold)  # undecided goals, NaN, are offered too
                    score = f1_score(called, truth)
                    rows.append([seed, domain, variant.label, name, episodes, len(batch.action), threshold, score])
                if episodes == size.episodes[-1] and name == "all" and variant in MAIN:
                    for bit, is_controllable in zip(seen, truth, strict=True):
                        seek, avoid = float(found.seek_mean[bit]), float(found.avoid_mean[bit])
                        values.append([seed, domain, variant.label, int(bit), int(is_controllable), seek, avoid])
    return rows, values


def _all(jobs: Sequence[tuple[str, int, Size]]) -> Iterator[tuple[list[list[Any]], list[list[Any]]]]:
    """The results of all jobs in their order, computed on all cores."""
    judge("timer", 0, SCALES["smoke"])  # compiles, here and once
    processes = min(os.cpu_count() or 1, len(jobs))
    with _one_thread_a_process(), ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(judge, *zip(*jobs, strict=True))


@contextmanager
def _one_thread_a_process() -> Iterator[None]:
    """Matrix products of the processes that start meanwhile stay on one core each."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def summary(out: Path) -> dict[tuple[str, str, str, int], NDArray[np.float64]]:
    """F1 at the paper's threshold of all seeds by (domain, estimator, batch, episodes)."""
    found: dict[tuple[str, str, str, int], list[float]] = {}
    for row in read_csv(out / "f1.csv"):
        if float(row["threshold"]) == CONTROLLABILITY_THRESHOLD:
            key = row["domain"], row["estimator"], row["batch"], int(row["episodes"])
            found.setdefault(key, []).append(float(row["f1"]))
    return {key: np.array(scores) for key, scores in found.items()}


def _table(out: Path) -> str:
    """F1 at the paper's threshold: mean over seeds, with the 95 % interval after most episodes, as Markdown."""
    scores = summary(out)
    episodes = sorted({key[3] for key in scores})
    lines = [
        "| domain | estimator | transitions | " + " | ".join(f"{e} episodes" for e in episodes) + " | 95 % interval |",
        "|---|---|---|" + "---|" * (len(episodes) + 1),
    ]
    for domain, estimator, batch in dict.fromkeys(key[:3] for key in scores):
        row = [scores[domain, estimator, batch, e] for e in episodes]
        low, high = bootstrap(row[-1])
        cells = [f"{s.mean():.3f}" for s in row] + [f"{low:.3f}–{high:.3f}"]
        lines.append(f"| {domain} | {estimator} | {batch} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _describe(command: str, start: float, out: Path) -> None:
    """README.md: what was found, beside what the paper says, and how to make it again."""
    scores = summary(out)
    most = max(key[3] for key in scores)
    ours, paper = (
        ", ".join(f"{scores[d, estimator, 'all', most].mean():.2f} ({d})" for d in DOMAINS) for estimator in ("crossfit", "lspi")
    )

    def verdict(estimator: str) -> str:
        return "confirmed" if min(scores[d, estimator, "all", most].mean() for d in DOMAINS) >= 0.9 else "not confirmed"

    write_text(out / "README.md", "\n".join([
        "# Controllability: F1 of the evaluator's judgement", "",
        f"The paper reports that its estimator classifies proto-goals correctly in all three domains and gets better with data; "
        f"the figure is not public. Ours, the default estimator, reaches an F1 of {ours} at threshold "
        f"{CONTROLLABILITY_THRESHOLD:g} after {most} episodes; the estimator as the paper words it (LSPI) reaches {paper}. "
        f"Verdict: {verdict('crossfit')} for ours, {verdict('lspi')} for the estimator as worded.",
        "", "![F1 against threshold](threshold.png)", "", "![controllability of every bit](values.png)", "",
        "![F1 against the amount of data](data.png)", "",
        f"F1 at threshold {CONTROLLABILITY_THRESHOLD:g}, mean over seeds. Only bits that were attained in the data count; "
        "a bit that the estimator leaves undecided counts as called controllable.", "", _table(out), "",
        "docs/controllability.md says why LSPI fails and what repairs it.", "",
        f"- command: `{command}`; wall time: {time.monotonic() - start:.0f} s", f"- commit: {commit()}",
        f"- seeds: {len(scores['timer', 'crossfit', 'all', most])}; interval: bootstrap over seeds",
        f"- machine: {os.cpu_count()} CPU cores, no GPU; date {time.strftime('%Y-%m-%d')}",
        "- raw data: `f1.csv`, `values.csv`", ""]))
