"""Many environments stepped in worker processes over shared memory, or in this process when `num_workers` is 0.

Each worker holds a slice of the batch. A step costs one small message each way and a worker; actions, observations and
rewards lie in memory that all see. A worker that dies, hangs or raises is replaced: its transitions count as truncated
where they were, fresh episodes begin, and the caller is told. The shared memory has no name and the workers leave when
their pipe closes, so nothing stays behind, however this process ends.

`gym_batch.GymBatchEnv` turns this into what the deep agent's actor needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from gymnasium.vector.utils import CloudpickleWrapper

from protogoal.envs.actions import FlatActions
from protogoal.envs.episodes import EnvFactory, EnvGroup, Layout, episode_seed
from protogoal.envs.failure import close, failure, first_line
from protogoal.envs.readable import Path, Readable, wrappers
from protogoal.envs.success import UNTOLD
from protogoal.goals.stored import stored_array, stored_like, stored_number

_MOST_FAILURES = 3
"""A worker that fails this often without one good step between is given up: the environment itself is broken."""

_REPLAY_LIMIT = 20_000
"""Episodes longer than this are not kept for replay; `get_state` is then None."""


class WorkerPool:
    """N environments in `num_workers` processes. Arrays are overwritten by the next call of `step`.

    observation, previous: name → [N, …], the state now and the one the last action was taken in.
    final: name → [N, …], s′ of the last transition. It differs from `observation` where an episode ended.
    reward [N], terminated [N], truncated [N]; crashed [N]: whose transition was lost with its worker.
    success [N]: what `info` says of it, see `success.told`.
    """

    def __init__(self, factory: EnvFactory, num_envs: int, num_workers: int = 0, *, timeout: float = 120.0,
                 on_event: Callable[[str], None] | None = None):
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1; got {num_envs}")
        if num_workers < 0:
            raise ValueError(f"num_workers must be 0 (this process) or more; got {num_workers}")
        self.num_envs, self.num_workers = int(num_envs), min(int(num_workers), int(num_envs))
        probe = factory()
        try:
            self.layout = Layout.of(probe, self.num_envs)
            self.observation_space = probe.observation_space
            flat = next((e for e in wrappers(probe) if isinstance(e, FlatActions)), None)
            self.combinations = None if flat is None else flat.combinations
            self.paths: dict[str, Path] | None = next((e.paths for e in wrappers(probe) if isinstance(e, Readable)), None)
            self.num_actions = self.layout.num_actions
            self.spec = probe.spec
        finally:
            close(probe)
        self.crashed = np.zeros(self.num_envs, np.bool_)
        self._steps = np.zeros(self.num_envs, np.int64)  # of each episode before the last step
        self.timeout = timeout
        self._on_event = on_event or (lambda text: None)
        self._history = np.zeros((self.num_envs, 512), np.uint16)  # actions of the episodes under way
        self._stepping = False
        self._group: EnvGroup | None = None
        self._workers: list[_Worker] = []
        if self.num_workers:
            context = _context()
            buffer = context.RawArray(ctypes.c_uint8, self.layout.nbytes)
            edges = np.linspace(0, self.num_envs, self.num_workers + 1).astype(int).tolist()
            self.directory = tempfile.mkdtemp(prefix="protogoal-workers-")  # the environments' files live in here
            self._workers = [
                _Worker(context, w, factory, first, last - first, self.layout, buffer, self.directory)
                for w, (first, last) in enumerate(itertools.pairwise(edges))
            ]
            self._arrays = self.layout.views(buffer)
            self._finalizer = weakref.finalize(self, _close, self._workers, self.directory)
            for worker in self._workers:
                worker.start()
        else:
            self._arrays = self.layout.views(bytearray(self.layout.nbytes))
            self._group = EnvGroup(factory, 0, self.num_envs, self.layout, self._arrays)
        self.reward, self.terminated, self.truncated = (self._arrays[k] for k in ("reward", "terminated", "truncated"))
        self.success = self._arrays["success"]
        self.observation = {name: self._arrays[f"now/{name}"] for name in self.layout.parts}
        self._ended = {name: self._arrays[f"final/{name}"] for name in self.layout.parts}
        self.previous = {name: array.copy() for name, array in self.observation.items()}
        self.final = self.observation

    @property
    def pids(self) -> list[int]:
        """The processes of the workers, in the order of their environments."""
        return [worker.pid for worker in self._workers]

    def reset(self, seed: int | None = None) -> None:
        """Starts all episodes anew. A seed fixes all that follows; without one the next episodes of the old seed begin."""
        if seed is not None:
            if not 0 <= seed < 2**63:
                raise ValueError(f"a seed must be 0…2⁶³−1; got {seed}")
            self._arrays["seed"][0], self._arrays["episode"][:] = seed, 0
        elif self._arrays["seed"][0] == 0 and not self._arrays["episode"].any():
            self._arrays["seed"][0] = np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1)
        else:
            self._arrays["episode"] += 1
        self._arrays["length"][:] = 0
        self._run("reset")
        self._stepping = False
        self.final = self.observation

    def step(self, actions: np.ndarray) -> None:
        """Takes one action in each environment, int [N], counted from 0."""
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,):
            raise ValueError(f"actions must have shape ({self.num_envs},); got {actions.shape}")
        if ((actions < 0) | (actions >= self.num_actions)).any():
            raise ValueError(f"actions must be 0…{self.num_actions - 1}; got {actions.min()}…{actions.max()}")
        if self._stepping:
            raise RuntimeError("the last step was interrupted; reset() or set_state() first")
        for name, array in self.observation.items():
            np.copyto(self.previous[name], array)
        self._arrays["action"][:] = actions
        self.crashed[:] = False
        self._stepping = True
        self._run("step")
        self._stepping = False
        ended = self.terminated | self.truncated
        self.final = self.observation
        if ended.any():
            self.final = {name: array.copy() for name, array in self.observation.items()}
            for name, array in self.final.items():
                array[ended] = self._ended[name][ended]
        self._remember(actions, ended)

    def get_state(self) -> dict[str, Any] | None:
        """The episodes under way as their numbers and actions; None when one is too long to be repeated."""
        length = self._arrays["length"]
        if length.max(initial=0) > _REPLAY_LIMIT:
            return None
        return {"seed": int(self._arrays["seed"][0]), "episode": self._arrays["episode"].copy(), "length": length.copy(),
                "actions": self._history[:, :length.max(initial=0)].copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Repeats the episodes that `get_state` gave, action by action, up to where they were."""
        if len(state["episode"]) != self.num_envs or len(state["actions"]) != self.num_envs:
            raise ValueError(f"the state is of {len(state['episode'])} environments, this batch has {self.num_envs}")
        episode, length = (stored_like(state[key], key, self._arrays[key], 0) for key in ("episode", "length"))
        actions = stored_array(state["actions"], "actions", (None, None), "i", 0, self.num_actions - 1)
        if length.max(initial=0) > actions.shape[1] or length.min(initial=0) < 0:
            raise ValueError(f"the state's lengths must be 0…{actions.shape[1]}, the number of its actions")
        self._arrays["seed"][0] = stored_number(state["seed"], "seed", 0, 2**64 - 1)
        self._arrays["episode"][:], self._arrays["length"][:] = episode, length
        if actions.shape[1] > self._history.shape[1]:
            self._history = np.zeros((self.num_envs, actions.shape[1]), np.uint16)
        self._history[:, :actions.shape[1]] = actions
        self._run("replay")
        self._stepping = False
        self.final = self.observation
        lost = int((self._arrays["length"] != length).sum())
        if lost:
            self._on_event(f"{lost} of {self.num_envs} environments did not repeat their episode; a fresh one began there")

    def who(self, env: int) -> str:
        """An environment in words, with the seed and the step of its last transition."""
        episode = int(self._arrays["episode"][env]) - int(self.terminated[env] | self.truncated[env])
        return f"environment {env} (seed {episode_seed(int(self._arrays['seed'][0]), env, episode)}, step {self._steps[env] + 1})"

    def picture(self, env: int = 0) -> Any:
        """What an environment draws of the state its last transition led to; only without workers."""
        if self._group is None:
            raise RuntimeError("pictures are made in this process alone; use num_workers = 0")
        return self._group.picture(env)

    def close(self) -> None:
        """Ends the workers and the environments. Safe to call twice."""
        if self._group is not None:
            self._group.close()
        if self.num_workers:
            self._finalizer()

    def _run(self, command: str) -> None:
        """Has every worker carry out a command and replaces those that do not."""
        replay = self._history[:, :self._arrays["length"].max(initial=0)]
        if self._group is not None:
            if command == "replay":
                self._group.replay(replay)
            else:
                getattr(self._group, command)()
            return
        for worker in self._workers:
            if worker.busy:  # an exception (Ctrl-C) came between its command and its answer
                worker.receive(self.timeout)
            worker.send(command, replay)
        for worker in self._workers:
            why = worker.receive(self.timeout)
            if why is None:
                worker.failures = 0
            else:
                self._replace(worker, why)

    def _replace(self, worker: _Worker, why: str) -> None:
        """A new worker with fresh episodes; the lost transitions become truncations in the state they started from."""
        part = slice(worker.first, worker.first + worker.count)
        while True:
            worker.failures += 1
            if worker.failures >= _MOST_FAILURES:
                raise ValueError(f"environment worker {worker.number} failed {worker.failures} times in a row: {why}")
            self._on_event(f"environment worker {worker.number} (environments {part.start}–{part.stop - 1}) {first_line(why)}; "
                           "restarted with fresh episodes")
            worker.stop(0.0)
            self._arrays["episode"][part] += 1
            self._arrays["length"][part] = 0
            worker.start()
            worker.send("reset")
            again = worker.receive(self.timeout)
            if again is None:
                break
            why = again
        self.reward[part], self.terminated[part], self.truncated[part], self.crashed[part] = 0.0, False, True, True
        self.success[part] = UNTOLD
        for name, array in self._ended.items():
            array[part] = self.previous[name][part]

    def _remember(self, actions: np.ndarray, ended: np.ndarray) -> None:
        length = self._arrays["length"]
        self._steps[:] = length
        longest = int(length.max())
        if longest >= self._history.shape[1] and longest <= _REPLAY_LIMIT:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
        keep = np.flatnonzero(length < self._history.shape[1])
        self._history[keep, length[keep]] = actions[keep]
        length += 1
        length[ended] = 0


