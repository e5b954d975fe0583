"""Q-learning and the tabular proto-goal agent (paper appendix A, Algorithm 1), and the loop that trains them.

`ProtoGoalAgent` is `QLearningAgent` plus: a seek and an avoid table for every proto-goal, which every transition updates;
the evaluator, which makes the goal space of them; and pursuits of its goals. The steps themselves run in `kernels`.

`train` is a generator: it yields at each test of the greedy policy, and whoever consumes it logs, draws or stops.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import sparse_bits, turned_on
from protogoal.goals.evaluator import PGESettings, ProtoGoalEvaluator
from protogoal.goals.selection import select
from protogoal.goals.spaces import ProtoGoalSpace
from protogoal.goals.stored import stored_like, stored_number
from protogoal.goals.table import TASK, Pursuits
from protogoal.goals.trials import TrialEvents
from protogoal.goals.values import SeekAvoid
from protogoal.tabular import kernels
from protogoal.tabular.settings import TABULAR_PGE, TabularSettings
from protogoal.tabular.tables import TransitionTables

CHUNK = 4096  # most steps of one kernel call; bounds the trace buffers
UNTAKEN = 65_536  # most records kept for a caller that never takes them; the oldest go first


@dataclass(frozen=True)
class Refreshes:
    """Goal spaces since they were last taken, oldest first: the step and the verdict on every proto-goal."""

    step: NDArray[np.int64]  # [n]
    verdict: NDArray[np.int8]  # [n, B]


class QLearningAgent:
    """ε-greedy Q-learning on a table Q [S, A] that starts at zero."""

    evaluator: ProtoGoalEvaluator | None = None
    """Of agents that set themselves goals."""

    def __init__(self, tables: TransitionTables, settings: TabularSettings | None = None, seed: int = 0):
        self.tables = tables
        self.settings = settings or TabularSettings()
        self.step = 0
        self.q = np.zeros((tables.num_states, tables.num_actions))
        # Tests draw from a stream of their own: how often the agent is tested changes nothing of what it learns.
        acting, testing, self._evaluator_seed = np.random.SeedSequence(seed).spawn(3)
        self._rng, self._test_rng = np.random.default_rng(acting), np.random.default_rng(testing)
        self._carry = np.array([kernels.NO_STATE, 0, kernels.NO_GOAL, 0, 0, 0], np.int64)

    @property
    def episodes(self) -> int:
        """Episodes finished in training."""
        return int(self._carry[kernels.EPISODES])

    _num_goals = 0

    def advance(self, num_steps: int) -> None:
        """Act and learn for `num_steps` steps; episodes begin and end as they come."""
        s = self.settings
        kernels.q_learning_steps(*self._dynamics, self.q, self._carry, num_steps, s.learning_rate, s.discount, s.epsilon, self._rng)
        self.step += num_steps

    def test(self, episodes: int | None = None) -> dict[str, float]:
        """Success, return and length of greedy episodes for the task; their starts go through a shuffled list of all."""
        n = self.settings.eval_episodes if episodes is None else episodes
        starts = np.resize(self._test_rng.permutation(self.tables.initial_states), n)
        returns, lengths = kernels.greedy_episodes(*self._dynamics[:3], starts, self.tables.time_limit, self.q, self._test_rng)
        return {"success": float((returns > 0).mean()), "return": float(returns.mean()), "length": float(lengths.mean())}

    def seed_tests(self, seed: int) -> None:
        """Start the stream that tests and shown episodes draw from anew; training is not touched by it."""
        self._test_rng = np.random.default_rng(seed)

    def action(self, state: int, goal: int = TASK) -> int:
        """The greedy action for the task, or for a goal if the agent has goals."""
        return int(kernels.argmax_random(np.ascontiguousarray(self._action_values(state, goal)), self._test_rng))

    def _action_values(self, state: int, goal: int) -> NDArray[np.float64]:
        if goal != TASK:
            raise ValueError("a Q-learning agent follows the task only; it has no goals")
        return self.q[state]

    def metrics(self) -> dict[str, float]:
        """What is worth logging, beside the test."""
        return {"episodes": self.episodes}

    def take_pursuits(self) -> Pursuits:
        """The pursuits that ended since the last call; those of the task have the goal TASK."""
        return Pursuits.join([])

    def attaining(self, goal: int) -> NDArray[np.bool_]:
        """Which states attain a goal, [S]."""
        raise ValueError("a Q-learning agent follows the task only; it has no goals")

    @property
    def _dynamics(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64], int]:
        t = self.tables
        return t.next_state, t.reward, t.terminated, t.initial_states, t.time_limit

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes, as plain arrays and JSON-able values; loading it continues to the bit."""
        return {"step": self.step, "q": self.q.copy(), "carry": self._carry.copy(),
                "rng": self._rng.bit_generator.state, "test_rng": self._test_rng.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.step = stored_number(state["step"], "step")
        _fill(self.q, state["q"], "q")
        carry = stored_like(state["carry"], "carry", self._carry)
        most = {kernels.STATE: self.tables.num_states - 1, kernels.GOAL: self._num_goals - 1}
        least = {kernels.STATE: kernels.NO_STATE, kernels.GOAL: kernels.NO_GOAL}
        for place, value in enumerate(carry.tolist()):  # what the kernels read with
            stored_number(value, f"carry[{place}]", least.get(place, 0), most.get(place))
        self._carry[...] = carry
        self._rng.bit_generator.state = state["rng"]
        self._test_rng.bit_generator.state = state["test_rng"]


class ProtoGoalAgent(QLearningAgent):
    """Algorithm 1: pursues goals that the evaluator keeps, and learns of all of them from every transition.

    Goals are the single proto-goals: a table cannot generalise to conjunctions, so recombination is off. With
    `compiled_selection` = False every goal is chosen by `goals.selection.select` itself, to the same result.
    """

    evaluator: ProtoGoalEvaluator

    def __init__(self, tables: TransitionTables, space: ProtoGoalSpace, settings: TabularSettings | None = None,
                 pge: PGESettings | None = None, seed: int = 0, compiled_selection: bool = True):
        super().__init__(tables, settings, seed)
        pge = dataclasses.replace(pge or TABULAR_PGE, recombinations=0, max_goals=0, max_members=1)
        self.evaluator = ProtoGoalEvaluator(
            space, tables.num_actions, pge, seed=int(self._evaluator_seed.generate_state(1)[0]))
        # the kernel knows the paper's rule only
        self.compiled_selection = compiled_selection and pge.strategy == "paper" and not pge.competence
        self.bits = space.bits(None, None, np.arange(tables.num_states))  # [S, B]
        shape = tables.num_states, tables.num_actions, space.size
        self.seek, self.avoid = np.zeros(shape), np.zeros(shape)
        self.v_seek, self.v_avoid = np.zeros(shape[::2]), np.zeros(shape[::2])  # maxima over the actions
        self.visits = np.zeros(tables.num_states, np.int64)  # transitions that began in each state
        self._num_goals = space.size
        self._float_bits = self.bits.astype(np.float64)
        self._active = sparse_bits(self.bits)
        self._trace = np.zeros(CHUNK, np.int64), np.zeros(CHUNK, np.int64), np.zeros(CHUNK)
        self._ended = np.zeros(CHUNK, np.int64), np.zeros(CHUNK, np.bool_), np.zeros(CHUNK, np.int64)
        self._untaken_pursuits: deque[tuple[NDArray[Any], ...]] = deque(maxlen=UNTAKEN)
        self._untaken_refreshes: deque[tuple[int, NDArray[np.int8]]] = deque(maxlen=UNTAKEN)
        self._prepare_selection()

    def advance(self, num_steps: int) -> None:
        s = self.settings
        limit = s.max_pursuit or self.tables.time_limit
        while num_steps > 0:
            if self._carry[kernels.STATE] == kernels.NO_STATE and self._carry[kernels.SINCE_REFRESH] >= s.refresh_every:
                self.refresh()
            rule = self.evaluator.goal_set.num_candidates, self.evaluator.goal_set.p_task
            steps, pursuits = kernels.proto_goal_steps(
                *self._dynamics, self._float_bits, self.q, self.seek, self.avoid, self.v_seek, self.v_avoid, self.visits,
                *self._selection, *rule, self.compiled_selection, self._carry, min(num_steps, CHUNK), s.refresh_every, limit,
                s.learning_rate, s.discount, s.epsilon, self._rng, *self._trace, *self._ended)
            states_before, states, rewards = self._trace
            came, at = self._active[states[:steps]], self._active[states_before[:steps]]
            self.evaluator.count(came, turned_on(came, at), rewards[:steps], TrialEvents.none())
            if pursuits:
                ended = tuple(array[:pursuits].copy() for array in self._ended)
                self.evaluator.record_pursuit(*ended)
                self._untaken_pursuits.append(ended)
            self.step += steps
            num_steps -= steps
            if num_steps > 0 and not self.compiled_selection and self._carry[kernels.GOAL] == kernels.NO_GOAL:
                self._select_here()

    def refresh(self) -> None:
        """Determine the goal space from the tables: values over its experience → the evaluator's verdicts."""
        self._carry[kernels.SINCE_REFRESH] = 0
        seek_max, seek_mean, avoid_mean = kernels.summarise_values(self.v_seek, self.v_avoid, self.visits)
        self.evaluator.refresh_values(SeekAvoid(seek_max, seek_mean, avoid_mean, self.evaluator.table.count.copy()))
        self._untaken_refreshes.append((self.step, self.evaluator.verdict))
        self._prepare_selection()

    def _prepare_selection(self) -> None:
        goals = self.evaluator.goal_set
        cumulative = np.concatenate([[0.0], np.cumsum(goals.novelty)])
        edges = np.searchsorted(goals.bucket, np.arange(goals.bucket[-1] + 2 if len(goals) else 1))
        self._selection = np.array(goals.ids), cumulative, edges  # a copy: kernels are compiled for writable arrays

    def _select_here(self) -> None:
        """Begin a pursuit in the state where the agent stands."""
        state = int(self._carry[kernels.STATE])
        if state == kernels.NO_STATE:
            return
        goals = self.evaluator.goal_set
        values = self.v_seek[state, goals.ids][None]
        self._carry[kernels.GOAL] = select(goals, values, self.bits[state][None], self._rng)[0]
        self._carry[kernels.PURSUIT_TIME] = 0

    def take_pursuits(self) -> Pursuits:
        taken = Pursuits.join(self._untaken_pursuits)
        self._untaken_pursuits.clear()
        return taken

    def attaining(self, goal: int) -> NDArray[np.bool_]:
        return np.asarray(self.bits[:, self.evaluator.table.members(goal)].all(1))  # refuses what is no goal

    def take_refreshes(self) -> Refreshes:
        """The goal spaces determined since the last call."""
        steps = np.array([step for step, _ in self._untaken_refreshes], np.int64)
        verdicts = [verdict for _, verdict in self._untaken_refreshes]
        self._untaken_refreshes.clear()
        return Refreshes(steps, np.array(verdicts, np.int8).reshape(len(steps), self.evaluator.num_bits))

    def _action_values(self, state: int, goal: int) -> NDArray[np.float64]:
        if goal == TASK:
            return self.q[state]
        if not 0 <= goal < self.evaluator.num_bits:
            raise ValueError(f"unknown goal {goal}; allowed are {TASK} (the task) and 0…{self.evaluator.num_bits - 1}")
        return self.seek[state, :, goal]

    def metrics(self) -> dict[str, float]:
        plausible = self.evaluator.plausible
        space = self.evaluator.space
        assert space is not None
        kinds = [space.kind(i) for i in range(space.size)]
        by_kind = {f"plausible/{kind}": float(sum(plausible[i] for i, k in enumerate(kinds) if k == kind))
                   for kind in dict.fromkeys(kinds)}
        return super().metrics() | {"plausible": float(plausible.sum())} | by_kind

    _TABLES = ("seek", "avoid", "v_seek", "v_avoid", "visits")

    def state_dict(self) -> dict[str, Any]:
        tables = {name: getattr(self, name).copy() for name in self._TABLES}
        return super().state_dict() | tables | {"evaluator": self.evaluator.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in self._TABLES:
            _fill(getattr(self, name), state[name], name, 0 if name == "visits" else None)
        self.evaluator.load_state_dict(state["evaluator"])
        super().load_state_dict(state)
        self._untaken_pursuits.clear()
        self._untaken_refreshes.clear()
        self._prepare_selection()


AGENTS: dict[str, Callable[[TransitionTables, ProtoGoalSpace, TabularSettings, PGESettings, int], QLearningAgent]] = {
    "protogoal": ProtoGoalAgent,
    "qlearning": lambda tables, space, settings, pge, seed: QLearningAgent(tables, settings, seed),
}
"""Each made of all that a configuration may say of one."""


def train(agent: QLearningAgent, steps: int) -> Iterator[tuple[int, dict[str, float]]]:
    """Train until `steps` in all, yielding (step, metrics) at every test: at step 0, each `eval_every` steps, and at the end.

    An agent that was loaded goes on from its own step, and yields what the uninterrupted run would have yielded.
    """
    every = agent.settings.eval_every
    if agent.step == 0:
        yield 0, agent.test() | agent.metrics()
    while agent.step < steps:
        agent.advance(min(every - agent.step % every, steps - agent.step))
        yield agent.step, agent.test() | agent.metrics()


def _fill(array: NDArray[Any], stored: Any, name: str, low: int | None = None) -> None:
    array[...] = stored_like(stored, name, array, low)
