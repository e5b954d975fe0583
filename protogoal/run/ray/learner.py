"""The learner in a process of its own: pulls batches from the shards a little ahead of their use, and publishes weights.

`LearnerRole` is `deep.learn.Learner.update` of the local engine; a shard that dies is passed over. `Learning`, the desk,
tells it how many updates to make, which holds the ratio of learning to acting, and keeps a copy of its state.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
import torch

from protogoal.agents.making import make_agent_learner, make_agent_network
from protogoal.agents.parts import EnvSpaces
from protogoal.config import DeepConfig
from protogoal.deep.network import weights_to_arrays
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.segments import Segments
from protogoal.run.ray.crew import Office, Role, start_role
from protogoal.run.ray.published import Published
from protogoal.run.ray.shard import Memory, is_lost, shares

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Learned:
    """What came of a call: updates made, the sums of their figures, seconds spent waiting for batches."""

    updates: int
    figures: dict[str, float]
    waited: float


@dataclass(frozen=True)
class Crate:
    """Some batches on their way: of each shard one reference to its part of all of them."""

    batches: int
    references: list[Any]
    sizes: list[int]
    """Segments of each shard in one batch."""

    def open(self) -> list[Segments]:
        """Waits for the batches."""
        sides = list(zip(ray.get(self.references), self.sizes, strict=True))
        whole = range(self.batches if sides else 0)
        return [Segments.join([side.part(slice(i * n, (i + 1) * n)) for side, n in sides]) for i in whole]


class LearnerRole(Role):
    """Network, target, optimiser; batches on their way."""

    def __init__(self, config: DeepConfig, spaces: EnvSpaces):
        torch.set_num_threads(max(1, int(config.ray.learner_cpus)))
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # batches are only read
        self.config = config
        network, target = (make_agent_network(config, spaces) for _ in range(2))
        self.learner = make_agent_learner(config, network, target)
        self.known, self._known_version = KnownGoals.none(spaces.num_bits), 0
        self._shards: dict[int, Any] = {}
        self._batches: deque[Segments] = deque()
        self._ahead: deque[Crate] = deque()

    def set_shards(self, shards: Mapping[int, Any]) -> None:
        """Where batches come from; what was asked of the old ones is dropped."""
        self._shards = dict(shards)
        self._ahead.clear()
        self._batches.clear()

    def learn(self, updates: int, sizes: Mapping[int, int], known: Published) -> tuple[Learned, Arrays, Arrays]:
        """Makes updates (fewer if a shard dies) on batches drawn in proportion to `sizes`.

        Beside what was done: the weights after it, to act with, and those to evaluate with (none where they are the same).
        """
        if known.version != self._known_version:
            self.known, self._known_version = known.fetch(), known.version
        figures: dict[str, float] = defaultdict(float)
        done, waited = 0, 0.0
        for left in range(updates, 0, -1):
            start = time.perf_counter()
            batch = self._next_batch(sizes, left)
            waited += time.perf_counter() - start
            if batch is None:
                break
            for name, value in self.learner.update(batch, self.known).items():
                figures[name] += value
            done += 1
        average = self.learner.average
        return Learned(done, dict(figures), waited), self.weights(), weights_to_arrays(average.network) if average.decay else {}

    def _next_batch(self, sizes: Mapping[int, int], left: int) -> Segments | None:
        """The next of the batches that came; where there is none, those of a crate asked for before, or for this call."""
        if not self._batches:
            if not self._ahead:
                self._ahead.append(self._ask(sizes, left))
            crate = self._ahead.popleft()
            if self.config.ray.prefetch:
                self._ahead.append(self._ask(sizes, self.config.ray.prefetch))
            try:
                self._batches.extend(crate.open())
            except ray.exceptions.RayError as error:
                if not is_lost(error):
                    raise
                self._ahead.clear()  # a shard died; the session will hear of it, and name its successor
        return self._batches.popleft() if self._batches else None

    def _ask(self, sizes: Mapping[int, int], batches: int) -> Crate:
        parts = shares(self.config.learner.batch_size, {s: size for s, size in sizes.items() if s in self._shards})
        return Crate(batches, [self._shards[shard].sample.remote(n, batches) for shard, n in parts.items()], list(parts.values()))

    def weights(self) -> Arrays:
        return weights_to_arrays(self.learner.network)

    def state(self) -> dict[str, Any]:
        return self.learner.state_dict()

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state."""
        self.learner.load_state_dict(state)


class Learning:
    """The learner's desk."""

    def __init__(self, office: Office, memory: Memory):
        self.office, self.memory = office, memory
        self.weights = Published()
        self.average = Published()
        """What the evaluator plays with."""
        self._backup: dict[str, Any] | None = None
        self._backup_due = 0.0
        self.member = office.crew.add("learner", self.start, self._died)

    def start(self, life: int) -> Any:
        """The learner's process."""
        s = self.office.config.ray
        return start_role(LearnerRole, self.office.config, self.office.spaces, cpus=s.learner_cpus, gpus=s.learner_gpus)

    def ask(self, known: Published) -> None:
        """Some of the updates that are due; a second call waits behind the first if it is a whole one."""
        most = self.office.config.ray.updates_per_call
        due = min(most, self.office.pacing.due(self.memory.transitions))
        waiting = self.office.crew.waiting(self.member, "learn")
        if self.member.is_ready and (waiting == 0 or (waiting == 1 and due == most)):
            self.ask_for(due, known)

    def ask_for(self, updates: int, known: Published) -> None:
        """That many updates; the weights after them become the newest."""
        if updates <= 0:
            return
        office = self.office
        ask = self.member.handle.learn.options(num_returns=3).remote
        answer, weights, average = ask(updates, dict(self.memory.sizes), known)
        is_averaged = office.config.learner.average_decay > 0

        def done(learned: Learned) -> None:
            office.pacing.promised -= updates
            office.pacing.updates += learned.updates
            office.log.learned(learned.figures, learned.updates)
            office.log.spent("learner_waits", learned.waited)
            self.weights = self.weights.next(weights)
            self.average = self.average.next(average) if is_averaged else self.weights

        def lost() -> None:
            office.pacing.promised -= updates

        office.pacing.promised += updates
        office.crew.call(self.member, "learn", answer, done, lost)

    def tell_shards(self) -> None:
        self.office.crew.call(self.member, "set_shards", self.member.handle.set_shards.remote(self.memory.handles), lambda _: None)

    def back_up(self) -> None:
        """A copy of the learner's state, now and then."""
        if self.member.is_ready and time.monotonic() >= self._backup_due:
            self._backup_due = time.monotonic() + self.office.config.ray.backup_seconds
            self.office.crew.call(self.member, "state", self.member.handle.state.remote(), self.keep)

    def keep(self, state: dict[str, Any]) -> None:
        """Remembers a state to start a new learner from."""
        self._backup = state

    def _died(self, why: str) -> None:
        pacing = self.office.pacing
        kept = int(self._backup["updates"]) if self._backup else 0
        self.office.lost["updates"] += pacing.updates - kept
        self.office.event(f"learner died ({why}): the last {pacing.updates - kept:,} updates lost, it goes on from update {kept:,}")
        pacing.updates = kept
        if self._backup is not None:
            self.load(self._backup)
        self.tell_shards()

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from a state; its weights are the newest. They are put here, and not lost with any other machine."""
        self.keep(state)
        self.office.crew.call(self.member, "load", self.member.handle.load.remote(state), lambda _: None)
        self.weights = self.weights.next(ray.put(state["network"]))
        average = state["average"].get("weights")
        self.average = self.average.next(ray.put(average)) if average else self.weights
