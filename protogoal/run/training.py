"""Training from the command line: files, progress, checkpoints, and a Ctrl-C that loses nothing.

A session (`run.tabular`, `run.local`, `run.ray`) is a generator that yields at points where its state may be saved;
this file drives it. The first Ctrl-C ends the run at the next such point, with a checkpoint; a second one ends it at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from protogoal import config as configuration
from protogoal.record.store import Store
from protogoal.run import checkpoint
from protogoal.run.clips import ClipRecorder
from protogoal.run.directory import RunDirectory
from protogoal.run.progress import Progress

CHECKPOINT_SECONDS = 60.0
CHECKPOINT_SHARE = 0.05  # of a run's time, at most


class Session(Protocol):
    """A run in the making: trains into a store, and can be saved wherever its generator yields."""

    @property
    def step(self) -> int: ...
    def train(self, store: Store) -> Iterator[tuple[int, dict[str, Any]]]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def close(self) -> None: ...


class Player(Session, Protocol):
    """A session whose agent can be tested and watched: those of the local engine."""

    def evaluate(self, episodes: int, seed: int) -> int: ...
    def play(self, goal: int | None, seed: int) -> Iterator[tuple[Any, str]]: ...


def make_session(config: Any, engine: str = "local") -> Session:
    """The session of a configuration; a ValueError says what has to be installed."""
    if engine == "local":
        return make_player(config)
    if not isinstance(config, configuration.DeepConfig):
        raise ValueError("the tabular agents run in the local engine only")
    _need("torch", "deep", "the deep agents need PyTorch")
    _need("ray", "ray", "the ray engine needs Ray")
    from protogoal.run.ray.session import RaySession

    return RaySession(config)


def make_player(config: Any) -> Player:
    """The session of a configuration in the local engine."""
    if isinstance(config, configuration.TabularConfig):
        from protogoal.run.tabular import TabularSession

        return TabularSession(config)
    if isinstance(config, configuration.DeepConfig):
        _need("torch", "deep", "the deep agents need PyTorch")
        if isinstance(config.env, configuration.RiverSettings):
            _need("minihack", "minihack", "the rivers need MiniHack")
        from protogoal.run.local import LocalSession

        return LocalSession(config)
    raise ValueError(f"no engine runs a {type(config).__name__}")


def _need(module: str, extra: str, words: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise ValueError(f"{words}: pip install 'protogoal[{extra}]'")


def train(path: Path, preset: str, config: Any, engine: str = "local", ray: Mapping[str, Any] | None = None) -> bool:
    """A new run in `path`; `ray` are fields of the Ray engine to be set. True at its end, False after Ctrl-C."""
    config = with_ray(config, engine, ray or {})
    RunDirectory.check_free(path)
    with contextlib.closing(make_session(config, engine)) as session:  # refuses before anything is written
        run = RunDirectory.create(path, preset, config, engine)
        return _drive(run, session, Store.create(run.database, _meta(run)))


def resume(path: Path, engine: str | None = None, ray: Mapping[str, Any] | None = None, steps: int | None = None) -> bool:
    """Go on with a run from its last whole checkpoint, or from the beginning if there is none yet; returns as `train`.

    A checkpoint belongs to a run, not to an engine: what one engine began another may go on with. `steps`: how many it shall
    make in all, fewer or more than before.
    """
    run = RunDirectory.open(path)
    found = checkpoint.load_latest(run.checkpoints, about=run.about)
    if steps is not None:
        if found is not None and steps < found[0]:
            raise ValueError(f"--steps must be at least {found[0]:,}, which {path} has made already; got {steps:,}")
        run = run.with_steps(steps)
    if found is not None and found[0] >= run.config.steps:
        if run.database.exists():
            store = Store.open(run.database)
            run.record_steps()
            store.set_meta("total_steps", run.config.steps)
            store.close("finished")  # it may have been killed between its last checkpoint and this
        print(f"{path} has reached its {run.config.steps:,} steps already; --steps trains it on")
        return True
    engine = engine or run.engine
    with contextlib.closing(make_session(with_ray(run.config, engine, ray or {}), engine)) as session:
        if found is not None:
            load_state(session, found[1], run)
        store = Store.open(run.database) if run.database.exists() else Store.create(run.database, _meta(run))
        run.record_steps()  # only now: no other process writes to this run
        store.set_meta("total_steps", run.config.steps)
        store.truncate_after(session.step if found else -1)
        store.event(session.step, f"resumed at step {session.step:,}")
        return _drive(run, session, store)


def with_ray(config: Any, engine: str, fields: Mapping[str, Any]) -> Any:
    """A configuration with fields of its `ray` section replaced."""
    if not fields:
        return config
    if engine != "ray" or not isinstance(config, configuration.DeepConfig):
        raise ValueError(f"--{next(iter(fields)).replace('_', '-')} is for deep agents with --engine ray")
    return dataclasses.replace(config, ray=dataclasses.replace(config.ray, **fields))


def load_state(session: Session, state: Mapping[str, Any], run: RunDirectory) -> None:
    """Load a checkpoint's state; what does not fit is said in one line."""
    try:
        session.load_state_dict(state)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"the checkpoint in {run.checkpoints} does not fit this run: {type(error).__name__} {error}") from None
    except ValueError as error:
        raise ValueError(f"the checkpoint in {run.checkpoints} does not fit this run: {error}") from None


