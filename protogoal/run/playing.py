"""What can be had of a run on disk: its agent as the last checkpoint has it, pictures of what it does, the proto-goals it declares.

Code of one's own is imported only as far as the user trusts it (`run.trust`).
"""

from __future__ import annotations

from pathlib import Path

import gymnasium

from protogoal.domains.domain import check_installed
from protogoal.files import write_whole
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.record.gif import encode_gif
from protogoal.record.terms import printable
from protogoal.registry import domain
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


def declared_space(path: Path, granted: trust.Trust = trust.NOTHING) -> ProtoGoalSpace:
    """The proto-goal space of a run, made anew: a record holds what was observed alone. A ValueError says why it cannot be made."""
    config = RunDirectory.open(path).config
    trust.check(path, config, "local", granted)
    check_installed(f"the domain {config.env.kind}", domain(config.env.kind).needs)
    space: ProtoGoalSpace = domain(config.env.kind).space(config.env)
    return space


def watch(player: Askable, goal: int | None, out: Path, seed: int) -> str:
    """Write a GIF of one episode for the task, or of one pursuit; returns what it shows."""
    if out.suffix.lower() != ".gif":
        raise ValueError(f"--out must name a .gif file; got {out}")
    try:
        frames, captions = zip(*player.play(goal, seed), strict=True)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ValueError(f"a package that draws is missing, mostly pygame: pip install 'protogoal[render]' ({error})") from None
    data = encode_gif(frames, captions)
    try:
        write_whole(out, data)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror}") from None
    return printable(f"wrote {out}: {captions[-1].strip()}, {len(frames)} frames")
