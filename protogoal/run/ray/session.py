"""A run on Ray: the one process that tells the others what to do and when. Nothing is computed here.

Segments go from a worker to a shard, batches from shards to the learner, weights from the learner to the workers, each by
reference; this process sees only reports. All that is under way is bounded, and acting waits when storing, counting or
learning falls behind. Roles that die are replaced; what was lost is counted, and said in the run's events.

`run.training` drives it as it drives the local engine, and saves it where it yields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import ray

from protogoal.agents.parts import EnvSpaces
from protogoal.config import DeepConfig
from protogoal.record.store import Store
from protogoal.run.environments import make_batch_env
from protogoal.run.log import goal_metrics
from protogoal.run.ray import cluster
from protogoal.run.ray.crew import Office
from protogoal.run.ray.evaluator import Evaluating
from protogoal.run.ray.learner import Learning
from protogoal.run.ray.pge import Judging
from protogoal.run.ray.published import Published
from protogoal.run.ray.shard import Memory
from protogoal.run.ray.state import merge_replays, saved_spaces, without_episodes
from protogoal.run.ray.words import Vocabulary, bags, saved_words, set_words
from protogoal.run.ray.worker import Acting, Window

SAVE_ATTEMPTS = 3
STALENESS_RATE = 0.01


class RaySession:
    """A run of the deep agent on Ray: made of a configuration, trained into a store, saved, loaded."""

    acting_desk: type[Acting] = Acting
    learning_desk: type[Learning] = Learning

    def __init__(self, config: DeepConfig):
        self.config = config
        env, self.space = make_batch_env(config.env, 1)
        self.office = office = Office(config, EnvSpaces.of(env))
        env.close()
        self._staleness = 0.0  # how many versions older than the newest the weights were that acted, a running mean
        self._started_ray = cluster.connect(config.ray)
        try:
            cluster.check_resources(config, office.spaces)
            self.vocabulary = Vocabulary(office, self.space) if bags(self.space) else None
            words = self.vocabulary.line if self.vocabulary is not None else None
            self.memory = Memory(office)
            self.learning = self.learning_desk(office, self.memory)
            self.judging = Judging(office, self.memory, self.space, words) if config.agent == "protogoal" else None
            self.evaluating = Evaluating(office, words)
            self.acting = self.acting_desk(office, words)
            office.crew.wait_ready()
        except BaseException:
            self.close()
            raise

    @property
    def step(self) -> int:
        return self.office.pacing.steps

    def train(self, store: Store) -> Iterator[tuple[int, dict[str, Any]]]:
        """Trains to the end; yields (step, facts for people) at least once a second, where the state may be saved."""
        office, config = self.office, self.config
        office.store = store
        turn = self._round if config.ray.synchronous else self._turn
        while self.step < config.steps:
            with office.log.timing("loop"):
                turn()
                self._write_losses()
            office.log.facts["ratio"] = office.pacing.ratio
            if self.step >= config.steps:
                self._finish()
            yield self.step, office.log.facts

    # --- one turn -------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Asks everyone who has nothing to do, then waits for some answers."""
        self._tell_shards()
        self._ask_workers()
        self.learning.ask(self._known)
        if self.judging is not None:
            self.judging.ask_to_count()
            self.judging.ask_to_refresh()
        self._evaluate_if_due()
        self.learning.back_up()
        self.office.crew.take(timeout=1.0)
        for _, window in self._take_arrived():
            self._remember(window)

    def _round(self) -> None:
        """One window as the local engine has it: all act, and learn beside, with what was there before; then the rest."""
        self._tell_shards()
        due = self.office.pacing.due(self.memory.transitions)
        for index in range(len(self.acting.members)):
            self.acting.ask(index, self.learning.weights, self._goals)
        self.learning.ask_for(due, self._known)
        self.office.crew.settle()
        for _, window in sorted(self._take_arrived(), key=lambda pair: pair[0]):
            self._remember(window)
        self._count_all()
        if self.judging is not None:
            self.judging.ask_to_refresh()
            self.office.crew.settle()
        self._evaluate_if_due()
        self.learning.back_up()
        self.office.crew.settle()

    def _ask_workers(self) -> None:
        if self.office.pacing.must_wait(self.memory.transitions):
            self.acting.hold("learning")
        elif self.memory.is_behind:
            self.acting.hold("storing")
        elif self.judging is not None and self.judging.is_behind:
            self.acting.hold("counting")
        else:
            self.acting.ask_all(self.learning.weights, self._goals)

    def _remember(self, window: Window) -> None:
        """Sends on what a worker made, and notes its report."""
        office, report = self.office, window.report
        office.pacing.acted(report.steps, self.memory.transitions)
        self._staleness += STALENESS_RATE * (self.learning.weights.version - report.weights_version - self._staleness)
        self.evaluating.task_policy = self.acting.task_policy
        self.memory.add(window.segments, report.steps)
        office.log.acted(report.episode_return)
        for text in report.events:
            office.event(text)
        if self.judging is not None:
            self.judging.add(window.counted, report.steps)
            office.log.pursued(report.goal, report.success, self.judging.mirror)
            if office.store is not None:
                office.store.pursuits(self.step, report.goal, report.success, report.length)

    def _evaluate_if_due(self) -> None:
        if self.evaluating.is_due():
            self.evaluating.add(self.config.evaluation.episodes, self.learning.average)
            self._write_metrics()
        self.evaluating.ask(self.learning.average)

    def _write_losses(self) -> None:
        self.memory.write_losses()
        self.acting.write_losses()
        if self.judging is not None:
            self.judging.write_losses()
        self.office.write_events()

    def _write_metrics(self) -> None:
        office = self.office
        assert office.store is not None
        pace = {"ratio": office.pacing.ratio, "ratio_target": self.config.learner.replay_ratio, "staleness": self._staleness}
        losses = {f"lost/{what}": float(office.lost[what]) for what in ("steps", "transitions", "updates", "counts", "evaluations")}
        office.store.metrics(self.step, office.log.metrics(self.step) | pace | losses)
        if self.judging is not None:
            office.store.metrics(self.step, goal_metrics(self.judging.mirror))

    def _finish(self) -> None:
        """Waits for all that is under way, and plays the last evaluation with the last weights."""
        self._quiesce()
        self._play_all()
        self.evaluating.add(self.config.evaluation.final_episodes, self.learning.average)
        self._write_metrics()
        self._play_all()
        self._write_losses()

    def _play_all(self) -> None:
        while self.evaluating.queue:
            self.evaluating.ask(self.learning.average)
            self.office.crew.take(timeout=1.0)

    def _quiesce(self) -> None:
        """Until nothing is under way but evaluations, and all that was acted is stored and counted."""
        self.office.crew.settle(but="play")
        for _, window in sorted(self._take_arrived(), key=lambda pair: pair[0]):
            self._remember(window)
        self._count_all()

    def _count_all(self) -> None:
        while True:
            if self.judging is not None:
                self.judging.ask_to_count()
            self.office.crew.settle(but="play")
            if self.judging is None or not self.judging.has_backlog:
                return
            self._tell_shards()

    def _take_arrived(self) -> list[tuple[int, Window]]:
        taken, self.acting.arrived = self.acting.arrived, []
        return taken

    def _tell_shards(self) -> None:
        if self.memory.has_changed:
            self.memory.has_changed = False
            self.learning.tell_shards()
            if self.judging is not None:
                self.judging.tell_shards()

    @property
    def _goals(self) -> Published:
        return self.judging.goals if self.judging is not None else Published()

    @property
    def _known(self) -> Published:
        return self.judging.known if self.judging is not None else Published()

    # --- state ----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything, in the local engine's form; a role that dies meanwhile is replaced and asked again."""
        for _ in range(SAVE_ATTEMPTS):
            self._quiesce()
            state = self._gather()
            if state is not None:
                return state
        raise ValueError(f"the run could not be saved: roles died in {SAVE_ATTEMPTS} attempts; its last checkpoint stands")

    def _gather(self) -> dict[str, Any] | None:
        crew, answers = self.office.crew, {}
        present = [member for member in self.acting.members if not member.is_gone]
        wanted = [*self.memory.members, *present, self.learning.member]
        wanted += [desk.member for desk in (self.judging, self.vocabulary) if desk is not None]
        for member in wanted:
            def keep(state: Any, name: str = member.name) -> None:
                answers[name] = state

            crew.call(member, "state", member.handle.state.remote(), keep)
        crew.settle(but="play")
        if len(answers) < len(wanted):
            return None
        shards = [answers[member.name] for member in self.memory.members]
        workers = [answers[member.name] for member in present]
        learner = answers[self.learning.member.name]
        if self.evaluating.task_policy is not None:
            policy = np.array(self.evaluating.task_policy, learner["network"]["task_policy"].dtype)
            learner = learner | {"network": learner["network"] | {"task_policy": policy}}
            if "weights" in learner["average"]:
                learner["average"] = learner["average"] | {"weights": learner["average"]["weights"] | {"task_policy": policy}}
        self.learning.keep(learner)
        is_local = len(workers) == 1 and self.acting.envs_per_worker == self.config.actor.num_envs
        agent = {
            "learner": learner,
            "acting_network": learner["network"],
            "replay": merge_replays([shard["replay"] for shard in shards]),
            "actor": workers[0] if is_local else without_episodes(workers),
            "sampling": shards[0]["sampling"],
            "steps": self.step,
        }
        if self.judging is not None:
            agent |= {"evaluator": answers[self.judging.member.name], "refreshing": shards[0]["refreshing"]}
        if self.vocabulary is not None:
            set_words(self.space, answers[self.vocabulary.member.name])
        agent["space"] = self.space.state_dict()
        if "evaluator" in agent:  # which has the words of its last refresh
            agent["evaluator"] = agent["evaluator"] | {"space": agent["space"]}
        return {
            "agent": agent,
            "evaluations": self.evaluating.generator,
            "next_refresh": self.judging.next_refresh if self.judging is not None else 0,
            "next_evaluation": self.evaluating.next_step,
            "log": self.office.log.state_dict(),
            "ray": {
                "workers": [] if is_local else workers,
                "forgiven": self.office.pacing.forgiven,
                "lost": dict(self.office.lost),
                "evaluating": [[step, episodes] for step, episodes, _ in self.evaluating.queue],
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` of this or of the local engine gave."""
        office, agent, mine = self.office, state["agent"], state.get("ray", {})
        office.pacing.load_state_dict(
            {"steps": agent["steps"], "updates": agent["learner"]["updates"], "forgiven": mine.get("forgiven", 0)})
        office.log.load_state_dict(state["log"])
        office.lost.update(mine.get("lost", {}))
        spaces = saved_spaces(state)
        if self.vocabulary is not None and spaces:
            self.vocabulary.load(saved_words(self.space, spaces))
            office.crew.settle(but="play")  # before anyone reads
        generators = {name: agent[name] for name in ("sampling", "refreshing") if name in agent}
        self.memory.load(agent["replay"], generators)
        self.learning.load(dict(agent["learner"]))
        if self.judging is not None:
            self.judging.load(dict(agent["evaluator"]))
            self.judging.next_refresh = int(state["next_refresh"])
        self.evaluating.load(state["evaluations"])
        self.evaluating.next_step = int(state["next_evaluation"]) or self.config.evaluation.every
        self.evaluating.queue = [(int(step), int(episodes), self.learning.average) for step, episodes in mine.get("evaluating", [])]
        self.acting.load(mine.get("workers") or [agent["actor"]])
        office.crew.settle()

    def close(self) -> None:
        """Ends the roles, and Ray if this session started it."""
        if ray.is_initialized():
            self.office.crew.disband()
            if self._started_ray:
                cluster.disconnect()
