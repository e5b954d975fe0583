"""Every snippet of the README and the documentation is run, and the site builds without a warning.

Python blocks of a page run in order in one namespace. Lines of console blocks run through the command line in one directory for all
pages, with sizes made small (`SMALLER`). What is not run says so in a comment above it: <!-- not run: reason -->.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from protogoal.cli import main

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- not run: *(?P<reason>[^>]*?) *-->\s*\n)?^```(?P<language>[a-z]+)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)
NOT_CODE = {"toml", "text", "json"}

TINY_DEEP = ["--actor.num_envs", "4", "--learner.batch_size", "4", "--learner.min_replay", "200", "--network.hidden", "16",
             "--network.rank", "8", "--network.channels", "4", "--refresh_every", "400", "--evaluation.every", "1000",
             "--evaluation.episodes", "2", "--evaluation.final_episodes", "2", "--steps", "800", "--threads", "1"]
SMALLER = {
    "train taxi": ["--steps", "2000", "--learning.eval_every", "1000"],
    "train ": TINY_DEEP,
    "eval": ["--episodes", "4"],
    "reproduce": ["--scale", "smoke", "--seeds", "1"],
    "bench": ["--quick"],
}


def expanded(text: str) -> str:
    """Files that are included, as the site shows them."""
    return re.sub(r'^--8<-- "([^"]+)"\n', lambda match: (ROOT / match.group(1)).read_text(), text, flags=re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    found = BLOCK.finditer((ROOT / page).read_text())
    return [expanded(m["text"]) for m in found if m["language"] == language and m["reason"] is None]


def pages_with(language: str) -> list[str]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One directory for all pages, with the examples in it, as the tutorial asks."""
    path = tmp_path_factory.mktemp("docs")
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, path)
    before, paths = os.getcwd(), list(sys.path)
    os.chdir(path)
    sys.path.insert(0, str(path))
    yield path
    os.chdir(before)
    sys.path[:] = paths


DONE: set[str] = set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", pages_with("python"))
def test_python_of_a_page_runs(page, place):
    if page == "docs/interop.md":
        pytest.importorskip("stable_baselines3")
    if page == "docs/tutorial.md":
        pytest.importorskip("minigrid")
    namespace = {"__name__": "snippet"}
    for k, text in enumerate(blocks(page, "python")):
        exec(compile(text, f"{page}, block {k}", "exec"), namespace)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_of_a_page_run(page, place, capsys):
    if page == "docs/tutorial.md":
        pytest.importorskip("minigrid")
        pytest.importorskip("torch")
    for line in "\n".join(blocks(page, "console")).splitlines():
        command = line.split(" #")[0].strip()
        if not command or command.startswith("#") or command in DONE:  # runs of another page are there already
            continue
        words = shlex.split(command)
        assert words[0] == "protogoal", f"{page}: {command!r} cannot be run here; mark the block as not run, with a reason"
        extra = next((more for start, more in SMALLER.items() if " ".join(words[1:]).startswith(start)), [])
        assert main([*words[1:], *extra]) == 0, f"{page}: {command}\n{capsys.readouterr().err}"
        DONE.add(command)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_have_a_language_and_what_is_not_run_has_a_reason(page):
    text = (ROOT / page).read_text()
    fences = re.findall(r"^```(\w*)$", text, re.MULTILINE)
    assert len(fences) % 2 == 0
    for opening in fences[::2]:
        assert opening in {"python", "console"} | NOT_CODE, f"{page}: a block of {opening or 'no language'}"
    for match in BLOCK.finditer(text):
        assert match["reason"] is None or len(match["reason"]) > 10, f"{page}: say why it is not run"
    assert len(list(BLOCK.finditer(text))) == len(fences) // 2
    loose = re.findall(r"^    (?:protogoal|pip|python) .*$", BLOCK.sub("", text), re.MULTILINE)
    assert not loose, f"{page}: {loose[0].strip()!r} is not in a console block, so nothing runs it"


def test_diagrams_are_what_their_source_draws(tmp_path):
    spec = importlib.util.spec_from_file_location("draw", ROOT / "docs" / "pictures" / "draw.py")
    draw = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    for picture in (draw.overview, draw.funnel, draw.pursuit, draw.hindsight):
        picture().save(tmp_path / "picture.svg")
        assert (tmp_path / "picture.svg").read_text() == (ROOT / "docs" / "pictures" / f"{picture.__name__}.svg").read_text()


def test_the_site_builds_without_warnings_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
                          cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(https?://[^\" >]+)", page.read_text())
        assert not [url for url in loaded if "canonical" not in url], f"{page.name} loads {loaded}"
