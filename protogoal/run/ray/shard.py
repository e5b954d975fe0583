"""Replay in processes of its own: workers' segments come in, batches and transitions go out.

A `Shard` is `deep.replay.Replay` with a part of the capacity. The learner and the proto-goal evaluator ask it
themselves; `ReplayClient` hands on the workers' segments and knows how full each shard is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from ray.exceptions import RayError, RayTaskError

from protogoal import registry
from protogoal.agents.blueprint import EnvSpaces, Seeds, shard_segments
from protogoal.config import DeepConfig
from protogoal.deep.replay import Replay
from protogoal.deep.segments import Segments
from protogoal.goals.values import TransitionBatch
from protogoal.run.limits import SHARE, dropped_words, memory_bytes, widest_lists
from protogoal.run.ray.state import split_replay
from protogoal.run.ray.supervisor import Role, RunContext, start_role

ADDS_AHEAD = 8
"""Calls that may be on their way into one shard; then acting waits."""


class EmptyShardError(Exception):
    """Asked of a shard that has only just begun again: there is nothing to draw from yet."""


def is_lost(error: RayError) -> bool:
    """Whether a shard did not answer because it died, or has just begun again; else there is a mistake in its code."""
    return not isinstance(error, RayTaskError) or isinstance(error.cause, RayError | EmptyShardError)


class Shard(Role):
    """Shard `index`; its draws are the local engine's if it is the only one."""

    def __init__(self, config: DeepConfig, spaces: EnvSpaces, index: int):
        settings = replace(config.replay, capacity=shard_segments(config, config.ray.shards) * config.replay.trace_length)
        memory = memory_bytes()
        most = widest_lists(replace(config, replay=settings), spaces, memory and SHARE * memory / config.ray.shards)
        self.replay = Replay(registry.agent(config.agent).stored(config, spaces), settings, most)
        seeds = Seeds.of(config.seed)
        self._sampling, self._refreshing = (
            np.random.default_rng(seed if index == 0 else np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index)))
            for seed in (seeds.sampling, seeds.refreshing))

    def add(self, segments: Segments) -> tuple[int, str]:
        """Stores segments; returns how many transitions there are now, and what people must be told of bits that it dropped."""
        self.replay.add(segments)
        dropped = self.replay.dropped
        return self.replay.transitions, dropped_words(self.replay.most_active, dropped) if dropped else ""

    def sample(self, batch_size: int, batches: int) -> Segments:
        """Some batches for the learner, side by side; contiguous, so that they travel without another copy."""
        self._check()
        drawn = [self.replay.draw(batch_size, self._sampling) for _ in range(batches)]
        places, weight = (np.concatenate(part) for part in zip(*drawn, strict=True))
        return self.replay.read(places, weight).map(lambda _, array: np.ascontiguousarray(array))

    def sample_transitions(self, n: int) -> TransitionBatch:
        """Transitions for the proto-goal evaluator."""
        self._check()
        return self.replay.sample_transitions(n, self._refreshing)

    def want(self, bits: np.ndarray) -> None:
        """Which bits make a segment novel from now on."""
        self.replay.want(bits)

    def _check(self) -> None:
        if not self.replay.size:
            raise EmptyShardError

    def state(self) -> dict[str, Any]:
        return {"replay": self.replay.state_dict(), "sampling": self._sampling.bit_generator.state,
                "refreshing": self._refreshing.bit_generator.state}

    def load(self, state: Mapping[str, Any]) -> int:
        """Goes on from a state; returns how many transitions there are."""
        self.replay.load_state_dict(dict(state["replay"]))
        for generator, name in ((self._sampling, "sampling"), (self._refreshing, "refreshing")):
            if name in state:
                generator.bit_generator.state = state[name]
        return self.replay.transitions


def shares(total: int, sizes: Mapping[int, int]) -> dict[int, int]:
    """`total` divided among shards in proportion to their sizes; the largest remainders get what is left over."""
    whole = sum(sizes.values())
    exact = {shard: total * size / whole for shard, size in sizes.items() if size} if whole else {}
    parts = {shard: int(part) for shard, part in exact.items()}
    for shard in sorted(exact, key=lambda s: (parts[s] - exact[s], s))[: total - sum(parts.values())]:
        parts[shard] += 1
    return {shard: part for shard, part in parts.items() if part}


class ReplayClient:
    """What the session knows of the shards, and asks of them."""

    def __init__(self, context: RunContext):
        self.context, s = context, context.config.ray
        self.sizes = dict.fromkeys(range(s.shards), 0)  # transitions in each
        self._next = 0
        self._told_of_dropped = False
        self.has_changed = True  # whoever asks the shards must be told who they are
        self.processes = [
            context.supervisor.add(f"replay shard {i}", lambda _, i=i: start_role(  # type: ignore[misc]
                Shard, context.config, context.spaces, i, cpus=s.shard_cpus), partial(self._died, i))
            for i in range(s.shards)]

    @property
    def transitions(self) -> int:
        """In all of replay."""
        return sum(self.sizes.values())

    @property
    def handles(self) -> dict[int, Any]:
        return {i: process.handle for i, process in enumerate(self.processes)}

    @property
    def is_behind(self) -> bool:
        return any(self.context.supervisor.waiting(process, "add") >= ADDS_AHEAD for process in self.processes)

    def add(self, segments: Any, transitions: int) -> None:
        """Sends segments, by reference, to the shards in turn."""
        shard, self._next = self._next, (self._next + 1) % len(self.processes)
        process = self.processes[shard]

        def done(answer: tuple[int, str]) -> None:
            self.sizes[shard], words = answer
            if words and not self._told_of_dropped:
                self._told_of_dropped = True
                self.context.event(f"replay shard {shard}: {words}")

        def lost() -> None:
            self.context.missing["transitions"] += transitions

        self.context.supervisor.call(process, "add", process.handle.add.remote(segments), done, lost)

    def want(self, bits: np.ndarray) -> None:
        """Tells the shards which bits make a segment novel."""
        for process in self.processes:
            self.context.supervisor.call(process, "want", process.handle.want.remote(bits))

    def _died(self, index: int, why: str) -> None:
        lost, self.sizes[index] = self.sizes[index] + self.context.missing.pop("transitions", 0), 0
        self.context.lost["transitions"] += lost
        self.context.event(f"replay shard {index} died ({why}): {lost:,} transitions lost, {self.transitions:,} left; it fills "
                          "again")
        self.has_changed = True

    def load(self, replay: Mapping[str, Any], generators: Mapping[str, Any]) -> None:
        """Goes on from the state of one replay, divided among the shards; the generators are the first one's."""
        shards = len(self.processes)
        parts = split_replay(replay, shards, shard_segments(self.context.config, shards))
        for i, (process, part) in enumerate(zip(self.processes, parts, strict=True)):
            state = {"replay": part} | (dict(generators) if i == 0 else {})
            self.context.supervisor.call(process, "load", process.handle.load.remote(state), partial(self.sizes.__setitem__, i))
