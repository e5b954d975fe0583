"""What is installed of that which an environment or an agent needs, and what to install where it is not.

Modules are looked for, never imported. `domain.check_installed` refuses a run by it, `protogoal envs` says it beforehand.
"""

from __future__ import annotations

import importlib.util

EXTRAS = {"torch": "deep", "minihack": "minihack", "ray": "ray"}
"""Module → the extra that installs it."""

PACKAGES = {
    "minigrid": ("--env minigrid:MiniGrid-MultiRoom-N4-S5-v0", '"protogoal[minigrid]"'),
    "minihack": ("--env minihack:MiniHack-River-v0", '"protogoal[minihack]"'),
    "ale_py": ("--env ale_py:ALE/MontezumaRevenge-v5", "ale-py"),
    "crafter": ("a survival game", "crafter"),
    "textworld": ("text games", "textworld"),
    "pygame": ("draws Gymnasium's own: FrozenLake-v1, Taxi-v3, CartPole-v1, …", '"protogoal[render]"'),
}
"""Module of other people's environments → what it is good for, and what pip installs it by."""


def is_installed(module: str) -> bool:
    """Whether a module can be imported here."""
    return importlib.util.find_spec(module) is not None


def missing(extras: str) -> str:
    """Of extras, joined by commas, those that are not installed, in the same form."""
    module_of = {extra: module for module, extra in EXTRAS.items()}
    return ",".join(extra for extra in filter(None, extras.split(",")) if not is_installed(module_of[extra]))


def packages() -> list[dict[str, str | bool]]:
    """Other people's environments: module, whether it is installed, what it is good for, what pip installs it by."""
    return [{"package": module, "installed": is_installed(module), "words": words, "install": f"pip install {by}"}
            for module, (words, by) in PACKAGES.items()]
