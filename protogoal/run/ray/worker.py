"""Workers: batches of environments and the network that acts in them (paper, Algorithm 6).

A `Worker` is `Actor.collect` of the local engine in a process of its own. It fetches weights and goal sets when their
version has changed. `WorkerClient` asks them: each worker has a few calls waiting so that it never idles, and none when
replay, counting or learning is behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from protogoal import registry
from protogoal.agents.blueprint import Seeds
from protogoal.agents.counting import Counted
from protogoal.config import DeepConfig
from protogoal.deep.act import epsilon_ladder
from protogoal.deep.network import weights_from_arrays
from protogoal.deep.segments import Segments
from protogoal.domains.domain import make_batch_env, success_rule
from protogoal.goals.goal_set import GoalSet
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.run.ray.state import share_of_knowledge
from protogoal.run.ray.supervisor import Published, Role, RunContext, start_role
from protogoal.run.ray.vocabulary import VocabularyHandle, share_words, take_words


@dataclass(frozen=True)
class Report:
    """What the session wants to know of a call: small, and sent apart from the segments."""

    steps: int
    weights_version: int
    shared: NDArray[Any] | None  # what the other workers and the evaluation must know of this one
    episode_return: NDArray[np.float64]  # [episodes that ended]
    episode_success: NDArray[np.int8]
    goal: NDArray[np.int64]  # [pursuits that ended]
    success: NDArray[np.bool_]
    length: NDArray[np.int64]
    events: tuple[str, ...]


class Worker(Role):
    """Environments `index`·M … of W·M in all; `life` counts how often this worker has been started.

    `space` is the run's: levels of numbers that the first steps showed must be the same wherever they are read.
    """

    def __init__(self, config: DeepConfig, index: int, num_envs: int, life: int = 0, vocabulary: VocabularyHandle | None = None,
                 space: ProtoGoalSpace | None = None):
        torch.set_num_threads(1)
        self._events: list[str] = []
        # A worker is a process already: environments that crash take it along, and both are replaced.
        env, self.space = make_batch_env(config.env.in_one_process(), num_envs, space, on_event=self._events.append)
        self.vocabulary = vocabulary
        share_words(self.space, vocabulary)
        everyone = replace(config.actor, num_envs=config.ray.workers * num_envs)
        seed = worker_seed(Seeds.of(config.seed).acting, index, life)
        agent = registry.agent(config.agent)
        self.actor = agent.make_actor(replace(config, actor=everyone), env, agent.make_network(config, env), seed)
        self.actor.epsilon = epsilon_ladder(everyone)[index * num_envs : (index + 1) * num_envs]
        self.actor.success = success_rule(config.env.in_one_process(), config.evaluation.success_return)
        self.trace_length = config.replay.trace_length
        self.goals = GoalSet.empty()
        self._weights_version = self._goals_version = 0

    def collect(
        self, weights: Published, goals: Published, others: NDArray[Any] | None, randomly: bool, windows: int
    ) -> tuple[Segments, Counted, Report]:
        """Acts for some windows with these weights and goals, and what the others share."""
        if weights.version != self._weights_version:
            weights_from_arrays(self.actor.network, weights.fetch())
            self._weights_version = weights.version
        if goals.version != self._goals_version:
            self.goals, self._goals_version = goals.fetch(), goals.version
        if others is not None:
            self.actor.take(others)
        made = [self.actor.collect(self.goals, act_randomly=randomly) for _ in range(windows)]
        segments = Segments.join([experience.segments for experience in made])
        counted = Counted.join([Counted.of(experience, self.trace_length) for experience in made])
        report = Report(
            steps=segments.size * self.trace_length,
            weights_version=self._weights_version,
            shared=self.actor.shared(),
            episode_return=np.concatenate([experience.episode_return for experience in made]),
            episode_success=np.concatenate([experience.episode_success for experience in made]),
            goal=counted.goal,
            success=counted.success,
            length=counted.length,
            events=tuple(self._events),
        )
        self._events.clear()
        return segments, counted, report

    def state(self) -> dict[str, Any]:
        return self.actor.state_dict()

    def load(self, state: Mapping[str, Any]) -> bool:
        """Goes on from a state; False where the episodes had to begin afresh."""
        take_words(self.space, self.vocabulary)  # before a fresh episode is read
        self.actor.load_state_dict(state)
        return self.actor.was_restored

    def shared(self) -> NDArray[Any] | None:
        """What the others must know of this one."""
        return self.actor.shared()

    def know(self, space: Mapping[str, Any]) -> None:
        """Takes over what the run's proto-goal space has learned."""
        self.space.load_state_dict(space)
        take_words(self.space, self.vocabulary)

    def begin_afresh(self, known: Mapping[str, Any]) -> bool:
        """All episodes begin anew, read with the words that are agreed upon now; parts of the actor's state may be given."""
        mine = self.actor.state_dict()
        given = {part: mine[part] | value for part, value in known.items()}  # a generator stays one's own
        return self.load(mine | given | {"env": None})


def worker_seed(acting: np.random.SeedSequence, index: int, life: int) -> np.random.SeedSequence:
    """The first worker's is the local actor's; the others, and one that starts again, have streams of their own."""
    if index == life == 0:
        return acting
    return np.random.SeedSequence(acting.entropy, spawn_key=(*acting.spawn_key, 2 + index, life))


@dataclass(frozen=True)
class Window:
    """A worker's answer: references to what it made, and its report."""

    segments: Any
    counted: Any
    report: Report