class _Worker:
    """This process's end of one worker: its process, its pipe, its directory."""

    def __init__(self, context: Any, number: int, factory: EnvFactory, first: int, count: int, layout: Layout, buffer: Any,
                 directory: str):
        self.number, self.first, self.count, self.failures = number, first, count, 0
        self.busy = False  # a command is sent and not answered yet
        self._context = context
        self._arguments = (CloudpickleWrapper(factory), first, count, layout, buffer)
        self._directory = os.path.join(directory, str(number))
        self._process: Any = None
        self._pipe: Connection | None = None

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def start(self) -> None:
        os.makedirs(self._directory)
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_work, args=(theirs, self._directory, *self._arguments),
                                              name=f"environments-{self.number}", daemon=True)
        with _main_left_alone():
            self._process.start()
        theirs.close()  # so that the pipe breaks when the worker dies

    def send(self, command: str, actions: np.ndarray | None = None) -> None:
        assert self._pipe is not None
        self.busy = True
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `receive` sees it too, and says why
            self._pipe.send_bytes(command.encode())
            if command == "replay" and actions is not None:
                self._pipe.send(actions[self.first:self.first + self.count])

    def receive(self, timeout: float) -> str | None:
        """None when the worker has done what it was told; else what happened to it."""
        assert self._pipe is not None
        try:
            if not self._pipe.poll(timeout):
                return f"did not answer for {timeout:g} s"
            answer = self._pipe.recv_bytes()
            self.busy = False
        except (EOFError, ConnectionResetError, BrokenPipeError):
            self._process.join(5.0)
            code = self._process.exitcode
            if code is not None and code < 0:
                return f"was killed by {signal.Signals(-code).name}"
            return f"ended with exit code {code}"
        return None if answer == b"done" else f"failed: {answer.decode(errors='replace')}"

    def stop(self, patience: float) -> None:
        """Ends the process, after letting it leave by itself for `patience` seconds, and removes its files."""
        self.busy = False
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            if patience:
                self._process.join(patience)
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
        shutil.rmtree(self._directory, ignore_errors=True)


