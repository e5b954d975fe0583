"""The processes of a run: started, asked, and replaced when they die.

Every question to a role is a `Call`; `Supervisor.take` waits for answers and hands each to whoever asked. A role that dies,
or does not answer in time, is started again with the next `life`; its client says what was lost. One that fails again and
again without answering anything in between, or cannot be started, is given up, which ends the run unless its client can do
without it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import ray
from ray.exceptions import ObjectLostError, RayError, RayTaskError

from protogoal.agents.blueprint import EnvSpaces
from protogoal.config import DeepConfig
from protogoal.record.events import Event, Happened
from protogoal.run.log import RunLog
from protogoal.run.ray.pacing import Pacing

MOST_FAILURES = 3
"""Deaths in a row, without one answer in between, after which a role is given up."""

BEGINNINGS = frozenset({"hello", "load", "set_shards"})
"""Calls that a role can answer without having done any work."""

PATIENCE = {"play": 10}
"""Times `answer_seconds` that a call may take: an evaluation has a hundred long episodes."""

WATCH = "watch"
"""A call that is always under way: it is answered when there is news, and nobody waits for it."""

LOST_ON_THE_WAY = {
    "transitions": "transitions were lost on their way to replay",
    "steps": "steps were lost with the weights they needed",
    "counts": "transitions were lost on their way to the proto-goal evaluator",
}
"""What can be lost though no role has died, in words."""

Done = Callable[[Any], None]


class Role:
    """What all roles can do."""

    def hello(self) -> dict[str, Any]:
        """Answers when the role is ready: where it lives."""
        return {"pid": os.getpid(), "node": ray.get_runtime_context().get_node_id()}


def start_role(cls: type, *arguments: Any, cpus: float, gpus: float = 0.0, name: str | None = None) -> Any:
    """A process that plays a role, anywhere in the cluster. Ray keeps no record of its calls: there would be millions."""
    options = {"num_cpus": cpus, "num_gpus": gpus, "enable_task_events": False, "name": name}
    return ray.remote(cls).options(**options).remote(*arguments)  # type: ignore[attr-defined]


@dataclass
class Process:
    """A role: how to start it (given its life), the process that plays it, and what to do when that is lost."""

    name: str
    start: Callable[[int], Any]
    lost: Callable[[str], None]
    gone: Callable[[str], None]
    handle: Any = None
    life: int = 0
    failures: int = 0
    is_ready: bool = False
    is_gone: bool = False
    whereabouts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A question under way."""

    process: Process
    life: int
    what: str
    done: Done
    lost: Callable[[], None]
    since: float


