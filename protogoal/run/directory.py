"""The files of a run: config.json, run.db, checkpoints/, weights.safetensors, report.html.

config.json is written first, whole or not at all, so that a directory either is a run or is not; it carries a checksum.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
import subprocess
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from protogoal import __version__
from protogoal.config import config_class
from protogoal.files import is_leftover, write_new, write_whole
from protogoal.run.checksums import KEY, seal, unseal
from protogoal.settings import from_dict, to_dict

FORMAT = 3  # of config.json


@dataclass(frozen=True)
class RunDirectory:
    """A run on disk: where it lies, the preset it came from, and its configuration."""

    path: Path
    preset: str
    config: Any
    engine: str = "local"
    _place: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", self.path.absolute())  # an environment may go to another directory

    @property
    def about(self) -> dict[str, str]:
        """What a checkpoint must agree with to belong to this run."""
        return {"preset": self.preset, "class": type(self.config).__name__, "agent": self.config.agent}

    @property
    def configuration(self) -> str:
        """A checksum of all settings but the seed: alike for runs that differ in it alone."""
        settings = {name: value for name, value in to_dict(self.config).items() if name != "seed"}
        return hashlib.sha256(json.dumps([self.preset, settings], sort_keys=True).encode()).hexdigest()[:16]

    @property
    def database(self) -> Path:
        return self._place / "run.db"

    @property
    def checkpoints(self) -> Path:
        return self._place / "checkpoints"

    @property
    def weights(self) -> Path:
        return self._place / "weights.safetensors"

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuses a directory that holds anything."""
        if (path / "config.json").exists():
            raise ValueError(f"{path} is in use already; name another with --run, or go on with: protogoal resume {path}")
        if path.exists() and (not path.is_dir() or not all(is_leftover(file) for file in path.iterdir())):
            raise ValueError(f"{path} is in use already and no run; name another with --run")

    @staticmethod
    def create(path: Path, preset: str, config: Any, engine: str = "local") -> RunDirectory:
        """A new run; refuses a directory that holds anything."""
        path = Path(path)
        RunDirectory.check_free(path)
        record = {"format": FORMAT, "preset": preset, "class": type(config).__name__, "engine": engine,
                  "config": to_dict(config), "versions": versions(), "commit": commit()}
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_new(path / "config.json", seal(record).encode())
        except FileExistsError:
            raise ValueError(f"{path} is in use already: another process has begun a run there") from None
        except OSError as error:
            raise ValueError(f"cannot write to {path}: {error.strerror}") from None
        return RunDirectory(path, preset, config, engine)

    @staticmethod
    def open(path: Path) -> RunDirectory:
        """An existing run; a ValueError says in one line why it is none."""
        path = Path(path)
        file = path / "config.json"
        if not file.is_file():
            raise ValueError(f"{path} is not a run: it has no config.json")
        for other in (*path.glob("*"), *path.glob("checkpoints/*/*")):
            if other.is_fifo() or other.is_char_device() or other.is_block_device():
                raise ValueError(f"{other} is no file but a pipe or a device, which may never end; remove it")
        try:
            record = unseal(file.read_bytes())
        except ValueError as error:
            why = "it is no JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else error
            raise ValueError(f"{file} is damaged: it is not the configuration of a run ({why})") from None
        try:
            if record["format"] != FORMAT:
                raise ValueError(f"{file} has format {record['format']}, this version reads {FORMAT}")
            if KEY not in record:
                raise ValueError(f"{file} is damaged: it has no checksum")
            config = from_dict(config_class(record["class"]), record["config"])
            preset, engine = record["preset"], record.get("engine", "local")
            if not isinstance(preset, str) or engine not in ("local", "ray"):
                raise TypeError
            return RunDirectory(path, preset, config, engine)
        except (KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{file} is damaged: it is not the configuration of a run") from None

    def with_steps(self, steps: int) -> RunDirectory:
        """The same run with another number of steps to make; `record_steps` writes it down."""
        return dataclasses.replace(self, config=dataclasses.replace(self.config, steps=steps))

    def record_steps(self) -> None:
        """The number of steps into config.json, of which all else stays."""
        file = self._place / "config.json"
        record = unseal(file.read_bytes())
        if record["config"]["steps"] != self.config.steps:
            record["config"]["steps"] = self.config.steps
            write_whole(file, seal(record).encode())

    @property
    def is_there(self) -> bool:
        """Whether nobody has removed or moved it."""
        return (self._place / "config.json").exists()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version(), "protogoal": __version__}
    for name in ("numpy", "numba", "scipy", "gymnasium", "torch", "nle", "minihack", "ray"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The commit of the source checkout, with + where it has uncommitted changes; None for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