def _context() -> Any:
    """Workers are forked from a small server that has imported what they need, or spawned where there is no fork.

    Not forked from this process: it may hold threads (a learner's), whose locks a fork would copy.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # heeded when the server starts, which is once a process
    return context


@contextlib.contextmanager
def _main_left_alone() -> Iterator[None]:
    """Keeps new processes from running the user's script again.

    They need nothing of it (what it defines is sent along), and a script without the `__main__` guard, a notebook or
    standard input would fail there.
    """
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__spec__", "__file__") if hasattr(main, name)}
    try:
        main.__spec__ = None
        main.__dict__.pop("__file__", None)
        yield
    finally:
        main.__dict__.update(kept)


def _close(workers: list[_Worker], directory: str) -> None:
    for worker in workers:
        if worker._pipe is not None:
            worker._pipe.close()  # all at once: they then leave side by side
            worker._pipe = None
    for worker in workers:
        worker.stop(5.0)
    shutil.rmtree(directory, ignore_errors=True)


def _work(pipe: Connection, directory: str, factory: CloudpickleWrapper, first: int, count: int, layout: Layout,
          buffer: Any) -> None:
    """A worker's life: make the environments, then do as told until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; the pipe then closes
    tempfile.tempdir = directory
    arrays = layout.views(buffer)
    group: EnvGroup | None = None
    try:
        while True:
            command = pipe.recv_bytes()
            actions = pipe.recv() if command == b"replay" else np.empty((count, 0), np.uint16)
            try:
                group = group or EnvGroup(factory.fn, first, count, layout, arrays)
                if command == b"step":
                    group.step()
                elif command == b"reset":
                    group.reset()
                else:
                    group.replay(actions)
            except Exception as error:
                pipe.send_bytes(str(failure(error, f"environments {first}–{first + count - 1}")).encode(errors="replace"))
                continue
            pipe.send_bytes(b"done")
    except (EOFError, ConnectionResetError, BrokenPipeError):
        pass
    finally:
        if group is not None:
            group.close()
        shutil.rmtree(directory, ignore_errors=True)
        with contextlib.suppress(OSError):  # the last one out; it stays while others still have files in it
            os.rmdir(os.path.dirname(directory))
