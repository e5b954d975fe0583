"""The live page on a store with 100,000 goals and 1,000 refreshes, and what watching costs the process that writes.

Cases: the page from its address to its drawn curves; an update of each part (overview, goal table, a goal, pictures, pictures
of the past) from the click to the new picture; the server's memory; one refresh written; the speed of a writer while a page
follows it. References, measured in the same run: the same page on a store with 34 goals, and the same writer unwatched.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from protogoal.record.store import Store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SERVER = """
import sys
from pathlib import Path
from protogoal.record.inspector import inspect
inspect([Path(sys.argv[1])], port=0)
"""
# A training loop in small: numpy work, metrics each step, a refresh ten times a minute would be too rare to see: each second.
WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from protogoal.record.store import Store
from protogoal.record.goal_rows import untouched
run, seconds = Store.open(Path(sys.argv[1]) / "run.db"), float(sys.argv[2])
rng, matrix, state = np.random.default_rng(0), np.random.default_rng(1).random((160, 160)), untouched(2_000)
name = lambda goal: (f"goal {goal}", "x", (goal // 50, goal % 50), (goal,), ())
print("ready", flush=True)
for line in sys.stdin:
    first, steps, began, refreshed = int(line), 0, time.process_time(), time.monotonic()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        matrix = matrix @ matrix
        matrix /= matrix.max()
        steps += 1
        if steps % 100 == 0:
            run.metrics(first + steps, {"loss": float(matrix.mean()), "speed": steps})
            run.pursuits(first + steps, [1, 2, 3], [1, 0, 1], [4, 5, 6])
        if time.monotonic() > refreshed + 1:
            refreshed += 1
            state["count"] = state["count"] + rng.poisson(1, 2_000)
            run.refresh(first + steps, state, name)
    print(steps / (time.process_time() - began), steps / seconds, flush=True)
run.close()
"""


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure; `quick` is a tenth of the goals and a twentieth of the refreshes."""
    sides, refreshes = ((10, 32), 50) if quick else ((20, 70), 1_000)
    with tempfile.TemporaryDirectory() as folder:
        big, small = Path(folder) / "big", Path(folder) / "small"
        write_seconds = build(big, *sides, refreshes)
        small_seconds = build(small, 1, 6, min(refreshes, 200))
        goals = f"{sides[0] * sides[1] ** 2:,} goals, {refreshes:,} refreshes"
        rows = [_row(f"a refresh written ({goals})", 1e3 * write_seconds, "ms", 1e3 * small_seconds)]
        rows.append(_row(f"file ({goals})", (big / "run.db").stat().st_size / 1e6, "MB", (small / "run.db").stat().st_size / 1e6))
        if CHROMIUM is None:
            return rows
        ours, reference = measure_page(big), measure_page(small)
        units = {"page ready": "s", "CPU time of the browser, page ready": "s", "server memory": "MB"}
        rows += [_row(f"{case} ({goals})", ours[case], units.get(case, "ms"), reference[case]) for case in ours]
        watched, alone = measure_writer(Path(folder) / "writer", rounds=2 if quick else 6, seconds=4 if quick else 8)
        rows += [_row(f"a writer while watched, by {clock}", watched[i], "steps/s", alone[i])
                 for i, clock in enumerate(("its CPU time", "the clock"))]
    return rows


def build(path: Path, kinds: int, side: int, refreshes: int) -> float:
    """A store of kinds × side × side goals that change as restlessly as estimates do; returns the median seconds a refresh."""
    path.mkdir()
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
            seek = np.clip(1.2 - distance / share + 0.05 * rng.standard_normal(size), 0, 1)
            verdict = np.where(count == 0, 0, np.where(seek <= 0.5, 1, np.where(distance > 0.9, 2, 4)))
            offered = rng.random(size) < 100 / size
            began = time.perf_counter()
            store.refresh(1_000 * refresh, {
                "count": count, "reward_mean": np.zeros(size), "pursuits": np.minimum(count, 30), "success": 1 - distance,
                "seek_max": seek, "seek_mean": seek / 2, "avoid_mean": -seek / 4, "verdict": verdict,
                "bucket": np.where(offered, 2, -1), "offered": offered, "mastered": (distance < 0.3) & (share > 0.5)}, name, 0.1)
            store.metrics(1_000 * refresh, {"loss": 1 - share, "speed": 300.0, "return": share})
            if refresh % 10 == 0:
                store.evaluation(1_000 * refresh, 50, int(50 * share), share)
            store.flush()
            spent.append(time.perf_counter() - began)
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
    """The page in a browser, its curves drawn: (page, fewest seconds until then, CPU seconds of the browser for all)."""
    import psutil
    from playwright.sync_api import sync_playwright

    def browser_cpu() -> float:
        children = psutil.Process().children(recursive=True)
        return sum(sum(child.cpu_times()[:2]) for child in children if "chrom" in child.name())

    arguments = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        pages, spent, before = [], [], browser_cpu()
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
        yield pages[0], min(spent), browser_cpu() - before
        browser.close()


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


def measure_page(path: Path, rounds: int = 5) -> dict[str, float]:
    import psutil

    with served(path) as (process, address), opened(address) as (page, ready, cpu):
        def update(*clicks: str, shown: str, figure: str = "") -> float:
            """The median over rounds of going through `clicks`."""
            nonlocal updates
            updates += rounds * len(clicks)
            return statistics.median(page.evaluate(UPDATE, [click, shown, figure]) for _ in range(rounds) for click in clicks)

        def tab(name: str, wait: str) -> None:
            page.get_by_role("radio", name=name, exact=True).check(force=True)
            page.wait_for_selector(wait, state="attached")

        result = {"page ready": ready, "CPU time of the browser, page ready": cpu / 3}
        server = psutil.Process(process.pid)
        began_cpu, updates = sum(server.cpu_times()[:2]), 0
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
        for key in ("Home", "ArrowRight", "ArrowRight", "PageUp", "End"):
            before = page.text_content("#time-words")
            began = time.perf_counter()
            page.keyboard.press(key)
            while page.text_content("#time-words") == before:
                page.wait_for_timeout(5)
            past.append(1e3 * (time.perf_counter() - began))
        result["update: pictures of the past"] = statistics.median(past)
        updates += len(past)
        result["CPU time of the server, an update"] = 1e3 * (sum(server.cpu_times()[:2]) - began_cpu) / updates
        result["server memory"] = server.memory_info().rss / 1e6
        return result


def measure_writer(path: Path, rounds: int, seconds: float) -> tuple[list[float], list[float]]:
    """Median speed of a writer, watched and not, in turns; each by its own CPU time and by the clock."""
    path.mkdir()
    Store.create(path / "run.db", {"preset": "made-up", "total_steps": 10**9}).close()
    command = [sys.executable, "-c", WRITER, str(path), str(seconds)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdout.readline()
    speeds: dict[bool, list[list[float]]] = {False: [], True: []}

    def stretch(number: int) -> list[float]:
        writer.stdin.write(f"{number * 10_000_000}\n")
        writer.stdin.flush()
        return [float(speed) for speed in writer.stdout.readline().split()]

    stretch(0)  # warm
    with served(path) as (_, address):
        for turn in range(rounds):
            speeds[False].append(stretch(2 * turn + 1))
            with opened(address, times=1):
                speeds[True].append(stretch(2 * turn + 2))
    writer.stdin.close()
    writer.wait()
    watched, alone = ([statistics.median(column) for column in zip(*speeds[key], strict=True)] for key in (True, False))
    return watched, alone


def _row(case: str, value: float, unit: str, reference: float) -> dict[str, Any]:
    numbers = {"value": value, "reference": reference, "ratio": value / reference}
    return {"case": case, "unit": unit, **{name: round(number, 3) for name, number in numbers.items()}}


if __name__ == "__main__":
    print(json.dumps(run("--quick" in sys.argv), indent=1))
