"""Installed packages that may register an environment: those that need Gymnasium and register something when they are imported.

`door` imports them one by one for an id that nobody knows yet.
"""

from __future__ import annotations

import contextlib
import re
from importlib import metadata
from pathlib import Path


def registering_packages(name: str = "") -> list[str]:
    """Modules that may register; those that speak of the environment of this name first.

    Nothing is imported: metadata are read, and the first files of packages, and of what they have in a folder `envs`.
    """
    stem, found = name.rpartition("/")[2].rpartition("-v")[0] or name, {}
    for package in metadata.distributions():
        with contextlib.suppress(Exception):  # metadata are often incomplete
            if any(re.match(r"gymnasium\b(?!-)", need) and "extra ==" not in need for need in package.requires or ()):
                for module, text in _first_texts(package).items():
                    if "register" in text or module.endswith(".envs"):
                        found[module] = (stem not in text, module)
    return sorted(found, key=lambda module: found[module])


def _first_texts(package: metadata.Distribution) -> dict[str, str]:
    """Module → the text of its __init__.py, of the modules that a package installs and their folders `envs`."""
    first = [file for file in package.files or () if file.parts[1:] in (("__init__.py",), ("envs", "__init__.py"))]
    return {".".join(file.parts[:-1]): Path(str(file.locate())).read_text(errors="replace") for file in first}
