"""What is installed of that which an environment or an agent needs, and what to install where it is not.

Modules are looked for, never imported. `domain.check_installed` refuses a run by it, `protogoal envs` says it beforehand.
"""

from __future__ import annotations

import importlib.util

from protogoal.envs.door import PACKAGES

EXTRAS = {"torch": "deep", "minihack": "minihack", "ray": "ray"}
"""Module → the extra that installs it."""

DRAWS = {"pygame": ("draws Gymnasium's own: FrozenLake-v1, Taxi-v3, CartPole-v1, …", '"protogoal[render]"')}
"""Module that draws other people's environments → which, and what pip installs it by."""


def is_installed(module: str) -> bool:
    """Whether a module can be imported here."""
    return importlib.util.find_spec(module) is not None


def missing(extras: str) -> str:
    """Of extras, joined by commas, those that are not installed, in the same form."""
    module_of = {extra: module for module, extra in EXTRAS.items()}
    return ",".join(extra for extra in filter(None, extras.split(",")) if not is_installed(module_of[extra]))


def packages() -> list[dict[str, str | bool]]:
    """Other people's environments: package, whether it is installed, how its ids begin, and what pip installs it by."""
    known: dict[str, tuple[list[str], str]] = {}
    for beginning, (module, by) in PACKAGES.items():
        module = module.partition(".")[0]
        if module != "protogoal":
            known.setdefault(module, ([], by))[0].append(f"{beginning}…")
    rows = {module: (f"--env {', '.join(ids)}", by) for module, (ids, by) in known.items()} | DRAWS
    return [{"package": module, "installed": is_installed(module), "words": words, "install": f"pip install {by}"}
            for module, (words, by) in rows.items()]
