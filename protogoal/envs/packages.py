"""Installed packages that may register an environment: those that need Gymnasium and register something when they are imported.

`door` imports them one by one for an id that nobody knows yet.
"""

from __future__ import annotations

import contextlib
import re
from importlib import metadata
from pathlib import Path


def registering_packages() -> list[str]:
    """Modules of such packages, by name. Nothing is imported: their metadata and first file are read."""
    found = set()
    for package in metadata.distributions():
        with contextlib.suppress(Exception):  # metadata are often incomplete
            if any(re.match(r"gymnasium\b(?!-)", need) and "extra ==" not in need for need in package.requires or ()):
                found |= {module for module, file in _first_files(package).items() if "register" in file.read_text(errors="replace")}
    return sorted(found)


def _first_files(package: metadata.Distribution) -> dict[str, Path]:
    """Module → its __init__.py, of the modules that a package installs."""
    return {file.parts[0]: Path(str(file.locate())) for file in package.files or () if file.parts[1:] == ("__init__.py",)}
