"""The local engine: act → learn → remember → refresh → evaluate, one process, one readable loop (paper, Figure 8).

This is the executable specification; `run.ray` puts the same pieces behind Ray actors. A window of acting uses the
weights from before the updates made beside it, so the two can run on two cores at the same time, and whether they do
changes nothing in the result: a run is a function of its configuration, and a saved one goes on to the bit.
"""

from __future__ import annotations

import copy
import functools
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from protogoal import registry
from protogoal.agents.blueprint import Seeds
from protogoal.agents.r2d2 import R2D2
from protogoal.config import DeepConfig
from protogoal.deep.act import Evaluation, Experience, WantedGoal, evaluate, read_states
from protogoal.domains.domain import make_batch_env, picture, settled, success_rule
from protogoal.envs.success import SuccessRule
from protogoal.envs.vector import PAD
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.record.events import Evaluated, Event, Happened, Measured, Progressed, Pursued, Refreshed, last_evaluation
from protogoal.run.limits import check_memory, dropped_words, room_for_replay, widest_lists
from protogoal.run.log import RunLog, goal_metrics, offered_metrics
from protogoal.run.player import AgentPlayer
from protogoal.run.stopping import ACTING

CLOSING_SECONDS = 3.0  # that a window under way may take to end, where learning beside it has failed
WATCHED_STEPS = 2_000  # of one episode that is drawn: an episode need not end


class LocalSession(AgentPlayer):
    """A run of the deep agent: made of a configuration, trained into a store, saved, loaded, shown."""

    def __init__(self, config: DeepConfig):
        self.config = config = settled(config)
        torch.set_num_threads(1)  # one for acting, one for learning; more than one each was slower
        self._events: list[str] = []  # of the environments
        self._told: list[Event] = []
        self.env, self.space = make_batch_env(config.env, config.actor.num_envs, on_event=self._event)
        check_memory(config, self.env)
        self.agent: R2D2 = registry.agent(config.agent)(config, self.env, self.space)
        self.agent.replay.most_active = widest_lists(config, self.env, room_for_replay(config, self.env))
        self._evaluations = np.random.default_rng(Seeds.of(config.seed).evaluating)
        self._next_refresh = self._next_evaluation = 0
        self._told_of_dropped = False
        self.log = RunLog()
        self._acting: Future[Experience] | None = None  # beside, while learning goes on

    @property
    def step(self) -> int:
        return self.agent.steps

    @functools.cached_property
    def success(self) -> SuccessRule:
        """What counts as success at the task."""
        return success_rule(self.config.env, self.config.evaluation.success_return)

    def train(self) -> Iterator[Event]:
        """Trains to the end; after each window the state may be saved."""
        log, agent = self.log, self.agent
        agent.actor.success = self.success
        self._next_evaluation = self._next_evaluation or self.config.evaluation.every
        beside = ThreadPoolExecutor(1, thread_name_prefix=ACTING)
        try:
            while agent.steps < self.config.steps:
                with log.timing("loop"):
                    self._window(beside)
                if agent.steps >= self.config.steps:  # before the yield: a run saved at its end is complete
                    yield last_evaluation(agent.steps, self.config.evaluation.final_episodes)
                    with log.timing("loop"):
                        self._evaluate(self.config.evaluation.final_episodes)
                recent = log.recent(agent.steps)
                if recent:
                    self._tell(Measured(agent.steps, recent))
                told, self._told = self._told, []
                yield from told
                yield Progressed(agent.steps, log.facts)
        finally:
            beside.shutdown(wait=False)  # an environment that hangs is not waited for, but by `close` for a while

    def _window(self, beside: ThreadPoolExecutor) -> None:
        agent, log, config = self.agent, self.log, self.config
        updates = agent.updates_due()
        randomly = agent.learner.updates == 0  # asked before the learner goes on beside
        self._acting = beside.submit(self._act, randomly) if config.threads > 1 and updates else None
        with log.timing("learn"):
            for _ in range(updates):
                log.learned(agent.learn())
        experience = self._acting.result() if self._acting else self._act(randomly)
        self._acting = None
        with log.timing("remember"):
            agent.remember(experience)
            agent.publish()
        log.acted(experience.episode_return, experience.episode_success)
        if agent.evaluator is not None:
            ended = experience.pursuits
            self._tell(Pursued(agent.steps, ended.goal, ended.success, ended.length))
            log.pursued(ended.goal, ended.success, agent.evaluator)
            if agent.can_learn and agent.steps >= self._next_refresh:
                self._refresh(agent.evaluator)
        self._tell_of_dropped()
        for text in self._events:
            self._tell(Happened(agent.steps, text))
        self._events.clear()
        if self._next_evaluation <= agent.steps < config.steps:  # the last one is `train`'s
            self._next_evaluation += config.evaluation.every
            cost = self._evaluate(config.evaluation.episodes)
            self._next_evaluation = max(self._next_evaluation, agent.steps + cost)  # half the time for training

    def _tell_of_dropped(self) -> None:
        """Bits that replay had no room for, the first time that there are any."""
        replay = self.agent.replay
        if replay.dropped and not self._told_of_dropped:
            self._told_of_dropped = True
            self._event(dropped_words(replay.most_active, replay.dropped))

    def _act(self, randomly: bool) -> Experience:
        with self.log.timing("act"):
            return self.agent.act(randomly)

    def _refresh(self, evaluator: ProtoGoalEvaluator) -> None:
        agent = self.agent
        self._next_refresh = agent.steps + self.config.refresh_every
        start = time.perf_counter()
        with self.log.timing("pge"):
            agent.refresh()
        self._tell(Measured(agent.steps, offered_metrics(evaluator)))
        self._tell(Refreshed(agent.steps, evaluator.snapshot(), evaluator.describe, time.perf_counter() - start))
        self.log.facts["goals"] = len(agent.goal_set)

    def _evaluate(self, episodes: int) -> int:
        """Plays the task and tells of it; returns the steps it took."""
        with self.log.timing("evaluate"):
            result = play_episodes(self.config, self.playing, episodes, self._evaluations, self.success, self.space)
        if result.cut:
            self._tell(Happened(self.step, result.cut_words))
        self._tell(Evaluated(self.step, result.episodes, result.successes, result.mean_return))
        values = self.log.evaluated(result) | self.log.metrics(self.step)
        values |= goal_metrics(self.agent.evaluator) if self.agent.evaluator is not None else {}
        self._tell(Measured(self.step, values))
        return round(result.mean_length * result.episodes)

    def evaluate(self, episodes: int, seed: int, goal: int | None = None, as_in_run: bool = False) -> Evaluated:
        """Episodes for the task, or pursuits of a goal, which leave the run as it was; cut `as_in_run`, or by the setting alone."""
        wanted = None if goal is None else WantedGoal(*self._pursued(goal)[:2])
        result = play_episodes(self.config, self.playing, episodes, np.random.default_rng(seed), self.success, self.space, wanted,
                               as_in_run)
        return Evaluated(self.step, result.episodes, result.successes, result.mean_return)

    def play(self, goal: int | None, seed: int) -> Iterator[tuple[Any, str]]:
        """Frames of one episode for the task, or until the goal is attained, with what happens in words."""
        members, slots, words = None, None, "the task"
        if goal is not None:
            members, slots, words = self._pursued(goal)
        space = copy.deepcopy(self.space)  # words that are read while playing are not learned
        yield from play_pictures(self.config, self.playing, space, members, slots, words, seed, self.success)

    def close(self) -> None:
        """Ends the environments, which nobody steps any more by then, unless one hangs."""
        if self._acting is not None:
            wait([self._acting], CLOSING_SECONDS)
        self.env.close()

    def _tell(self, event: Event) -> None:
        self._told.append(event)

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