class Supervisor:
    """All roles, and all calls under way."""

    def __init__(self, answer_seconds: float):
        self.processes: list[Process] = []
        self.answer_seconds = answer_seconds
        self._calls: dict[Any, Call] = {}
        self._waiting: Counter[tuple[str, str]] = Counter()
        self._looked = time.monotonic()  # when answers were taken last

    def add(
        self, name: str, start: Callable[[int], Any], lost: Callable[[str], None], gone: Callable[[str], None] | None = None
    ) -> Process:
        """A new role; it is ready when it has said hello. Without `gone` the run cannot do without it."""
        process = Process(name, start, lost, gone or self._end_run)
        self.processes.append(process)
        self._start(process)
        return process

    def _start(self, process: Process) -> None:
        process.handle, process.is_ready = process.start(process.life), False

        def ready(whereabouts: dict[str, Any]) -> None:
            process.is_ready, process.whereabouts = True, whereabouts

        self.call(process, "hello", process.handle.hello.remote(), ready)

    def _end_run(self, why: str) -> None:
        raise ValueError(f"{why}; the run can be resumed")

    def call(
        self, process: Process, what: str, answer: Any, done: Done = lambda _: None, lost: Callable[[], None] = lambda: None
    ) -> None:
        """Waits for `answer`, a reference: then `done` gets it; `lost` is called instead when it will never come."""
        self._calls[answer] = Call(process, process.life, what, done, lost, time.monotonic())
        self._waiting[process.name, what] += 1

    def waiting(self, process: Process, what: str) -> int:
        """Calls of one kind that a role has not answered yet."""
        return self._waiting[process.name, what]

    def _pop(self, answer: Any) -> Call | None:
        call = self._calls.pop(answer, None)
        if call is not None:
            self._waiting[call.process.name, call.what] -= 1
        return call

    def take(self, timeout: float) -> None:
        """Waits up to `timeout` seconds for answers and deals with all that are there; then gives up who was silent too long."""
        if not self._calls:
            return
        ray.wait(list(self._calls), num_returns=1, timeout=timeout, fetch_local=False)
        now = time.monotonic()  # whoever is not among the answered has not answered by then
        self._forgive(now - self._looked - timeout, now)
        self._looked = now
        answered, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0, fetch_local=False)
        for answer in answered:
            call = self._pop(answer)
            if call is not None:
                self._deal_with(call, answer)
        self._give_up_the_silent(now)

    def _forgive(self, seconds: float, now: float) -> None:
        """Time for which this process itself was held up, by a save or a stop (the roles may have stopped too), is no silence."""
        if seconds > 0:
            for answer, call in self._calls.items():
                self._calls[answer] = replace(call, since=min(now, call.since + seconds))

    def _deal_with(self, call: Call, answer: Any) -> None:
        try:
            value = ray.get(answer, timeout=self.answer_seconds)
        except RayTaskError as error:
            if isinstance(error.cause, RayError):  # what it needed died, not the role itself
                call.lost()
                return
            if isinstance(error.cause, ValueError):
                raise ValueError(f"{call.process.name}: {error.cause}") from None
            raise
        except RayError as error:
            call.lost()
            if call.life == call.process.life and not isinstance(error, ObjectLostError):
                self._replace(call.process, _words(error))
            return
        if call.what not in BEGINNINGS:
            call.process.failures = 0
        call.done(value)

    def _give_up_the_silent(self, now: float) -> None:
        for call in list(self._calls.values()):
            patience = PATIENCE.get(call.what, 1) * self.answer_seconds
            if now - call.since > patience and call.life == call.process.life and not call.process.is_gone:
                ray.kill(call.process.handle)
                if call.what == "hello":
                    self._give_up(call.process, f"{call.process.name} did not start within {self.answer_seconds:g} s")
                else:
                    self._replace(call.process, f"it did not answer for {patience:g} s")

    def _replace(self, process: Process, why: str) -> None:
        process.failures += 1
        if process.failures >= MOST_FAILURES:
            self._give_up(process, f"{process.name} failed {process.failures} times in a row: {why}")
            return
        self._drop_calls(process)
        ray.kill(process.handle)  # it may only have been out of reach
        process.life += 1
        self._start(process)
        process.lost(why)

    def _give_up(self, process: Process, why: str) -> None:
        process.is_gone, process.is_ready = True, False
        self._drop_calls(process)
        process.gone(why)

    def _drop_calls(self, process: Process) -> None:
        for answer, call in list(self._calls.items()):
            if call.process is process:
                self._pop(answer)
                call.lost()

    def settle(self, but: str = "") -> None:
        """Waits until no call is under way, but for watches and calls of one kind."""
        while any(call.what not in (but, WATCH) for call in self._calls.values()):
            self.take(timeout=1.0)

    def wait_ready(self) -> None:
        """Waits until all have said hello; a ValueError names those who have not in time."""
        deadline = time.monotonic() + self.answer_seconds
        while not all(process.is_ready for process in self.processes):
            if time.monotonic() > deadline:
                late = ", ".join(process.name for process in self.processes if not process.is_ready)
                raise ValueError(f"{late} did not start within {self.answer_seconds:g} s (ray.answer_seconds)")
            self.take(timeout=0.5)

    def disband(self) -> None:
        """Ends all processes."""
        for process in self.processes:
            ray.kill(process.handle)
        self.processes.clear()
        self._calls.clear()
        self._waiting.clear()


@dataclass(frozen=True)
class Published:
    """A version of what there is one of and many read: weights, goal sets, known goals; a reader fetches each once.

    0 is what every process makes for itself at the start of a run.
    """

    version: int = 0
    box: tuple[Any, ...] = ()
    """The reference, wrapped so that Ray passes it on instead of what it refers to."""

    def next(self, reference: Any) -> Published:
        """The version after this one."""
        return Published(self.version + 1, (reference,))

    def fetch(self) -> Any:
        """What was published."""
        return ray.get(self.box[0])


class RunContext:
    """What the clients of one session share."""

    def __init__(self, config: DeepConfig, spaces: EnvSpaces):
        self.config, self.spaces = config, spaces
        self.supervisor = Supervisor(config.ray.answer_seconds)
        self.pacing, self.log = Pacing(config), RunLog()
        self.lost: Counter[str] = Counter()  # steps, transitions, updates
        self.missing: Counter[str] = Counter()  # of these what nobody was told of yet
        self.told: list[Event] = []
        """What is to be recorded, and was not yielded yet."""

    def tell(self, event: Event) -> None:
        """Something for the run's record."""
        self.told.append(event)

    def event(self, text: str) -> None:
        """The same in words."""
        self.tell(Happened(self.pacing.steps, text))

    def write_losses(self) -> None:
        """Tells of what was lost on its way though no role has died; a role that dies tells of its own."""
        for what, words in LOST_ON_THE_WAY.items():
            missing = self.missing.pop(what, 0)
            if missing:
                self.event(f"{missing:,} {words}")
                self.lost[what] += missing


def _words(error: RayError) -> str:
    """The telling line of Ray's long story."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Error:" in line and "ActorDiedError" not in line]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:200].rstrip(".")
