"""The proto-goal evaluator in a process of its own: counts what the workers saw, judges, publishes (paper, Appendix C).

`PGERole` is `goals.evaluator.ProtoGoalEvaluator` of the local engine; for the paper's rule it draws transitions from the shards.
Its whole state goes back to `PGEClient` with each refresh. There it is shown and recorded, and a new evaluator
starts from it if the process dies: then what was counted since is counted again, and no goal's id ever changes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import ray

from protogoal.agents.blueprint import EnvSpaces, make_evaluator
from protogoal.agents.counting import Counted, count
from protogoal.config import DeepConfig
from protogoal.deep.relabel import KnownGoals
from protogoal.goals.active import as_wide
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.values import TransitionBatch
from protogoal.record.events import Measured, Refreshed
from protogoal.run.log import offered_metrics
from protogoal.run.ray.shard import ReplayClient, is_lost, shares
from protogoal.run.ray.supervisor import Published, Role, RunContext, start_role
from protogoal.run.ray.vocabulary import VocabularyHandle, share_words, take_words

State = dict[str, Any]


class PGERole(Role):
    """The one goal table of the run."""

    def __init__(self, config: DeepConfig, spaces: EnvSpaces, space: ProtoGoalSpace, vocabulary: VocabularyHandle | None):
        share_words(space, vocabulary)
        self.vocabulary = vocabulary
        self.space, self.batch_size = space, config.pge.batch_size
        self.evaluator = make_evaluator(config, space, spaces.num_actions)
        self._shards: dict[int, Any] = {}

    def set_shards(self, shards: Mapping[int, Any]) -> None:
        """Where transitions come from."""
        self._shards = dict(shards)

    def observe(self, *windows: Counted) -> tuple[int, KnownGoals]:
        """Counts windows in the order given: how many transitions, and the goals that are known then."""
        for window in windows:
            count(self.evaluator, window)
        known = KnownGoals.of(self.evaluator)
        return sum(window.transitions for window in windows), known

    def refresh(self, sizes: Mapping[int, int]) -> tuple[State, float] | None:
        """Judges all goals and draws a new goal set: its whole state, and the seconds it took. None if a shard died."""
        start = time.perf_counter()
        batch = None
        if self.evaluator.settings.pruning == "values":
            parts = shares(self.batch_size, {s: size for s, size in sizes.items() if s in self._shards})
            try:
                batches = ray.get([self._shards[shard].sample_transitions.remote(n) for shard, n in parts.items()])
            except ray.exceptions.RayError as error:
                if not is_lost(error):
                    raise
                return None
            if not batches:
                return None
            batch = join_transitions(batches)
        take_words(self.space, self.vocabulary)
        self.evaluator.refresh(batch)
        return self.state(), time.perf_counter() - start

    def state(self) -> State:
        return self.evaluator.state_dict()

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state."""
        self.evaluator.load_state_dict(state)


def join_transitions(batches: list[TransitionBatch]) -> TransitionBatch:
    """Transitions of several shards as one batch."""
    if len(batches) == 1:
        return batches[0]
    observation, action, following, terminated = (np.concatenate([getattr(batch, name) for batch in batches]) for name in (
        "observation", "action", "next_observation", "terminated"))
    lists = [batch.active for batch in batches if batch.active is not None]
    return TransitionBatch(observation, action, following, terminated, active=np.concatenate(as_wide(lists)))


