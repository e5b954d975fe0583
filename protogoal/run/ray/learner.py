"""The learner in a process of its own: pulls batches from the shards a little ahead of their use, and publishes weights.

`LearnerRole` is `deep.learn.Learner.update` of the local engine; a shard that dies is passed over. `LearnerClient`
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

from protogoal import registry
from protogoal.agents.blueprint import EnvSpaces
from protogoal.config import DeepConfig
from protogoal.deep.device import resolve
from protogoal.deep.network import weights_to_arrays
from protogoal.deep.relabel import KnownGoals
from protogoal.deep.segments import Segments
from protogoal.run.ray.shard import ReplayClient, is_lost, shares
from protogoal.run.ray.supervisor import Published, Role, RunContext, start_role

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Learned:
    """What came of a call: updates made, the sums of their figures, seconds spent waiting for batches."""

    updates: int
    figures: dict[str, float]
    waited: float


@dataclass(frozen=True)
class PendingBatches:
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
        agent = registry.agent(config.agent)
        device = resolve(config.device if config.ray.learner_gpus else "cpu")
        network, target = (agent.make_network(config, spaces).to(device) for _ in range(2))
        self.learner = agent.make_learner(config, network, target)
        self.known, self._known_version = KnownGoals.none(spaces.num_bits), 0
        self._shards: dict[int, Any] = {}
        self._batches: deque[Segments] = deque()
        self._ahead: deque[PendingBatches] = deque()

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
        """The next of the batches that came; where there is none, those asked for before, or for this call."""
        if not self._batches:
            if not self._ahead:
                self._ahead.append(self._ask(sizes, left))
            pending = self._ahead.popleft()
            if self.config.ray.prefetch:
                self._ahead.append(self._ask(sizes, self.config.ray.prefetch))
            try:
                self._batches.extend(pending.open())
            except ray.exceptions.RayError as error:
                if not is_lost(error):
                    raise
                self._ahead.clear()  # a shard died; the session will hear of it, and name its successor
        return self._batches.popleft() if self._batches else None

    def _ask(self, sizes: Mapping[int, int], batches: int) -> PendingBatches:
        parts = shares(self.config.learner.batch_size, {s: size for s, size in sizes.items() if s in self._shards})
        asked = [self._shards[shard].sample.remote(n, batches) for shard, n in parts.items()]
        return PendingBatches(batches, asked, list(parts.values()))

    def weights(self) -> Arrays:
        return weights_to_arrays(self.learner.network)

    def state(self) -> dict[str, Any]:
        return self.learner.state_dict()

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state."""
        self.learner.load_state_dict(state)


class LearnerClient:
    """What the session knows of the learner, and asks of it."""

    def __init__(self, context: RunContext, replay: ReplayClient):
        self.context, self.replay = context, replay
        self.weights = Published()
        self.average = Published()
        """What the player plays with."""
        self._backup: dict[str, Any] | None = None
        self._backup_due = 0.0
        self.process = context.supervisor.add("learner", self.start, self._died)

    def start(self, life: int) -> Any:
        """The learner's process."""
        s = self.context.config.ray
        return start_role(LearnerRole, self.context.config, self.context.spaces, cpus=s.learner_cpus, gpus=s.learner_gpus)

    def ask(self, known: Published) -> None:
        """Some of the updates that are due; a second call waits behind the first if it is a whole one."""
        most = self.context.config.ray.updates_per_call
        due = min(most, self.context.pacing.due(self.replay.transitions))
        waiting = self.context.supervisor.waiting(self.process, "learn")
        if self.process.is_ready and (waiting == 0 or (waiting == 1 and due == most)):
            self.ask_for(due, known)

    def ask_for(self, updates: int, known: Published) -> None:
        """That many updates; the weights after them become the newest."""
        if updates <= 0:
            return
        context = self.context
        ask = self.process.handle.learn.options(num_returns=3).remote
        answer, weights, average = ask(updates, dict(self.replay.sizes), known)
        is_averaged = context.config.learner.average_decay > 0

        def done(learned: Learned) -> None:
            context.pacing.promised -= updates
            context.pacing.updates += learned.updates
            context.log.learned(learned.figures, learned.updates)
            context.log.spent("learner_waits", learned.waited)
            self.weights = self.weights.next(weights)
            self.average = self.average.next(average) if is_averaged else self.weights

        def lost() -> None:
            context.pacing.promised -= updates

        context.pacing.promised += updates
        context.supervisor.call(self.process, "learn", answer, done, lost)

    def tell_shards(self) -> None:
        self.context.supervisor.call(self.process, "set_shards", self.process.handle.set_shards.remote(self.replay.handles))

    def back_up(self) -> None:
        """A copy of the learner's state, now and then."""
        if self.process.is_ready and time.monotonic() >= self._backup_due:
            self._backup_due = time.monotonic() + self.context.config.ray.backup_seconds
            self.context.supervisor.call(self.process, "state", self.process.handle.state.remote(), self.keep)

    def keep(self, state: dict[str, Any]) -> None:
        """Remembers a state to start a new learner from."""
        self._backup = state

    def _died(self, why: str) -> None:
        pacing = self.context.pacing
        kept = int(self._backup["updates"]) if self._backup else 0
        self.context.lost["updates"] += pacing.updates - kept
        lost = pacing.updates - kept
        self.context.event(f"learner died ({why}): the last {lost:,} updates lost, it goes on from update {kept:,}")
        pacing.updates = kept
        if self._backup is not None:
            self.load(self._backup)
        self.tell_shards()

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from a state; its weights are the newest. They are put here, and not lost with any other machine."""
        self.keep(state)
        self.context.supervisor.call(self.process, "load", self.process.handle.load.remote(state))
        self.weights = self.weights.next(ray.put(state["network"]))
        average = state["average"].get("weights")
        self.average = self.average.next(ray.put(average)) if average else self.weights
