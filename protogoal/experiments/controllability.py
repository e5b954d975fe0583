"""Can the evaluator tell what is controllable (paper §6.2, Figure 8)? F1 against the amount of data, eight domains, two policies.

`protogoal reproduce controllability` calls `run`. A random and a trained policy play (`controllability_data.py`); after some
numbers of episodes every bit that was on so far is judged by two kinds of evidence:

trials  ours, all transitions: a bit is called controllable if its verdict is plausible
lspi    the paper's values, of 1,024 transitions as during training, and of all of them where they fit: a bit is called controllable
        if mean_s [V_seek + V_avoid] exceeds the paper's 0.1, or if there is no value for it, since the rule would offer it

docs/controllability.md discusses the outcome.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.envs.controllability import DOMAINS, Dynamics, make_dynamics
from protogoal.experiments import cores
from protogoal.experiments.controllability_data import EPSILON, Experience, collect, random_policy, train
from protogoal.experiments.curves import read_csv, write_csv
from protogoal.files import write_whole
from protogoal.goals.evaluator import PGESettings, ProtoGoalEvaluator
from protogoal.goals.plausibility import WORDS, Verdict
from protogoal.goals.values import EstimatorSettings, SeekAvoid, seek_avoid_values
from protogoal.record.statistics import t_interval
from protogoal.run.directory import commit

EPISODES = (5, 10, 20, 50, 100)
POLICIES = ("random", "trained")
GOOD = 0.98  # F1 that every domain should reach
BATCH = 1024  # transitions of one refresh during training (paper, Table 2)
LARGEST = 5_000_000  # bits of all transitions, for LSPI to be given all
AT_ONCE = 5  # episodes whose bits are dense at a time
MOST_BITS = 100  # of either truth in values.csv

F1 = ("seed", "domain", "policy", "evidence", "batch", "episodes", "transitions", "observed", "f1", "undecided")
VERDICTS = ("seed", "domain", "policy", "controllable", "verdict", "bits")
VALUES = ("domain", "bit", "controllable", "seek", "avoid", "events", "nats", "p")
Rows = list[list[Any]]


@dataclass(frozen=True)
class Size:
    """How much of the experiment."""

    seeds: int
    episodes: tuple[int, ...]


SCALES = {"smoke": Size(1, (2, 5)), "cpu": Size(20, EPISODES), "paper": Size(20, EPISODES)}


@dataclass
class Judged:
    """Rows of the three CSV, and what they cost."""

    f1: Rows = field(default_factory=list)
    verdicts: Rows = field(default_factory=list)
    values: Rows = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Judged) -> None:
        self.f1 += other.f1
        self.verdicts += other.verdicts
        self.values += other.values
        self.seconds += other.seconds


def run(scale: str, seeds: int | None, out: Path) -> None:
    """Judge all bits of all seeds, write the CSV, then the figures and README.md of them."""
    from protogoal.run.progress import Progress

    size, out = SCALES[scale], Path(out)
    jobs = [(domain, policy, seed, size.episodes)
            for seed in range(seeds or size.seeds) for domain in DOMAINS for policy in POLICIES]
    whole = Judged()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with Progress(len(jobs), "controllability", "jobs") as bar:
            for done, judged in enumerate(judge_all(jobs), 1):
                whole.add(judged)
                bar.update(done)
        write_csv(out / "f1.csv", F1, whole.f1)
        write_csv(out / "verdicts.csv", VERDICTS, whole.verdicts)
        write_csv(out / "values.csv", VALUES, whole.values)
        plot(out)
        _describe(f"protogoal reproduce controllability --scale {scale} --seeds {jobs[-1][2] + 1}", whole.seconds, out)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from None
    print(table(out))


def plot(out: Path) -> None:
    """Draw f1.png and values.png from the CSV alone."""
    from protogoal.experiments import controllability_figures

    controllability_figures.draw_f1(out)
    controllability_figures.draw_values(out)


def f1_score(called: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """2·TP / (2·TP + FP + FN); 1 if there is nothing to find and nothing was called."""
    hit = int((called & truth).sum())
    wrong = int((called != truth).sum())
    return 2 * hit / (2 * hit + wrong) if hit + wrong else 1.0


def judge(domain: str, policy: str, seed: int, amounts: Sequence[int]) -> Judged:
    """The rows of one domain, policy and seed, after each number of episodes."""
    start, judged, dynamics = time.process_time(), Judged(), make_dynamics(domain)
    rng = np.random.default_rng([seed, list(DOMAINS).index(domain), POLICIES.index(policy)])
    experience = collect(dynamics, random_policy(dynamics) if policy == "random" else train(dynamics, rng), amounts[-1], rng)
    evaluator = ProtoGoalEvaluator(dynamics.space, dynamics.num_actions, seed=seed)
    for before, episodes in zip((0, *amounts), amounts, strict=False):
        feed(evaluator, experience, before, episodes)
        evaluator.refresh()
        n = experience.rows_of(0, episodes).stop
        seen = np.flatnonzero(experience.seen(slice(n)))
        truth, verdict = dynamics.controllable[seen], evaluator.verdict[seen]
        found = [("trials", "all", n, verdict == Verdict.PLAUSIBLE, verdict == Verdict.UNDECIDED)]
        batches = {str(BATCH): rng.choice(n, min(n, BATCH), replace=False), "all": np.arange(n)}
        if len(experience.action) * dynamics.space.size > LARGEST:
            del batches["all"]
        for name, rows in batches.items():
            values = paper_values(dynamics, experience, rows, seed)
            control = values.controllability[seen]
            found.append(("lspi", name, len(rows), ~(control <= PGESettings().controllability_threshold), np.isnan(control)))
        judged.f1 += [[seed, domain, policy, evidence, batch, episodes, many, len(seen), f1_score(called, truth),
                       float(unsure.mean())] for evidence, batch, many, called, unsure in found]
    for (is_true, word), many in Counter(zip(truth.tolist(), verdict.tolist(), strict=True)).items():
        judged.verdicts.append([seed, domain, policy, int(is_true), WORDS[Verdict(word)], many])
    if seed == 0 and policy == "random":
        judged.values = _values(domain, seen, dynamics, values, evaluator)
    judged.seconds = time.process_time() - start
    return judged


def feed(evaluator: ProtoGoalEvaluator, experience: Experience, first: int, last: int) -> None:
    """Episodes first…last − 1, a few at a time."""
    for episode in range(first, last, AT_ONCE):
        rows = experience.rows_of(episode, min(episode + AT_ONCE, last))
        batch = experience.batch(rows)
        is_first = np.diff(experience.episode[rows], prepend=-1) != 0
        evaluator.observe(batch.observation, batch.action, batch.next_observation, None, experience.probability[rows], is_first)


def paper_values(dynamics: Dynamics, experience: Experience, rows: NDArray[np.int64], seed: int) -> SeekAvoid:
    """Seek and avoid values of every bit by LSPI, from some transitions."""
    batch = experience.batch(rows)
    return seek_avoid_values(batch, np.asarray(batch.bits), dynamics.num_actions, EstimatorSettings(), seed)


def _values(domain: str, seen: NDArray[np.int64], dynamics: Dynamics, values: SeekAvoid, evaluator: ProtoGoalEvaluator) -> Rows:
    """What both kinds of evidence found of the bits, or of some evenly spaced where there are many."""
    rows = []
    for is_true in (True, False):
        bits = seen[dynamics.controllable[seen] == is_true]
        for i in bits[np.unique(np.linspace(0, len(bits) - 1, min(len(bits), MOST_BITS)).astype(int))].tolist():
            tested = evaluator.tested
            rows.append([domain, evaluator.name(i), int(is_true), float(values.seek_mean[i]), float(values.avoid_mean[i]),
                         float(tested.events[i]), float(tested.nats[i]), float(tested.p[i])])
    return rows


def judge_all(jobs: Sequence[tuple[str, str, int, Sequence[int]]]) -> Iterator[Judged]:
    """The results of all jobs in their order, computed on all cores this process may use."""
    judge("delayed", "trained", 0, (2,))  # compiles, here and once
    with _one_thread_a_process(), ProcessPoolExecutor(min(cores(), len(jobs)), multiprocessing.get_context("spawn")) as pool:
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


Key = tuple[str, str, str, str, int]  # domain, policy, evidence, batch, episodes


def scores(out: Path, column: str = "f1") -> dict[Key, NDArray[np.float64]]:
    """A column of f1.csv by domain, policy, evidence, batch and episodes: one number a seed."""
    found: dict[Key, list[float]] = {}
    for row in read_csv(out / "f1.csv"):
        key = row["domain"], row["policy"], row["evidence"], row["batch"], int(row["episodes"])
        found.setdefault(key, []).append(float(row[column]))
    return {key: np.array(values) for key, values in found.items()}


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Student's 95 % interval of the mean over seeds, inside [0, 1]; all of it where one seed tells nothing."""
    if len(values) < 2:
        return 0.0, 1.0
    low, high = t_interval(values)
    return float(low), float(high)


