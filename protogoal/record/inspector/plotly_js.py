"""plotly.js as the Python package carries it, without starting the kinds of plots that the page does not draw.

The whole library registers some 47 kinds of plots as it starts, maps and 3-D scenes among them, which takes most of the time
until a page is ready. The page draws lines (always there) and heat maps; the file is one of lazy modules, so a kind that is
not registered is never run. Where the file is not built as expected, it is served as it is. Called by serve.py.
"""

from __future__ import annotations

import re
from importlib import resources

KINDS = ("heatmap",)
REGISTER = re.compile(r"\.register\(\[((?:[\w$]+\(\),?)+)\]\)")


def plotly_script() -> bytes:
    """The text of the script."""
    whole = (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return with_kinds_alone(whole).encode()


def with_kinds_alone(script: str, kinds: tuple[str, ...] = KINDS) -> str:
    """The script registering these kinds of plots only, or the same script where they are not found in it."""
    found = list(REGISTER.finditer(script))
    if len(found) != 1:
        return script
    modules = {_kind(script, module): module for module in re.findall(r"[\w$]+", found[0][1])}
    if not {*kinds} <= {*modules}:
        return script
    start, end = found[0].span(1)
    return script[:start] + ",".join(f"{modules[kind]}()" for kind in kinds) + script[end:]


def _kind(script: str, module: str) -> str:
    """The name of the plots that a module registers: it hands on another one, which says it. Empty where it is not so."""
    handed_on = re.search(r"exports=([\w$]+)\(\)", _head(script, module))
    name = re.search(r'moduleType:"trace",name:"(\w+)"', _head(script, handed_on[1])) if handed_on else None
    return name[1] if name else ""


def _head(script: str, module: str) -> str:
    """The first characters of a module, up to the next one."""
    start = script.find(f"var {module}=")
    return "" if start < 0 else script[start : start + 2_000].partition("});var ")[0]
