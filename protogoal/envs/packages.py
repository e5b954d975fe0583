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

    Nothing is imported: metadata are read, and the first files of packages and of their folders; of folders within those that
    speak of it.
    """
    stem, found = name.rpartition("/")[2].rpartition("-v")[0] or name, {}
    for package in metadata.distributions():
        with contextlib.suppress(Exception):  # metadata are often incomplete
            if any(re.match(r"gymnasium\b(?!-)", need) and "extra ==" not in need for need in package.requires or ()):
                for module, text in _first_texts(package).items():
                    is_deep = "." in module.removesuffix(".envs")
                    if ("register" in text or module.endswith(".envs")) and (not is_deep or (name and stem in text)):
                        found[module] = (stem not in text, module)
    return sorted(found, key=lambda module: found[module])


def _first_texts(package: metadata.Distribution) -> dict[str, str]:
    """Module → the text of its __init__.py, of all modules that a package installs."""
    first = [file for file in package.files or () if file.name == "__init__.py" and len(file.parts) > 1]
    return {".".join(file.parts[:-1]): Path(str(file.locate())).read_text(errors="replace") for file in first}