def in_words(values: NDArray[np.float64]) -> str:
    """The mean and its interval, or that all seeds agree."""
    if np.ptp(values) == 0:
        return f"{values[0]:.2f}, all {len(values)} seeds" if len(values) > 1 else f"{values[0]:.2f}, one seed"
    low, high = interval(values)
    return f"{values.mean():.3f} ({low:.3f}–{high:.3f})"


def table(out: Path) -> str:
    """F1 after most episodes, as Markdown."""
    f1, undecided = scores(out), scores(out, "undecided")
    most = max(key[4] for key in f1)
    lines = ["| domain | policy | trials | undecided | LSPI, 1,024 transitions | LSPI, all |", "|---|---|---|---|---|---|"]
    for domain in DOMAINS:
        for policy in POLICIES:
            cells = [in_words(f1[key]) if (key := (domain, policy, evidence, batch, most)) in f1 else "too many"
                     for evidence, batch in (("trials", "all"), ("lspi", str(BATCH)), ("lspi", "all"))]
            cells.insert(1, f"{100 * undecided[domain, policy, 'trials', 'all', most].mean():.1f} %")
            lines.append(f"| {domain} | {policy} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _growth(out: Path) -> str:
    """Mean F1 of the trials after each number of episodes, as Markdown."""
    f1 = scores(out)
    amounts = sorted({key[4] for key in f1})
    lines = ["| domain | policy | " + " | ".join(f"{e} episodes" for e in amounts) + " |", "|---|---|" + "---|" * len(amounts)]
    for domain in DOMAINS:
        for policy in POLICIES:
            cells = (f"{f1[domain, policy, 'trials', 'all', e].mean():.3f}" for e in amounts)
            lines.append(f"| {domain} | {policy} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _describe(command: str, seconds: float, out: Path) -> None:
    """README.md: what was found, beside what the paper says, and how to make it again."""
    f1 = scores(out)
    most = max(key[4] for key in f1)
    seeds = len(f1["timer", "random", "trials", "all", most])
    cases = [(domain, policy) for domain in DOMAINS for policy in POLICIES]

    def reached(evidence: str, batch: str) -> str:
        found = {case: f1[key] for case in cases if (key := (*case, evidence, batch, most)) in f1}
        return f"{sum(values.mean() >= GOOD for values in found.values())} of {len(found)}"

    def verdict(words: str) -> str:
        plain = {f"{len(cases)} of {len(cases)}": "confirmed", f"0 of {len(cases)}": "not confirmed"}
        return plain.get(words, f"confirmed in {words} cases")

    ours = reached("trials", "all")
    unsure = [f"{domain} with the {policy} policy" for domain, policy in cases
              if np.ptp(values := f1[domain, policy, "trials", "all", most]) and interval(values)[0] < GOOD]
    edge = f" The interval of the trials reaches below that in {', '.join(unsure)}." if unsure else ""
    write_whole(out / "README.md", "\n".join([
        "# Controllability: F1 of the evaluator's judgement", "",
        "The paper reports that its estimator tells in three domains which proto-goals can be controlled, and gets better with "
        "data; the figure is not public. Here are those three and five more, each with a random and with a trained policy. A mean "
        f"F1 of at least {GOOD:g} after {most} episodes is reached by randomised trials, the default, in {ours} cases; by the "
        f"paper's rule as it is worded (LSPI) in {reached('lspi', str(BATCH))} on {BATCH:,} transitions, in "
        f"{reached('lspi', 'all')} on all.{edge}", "",
        f"Verdict: {verdict(ours)} for randomised trials, {verdict(reached('lspi', str(BATCH)))} for the estimator as worded.", "",
        "![F1 against the amount of data](f1.png)", "", "![what decides](values.png)", "",
        f"F1 after {most} episodes: mean over seeds and Student's 95 % interval. Only bits that were on in the data count. By "
        "trials a bit is called controllable if it is plausible; *undecided* is the share of bits without a verdict, which count "
        "as not called. By LSPI it is called so if its value exceeds 0.1 or if the batch has none for it. *too many*: the bits of "
        "all transitions do not fit.", "", table(out), "", "F1 of the trials as data grows, mean over seeds:", "", _growth(out), "",
        "docs/controllability.md says why LSPI fails and what repairs it.", "",
        f"- command: `{command}`; {seconds:,.0f} CPU seconds", f"- commit: {commit()}",
        f"- seeds: {seeds}, 0…{seeds - 1}; nothing was chosen by them, but the tests were developed on a sketch of these domains",
        "- policies: uniformly random; Q-learning of every controllable bit, then ε-greedy with known probabilities, "
        f"ε = {EPSILON:g}",
        f"- machine: {os.cpu_count()} CPU cores, no GPU; date {time.strftime('%Y-%m-%d')}",
        "- raw data: `f1.csv`; `verdicts.csv` (how many bits have which verdict at the end); `values.csv` (what both kinds of "
        f"evidence found of single bits, seed 0, random policy, at most {MOST_BITS} of either truth)", ""]))
