"""The page and the report in a real browser: live numbers, the table, one goal, the slider, keys, both themes."""

import re
import shutil
import threading
import time
from pathlib import Path

import pytest
from synthetic_runs import Bit, FakeRun, baba_bits

from protogoal.record.report import report

serving = pytest.importorskip("protogoal.record.inspector.serve", reason="the inspector needs the extra `inspect`")
playwright_api = pytest.importorskip("playwright.sync_api", reason="the page tests need Playwright")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the page tests need a browser")

expect = playwright_api.expect
PATIENCE = 150_000  # milliseconds; the machine may be busy, and how fast the page is, the benchmark says
LAPTOP = {"width": 1366, "height": 768}
EVIL = "<script>window.evil = 1</script><img src=x onerror='window.evil = 1'>"


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=PATIENCE)
    with playwright_api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


class Watched:
    """A page with what went wrong on it, and what it asked for."""

    def __init__(self, browser, address: str, **settings):
        self.context = browser.new_context(viewport=LAPTOP, **settings)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.troubles.append(said.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)


def serve(paths: list[Path]):
    server = serving.make_http_server(serving.make_app(paths), "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A run that is still being written."""
    run = FakeRun(tmp_path_factory.mktemp("live") / "live-run", "baba-umaze-medium-protogoal", baba_bits(), total=30)
    run.play(20, close=False)
    yield run
    run.store.close()


@pytest.fixture(scope="module")
def watched(browser, live, runs):
    server = serve([live.store.path.parent, runs["rivers"]])
    watched = Watched(browser, f"http://127.0.0.1:{server.server_port}/", color_scheme="light")
    yield watched
    watched.context.close()
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(watched):
    return watched.page


def open_tab(page, name: str) -> None:
    page.get_by_role("radio", name=name, exact=True).check(force=True)


def eventually(page, expression: str, *argument) -> None:
    """Wait until a JavaScript expression is true. (Playwright's own way evaluates strings, which the page forbids.)"""
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression, *argument):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def test_a_live_run_opens_and_its_numbers_change(page, live):
    steps = page.locator("#tiles .tiles").first.locator(".tile.steps b")
    expect(steps).to_have_text("40,000")
    expect(page.locator("#tiles .status").first).to_have_text("running")
    expect(page.locator("#success .js-line").first).to_be_attached()
    expect(page.get_by_text("baba-umaze-medium-protogoal, seed 0")).to_be_visible()
    live.play(5, close=False)
    expect(steps).to_have_text("50,000")


def test_the_curves_may_run_along_time(page):
    page.get_by_role("radio", name="time", exact=True).check(force=True)
    expect(page.locator("#success .xtitle")).to_have_text("minutes of training")
    page.get_by_role("radio", name="steps", exact=True).check(force=True)
    expect(page.locator("#success .xtitle")).to_have_text("environment steps")


def test_the_table_is_filtered_searched_sorted_and_paged(page):
    open_tab(page, "Goals")
    total, rows = page.locator("#goal-total"), page.locator("#goal-rows tr")
    expect(total).to_have_text(re.compile(r"1–50 of \d+ goals"))
    page.get_by_role("button", name="next ›").click()
    expect(total).to_have_text(re.compile(r"51–100 of \d+ goals"))
    page.get_by_role("searchbox").fill("flag (4,5)")
    expect(total).to_have_text(re.compile(r"1–\d+ of \d+ goals"))
    expect(page.locator("#goal-rows").get_by_role("button", name="FLAG at (4,5)", exact=True)).to_be_visible()
    names = "[...document.querySelectorAll('#goal-rows td.name')].map(cell => cell.textContent.toLowerCase())"
    eventually(page, f"{names}.every(name => name.includes('flag') && name.includes('(4,5)'))")
    page.get_by_role("searchbox").fill("")
    page.get_by_role("checkbox", name="▪ static").check(force=True)
    expect(rows.first.locator(".verdict")).to_have_text("▪ static")
    ids = "[...document.querySelectorAll('#goal-rows td:first-child')].map(cell => Number(cell.textContent))"
    page.get_by_role("button", name="id", exact=True).click()
    expect(page.get_by_role("button", name="id ▲")).to_be_visible()
    eventually(page, f"{ids}.every((id, i, all) => !i || all[i - 1] < id)")
    page.get_by_role("checkbox", name="▪ static").uncheck(force=True)
    expect(total).to_have_text(re.compile(r"1–50 of \d\d\d goals"))


