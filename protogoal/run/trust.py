"""What a run may make this machine do when it is opened: nothing, unless its user says so.

config.json may name code (an environment of one's own: imported and called) and an address (of a Ray cluster: connected
to). People share runs, so names that come from a file count only with `--trust`, or where they are given again on the
command line; a domain that an installed package announces was trusted when that package was installed. Whatever is
granted, nothing is ever imported from below the run's own directory.

Called by `run.training.resume` and `run.playing.load_session` before anything is made from a configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from protogoal.record.terms import printable


@dataclass(frozen=True)
class Trust:
    """What the user grants: all that a run names, or the names given again, by option."""

    everything: bool = False
    repeated: Mapping[str, str] = field(default_factory=dict)


NOTHING = Trust()
EVERYTHING = Trust(everything=True)


def named(config: Any, engine: str) -> dict[str, str]:
    """Code and addresses that a configuration names, by the option that would give them."""
    found: dict[str, str] = config.env.code()
    address = config.ray.address if engine in config.engines and engine == "ray" else ""
    return found | ({"--address": address} if address else {})


def check(path: Path, config: Any, engine: str, trust: Trust) -> None:
    """Refuses, in one line, names that were not granted; says what is imported or connected to where they were."""
    names = named(config, engine)
    for option, given in trust.repeated.items():
        trained = {"--env": getattr(config.env, "factory", ""), "--space": getattr(config.env, "space", "")}
        if option in trained and trained[option] != given:
            raise ValueError(f"{option} {given} is not what {path} was trained with: {trained[option] or 'none of your own'}")
    words = ", ".join(f"{option} {name}" for option, name in names.items())
    granted = {option for option, name in names.items() if trust.everything or trust.repeated.get(option) == name}
    if names.keys() & {"--env", "--space"} and _is_announced(config.env.factory, config.env.space):
        granted |= {"--env", "--space"}
    if names.keys() - granted:
        raise ValueError(f"{path} names code to import or an address to connect to: {words}; nothing was done. "
                         "If you trust where it comes from, add --trust (in Python: trust=True), or give these options again")
    if names.keys() & {"--env", "--space"}:
        forbid_imports_below(path)
    if names and trust.everything:
        print(printable(f"{path}: trusted with {words}"), file=sys.stderr)


def _is_announced(env: str, space: str) -> bool:
    from protogoal.envs.user_envs import announced_domains

    return any((domain.env, domain.space) == (env, space) for domain in announced_domains(lambda text: None).values())


def forbid_imports_below(directory: Path) -> None:
    """From here on no module is found in `directory` or below, whoever asks for it."""
    here = Path.cwd()
    if _is_below(here, [directory]):
        raise ValueError(f"code is never imported from a run's own directory, and this is {here}; start from another directory")
    if not any(isinstance(finder, ImportGuard) for finder in sys.meta_path):
        sys.meta_path.insert(0, ImportGuard())
    ImportGuard.directories.append(directory)


class ImportGuard(MetaPathFinder):
    """Stands before all other finders and refuses what they find in the wrong place."""

    directories: list[Path] = []  # noqa: RUF012  (one list for the process)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next((found for finder in others if (found := finder.find_spec(name, path, target)) is not None), None)
        if spec is not None:
            places = [spec.origin] if spec.has_location and spec.origin else []
            for place in (*places, *(spec.submodule_search_locations or ())):
                if _is_below(Path(place), self.directories):
                    raise ValueError(f"{name} lies in a run's own directory ({place}); code is never imported from there")
        return spec


def _is_below(place: Path, directories: Sequence[Path]) -> bool:
    """As its path is written, or as its links lead."""
    return any(spelled.is_relative_to(root) for directory in directories for root in (directory.absolute(), directory.resolve())
               for spelled in (place.absolute(), place.resolve()))
