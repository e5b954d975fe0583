"""A run on Ray: the one process that tells the others what to do and when. Nothing is computed here.

Segments go from a worker to a shard, batches from shards to the learner, weights from the learner to the workers, each by
reference; this process sees only reports. All that is under way is bounded, and acting waits when storing, counting or
learning falls behind. Roles that die are replaced; what was lost is counted, and said in the run's events.

`run.training` drives it as it drives the local engine, and saves it where it yields.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import ray

from protogoal import registry
from protogoal.agents.blueprint import EnvSpaces
from protogoal.config import DeepConfig
from protogoal.deep.network import set_buffers, weights_from_arrays
from protogoal.deep.stored import check_actions
from protogoal.domains.domain import make_batch_env, settled, success_rule
from protogoal.envs.success import SuccessRule
from protogoal.record.events import Evaluated, Event, Measured, Progressed, Pursued, last_evaluation
from protogoal.run.local import play_episodes
from protogoal.run.log import goal_metrics
from protogoal.run.ray import cluster
from protogoal.run.ray.learner import LearnerClient
from protogoal.run.ray.pge import PGEClient
from protogoal.run.ray.player import PlayerClient
from protogoal.run.ray.shard import ReplayClient
from protogoal.run.ray.state import merge_replays, saved_spaces, without_episodes
from protogoal.run.ray.supervisor import Published, RunContext
from protogoal.run.ray.vocabulary import VocabularyClient, bags, saved_words, set_words
from protogoal.run.ray.worker import Window, WorkerClient

SAVE_ATTEMPTS = 3
STALENESS_RATE = 0.01


class RaySession:
    """A run of the deep agent on Ray: made of a configuration, trained into a store, saved, loaded."""

    worker_client: type[WorkerClient] = WorkerClient
    learner_client: type[LearnerClient] = LearnerClient

    def __init__(self, config: DeepConfig):
        self.config = config = settled(config)
        self.agent = registry.agent(config.agent)
        env, self.space = make_batch_env(config.env, 1)
        self.context = context = RunContext(config, EnvSpaces.of(env))
        env.close()
        self._staleness = 0.0  # how many versions older than the newest the weights were that acted, a running mean
        self._started_ray = cluster.connect(config.ray)
        self._witness = cluster.Witness()
        try:
            cluster.check_resources(config, context.spaces)
            self.vocabulary = VocabularyClient(context, self.space) if bags(self.space) else None
            readers = self.vocabulary.readers if self.vocabulary is not None else None
            self.replay = ReplayClient(context)
            self.learner = self.learner_client(context, self.replay)
            self.pge = PGEClient(context, self.replay, self.space, readers) if self.agent.sets_goals else None
            self.player = PlayerClient(context, self.space, readers)
            self.workers = self.worker_client(context, readers, self.space)
            context.supervisor.wait_ready()
        except BaseException:
            self.close()
            raise

    @property
    def step(self) -> int:
        return self.context.pacing.steps

    @functools.cached_property
    def success(self) -> SuccessRule:
        """What counts as success at the task."""
        return success_rule(self.config.env.in_one_process(), self.config.evaluation.success_return)

    def train(self) -> Iterator[Event]:
        """Trains to the end; at least once a second the state may be saved."""
        context, config = self.context, self.config
        turn = self._round if config.ray.synchronous else self._turn
        while self.step < config.steps:
            with context.log.timing("loop"):
                turn()
                context.write_losses()
            context.log.facts["ratio"] = context.pacing.ratio
            if self.step >= config.steps:
                yield last_evaluation(self.step, config.evaluation.final_episodes)
                with context.log.timing("loop"):
                    self._finish()
            recent = context.log.recent(self.step)
            if recent:
                context.tell(Measured(self.step, recent))
            told, context.told = context.told, []
            yield from told
            yield Progressed(self.step, context.log.facts)

    # --- one turn -------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Asks everyone who has nothing to do, then waits for some answers."""
        self._tell_shards()
        self._ask_workers()
        self.learner.ask(self._known)
        if self.pge is not None:
            self.pge.ask_to_count()
            self.pge.ask_to_refresh()
        self._evaluate_if_due()
        self.learner.back_up()
        self.context.supervisor.take(timeout=1.0)
        for _, window in self._take_arrived():
            self._remember(window)

    def _round(self) -> None:
        """One window as the local engine has it: all act, and learn beside, with what was there before; then the rest."""
        self._tell_shards()
        due = self.context.pacing.due(self.replay.transitions)
        for index in range(len(self.workers.processes)):
            self.workers.ask(index, self.learner.weights, self._goals)
        self.learner.ask_for(due, self._known)
        self.context.supervisor.settle()
        for _, window in sorted(self._take_arrived(), key=lambda pair: pair[0]):
            self._remember(window)
        self._count_all()
        if self.pge is not None:
            self.pge.ask_to_refresh()
            self.context.supervisor.settle()
        self._evaluate_if_due()
        self.learner.back_up()
        self.context.supervisor.settle()

    def _ask_workers(self) -> None:
        if self.context.pacing.must_wait(self.replay.transitions):
            self.workers.hold("learning")
        elif self.replay.is_behind:
            self.workers.hold("storing")
        elif self.pge is not None and self.pge.is_behind:
            self.workers.hold("counting")
        else:
            self.workers.ask_all(self.learner.weights, self._goals)

    def _remember(self, window: Window) -> None:
        """Sends on what a worker made, and notes its report."""
        context, report = self.context, window.report
        context.pacing.acted(report.steps, self.replay.transitions)
        self._staleness += STALENESS_RATE * (self.learner.weights.version - report.weights_version - self._staleness)
        self.player.buffers = self.workers.buffers() or self.player.buffers
        self.replay.add(window.segments, report.steps)
        context.log.acted(report.episode_return, report.episode_success)
        for text in report.events:
            context.event(text)
        if self.pge is not None:
            self.pge.add(window.counted, report.steps)
            context.log.pursued(report.goal, report.success, self.pge.mirror)
            context.tell(Pursued(self.step, report.goal, report.success, report.length))

    def _evaluate_if_due(self) -> None:
        if self.player.is_due():
            self.player.add(self.config.evaluation.episodes, self.learner.average)
            self._write_metrics()
        self.player.ask(self.learner.average)

    def _write_metrics(self) -> None:
        context = self.context
        pace = {"ratio": context.pacing.ratio, "ratio_target": self.config.learner.replay_ratio, "staleness": self._staleness}
        kinds = ("steps", "transitions", "updates", "counts", "evaluations")
        losses = {f"lost/{what}": float(context.lost[what]) for what in kinds}
        goals = goal_metrics(self.pge.mirror) if self.pge is not None else {}
        context.tell(Measured(self.step, context.log.metrics(self.step) | pace | losses | goals))

    def _finish(self) -> None:
        """Waits for all that is under way, and plays the last evaluation with the last weights."""
        self._quiesce()
        self._play_all()
        self.player.add(self.config.evaluation.final_episodes, self.learner.average)
        self._write_metrics()
        self._play_all()
        self.context.write_losses()

    def _play_all(self) -> None:
        while self.player.queue:
            self.player.ask(self.learner.average)
            self.context.supervisor.take(timeout=1.0)

    def _quiesce(self) -> None:
        """Until nothing is under way but evaluations, and all that was acted is stored and counted."""
        self.context.supervisor.settle(but="play")
        for _, window in sorted(self._take_arrived(), key=lambda pair: pair[0]):
            self._remember(window)
        self._count_all()

    def _count_all(self) -> None:
        while True:
            if self.pge is not None:
                self.pge.ask_to_count()
            self.context.supervisor.settle(but="play")
            if self.pge is None or not self.pge.has_backlog:
                return
            self._tell_shards()

    def _take_arrived(self) -> list[tuple[int, Window]]:
        taken, self.workers.arrived = self.workers.arrived, []
        return taken

    def _tell_shards(self) -> None:
        if self.replay.has_changed:
            self.replay.has_changed = False
            self.learner.tell_shards()
            if self.pge is not None:
                self.pge.tell_shards()

    @property
    def _goals(self) -> Published:
        return self.pge.goals if self.pge is not None else Published()

    @property
    def _known(self) -> Published:
        return self.pge.known if self.pge is not None else Published()

    def evaluate(self, episodes: int, seed: int, goal: int | None = None, as_in_run: bool = False) -> Evaluated:
        """Episodes for the task with the last weights, in this process; they leave the run as it was."""
        network = self.agent.make_network(self.config, self.context.spaces)
        if self.learner.average.version:
            weights_from_arrays(network, self.learner.average.fetch())
        set_buffers(network, self.player.buffers)
        result = play_episodes(self.config, network, episodes, np.random.default_rng(seed), self.success, self.space,
                               as_in_run=as_in_run)
        return Evaluated(self.step, result.episodes, result.successes, result.mean_return)

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
        supervisor, answers = self.context.supervisor, {}
        present = [process for process in self.workers.processes if not process.is_gone]
        wanted = [*self.replay.processes, *present, self.learner.process]
        wanted += [client.process for client in (self.pge, self.vocabulary) if client is not None]
        for process in wanted:
            def keep(state: Any, name: str = process.name) -> None:
                answers[name] = state

            supervisor.call(process, "state", process.handle.state.remote(), keep)
        supervisor.settle(but="play")
        if len(answers) < len(wanted):
            return None
        shards = [answers[process.name] for process in self.replay.processes]
        workers = [answers[process.name] for process in present]
        learner = answers[self.learner.process.name]
        buffers = {name: np.asarray(value, learner["network"][name].dtype) for name, value in self.player.buffers.items()}
        learner = learner | {"network": learner["network"] | buffers}
        if "weights" in learner["average"]:
            learner["average"] = learner["average"] | {"weights": learner["average"]["weights"] | buffers}
        self.learner.keep(learner)
        is_local = len(workers) == 1 and self.workers.envs_per_worker == self.config.actor.num_envs
        agent = {
            "learner": learner,
            "acting_network": learner["network"],
            "replay": merge_replays([shard["replay"] for shard in shards]),
            "actor": workers[0] if is_local else without_episodes(self.agent, workers),
            "sampling": shards[0]["sampling"],
            "steps": self.step,
        }
        if self.pge is not None:
            agent |= {"evaluator": answers[self.pge.process.name], "refreshing": shards[0]["refreshing"]}
        if self.vocabulary is not None:
            set_words(self.space, answers[self.vocabulary.process.name])
        agent["space"] = self.space.state_dict()
        if "evaluator" in agent:  # which has the words of its last refresh
            agent["evaluator"] = agent["evaluator"] | {"space": agent["space"]}
        return {
            "agent": agent,
            "evaluations": self.player.generator,
            "next_refresh": self.pge.next_refresh if self.pge is not None else 0,
            "next_evaluation": self.player.next_step,
            "log": self.context.log.state_dict(),
            "ray": {
                "workers": [] if is_local else workers,
                "forgiven": self.context.pacing.forgiven,
                "lost": dict(self.context.lost),
                "evaluating": [[step, episodes] for step, episodes, _ in self.player.queue],
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` of this or of the local engine gave."""
        context, agent, mine = self.context, state["agent"], state.get("ray", {})
        context.pacing.load_state_dict(
            {"steps": agent["steps"], "updates": agent["learner"]["updates"], "forgiven": mine.get("forgiven", 0)})
        context.log.load_state_dict(state["log"])
        context.lost.update(mine.get("lost", {}))
        spaces = saved_spaces(state)
        if spaces:
            words = saved_words(self.space, spaces)
            if self.vocabulary is not None:
                self.vocabulary.load(words)
                context.supervisor.settle(but="play")  # before anyone reads
            learned = self.space.state_dict()
            self.workers.know(learned)
            self.player.know(learned)
        check_actions(agent["replay"]["arrays"], context.spaces.num_actions, "action", "previous_action")
        generators = {name: agent[name] for name in ("sampling", "refreshing") if name in agent}
        self.replay.load(agent["replay"], generators)
        self.learner.load(dict(agent["learner"]))
        if self.pge is not None:
            self.pge.load(dict(agent["evaluator"]))
            self.pge.next_refresh = int(state["next_refresh"])
        self.player.load(state["evaluations"])
        self.player.next_step = int(state["next_evaluation"]) or self.config.evaluation.every
        self.player.queue = [(int(step), int(episodes), self.learner.average) for step, episodes in mine.get("evaluating", [])]
        self.workers.load(mine.get("workers") or [agent["actor"]])
        context.supervisor.settle()

    def close(self) -> None:
        """Ends the roles, and Ray if this session started it."""
        if ray.is_initialized():
            self.context.supervisor.disband()
            if self._started_ray:
                ray.shutdown()
        self._witness.dismiss()