class WorkerClient:
    """What the session knows of the workers, and asks of them."""

    def __init__(self, context: RunContext, vocabulary: VocabularyHandle | None, space: ProtoGoalSpace):
        self.context, s = context, context.config.ray
        self.envs_per_worker = s.envs_per_worker or -(-context.config.actor.num_envs // s.workers)
        self.steps_per_call = self.envs_per_worker * context.config.replay.trace_length * s.windows_per_call
        self.arrived: list[tuple[int, Window]] = []  # (worker, what it made), in the order in which they came
        self.agent = registry.agent(context.config.agent)
        self._shared: dict[int, NDArray[Any]] = {}  # each worker's, as last reported
        self._under_way = 0  # calls
        self.held: str | None = None  # the part of the loop in which they wait
        self.vocabulary, self.space = vocabulary, space
        self.processes = [
            context.supervisor.add(f"worker {i}", partial(self.start, i), partial(self._died, i), partial(self._gone, i))
            for i in range(s.workers)]

    def start(self, index: int, life: int) -> Any:
        """A worker's process."""
        config = self.context.config
        return start_role(Worker, config, index, self.envs_per_worker, life, self.vocabulary, self.space,
                          cpus=config.ray.worker_cpus)

    def know(self, space: Mapping[str, Any]) -> None:
        """Every worker takes over what the run's proto-goal space has learned."""
        for process in self.processes:
            self.context.supervisor.call(process, "load", process.handle.know.remote(space))

    def ask_all(self, weights: Published, goals: Published) -> None:
        """As many calls as each worker may have waiting; one each in turn, so that none is left out near the end."""
        self._release()
        ahead = self.context.config.ray.calls_ahead
        for _ in range(ahead):
            for index, process in enumerate(self.processes):
                if process.is_ready and self.context.supervisor.waiting(process, "collect") < ahead and not self._is_enough:
                    self.ask(index, weights, goals)

    @property
    def _is_enough(self) -> bool:
        return self.context.pacing.steps + self._under_way * self.steps_per_call >= self.context.config.steps

    def ask(self, index: int, weights: Published, goals: Published) -> None:
        """One call of one worker."""
        context, process = self.context, self.processes[index]
        if process.is_gone:
            return
        randomly = context.pacing.updates == 0
        segments, counted, report = process.handle.collect.options(num_returns=3).remote(
            weights, goals, self._known_to(index), randomly, context.config.ray.windows_per_call)

        def done(made: Report) -> None:
            self._under_way -= 1
            self._hear(index, made.shared)
            self.arrived.append((index, Window(segments, counted, made)))

        def lost() -> None:
            self._under_way -= 1
            context.missing["steps"] += self.steps_per_call

        self._under_way += 1
        context.supervisor.call(process, "collect", report, done, lost)

    def _hear(self, index: int, shared: NDArray[Any] | None) -> None:
        if shared is not None:
            self._shared[index] = shared

    def _known_to(self, index: int) -> NDArray[Any] | None:
        """The sum of what the workers beside this one share."""
        others = [shared for i, shared in self._shared.items() if i != index]
        return np.sum(others, axis=0) if others else None

    def buffers(self) -> dict[str, NDArray[Any]]:
        """Of the network that is played with, from what all workers share; none until each of them has reported."""
        present = [i for i, process in enumerate(self.processes) if not process.is_gone]
        if not all(i in self._shared for i in present):
            return {}
        return self.agent.buffers(np.sum([self._shared[i] for i in present], axis=0))

    def hold(self, reason: str) -> None:
        """No calls now, because something is behind; the time is told as time/held_by_…."""
        if self.held is None:
            self.held = f"held_by_{reason}"
            self.context.log.begin(self.held)

    def _release(self) -> None:
        if self.held is not None:
            self.context.log.end(self.held)
            self.held = None

    def _died(self, index: int, why: str) -> None:
        lost = self.context.missing.pop("steps", 0)
        self.context.lost["steps"] += lost
        self.context.event(f"worker {index} died ({why}): up to {lost:,} steps under way lost; it starts again, with its "
                          f"{self.envs_per_worker} episodes afresh")
        known = self.agent.shared_knowledge(self._shared[index]) if index in self._shared else {}
        if known:  # as it was last heard of
            process = self.processes[index]
            self.context.supervisor.call(process, "load", process.handle.begin_afresh.remote(known))

    def _gone(self, index: int, why: str) -> None:
        left = sum(not process.is_gone for process in self.processes)
        if not left:
            raise ValueError(f"no worker is left: {why}; the run can be resumed")
        self.context.event(f"worker {index} is given up ({why}); the run goes on with {left}")

    def load(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Goes on from states, one a worker; with another number of workers or environments the episodes begin afresh."""
        fits = len(states) == len(self.processes)
        self._shared.clear()
        restored: list[bool] = []
        for index, process in enumerate(self.processes):
            state = states[index] if fits else None
            is_whole = state is not None and (state["env"] is None or len(state["goal"]) == self.envs_per_worker)
            known = {} if is_whole else share_of_knowledge(self.agent, states, index, self.envs_per_worker)
            answer = process.handle.load.remote(state) if is_whole else process.handle.begin_afresh.remote(known)
            self.context.supervisor.call(process, "load", answer, restored.append)
            self.context.supervisor.call(process, "load", process.handle.shared.remote(), partial(self._hear, index))
        self.context.supervisor.settle()
        afresh = len(self.processes) - sum(restored)
        if afresh:
            self.context.event(f"the environments of {afresh} of {len(self.processes)} workers could not be restored: "
                              "their episodes begin afresh")
