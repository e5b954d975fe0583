"""The live page on a store with a million goals declared, 100,000 of them observed, and what watching costs its writer.

Cases: the questions behind the page, the report and the table, in CPU time; the page from its address to its drawn curves; an
update of each part (overview, goal table, a goal, pictures, pictures of the past) from the click to the new picture; the server's
memory; one refresh written; the cost of training while a page follows it, in CPU time a step of real training. References,
measured in the same run: the same on a store with 36 goals; for the questions also the same goals with one more declared; and
the same training unwatched.

    python benchmarks/inspector.py [--quick] [--only questions|page|training] [--stores FOLDER] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from protogoal.record.store import Store, StoreReader

POLL_MILLISECONDS = 3_000  # as the page asks (record/inspector/layout.py): a watched stretch has one update, or two
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SERVER = """
import sys
from pathlib import Path
from protogoal.record.inspector import inspect
inspect([Path(sys.argv[1])], port=0)
"""
# SparseTaxi in training, past the point where it has learned all: a stretch of it for each line of the input. Refreshes follow
# each other seven times a second, far more often than in a deep run.
TRAINER = """
import dataclasses, sys, time
from pathlib import Path
from protogoal.presets import PRESETS
from protogoal.record.store import Store
from protogoal.run.training import make_session
session = make_session(dataclasses.replace(PRESETS["taxi-protogoal"], steps=10**9))
store = Store.create(Path(sys.argv[1]) / "run.db", {"preset": "taxi-protogoal", "total_steps": 10**9})
events = session.train()
def stretch(seconds, least=0):
    began, first, end = time.process_time(), session.step, time.monotonic() + seconds
    while time.monotonic() < end or session.step < least:
        next(events).to(store)
    return session.step - first, time.process_time() - began
stretch(0.0, 120_000)
store.flush()
print("ready", flush=True)
for line in sys.stdin:
    print(*stretch(float(line)), flush=True)
store.close()
"""


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure; `quick` is a thirtieth of the goals and a tenth of the refreshes."""
    return measure(quick)["rows"]


def measure(quick: bool = False, only: str = "", stores: Path | None = None) -> dict[str, list[dict[str, Any]]]:
    """The rows, and the pairs of stretches behind the last of them.

    `only`: "questions", "page" or "training"; `stores`: a folder where the stores are kept, and found the next time.
    """
    sides, refreshes = ((4, 30), 20) if quick else ((40, 50), 200)
    with tempfile.TemporaryDirectory() as folder:
        rows: list[dict[str, Any]] = []
        pairs: list[dict[str, float]] = []
        if only != "training":
            rows += _page_rows(stores or Path(folder), sides, refreshes, only != "questions")
        if only in ("", "training") and CHROMIUM is not None:
            pairs = measure_training(Path(folder) / "training", pairs=6 if quick else 75, seconds=POLL_MILLISECONDS / 1_000)
            watched, alone = (statistics.mean(pair[key] for pair in pairs) for key in ("watched", "alone"))
            rows.append(_row("CPU time of a training step while watched", watched, "µs", alone))
            ends = zip(("", ", lower end of the 95 % interval", ", upper end"), slowdown(pairs), strict=True)
            rows += [{"case": f"training slows while watched by{end}", "unit": "%", "value": round(value, 3), "reference": 2.0,
                      "ratio": round(value / 2.0, 3)} for end, value in ends]
    return {"rows": rows, "pairs": pairs}


DECLARED = 10  # times the observed goals