def play_episodes(
    config: DeepConfig, network: Any, episodes: int, rng: np.random.Generator, rule: SuccessRule,
    space: ProtoGoalSpace | None = None, wanted: WantedGoal | None = None, as_in_run: bool = True,
) -> Evaluation:
    """Episodes for the task, or a goal, on environments of their own; `space` is one to share, as in `make_batch_env`.

    They are cut after `evaluation.max_steps`; `as_in_run` also where a short run takes no more time for its figures.
    """
    env = registry.agent(config.agent).as_played(config, make_batch_env(config.env, min(episodes, 32), space)[0], network)
    try:
        settings = config.evaluation
        most = config.longest_played if as_in_run else settings.max_steps
        result = evaluate(network, env, episodes, settings.epsilon, rng, most, rule, wanted)
    finally:
        env.close()
    if most < settings.max_steps:
        result = replace(result, limit=f"all that a run of {config.steps:,} steps allows; "
                                       f"evaluation.max_steps is {settings.max_steps:,}")
    if result.cut:
        warnings.warn(result.cut_words, stacklevel=2)
    return result


def play_pictures(
    config: DeepConfig, network: Any, space: ProtoGoalSpace, members: np.ndarray | None, slots: np.ndarray | None, words: str,
    seed: int, rule: SuccessRule,
) -> Iterator[tuple[Any, str]]:
    """One episode, ε-greedy with evaluation.epsilon, drawn: frames and captions.

    It ends where the episode does, or the goal's `members` are all on.
    """
    drawn = make_batch_env(config.env, 1, space, render_mode="rgb_array")[0]
    env = registry.agent(config.agent).as_played(config, drawn, network)
    rng = np.random.default_rng(seed)
    goal = torch.full((1, 1, 1), PAD) if slots is None else torch.from_numpy(slots).expand(1, 1, -1)
    try:
        observation, _ = env.reset(seed=seed)
        core = network.initial_core(1)
        action, reward, is_first = np.zeros(1, np.int16), np.zeros(1, np.float32), np.ones(1, bool)
        total = np.zeros(1)
        yield picture(config.env, env, at_start=True), f"{words}: start"
        for t in range(1, min(WATCHED_STEPS, config.evaluation.max_steps) + 1):
            with torch.inference_mode():
                z, core = read_states(network, observation, action, reward, is_first, core)
                q = network.q_each(z, goal)[0, 0].numpy()
            explore = rng.random() < config.evaluation.epsilon
            chosen = np.array([rng.integers(len(q)) if explore else q.argmax()])
            step = env.step(chosen)
            attained = members is not None and bool(np.isin(members, step.final_active[0]).all())
            over = bool(step.terminated[0] or step.truncated[0])
            total += step.reward
            won = rule.of(total, step.success)[0] == 1 if over else rule.kind == "above 0" and step.reward[0] > 0
            ending = "attained" if attained else "won" if won else "ended" if over else ""
            yield picture(config.env, env), f"{words}: step {t}  {ending}"
            if attained or over:
                return
            observation, is_first = step.observation, np.zeros(1, bool)
            action, reward = chosen.astype(np.int16), step.reward.astype(np.float32)
    finally:
        env.close()