def test_a_goal_opens_with_its_history_and_the_reason(page):
    open_tab(page, "Goals")
    page.get_by_role("searchbox").fill("flag at (8,10)")
    page.locator("#goal-rows").get_by_role("button", name="flag at (8,10)", exact=True).click()
    detail = page.locator("#goal-detail")
    expect(detail.locator("h2")).to_have_text("flag at (8,10)")
    expect(detail.locator(".why")).to_contain_text("Static: it was on, but no transition ever turned it on.")
    expect(detail.locator("#history .js-line").first).to_be_attached()
    page.get_by_role("searchbox").fill("")


def test_parents_lead_from_one_goal_to_another(page):
    open_tab(page, "Goals")
    page.locator("#goals-run").get_by_role("radio", name="live-run").check(force=True)
    page.get_by_role("radio", name="AND-goals").check(force=True)
    page.locator("#goal-rows").get_by_role("button", name=" AND ").first.click()
    link = page.locator("#goal-detail .links").first.locator("button").first
    name = link.text_content()
    link.click()
    expect(page.locator("#goal-detail h2")).to_have_text(name)
    page.locator("#which").get_by_role("radio", name="all").check(force=True)


def test_an_update_keeps_the_focus_and_what_is_there(page, live):
    open_tab(page, "Goals")
    expect(page.locator("#goal-total")).to_have_text(re.compile(r"1–50 of \d+ goals that were observed"))  # all of them again
    first = page.locator("#goal-rows button.goal").first
    expect(first).to_be_visible()
    first.focus()
    page.evaluate("window.row = document.querySelector('#goal-rows tr')")  # its age, at least, is another after an update
    before = page.evaluate("row.textContent")
    live.play(1, close=False)
    eventually(page, "before => row.textContent !== before", before)
    assert page.evaluate("row.isConnected && row.contains(document.activeElement)")


def test_the_slider_goes_back_in_time(page):
    open_tab(page, "Pictures")
    words, slider = page.locator("#time-words"), page.locator("#time [role=slider]")
    expect(words).to_have_text("after step 52,000 (refresh 26 of 26, now)")
    expect(page.locator("#picture-columns .heatmaplayer image").first).to_be_attached()

    plausible = "document.getElementById('cells-0').data[0].z.flat().filter(v => v === 6).length"
    now = page.evaluate(plausible)
    slider.focus()
    for _ in range(23):
        page.keyboard.press("ArrowLeft")
    expect(words).to_have_text("after step 6,000 (refresh 3 of 26)")
    eventually(page, f"now => {plausible} < now", now)
    page.keyboard.press("End")
    expect(words).to_have_text("after step 52,000 (refresh 26 of 26, now)")


def test_a_click_on_a_cell_opens_its_goal(page):
    open_tab(page, "Pictures")
    page.locator("#cells-0 .nsewdrag").first.click()  # its middle: row 4 of 9, column 5 of 11
    expect(page.locator("#goal-detail h2")).to_have_text("baba at (4,5)")


def test_words_are_listed_by_verdict_and_open_their_goal(page):
    open_tab(page, "Pictures")
    expect(page.get_by_role("heading", name=re.compile("✓ plausible")).first).to_be_visible()
    page.locator("#picture-columns .words button").first.click()
    expect(page.get_by_role("radio", name="Goals", exact=True)).to_be_checked()
    expect(page.locator("#goal-detail h2")).to_have_text(re.compile("^word: "))


def test_another_measure_is_drawn(page):
    open_tab(page, "Pictures")
    page.get_by_role("radio", name="count", exact=True).check(force=True)
    expect(page.locator("#legend")).to_have_text("how often it was attained")
    expect(page.locator("#picture-columns .colorbar").first).to_be_attached()


def test_the_slider_plays_by_itself(page):
    open_tab(page, "Pictures")
    page.get_by_role("button", name="▶ play").click()
    expect(page.locator("#time-words")).to_have_text(re.compile(r"\(refresh \d+ of 26\)$"))
    expect(page.locator("#time-words")).to_have_text(re.compile("now"))
    expect(page.get_by_role("button", name="▶ play")).to_be_visible()


