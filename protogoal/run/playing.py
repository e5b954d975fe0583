"""The agent of a run as its last checkpoint has it, and pictures of what it does."""

from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium

from protogoal.files import write_whole
from protogoal.record.gif import encode_gif
from protogoal.run import checkpoint, trust
from protogoal.run.directory import RunDirectory
from protogoal.run.training import Askable, Player, load_state, make_player


def load_session(path: Path, granted: trust.Trust = trust.NOTHING) -> Player:
    """The agent of a run as its last checkpoint has it. `granted`: whether code that it names may be imported."""
    run = RunDirectory.open(path)
    trust.check(path, run.config, "local", granted)
    found = checkpoint.load_latest(run.checkpoints, about=run.about)
    if found is None:
        raise ValueError(f"{path} has no checkpoint yet; let the run go on for a minute, or stop it with Ctrl-C")
    session = make_player(run.config)
    load_state(session, found[1], run)
    return session


def watch(player: Askable, goal: int | None, out: Path, seed: int) -> str:
    """Write a GIF of one episode for the task, or of one pursuit; returns what it shows."""
    if out.suffix.lower() != ".gif":
        raise ValueError(f"--out must name a .gif file, got {out}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pkg_resources")  # pygame's, of no use to a reader
        try:
            frames, captions = zip(*player.play(goal, seed), strict=True)
        except gymnasium.error.DependencyNotInstalled as error:
            raise ValueError(f"a package that draws is missing, mostly pygame: pip install 'protogoal[render]' ({error})") from None
    data = encode_gif(frames, captions)
    try:
        write_whole(out, data)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror}") from None
    return f"wrote {out}: {captions[-1].strip()}, {len(frames)} frames"
