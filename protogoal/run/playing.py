"""What a trained agent can do: success for the task, and pictures of it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium

from protogoal.record.gif import encode_gif
from protogoal.record.interval import wilson_interval
from protogoal.run import checkpoint
from protogoal.run.directory import RunDirectory
from protogoal.run.training import Player, load_state, make_player


def load_session(path: Path) -> Player:
    """The agent of a run as its last checkpoint has it."""
    run = RunDirectory.open(path)
    found = checkpoint.load_latest(run.checkpoints, about=run.about)
    if found is None:
        raise ValueError(f"{path} has no checkpoint yet; let the run go on for a minute, or stop it with Ctrl-C")
    session = make_player(run.config)
    load_state(session, found[1], run)
    return session


def evaluate(path: Path, episodes: int, seed: int) -> dict[str, Any]:
    """{"success", "low", "high", "episodes", "steps"}: episodes for the task with a 95 % Wilson interval.

    They are ε-greedy with evaluation.epsilon.
    """
    session = load_session(path)
    successes = session.evaluate(episodes, seed)
    low, high = wilson_interval(successes, episodes)
    return {"success": successes / episodes, "low": low, "high": high, "episodes": episodes, "steps": session.step}


def watch(path: Path, goal: int | None, out: Path, seed: int) -> str:
    """Write a GIF of one episode for the task, or of one pursuit; returns what it shows."""
    if out.suffix.lower() != ".gif":
        raise ValueError(f"--out must name a .gif file, got {out}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pkg_resources")  # pygame's, of no use to a reader
        try:
            frames, captions = zip(*load_session(path).play(goal, seed), strict=True)
        except gymnasium.error.DependencyNotInstalled:
            raise ValueError("Taxi is drawn by pygame: pip install 'protogoal[render]'") from None
    data = encode_gif(frames, captions)
    temporary = out.with_name(f".{out.name}.part")
    try:
        temporary.write_bytes(data)
        temporary.replace(out)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror}") from None
    return f"wrote {out}: {captions[-1].strip()}, {len(frames)} frames"