def test_clips_are_shown_and_filtered(page):
    open_tab(page, "Behaviour")
    picture = page.locator("#clip-columns img").first
    expect(picture).to_be_visible()
    eventually(page, "document.querySelector('#clip-columns img').naturalWidth > 0")
    page.locator("#clip-kind").get_by_role("radio", name="the player").check(force=True)
    expect(page.locator("#clip-columns")).not_to_contain_text("baba at")
    who = set(page.locator("#clip-columns figcaption span:nth-child(2)").all_text_contents())
    assert who == {"the player, at the task"}


def test_a_clip_opens_large_and_escape_closes_it(page):
    open_tab(page, "Behaviour")
    page.locator("#clip-columns button.clip").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#large-clip")).to_be_visible()
    expect(page.locator("#large-caption")).to_contain_text("at step")
    page.keyboard.press("Escape")
    expect(page.locator("#large-clip")).to_be_hidden()


def test_everything_is_reached_by_keyboard(page):
    page.get_by_role("radio", name="Behaviour").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#pictures")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#goals")).to_be_visible()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(e => e.id || e.closest('[id]')?.id + e.value)(document.activeElement)"))
    assert {"theme-button", "search", "next"} <= reached
    page.locator("#goal-rows button.goal").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#goal-detail .why")).to_be_visible()


