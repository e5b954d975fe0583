"""Brings what lies outside docs/ into the site: PAPER.md, and results/ with its pages, figures and data.

mkdocs calls these functions while it builds (see `hooks` in mkdocs.yml). The files stay where they are, so that they can be
read without the site; only links are turned to where they stand here.
"""

import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
SHOWN = {".md", ".png", ".csv", ".html", ".svg", ".gif"}


def results() -> list[Path]:
    """Files of results/ that are shown; notes are part of a README already, and runs are not shown."""
    files = sorted(path for path in (ROOT / "results").rglob("*") if path.suffix in SHOWN)
    return [path for path in files if "runs" not in path.parts and path.name != "notes.md"]


def pages() -> list[Path]:
    """One for each experiment; results/README.md, the table claim by claim, stands before them in mkdocs.yml."""
    return [path for path in results() if path.name == "README.md" and path.parent.name != "results"]


def uri_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().replace("README.md", "index.md")


def on_config(config):
    paper = next(part for part in config.nav if isinstance(part, dict) and "The paper" in part)["The paper"]
    paper += [uri_of(path) for path in pages()]
    return config


def on_files(files, config):
    files.append(File.generated(config, "PAPER.md", content=(ROOT / "PAPER.md").read_text()))
    for path in results():
        files.append(File.generated(config, uri_of(path), content=path.read_text()) if path.suffix == ".md" else
                     File.generated(config, uri_of(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to and from files outside docs/, turned; a page that is not part of the site is named, not linked."""
    uri = page.file.src_uri
    if uri != "PAPER.md" and not uri.startswith("results/"):
        markdown = re.sub(r"\[([^\]]+)\]\(\.\./examples/[^)\s]*\)", r"`\1`", markdown)  # in the repository alone
        outside = r"\]\(\.\./((?:PAPER\.md|results/)[^)\s]*)\)"
        return re.sub(outside, lambda m: f"]({m[1].replace('README.md', 'index.md')})", markdown)

    def turned(match):
        words, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match.group(0)
        base = ROOT if uri == "PAPER.md" else (ROOT / uri).parent
        path, _, anchor = target.partition("#")
        goal = (base / path).resolve()
        goal = goal / "README.md" if goal.is_dir() else goal  # as a folder is shown in the repository
        there = os.path.relpath(goal, ROOT).removeprefix("docs/").replace("README.md", "index.md")
        if files.get_file_from_path(there) is None:
            return words
        here = os.path.relpath(there, os.path.dirname(uri) or ".")
        return f"[{words}]({here}{'#' + anchor if anchor else ''})"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", turned, markdown)
