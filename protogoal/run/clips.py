"""Clips of what the agent does, recorded while it trains: for the task, of a mastered goal, of one it still struggles with.

Now and then, for a small share of the run's time, the session plays an episode on an environment of its own (its `play`)
and the frames go into the store as a GIF. Playing must not touch training, so a run with clips and one without are the
same. Called by run/training.py; the inspector and the report show the clips.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

from protogoal.envs.failure import EnvironmentFailure, first_line
from protogoal.envs.success import ABOVE_0
from protogoal.record.gif import encode_gif
from protogoal.record.store import Store, StoreReader

FIRST_SECONDS = 5.0  # a shorter run records nothing: it would be longer recorded than trained
SHARE = 0.02  # of a run's time, at most
MOST_FRAMES = 80
MOST_STEPS = 1_000  # played to see how it ends
LONGEST_SIDE = 240  # pixels
WON = ("attained", "delivered", "won")  # how the last caption of a success ends


class ClipRecorder:
    """Records clips of `session` into `store`, where the session can play at all."""

    def __init__(self, session: Any, store: Store):
        self._session, self._store = session, store
        self._can_play = hasattr(session, "play")
        self._first = self._due = time.monotonic() + FIRST_SECONDS

    def maybe_record(self) -> None:
        """Record if enough time has gone by since the last clips."""
        if self._can_play and time.monotonic() >= self._due:
            self.record()

    def finish(self) -> None:
        """The agent as it ended, where the run was long enough to be worth it."""
        if self._can_play and time.monotonic() >= self._first:
            self.record()

    def record(self) -> None:
        """One clip for the task, and one each of a mastered goal and of an offered goal that is not mastered yet."""
        start, step = time.monotonic(), int(self._session.step)
        self._store.flush()
        with StoreReader(self._store.path) as reader:
            wanted = "SELECT id FROM goals WHERE {} ORDER BY random() LIMIT 1"
            found = [reader.rows(wanted.format(which)) for which in ("mastered", "offered AND NOT mastered")]
        try:
            for goal in (None, *(rows[0][0] for rows in found if rows)):
                self._clip(step, goal, self._session.play(goal, seed=step))
        except Exception as error:  # a missing font or video driver must not end a training run
            self._can_play = False
            self._store.event(step, f"no clips from here on: {plain_words(error)}")
        now = time.monotonic()
        self._due = now + max(FIRST_SECONDS, (now - start) / SHARE)

    def _clip(self, step: int, goal: int | None, play: Iterator[tuple[Any, str]]) -> None:
        frames: list[Any] = []
        last = ""
        for frame, caption in itertools.islice(play, MOST_STEPS):
            last = caption
            frames.append(_smaller(frame))
            if len(frames) > MOST_FRAMES:
                del frames[-2]  # a long one: its beginning and its end
        rule = getattr(self._session, "success", ABOVE_0)
        success = last.rstrip().endswith(WON) if goal is not None or rule.kind != "none" else None
        gif = encode_gif(frames)
        self._store.clip(step, "player" if goal is None else "pursuit", -1 if goal is None else goal, success, gif)


def plain_words(error: Exception) -> str:
    """An error as one plain sentence; what an environment failed with is one already."""
    words = " ".join(first_line(str(error)).split()).rstrip(" :")
    if isinstance(error, EnvironmentFailure):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _smaller(frame: Any) -> Any:
    """Every n-th pixel, so that no side is longer than LONGEST_SIDE."""
    n = -(-max(frame.shape[:2]) // LONGEST_SIDE)
    return frame[::n, ::n]