def test_the_theme_changes_and_is_remembered(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.locator("#theme-button").focus()
    page.keyboard.press("Enter")
    eventually(page, f"{ground} === 'rgb(20, 23, 28)'")
    page.reload()
    expect(page.locator("#goal-rows tr").first).to_be_visible()
    assert page.evaluate(ground) == "rgb(20, 23, 28)"


def test_a_part_of_the_page_has_an_address_and_the_back_button_leads_back(watched, page):
    open_tab(page, "Overview")
    eventually(page, "location.hash === '#overview'")
    open_tab(page, "Pictures")
    eventually(page, "location.hash === '#pictures'")
    open_tab(page, "Behaviour")
    eventually(page, "location.hash === '#behaviour'")
    page.evaluate("history.back()")
    expect(page.locator("#pictures")).to_be_visible()
    expect(page.get_by_role("radio", name="Pictures", exact=True)).to_be_checked()
    expect(page.locator("#behaviour")).to_be_hidden()
    page.evaluate("history.back()")
    expect(page.locator("#overview")).to_be_visible()
    page.evaluate("history.forward()")
    expect(page.locator("#pictures")).to_be_visible()
    page.reload()
    expect(page.locator("#pictures")).to_be_visible()
    expect(page.locator("#picture-columns .heatmaplayer image").first).to_be_attached()
    expect(page.locator("#overview")).to_be_hidden()
    other = watched.context.new_page()
    other.goto(page.url.partition("#")[0] + "#behaviour")
    expect(other.locator("#clip-columns img").first).to_be_visible()
    assert other.evaluate("location.hash") == "#behaviour"
    other.goto(page.url.partition("#")[0] + "?#nowhere")
    expect(other.locator("#tiles .tile").first).to_be_visible()
    eventually(other, "location.hash === '#overview'")
    other.close()


def test_nothing_scrolls_sideways_on_a_laptop(page):
    for tab in ("Overview", "Goals", "Pictures", "Behaviour"):
        open_tab(page, tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]


def test_the_console_stayed_silent_and_nobody_else_was_asked(watched):
    assert watched.troubles == []
    assert {re.match(r"(data|blob|http://127\.0\.0\.1)", url) is not None for url in watched.asked} == {True}


def test_names_are_shown_as_text_and_a_damaged_run_does_not_take_the_others_along(browser, tmp_path):
    bits = [Bit(f"{EVIL}{i}", EVIL, (0, i), 1.0) for i in range(4)] + [Bit(f"{EVIL} word", "w" + EVIL, None, 1.0)]
    FakeRun(tmp_path / "evil", EVIL, bits, total=8).play()
    FakeRun(tmp_path / "damaged", "p", bits, total=8).play()
    server = serve([tmp_path / "evil", tmp_path / "damaged"])
    file = tmp_path / "damaged" / "run.db"
    content = bytearray(file.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    file.write_bytes(bytes(content))
    watched = Watched(browser, f"http://127.0.0.1:{server.server_port}/", color_scheme="dark")
    page = watched.page
    expect(page.locator("#tiles .trouble")).to_contain_text("damaged")
    expect(page.locator("#tiles .tile.steps b")).to_have_text("16,000")
    expect(page.locator("#tiles")).to_contain_text("<script>")
    open_tab(page, "Goals")
    expect(page.locator("#goal-rows button.goal").first).to_contain_text("<script>window.evil = 1</script>")
    page.locator("#goal-rows button.goal").first.click()
    expect(page.locator("#goal-detail h2")).to_contain_text("<script>")
    open_tab(page, "Pictures")
    expect(page.locator("#picture-columns .heatmaplayer image").first).to_be_attached()
    expect(page.locator("#picture-columns .infolayer")).to_contain_text("<script>")
    open_tab(page, "Behaviour")
    expect(page.locator("#clip-columns")).to_contain_text("damaged")
    assert page.evaluate("window.evil") is None
    assert page.locator("img[src=x]").count() == 0
    assert [trouble for trouble in watched.troubles if "404" not in trouble] == []
    watched.context.close()
    server.shutdown()
    server.server_close()


def test_seeds_of_one_configuration_are_one_line_with_its_interval(browser, tmp_path):
    bits = [Bit(f"cell {i}", "cell", (0, i), 1.0 + i) for i in range(6)]
    for seed in range(3):
        FakeRun(tmp_path / f"seed-{seed}", "cells-protogoal", bits, seed=seed, total=12).play()
    FakeRun(tmp_path / "longer", "cells-protogoal", bits, seed=3, total=16).play()
    server = serve([tmp_path / name for name in ("seed-0", "seed-1", "seed-2", "longer")])
    watched = Watched(browser, f"http://127.0.0.1:{server.server_port}/", color_scheme="light")
    page = watched.page
    page.get_by_role("checkbox", name="longer").check(force=True)
    expect(page.locator("#tiles .seeds")).to_have_text(
        re.compile(r"cells-protogoal, seeds 0, 1, 2: success mean \d+ % \(\d+–\d+ %\) of 3 seeds"))
    expect(page.locator("#success .legendtext")).to_have_text(["cells-protogoal, seeds 0, 1, 2", "longer"])
    eventually(page, "document.getElementById('success').data.length === 7")  # three seeds; twice a band and its line
    page.get_by_role("checkbox", name="seeds together").uncheck(force=True)
    expect(page.locator("#success .legendtext")).to_have_text(["seed-0", "seed-1", "seed-2", "longer"])
    expect(page.locator("#tiles .seeds")).to_have_count(0)
    assert watched.troubles == []
    watched.context.close()
    server.shutdown()
    server.server_close()


def test_the_report_opens_without_a_network(browser, runs, tmp_path):
    FakeRun(tmp_path / "evil", EVIL, [Bit(f"{EVIL}{i}", EVIL, (0, i), 1.0) for i in range(4)], total=8).play()
    report([runs["baba"], runs["rivers"], tmp_path / "evil"], tmp_path / "report.html", beside=False)
    watched = Watched(browser, (tmp_path / "report.html").as_uri(), offline=True)
    page = watched.page
    goals = page.locator("section.goals").first
    expect(goals.get_by_role("status")).to_have_text(re.compile(r"\d+ goals"))
    goals.get_by_role("searchbox").fill("flag at (8,10)")
    goals.get_by_role("button", name="flag at (8,10)", exact=True).click()
    expect(goals.locator(".story")).to_contain_text("Static: it was on")
    goals.get_by_role("searchbox").fill("baba at (2,6)")
    goals.get_by_role("button", name="baba at (2,6)", exact=True).click()
    expect(goals.locator(".story svg")).to_contain_text("success")
    expect(goals.locator(".story svg")).to_contain_text("nats")
    expect(goals.locator("thead")).to_contain_text("trials")
    expect(goals.locator("thead")).not_to_contain_text("V_seek")
    pictures = page.locator("section.pictures").first
    signs = pictures.locator("svg").first.locator("text")
    now = signs.count()
    pictures.get_by_role("slider").focus()
    page.keyboard.press("Home")
    expect(pictures).to_contain_text("after step 2,000")
    expect(signs).not_to_have_count(now)
    pictures.get_by_role("combobox").select_option("count")
    expect(pictures.locator(".ramp")).to_be_visible()
    expect(page.locator("section.goals").last.locator("td.name").first).to_contain_text("<script>")
    assert page.evaluate("window.evil") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]
    assert watched.troubles == []
    assert {url.split(":")[0] for url in watched.asked} <= {"file", "data"}
    watched.context.close()
