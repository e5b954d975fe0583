"""The files of a run: config.json, run.db, checkpoints/, weights.safetensors, report.html.

config.json is written first, to a temporary name and renamed, so that a directory either is a run or is not.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from protogoal import config as configuration

FORMAT = 1  # of config.json


@dataclass(frozen=True)
class RunDirectory:
    """A run on disk: where it lies, the preset it came from, and its configuration."""

    path: Path
    preset: str
    config: Any
    engine: str = "local"

    @property
    def about(self) -> dict[str, str]:
        """What a checkpoint must agree with to belong to this run."""
        return {"preset": self.preset, "class": type(self.config).__name__, "agent": self.config.agent}

    @property
    def database(self) -> Path:
        return self.path / "run.db"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def weights(self) -> Path:
        return self.path / "weights.safetensors"

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuses a directory that holds anything."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(f"{path} is in use already; name another with --run, or go on with: protogoal resume {path}")

    @staticmethod
    def create(path: Path, preset: str, config: Any, engine: str = "local") -> RunDirectory:
        """A new run; refuses a directory that holds anything."""
        path = Path(path)
        RunDirectory.check_free(path)
        record = {"format": FORMAT, "preset": preset, "class": type(config).__name__, "engine": engine,
                  "config": configuration.to_dict(config), "versions": versions(), "commit": commit()}
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_text(path / "config.json", json.dumps(record, indent=1))
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
        try:
            record = json.loads(file.read_text())
            cls = config_class(record["class"])
            if record["format"] != FORMAT:
                raise ValueError(f"{file} has format {record['format']}, this version reads format {FORMAT}")
            config = configuration.from_dict(cls, record["config"])
            return RunDirectory(path, record["preset"], config, record.get("engine", "local"))
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
            raise ValueError(f"{file} is damaged: it is not the configuration of a run") from None

    def with_steps(self, steps: int) -> RunDirectory:
        """The same run with another number of steps to make; `record_steps` writes it down."""
        return dataclasses.replace(self, config=dataclasses.replace(self.config, steps=steps))

    def record_steps(self) -> None:
        """The number of steps into config.json, of which all else stays."""
        file = self.path / "config.json"
        record = json.loads(file.read_text())
        if record["config"]["steps"] != self.config.steps:
            record["config"]["steps"] = self.config.steps
            write_text(file, json.dumps(record, indent=1))


def config_class(name: str) -> Any:
    """The configuration class of that name."""
    classes = {c.__name__: c for c in vars(configuration).values() if isinstance(c, type) and c.__name__.endswith("Config")}
    if name not in classes:
        raise ValueError(f"unknown kind of run {name!r}; known are {', '.join(sorted(classes))}")
    return classes[name]


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in ("protogoal", "numpy", "numba", "scipy", "gymnasium", "torch", "nle", "minihack", "ray"):
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