def _page_rows(folder: Path, sides: tuple[int, int], refreshes: int, with_page: bool) -> list[dict[str, Any]]:
    big, small, bare = (folder / f"{name}-{sides[0]}-{sides[1]}-{refreshes}" for name in ("big", "small", "bare"))
    observed = sides[0] * sides[1] ** 2
    goals = f"{DECLARED * observed:,} declared, {observed:,} observed, {refreshes:,} refreshes"
    rows = []
    if not bare.exists():
        write_seconds, small_seconds = build(big, *sides, refreshes, DECLARED), build(small, 1, 6, min(refreshes, 200), 1)
        rows.append(_row(f"a refresh written ({goals})", 1e3 * write_seconds, "ms", 1e3 * small_seconds))
        bare_seconds = build(bare, *sides, refreshes, 1)
        rows.append(_row("the same, beside one with no more declared", 1e3 * write_seconds, "ms", 1e3 * bare_seconds))
    sizes = [(path / "run.db").stat().st_size / 1e6 for path in (big, bare)]
    rows.append(_row(f"file ({goals}), beside one with no more declared", sizes[0], "MB", sizes[1]))
    ours, same, few = measure_questions(big), measure_questions(bare), measure_questions(small)
    for case, seconds in ours.items():
        rows.append(_row(f"{case} ({goals})", 1e3 * seconds, "ms", 1e3 * few[case]))
        rows.append(_row(f"{case}, beside one with no more declared", 1e3 * seconds, "ms", 1e3 * same[case]))
    if CHROMIUM is None or not with_page:
        return rows
    ours, reference = measure_page(big), measure_page(small)
    for case, taken in ours.items():
        unit = "MB" if "memory" in case else "s" if "ready" in case else "ms"
        row = _row(f"{case} ({goals})", statistics.median(taken), unit, statistics.median(reference[case]))
        rows.append({**row, "slowest": round(max(taken), 3)})
    return rows


def measure_questions(path: Path) -> dict[str, float]:
    """CPU seconds of what the page, the report and the terminal ask of a store, each the median of five."""
    from protogoal.record import queries
    from protogoal.record.goal_page import GoalFilter, goal_page
    from protogoal.record.goals_table import goals_table
    from protogoal.record.report import report
    from protogoal.record.run_facts import run_facts

    def taken(ask: Any, times: int = 5) -> float:
        spent = []
        for _ in range(times):
            began = time.process_time()
            ask()
            spent.append(time.process_time() - began)
        return statistics.median(spent)

    with StoreReader(path) as reader, tempfile.TemporaryDirectory() as folder:
        facts, step = run_facts(reader), int(queries.refresh_steps(reader)[3])
        kind, searched = queries.kinds(reader)[0]["kind"], GoalFilter("thing 0 (3,")
        return {
            "question: the run's facts": taken(lambda: run_facts(reader)),
            "question: the funnel": taken(lambda: queries.funnel_curves(reader)),
            "question: a page of the goal table": taken(lambda: goal_page(reader, facts)),
            "question: the same, searched and sorted": taken(lambda: goal_page(reader, facts, searched, "name", False)),
            "question: kinds": taken(lambda: queries.kinds(reader)),
            "question: a picture, now": taken(lambda: queries.goals_at(reader, kind)),
            "question: a picture of the past": taken(lambda: queries.goals_at(reader, kind, step)),
            "question: one goal": taken(lambda: (queries.goal(reader, 0), queries.goal_history(reader, 0))),
            "goals --why, never observed": taken(lambda: goals_table(path, why=str(facts.funnel["declared"] - 1))),  # type: ignore[index]
            "report, without the folder": taken(lambda: report([path], Path(folder) / "report.html", beside=False), 1),
        }


def build(path: Path, kinds: int, side: int, refreshes: int, declared: int) -> float:
    """A store of kinds × side × side goals that change as restlessly as estimates do; returns the median CPU seconds a refresh.

    `declared`: so many times the goals are declared, all but the first part never observed, and one at least.
    """
    path.mkdir(parents=True)
    size, rng = kinds * side * side, np.random.default_rng(0)
    distance = rng.random(size)
    count, spent = np.zeros(size, np.int64), []
    with Store.create(path / "run.db", {"preset": "made-up", "agent": "protogoal", "total_steps": 1_000 * refreshes}) as store:
        def name(goal: int) -> Any:
            kind, cell = divmod(goal, side * side)
            return f"thing {kind} at ({cell // side},{cell % side})", f"thing {kind}", divmod(cell, side), (goal,), ()

        for refresh in range(refreshes):
            share = (refresh + 1) / refreshes
            count += rng.poisson(20 * np.exp(-6 * distance / (0.2 + share)))
            nats = np.clip(1.2 - distance / share + 0.05 * rng.standard_normal(size), 0, 1)
            verdict = np.where(count == 0, 0, np.where(count < 24, 5, np.where(nats < 0.2, 2, np.where(distance > 0.9, 4, 6))))
            unknown = np.full(size, np.nan)
            offered = rng.random(size) < 100 / size
            began = time.process_time()
            seen = np.flatnonzero(count > 0)
            state = {
                "count": count, "reward_mean": np.zeros(size), "pursuits": np.minimum(count, 30), "success": 1 - distance,
                "chance": distance / 4, "events": count / 20, "nats": nats, "p": np.exp(-nats * count), "verdict": verdict,
                "seek_max": unknown, "seek_mean": unknown, "avoid_mean": unknown,
                "bucket": np.where(offered, 2, -1), "offered": offered, "mastered": (distance < 0.3) & (share > 0.5)}
            store.refresh(1_000 * refresh, {"id": seen, "declared": declared * size + 1, "grid": (side, side),
                                            **{column: array[seen] for column, array in state.items()}}, name, 0.1)
            store.metrics(1_000 * refresh, {"loss": 1 - share, "speed": 300.0, "return": share})
            if refresh % 10 == 0:
                store.evaluation(1_000 * refresh, 50, int(50 * share), share)
            store.flush()
            spent.append(time.process_time() - began)
    return statistics.median(spent)


