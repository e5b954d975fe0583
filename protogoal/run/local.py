"""The local engine: act → learn → remember → refresh → evaluate, one process, one readable loop (paper, Figure 8).

This is the executable specification; `run.ray` puts the same pieces behind Ray actors. A window of acting uses the
weights from before the updates made beside it, so the two can run on two cores at the same time, and whether they do
changes nothing in the result: a run is a function of its configuration, and a saved one goes on to the bit.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from protogoal.agents.agent57.agent import Agent57
from protogoal.agents.agent57.curiosity import CuriousView
from protogoal.agents.agent57.split import SplitNetwork
from protogoal.agents.making import Network
from protogoal.agents.parts import Seeds
from protogoal.agents.proto_r2d2 import ProtoR2D2
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import Evaluation, Experience, evaluate, read_states
from protogoal.envs.vector import PAD, BatchEnv
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.record.store import Store
from protogoal.run.environments import make_batch_env, picture
from protogoal.run.limits import check_memory
from protogoal.run.log import RunLog, goal_metrics

AGENTS: dict[str, type[R2D2]] = {"protogoal": ProtoR2D2, "r2d2": R2D2, "agent57": Agent57}


class LocalSession:
    """A run of the deep agent: made of a configuration, trained into a store, saved, loaded, shown."""

    def __init__(self, config: DeepConfig):
        self.config = config
        torch.set_num_threads(1)  # one for acting, one for learning; more than one each was slower
        self._events: list[str] = []
        self.env, self.space = make_batch_env(config.env, config.actor.num_envs, on_event=self._event)
        check_memory(config, self.env)
        self.agent = AGENTS[config.agent](config, self.env, self.space)
        self._evaluations = np.random.default_rng(Seeds.of(config.seed).evaluating)
        self._next_refresh = self._next_evaluation = 0
        self.log = RunLog()

    @property
    def step(self) -> int:
        return self.agent.steps

    @property
    def playing(self) -> Network:
        """The network that is evaluated and shown."""
        network: Network = self.agent.learner.average.network
        return network

    def train(self, store: Store) -> Iterator[tuple[int, dict[str, Any]]]:
        """Trains to the end; yields (step, facts for people) after each window, where the state may be saved."""
        log, agent = self.log, self.agent
        self._next_evaluation = self._next_evaluation or self.config.evaluation.every
        with ThreadPoolExecutor(1) as beside:
            while agent.steps < self.config.steps:
                with log.timing("loop"):
                    self._window(store, beside)
                if agent.steps >= self.config.steps:  # before the yield: a run saved at its end is complete
                    self._evaluate(store, self.config.evaluation.final_episodes)
                yield agent.steps, log.facts

    def _window(self, store: Store, beside: ThreadPoolExecutor) -> None:
        agent, log, config = self.agent, self.log, self.config
        updates = agent.updates_due()
        randomly = agent.learner.updates == 0  # asked before the learner goes on beside
        acting: Future[Experience] | None = beside.submit(self._act, randomly) if config.threads > 1 and updates else None
        with log.timing("learn"):
            for _ in range(updates):
                log.learned(agent.learn())
        experience = acting.result() if acting else self._act(randomly)
        with log.timing("remember"):
            agent.remember(experience)
            agent.publish()
        log.acted(experience.episode_return)
        if isinstance(agent, ProtoR2D2):
            store.pursuits(agent.steps, *_columns(experience))
            log.pursued(experience.pursuits.goal, experience.pursuits.success, agent.evaluator)
            if agent.can_learn and agent.steps >= self._next_refresh:
                self._refresh(store, agent)
        for text in self._events:
            store.event(agent.steps, text)
        self._events.clear()
        if self._next_evaluation <= agent.steps < config.steps:  # the last one is `train`'s
            self._next_evaluation += config.evaluation.every
            self._evaluate(store, config.evaluation.episodes)

    def _act(self, randomly: bool) -> Experience:
        with self.log.timing("act"):
            return self.agent.act(randomly)

    def _refresh(self, store: Store, agent: ProtoR2D2) -> None:
        self._next_refresh = agent.steps + self.config.refresh_every
        start = time.perf_counter()
        with self.log.timing("pge"):
            agent.refresh()
        store.refresh(agent.steps, agent.evaluator.snapshot(), agent.evaluator.describe, time.perf_counter() - start)
        self.log.facts["goals"] = len(agent.goal_set)

    def _evaluate(self, store: Store, episodes: int) -> Evaluation:
        with self.log.timing("evaluate"):
            result = play_episodes(self.config, self.playing, episodes, self._evaluations, self.space)
        store.evaluation(self.step, result.episodes, result.successes, result.mean_return)
        store.metrics(self.step, {"success": result.success_rate, "episode_length": result.mean_length})
        store.metrics(self.step, self.log.metrics(self.step))
        if isinstance(self.agent, ProtoR2D2):
            store.metrics(self.step, goal_metrics(self.agent.evaluator))
        self.log.facts["success"] = result.success_rate
        return result

    def evaluate(self, episodes: int, seed: int) -> int:
        """Episodes for the task: how many succeeded."""
        return play_episodes(self.config, self.playing, episodes, np.random.default_rng(seed), self.space).successes

    def play(self, goal: int | None, seed: int) -> Iterator[tuple[Any, str]]:
        """Frames of one episode for the task, or until the goal is attained, with what happens in words."""
        members, words = None, "the task"
        if goal is not None:
            if not isinstance(self.agent, ProtoR2D2):
                raise ValueError(f"the agent {self.config.agent} has no goals; leave out --goal")
            members, words = np.array(self.agent.evaluator.table.members(goal)), self.agent.evaluator.name(goal)
        space = copy.deepcopy(self.space)  # words that are read while playing are not learned
        yield from play_pictures(self.config, self.playing, space, members, words, seed)

    def close(self) -> None:
        self.env.close()

    def _event(self, text: str) -> None:
        self._events.append(text)

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain arrays and JSON-able values."""
        return {
            "agent": self.agent.state_dict(),
            "evaluations": self._evaluations.bit_generator.state,
            "next_refresh": self._next_refresh,
            "next_evaluation": self._next_evaluation,
            "log": self.log.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.agent.load_state_dict(state["agent"])
        self._evaluations.bit_generator.state = state["evaluations"]
        self._next_refresh, self._next_evaluation = int(state["next_refresh"]), int(state["next_evaluation"])
        self.log.load_state_dict(state["log"])
        if not self.agent.actor.was_restored:
            self._event("the environments could not be restored: all episodes begin afresh")


def _as_read(env: BatchEnv, network: Network, config: DeepConfig) -> BatchEnv:
    """The environments with all that the network reads: Agent57's may read its intrinsic reward."""
    if isinstance(network, SplitNetwork) and config.agent57.reads_intrinsic:
        return CuriousView(env, network, config.agent57)
    return env


def play_episodes(
    config: DeepConfig, network: Network, episodes: int, rng: np.random.Generator, space: ProtoGoalSpace | None = None
) -> Evaluation:
    """Episodes for the task on environments of their own; `space` is one to share, as in `make_batch_env`."""
    env = _as_read(make_batch_env(config.env, min(episodes, 32), space)[0], network, config)
    try:
        return evaluate(network, env, episodes, config.evaluation.epsilon, rng)  # type: ignore[arg-type]
    finally:
        env.close()


def play_pictures(
    config: DeepConfig, network: Network, space: ProtoGoalSpace, members: np.ndarray | None, words: str, seed: int
) -> Iterator[tuple[Any, str]]:
    """One episode, ε-greedy with evaluation.epsilon, drawn: frames and captions.

    It ends where the episode does, or the goal's `members` are all on.
    """
    env = _as_read(make_batch_env(config.env, 1, space, render_mode="rgb_array")[0], network, config)
    rng = np.random.default_rng(seed)
    goal = torch.full((1, 1, 1), PAD) if members is None else torch.from_numpy(members).expand(1, 1, -1)
    try:
        observation, _ = env.reset(seed=seed)
        core = network.initial_core(1)
        action, reward, is_first = np.zeros(1, np.int16), np.zeros(1, np.float32), np.ones(1, bool)
        yield picture(env, at_start=True), f"{words}: start"
        for t in itertools.count(1):
            with torch.inference_mode():
                z, core = read_states(network, observation, action, reward, is_first, core)  # type: ignore[arg-type]
                q = network.q_each(z, goal)[0, 0].numpy()
            explore = rng.random() < config.evaluation.epsilon
            chosen = np.array([rng.integers(len(q)) if explore else q.argmax()])
            step = env.step(chosen)
            attained = members is not None and bool(np.isin(members, step.final_active[0]).all())
            over = bool(step.terminated[0] or step.truncated[0])
            ending = "attained" if attained else "won" if step.reward[0] > 0 else "ended" if over else ""
            yield picture(env), f"{words}: step {t}  {ending}"
            if attained or over:
                return
            observation, is_first = step.observation, np.zeros(1, bool)
            action, reward = chosen.astype(np.int16), step.reward.astype(np.float32)
    finally:
        env.close()


def _columns(experience: Experience) -> tuple[Any, Any, Any]:
    ended = experience.pursuits
    return ended.goal, ended.success, ended.length