class PGEClient:
    """The proto-goal evaluator's client. `mirror` is the evaluator as it was at its last refresh."""

    def __init__(self, context: RunContext, replay: ReplayClient, space: ProtoGoalSpace, vocabulary: VocabularyHandle | None):
        self.context, self.replay = context, replay
        self.mirror = make_evaluator(context.config, space, context.spaces.num_actions)
        self.goals, self.known = Published(), Published()
        self.next_refresh = 0
        self._backlog: list[tuple[Any, int]] = []  # (reference, transitions) to be counted
        self._counted: list[tuple[Any, int]] = []  # sent, but not in the mirror yet
        self._under_way = 0  # transitions sent and not answered
        self.process = context.supervisor.add("proto-goal evaluator", lambda _: start_role(
            PGERole, context.config, context.spaces, space, vocabulary, cpus=context.config.ray.pge_cpus), self._died)

    @property
    def has_backlog(self) -> bool:
        return bool(self._backlog)

    @property
    def uncounted(self) -> int:
        """Transitions that wait to be counted or are on their way."""
        return sum(n for _, n in self._backlog) + self._under_way

    @property
    def is_behind(self) -> bool:
        return self.uncounted >= self.context.config.ray.backlog

    def add(self, counted: Any, transitions: int) -> None:
        """A window to be counted, by reference."""
        self._backlog.append((counted, transitions))

    def ask_to_count(self) -> None:
        """All that waits, in one call, unless one is under way."""
        supervisor, process = self.context.supervisor, self.process
        if not (self._backlog and process.is_ready) or supervisor.waiting(process, "observe"):
            return
        sent, self._backlog = self._backlog, []
        answer, known = process.handle.observe.options(num_returns=2).remote(*(reference for reference, _ in sent))
        transitions = sum(n for _, n in sent)

        def done(_: int) -> None:
            self._under_way -= transitions
            self.known = self.known.next(known)

        def lost() -> None:
            self._under_way -= transitions
            self.context.missing["counts"] += transitions

        self._counted += sent
        self._under_way += transitions
        supervisor.call(process, "observe", answer, done, lost)

    def ask_to_refresh(self) -> None:
        """A refresh, if one is due; a copy of the state, if much was counted since the last."""
        context, process = self.context, self.process
        if not process.is_ready or context.supervisor.waiting(process, "refresh") or context.supervisor.waiting(process, "state"):
            return
        included = len(self._counted)  # what was sent before is in the answer, since a role answers in order
        if context.pacing.can_learn(self.replay.transitions) and context.pacing.steps >= self.next_refresh:
            self.next_refresh = context.pacing.steps + context.config.refresh_every
            answer = process.handle.refresh.remote(dict(self.replay.sizes))
            done = lambda result: self._refreshed(result, included)  # noqa: E731
            context.supervisor.call(process, "refresh", answer, done, self._refresh_again)
        elif sum(n for _, n in self._counted) >= context.config.ray.backlog:
            context.supervisor.call(process, "state", process.handle.state.remote(), lambda state: self._mirror(state, included))

    def _refreshed(self, result: tuple[State, float] | None, included: int) -> None:
        if result is None:
            self._refresh_again()
            return
        state, seconds = result
        self._mirror(state, included)
        self.publish()
        self.context.log.spent("pge", seconds)
        self.context.log.facts["goals"] = len(self.mirror.goal_set)
        self.context.tell(Measured(self.context.pacing.steps, offered_metrics(self.mirror)))
        self.context.tell(Refreshed(self.context.pacing.steps, self.mirror.snapshot(), self.mirror.describe, seconds))

    def _refresh_again(self) -> None:
        self.next_refresh = self.context.pacing.steps

    def _mirror(self, state: State, included: int) -> None:
        self.mirror.load_state_dict(state)
        del self._counted[:included]

    def publish(self) -> None:
        """The mirror's goals, to the learner first: whatever a worker pursues, the learner must know already."""
        known = KnownGoals.of(self.mirror)
        self.replay.want(known.bits)
        self.known = self.known.next(ray.put(known))
        self.goals = self.goals.next(ray.put(self.mirror.goal_set))

    def tell_shards(self) -> None:
        self.context.supervisor.call(self.process, "set_shards", self.process.handle.set_shards.remote(self.replay.handles))

    def _died(self, why: str) -> None:
        again = sum(n for _, n in self._counted)
        self._backlog, self._counted = self._counted + self._backlog, []
        self.context.missing.pop("counts", None)  # it is among these
        self.context.event(f"proto-goal evaluator died ({why}): it goes on from goal set {self.mirror.goal_set.version}; "
                          f"{again:,} transitions are counted again, none lost")
        self.load(self.mirror.state_dict())
        self.tell_shards()

    def load(self, state: State) -> None:
        """Goes on from a state; its goals are published anew."""
        self.context.supervisor.call(self.process, "load", self.process.handle.load.remote(state))
        self._mirror(state, len(self._counted))
        self.publish()