def _meta(run: RunDirectory) -> dict[str, Any]:
    thresholds = {name: getattr(run.config.pge, name) for name in ("reachability_threshold", "controllability_threshold")}
    return {"preset": run.preset, "agent": run.config.agent, "seed": run.config.seed, "total_steps": run.config.steps, **thresholds}


def _drive(run: RunDirectory, session: Session, store: Store) -> bool:
    """Train to the end or to Ctrl-C; whatever happens, what was recorded stays readable."""
    finished = False
    try:
        with _GracefulStop() as stop, Progress(run.config.steps, run.preset) as bar:
            saver, clips = _Saver(run, session, store), ClipRecorder(session, store)
            for step, facts in session.train(store):
                bar.update(step, **facts)
                store.progress(step)
                if stop.requested:
                    break
                saver.maybe_save()
                clips.maybe_record()
            saver.save()
            clips.finish()
        finished = session.step >= run.config.steps
    finally:
        store.close("finished" if finished else "stopped")
    words = "finished" if finished else f"stopped; go on with: protogoal resume {run.path}"
    print(f"{run.path}: {session.step:,} steps, {words}")
    return finished


class _Saver:
    """Checkpoints about once a minute, less often where saving takes long.

    None is written at the step where the session began: nothing is to be saved yet, and what a session does before its
    first step (a test at step 0) would be done again by one that goes on from there.
    """

    def __init__(self, run: RunDirectory, session: Session, store: Store):
        self.run, self.session, self.store = run, session, store
        self._saved = session.step
        self._due = time.monotonic() + CHECKPOINT_SECONDS

    def maybe_save(self) -> None:
        """Saves when it is time; a full disk does not end the run: it is said, and tried again a minute later."""
        if time.monotonic() < self._due:
            return
        try:
            self.save()
        except ValueError as error:
            warnings.warn(f"no checkpoint at step {self.session.step:,}, the run goes on: {error}", stacklevel=2)
            self.store.event(self.session.step, f"no checkpoint: {error}")
            self._due = time.monotonic() + CHECKPOINT_SECONDS

    def save(self) -> None:
        if self.session.step == self._saved:
            return
        start = time.monotonic()
        state = self.session.state_dict()
        self.store.flush()  # first the record up to here, then the state that goes on from here: nothing is ever missing
        checkpoint.save(self.run.checkpoints, self.session.step, state, about=self.run.about)
        if "agent" in state:
            agent = state["agent"]  # the weights it is evaluated with
            checkpoint.save_weights(self.run.weights, agent["learner"]["average"].get("weights", agent["acting_network"]))
        self._saved = self.session.step
        now = time.monotonic()
        self._due = now + max(CHECKPOINT_SECONDS, (now - start) / CHECKPOINT_SHARE)


class _GracefulStop:
    """Turns the first Ctrl-C (or SIGTERM) into a flag; the second acts as usual."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _GracefulStop:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def _request(self, number: int, frame: Any) -> None:
        self.requested = True
        for signal_number, handler in self._before.items():
            signal.signal(signal_number, handler)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
