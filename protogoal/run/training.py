"""Training into a run directory: recorders, checkpoints, and a Ctrl-C that loses nothing.

A session (`run.tabular`, `run.local`, `run.ray`) is a generator of events; this file hands them to the recorders. The first
Ctrl-C ends the run where its state may be saved, with a checkpoint and an evaluation; a second one ends it at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import secrets
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from protogoal import registry
from protogoal.domains.domain import check_installed, settled
from protogoal.envs.success import ABOVE_0, SuccessRule
from protogoal.envs.user_envs import is_local
from protogoal.record.events import Evaluated, Event, Happened, Progressed, Recorder, last_evaluation
from protogoal.record.recorders import named
from protogoal.record.store import Store
from protogoal.run import checkpoint, trust
from protogoal.run.clips import ClipRecorder
from protogoal.run.directory import RunDirectory
from protogoal.run.progress import Progress
from protogoal.run.stopping import GracefulStop
from protogoal.settings import refuse

CHECKPOINT_SECONDS = 60.0
CHECKPOINT_SHARE = 0.05  # of a run's time, at most


class Session(Protocol):
    """A run in the making: its generator tells what happens, and it can be saved wherever that yields `Progressed`."""

    @property
    def step(self) -> int: ...
    def train(self) -> Iterator[Event]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def evaluate(self, episodes: int, seed: int, goal: int | None = None, as_in_run: bool = False) -> Evaluated: ...
    def close(self) -> None: ...


class Askable(Protocol):
    """What can be asked what to do, and which goals it has."""

    config: Any

    @property
    def step(self) -> int: ...
    def predict(self, raw: Any, goal: int | None, memory: Any, reward: Any = 0.0, first: Any = None) -> tuple[Any, Any]: ...
    def goal_columns(self) -> dict[str, Any]: ...
    def player_state(self) -> Mapping[str, Any]: ...
    def evaluate(self, episodes: int, seed: int, goal: int | None = None, as_in_run: bool = False) -> Evaluated: ...
    def play(self, goal: int | None, seed: int) -> Iterator[tuple[Any, str]]: ...


class Player(Askable, Session, Protocol):
    """A session whose agent can be asked and watched: those of the local engine."""

    def load_player(self, state: Mapping[str, Any]) -> None: ...


def make_session(config: Any, engine: str = "local") -> Session:
    """The session of a configuration; a ValueError says what has to be installed."""
    check_agent(config, engine)
    if engine == "ray":
        ask_for_token(config.ray.address)
    module, _, name = config.engines[engine].partition(":")
    session: Session = getattr(importlib.import_module(module), name)(config)
    return session


def ask_for_token(address: str) -> None:
    """Makes a Ray that this process will start answer only who knows a token: it listens on all interfaces, and must.

    Ray reads the variables when it is imported. Where it was imported already, or a cluster is joined, nothing is changed.
    """
    if address or "ray" in sys.modules:
        return
    if os.environ.setdefault("RAY_AUTH_MODE", "token") == "token":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def check_agent(config: Any, engine: str) -> None:
    """A ValueError says which engine is possible, what it cannot do, or what has to be installed."""
    if engine not in config.engines:
        raise refuse("engine", f"{' or '.join(config.engines)} for the agent {config.agent} on {config.env.kind}", engine)
    if engine == "ray" and config.device in ("cuda", "mps") and not config.ray.learner_gpus:
        raise refuse("device", "auto or cpu where ray.learner_gpus = 0 (--ray.learner_gpus 1 reserves a GPU)", config.device)
    check_installed(f"the agent {config.agent}", config.needs)
    check_installed(f"the domain {config.env.kind}", registry.domain(config.env.kind).needs)
    check_installed(f"the engine {engine}", ("ray",) if engine == "ray" else ())


def make_player(config: Any) -> Player:
    """The session of a configuration in the local engine."""
    return cast(Player, make_session(config))


def train(
    path: Path,
    preset: str,
    config: Any,
    engine: str = "local",
    ray: Mapping[str, Any] | None = None,
    record: Sequence[str | Recorder] = ("progress",),
) -> bool:
    """A new run in `path`; `ray` are fields of the Ray engine to be set. True at its end, False after Ctrl-C.

    `record`: recorders beside the run's own store, or names of them.
    """
    config = with_ray(config, engine, ray or {})
    RunDirectory.check_free(path)
    check_agent(config, engine)
    config = settled(config)
    with GracefulStop() as stop, contextlib.closing(make_session(config, engine)) as session:  # refuses before anything is written
        run = RunDirectory.create(path, preset, config, engine)
        return _drive(run, session, Store.create(run.database, _meta(run)), stop, record, trust.named(config, engine))


def resume(
    path: Path,
    engine: str | None = None,
    ray: Mapping[str, Any] | None = None,
    steps: int | None = None,
    granted: trust.Trust = trust.NOTHING,
    record: Sequence[str | Recorder] = ("progress",),
) -> bool:
    """Go on with a run from its last whole checkpoint, or from the beginning if there is none yet; returns as `train`.

    A checkpoint belongs to a run, not to an engine: what one engine began another may go on with. `steps`: how many it shall
    make in all, fewer or more than before. `granted`: which of the code and addresses that it names may be used.
    """
    run = RunDirectory.open(path)
    engine = engine or run.engine
    config = with_ray(run.config, engine, ray or {})
    revision = Store.revision_of(run.database)
    found = checkpoint.load_latest(run.checkpoints, about=run.about, revision=revision)
    if steps is not None:
        if found is not None and steps < found[0]:
            raise ValueError(f"--steps must be at least {found[0]:,}, which {path} has made already; got {steps:,}")
        run = run.with_steps(steps)
    if found is not None and found[0] >= run.config.steps:
        if run.database.exists():
            store = Store.open(run.database)
            run.record_steps()
            store.set_meta("total_steps", run.config.steps)
            save_weights(run, found[1])
            store.close("finished")  # it may have been killed between its last checkpoint and this, or the weights
        print(f"{path} has reached its {run.config.steps:,} steps already; --steps trains it on")
        return True
    config = dataclasses.replace(config, steps=run.config.steps)
    trust.check(path, config, engine, granted)
    with GracefulStop() as stop, contextlib.closing(make_session(config, engine)) as session:
        if found is not None:
            load_state(session, found[1], run)
        store = Store.open(run.database) if run.database.exists() else Store.create(run.database, _meta(run))
        run.record_steps()  # only now: no other process writes to this run
        if found is not None:
            save_weights(run, found[1])
        store.set_meta("total_steps", run.config.steps)
        store.truncate_after(session.step if found else -1)
        checkpoint.forget_after(run.checkpoints, session.step)
        if found is not None and checkpoint.recorded(run.checkpoints, session.step) > revision:
            store.event(session.step, "the record had lost its end: something of what came before is missing in it")
        store.event(session.step, f"resumed at step {session.step:,}")
        return _drive(run, session, store, stop, record, trust.named(config, engine))


def with_ray(config: Any, engine: str, fields: Mapping[str, Any]) -> Any:
    """A configuration with fields of its `ray` section replaced."""
    if not fields:
        return config
    if engine != "ray" or "ray" not in config.engines:
        raise ValueError(f"--{next(iter(fields)).replace('_', '-')} is for deep agents with --engine ray")
    return dataclasses.replace(config, ray=dataclasses.replace(config.ray, **fields))


def load_state(session: Session, state: Mapping[str, Any], run: RunDirectory) -> None:
    """Load a checkpoint's state; what does not fit is said in one line."""
    try:
        session.load_state_dict(state)
    except ValueError as error:
        raise ValueError(f"the checkpoint in {run.checkpoints} does not fit this run: {error}") from None
    except (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        words = " ".join(f"{type(error).__name__} {error}".split())
        raise ValueError(f"the checkpoint in {run.checkpoints} does not fit this run: {words}") from None


def save_weights(run: RunDirectory, state: Mapping[str, Any]) -> None:
    """The weights that a state is evaluated with, into their own file, unless they are there."""
    if "agent" in state:
        try:
            agent = state["agent"]
            weights = agent["learner"]["average"].get("weights", agent["acting_network"])
            checkpoint.save_weights(run.weights, weights)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the checkpoint in {run.checkpoints} does not fit this run: {type(error).__name__} {error}") from None


def _meta(run: RunDirectory) -> dict[str, Any]:
    thresholds = {name: getattr(run.config.pge, name) for name in ("reachability_threshold", "controllability_threshold")}
    return {"preset": run.preset, "agent": run.config.agent, "seed": run.config.seed, "total_steps": run.config.steps,
            "configuration": run.configuration, **thresholds}


def _drive(
    run: RunDirectory, session: Session, store: Store, stop: GracefulStop, record: Sequence[str | Recorder],
    trusted: Mapping[str, str],
) -> bool:
    """Train to the end or to Ctrl-C; whatever happens, what was recorded stays readable. `trusted`: see `run.trust`."""
    recorders: list[Any] = []
    finished = False
    with contextlib.ExitStack() as closing:  # one that fails to close leaves the others theirs

        def take_in(recorder: Any) -> None:
            recorders.append(recorder)
            closing.callback(lambda: recorder.close("finished" if finished else "stopped"))

        take_in(store)
        stop.listen()
        for wanted in record:
            take_in(wanted if not isinstance(wanted, str) else
                    Progress(run.config.steps, title_of(run)) if wanted == "progress" else named(wanted, run.path))
        saver, clips, there = _Saver(run, session, store), ClipRecorder(session, store), _Presence(run)
        _say_success(session, store)
        for event in session.train():
            for recorder in recorders:
                event.to(recorder)
            if isinstance(event, Progressed):
                there.check()
                if stop.requested:
                    break
                saver.maybe_save()
                clips.maybe_record()
        saver.save()
        finished = session.step >= run.config.steps
        if not finished:  # how good it was when it was stopped
            _evaluate_stopped(run, session, recorders)
        clips.finish()
    words = "finished" if finished else f"stopped; go on with: protogoal resume {run.path}{' --trust' if trusted else ''}"
    print(f"{run.path}: {session.step:,} steps, {words}")
    return finished


def _say_success(session: Session, store: Store) -> None:
    """Writes down what counts as success; an event says so where it is more than a return above 0."""
    rule: SuccessRule = getattr(session, "success", ABOVE_0)
    store.set_meta("success", rule.words)
    store.set_meta("success_kind", rule.kind)
    if rule != ABOVE_0 and session.step == 0:
        store.event(0, f"success at the task is {rule.words}")


def _evaluate_stopped(run: RunDirectory, session: Session, recorders: Sequence[Any]) -> None:
    """How good the agent was when it was stopped; the run is saved already, so what goes wrong is told and no more."""
    for recorder in recorders:
        last_evaluation(session.step, run.config.final_episodes).to(recorder)
    try:
        last: Event = session.evaluate(run.config.final_episodes, session.step, as_in_run=True)
    except ValueError as error:
        last = Happened(session.step, f"no evaluation at the stop: {error}")
    for recorder in recorders:
        last.to(recorder)


def title_of(run: RunDirectory) -> str:
    """What a run is called while it trains: its preset, or the environment of one's own."""
    factory = getattr(run.config.env, "factory", "")
    if not factory or run.preset != run.config.env.kind:
        return run.preset
    return run.path.name if is_local(factory) else str(factory)


class _Presence:
    """Notices a directory that was removed or moved under the run: SQLite would go on writing to a file that nobody finds."""

    def __init__(self, run: RunDirectory):
        self._run, self._due = run, 0.0

    def check(self) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + 1.0
            if not self._run.is_there:
                raise ValueError(f"{self._run.path} was removed or moved while the run was writing to it; the run ends here")


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
        revision = self.store.sync()  # first the record up to here, then the state that goes on from here: nothing is ever missing
        checkpoint.save(self.run.checkpoints, self.session.step, state, about=self.run.about, revision=revision)
        save_weights(self.run, state)
        self._saved = self.session.step
        now = time.monotonic()
        self._due = now + max(CHECKPOINT_SECONDS, (now - start) / CHECKPOINT_SHARE)