@contextmanager
def served(path: Path) -> Any:
    """The page as a process of its own: (process, address)."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, next(word for word in process.stdout.readline().split() if word.startswith("http"))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def opened(address: str, times: int = 3) -> Any:
    """The page in a new browser, its curves drawn: (page, seconds until then each time, CPU seconds of the browser for all)."""
    from playwright.sync_api import sync_playwright

    def browser_cpu() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in _browser())

    arguments = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright, _our_priority():
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        pages: list[Any] = []
        spent, before = [], browser_cpu()
        for _ in range(times):
            for page in pages:
                page.context.close()
            page = browser.new_context(viewport={"width": 1366, "height": 768}).new_page()
            pages = [page]
            page.set_default_timeout(120_000)
            began = time.perf_counter()
            page.goto(address)
            page.wait_for_selector("#success .js-line", state="attached")
            spent.append(time.perf_counter() - began)
        yield pages[0], spent, browser_cpu() - before
        browser.close()


def _browser() -> list[Any]:
    import psutil

    return [child for child in psutil.Process().children(recursive=True) if "chrom" in child.name()]


@contextmanager
def _our_priority() -> Any:
    """The browser's threads at this process's priority.

    Chromium lowers its own, and beside other work of a higher one a measurement would tell of that work. Raising needs a
    privilege; without it nothing is changed.
    """
    ours, done = os.getpriority(os.PRIO_PROCESS, 0), threading.Event()

    def raise_again_and_again() -> None:
        while not done.wait(0.1):
            for process in _browser():
                with suppress(OSError):
                    for thread in os.listdir(f"/proc/{process.pid}/task"):
                        os.setpriority(os.PRIO_PROCESS, int(thread), ours)

    keeper = threading.Thread(target=raise_again_and_again)
    if ours < 0:
        keeper.start()
    try:
        yield
    finally:
        done.set()
        if ours < 0:
            keeper.join()


# From a click to the moment when the text of `shown` is another and the figure in `figure` is drawn anew, in milliseconds.
UPDATE = """([click, shown, figure]) => new Promise((resolve, reject) => {
  const text = () => document.querySelector(shown)?.textContent;
  const before = text(), began = performance.now(), plot = figure && document.querySelector(figure);
  let drawn = !plot;
  if (plot) plot.on("plotly_afterplot", () => { drawn = true; });
  const look = () => {
    if (drawn && text() !== before) resolve(performance.now() - began);
    else if (performance.now() - began > 60000) reject(new Error("nothing changed after a click on " + click));
    else requestAnimationFrame(look);
  };
  document.querySelector(click).click();
  look();
})"""


def measure_page(path: Path, rounds: int = 5) -> dict[str, list[float]]:
    """Every time that was taken, by case."""
    import psutil

    with served(path) as (process, address), opened(address) as (page, ready, cpu):
        def update(*clicks: str, shown: str, figure: str = "") -> list[float]:
            """The milliseconds of each update, going through `clicks` some times."""
            return [page.evaluate(UPDATE, [click, shown, figure]) for _ in range(rounds) for click in clicks]

        def tab(name: str, wait: str) -> None:
            page.get_by_role("radio", name=name, exact=True).check(force=True)
            page.wait_for_selector(wait, state="attached")

        result = {"page ready": ready, "page ready, the first time": ready[:1], "CPU time of the browser, page ready": [cpu / 3]}
        server = psutil.Process(process.pid)
        began_cpu = sum(server.cpu_times()[:2])
        result["update: overview"] = update("#x input[value=minutes]", "#x input[value=step]", shown="#success .xtitle",
                                            figure="#success")
        tab("Goals", "#goal-rows tr")
        headings = [f"thead th:nth-child({column}) button" for column in (2, 3, 5)]  # name, count, V_seek
        result["update: goal table"] = update(*headings, shown="#goal-rows")
        result["update: one goal"] = update(
            "#goal-rows tr:nth-child(2) button.goal", "#goal-rows tr:nth-child(3) button.goal", shown="#goal-detail h2")
        tab("Pictures", "#picture-columns .heatmaplayer image")
        result["update: pictures"] = update("#measure input[value=count]", "#measure input[value=verdict]", shown="#legend",
                                            figure="#cells-0")
        page.locator("#time [role=slider]").focus()
        past = []
        for key in rounds * ("Home", "ArrowRight", "ArrowRight", "PageUp", "End"):
            before = page.text_content("#time-words")
            began = time.perf_counter()
            page.keyboard.press(key)
            while page.text_content("#time-words") == before:
                page.wait_for_timeout(5)
            past.append(1e3 * (time.perf_counter() - began))
        result["update: pictures of the past"] = past
        updates = sum(len(times) for case, times in result.items() if case.startswith("update"))
        result["CPU time of the server, an update"] = [1e3 * (sum(server.cpu_times()[:2]) - began_cpu) / updates]
        result["server memory"] = [server.memory_info().rss / 1e6]
        return result


def measure_training(path: Path, pairs: int, seconds: float) -> list[dict[str, float]]:
    """CPU time a step of a training process, watched and not, in pairs of neighbouring stretches.

    Watched: a page that follows the run is open, at its first, second and third part in turn. Not watched: server and browser
    are held still meanwhile; what they missed they catch up with when they go on, so a watched stretch has at least one update.
    Every second pair begins with the watched stretch. Short stretches, many pairs: what drifts or bursts cancels.
    """
    path.mkdir()
    trainer = subprocess.Popen([sys.executable, "-c", TRAINER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert trainer.stdin is not None
    assert trainer.stdout is not None
    rows: list[dict[str, float]] = []
    try:
        trainer.stdout.readline()
        with served(path) as (server, address), opened(address, times=1) as (page, *_):
            for part in ("Overview", "Goals", "Pictures"):
                page.get_by_role("radio", name=part, exact=True).check(force=True)
                page.wait_for_timeout(2_000)
                watchers = [server.pid, *(process.pid for process in _browser())]
                for pair in range(pairs // 3):
                    row: dict[str, Any] = {"part": part}
                    for watched in (pair % 2 == 1, pair % 2 == 0):
                        for watcher in watchers:
                            with suppress(ProcessLookupError):
                                os.kill(watcher, signal.SIGCONT if watched else signal.SIGSTOP)
                        trainer.stdin.write(f"{seconds}\n")
                        trainer.stdin.flush()
                        steps, cpu = map(float, trainer.stdout.readline().split())
                        row["watched" if watched else "alone"] = 1e6 * cpu / steps
                    rows.append(row)
                for watcher in watchers:
                    with suppress(ProcessLookupError):
                        os.kill(watcher, signal.SIGCONT)
    finally:
        trainer.stdin.close()
        trainer.wait()
    return rows


def slowdown(pairs: list[dict[str, float]]) -> tuple[float, float, float]:
    """By how many percent a step takes more CPU time while watched: the mean of the pairs' logarithms, and its 95 % interval.

    The interval is that of a bootstrap over the pairs.
    """
    ratios = np.log([pair["watched"] / pair["alone"] for pair in pairs])
    drawn = np.random.default_rng(0).choice(ratios, (10_000, len(ratios))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return tuple(100 * float(np.expm1(value)) for value in (ratios.mean(), low, high))  # type: ignore[return-value]


def _row(case: str, value: float, unit: str, reference: float) -> dict[str, Any]:
    numbers = {"value": value, "reference": reference, "ratio": value / reference}
    return {"case": case, "unit": unit, **{name: round(number, 3) for name, number in numbers.items()}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("questions", "page", "training"), default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--stores", type=Path)
    chosen = parser.parse_args()
    measured = measure(chosen.quick, chosen.only, chosen.stores)
    print(json.dumps(measured["rows"], indent=1))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(measured, indent=1) + "\n")
