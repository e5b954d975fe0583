"""Three small domains where it is known which proto-goals can be controlled (paper §6.2 and appendix).

static      Gymnasium's Taxi: 25 taxi cells, 5 passenger places, 4 destinations. Nothing an agent does changes the
            destination, though it differs between episodes.
timer       A 4×4 grid and a timer that shows 1…100, one bit each. Time passes whatever the agent does.
distractor  A visual 4×4 grid: one channel shows the player, two channels have pixels that light up at random.

Each is a `Dynamics`, stepped for many episodes at once (`collect`, a random policy's data), and one at a time as a Gymnasium
environment (`ControllabilityEnv`). A bit counts in the experiment only if it was attained in the data: the others are not
proto-goals that anybody has to judge. experiments/controllability.py uses them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from protogoal.goals.values import TransitionBatch

Ints = NDArray[np.int64]
Bits = NDArray[np.bool_]
Name = Literal["static", "timer", "distractor"]

SIDE = 4  # of the timer's and the distractor's grid
TIMER = 100
NOISE_CHANNELS = 2
NOISE = 0.1  # probability that a distractor's pixel is lit


class Dynamics(ABC):
    """What the three have in common; states are int64[N, …], all methods work on N episodes at once."""

    num_actions: int
    shape: tuple[int, ...]  # of an observation, all of it bits
    max_steps: int  # then an episode is truncated
    controllable: Bits  # [B], the ground truth

    @abstractmethod
    def start(self, n: int, rng: np.random.Generator) -> Ints:
        """Returns n initial states."""

    @abstractmethod
    def step(self, state: Ints, action: Ints, rng: np.random.Generator) -> tuple[Ints, Bits]:
        """Returns the next states and where the episode is terminated, [N]."""

    @abstractmethod
    def observe(self, state: Ints) -> Bits:
        """Returns the observations, [N, B]: every entry is a proto-goal."""


class StaticTaxi(Dynamics):
    """Taxi's own transition table, told as 34 bits; states are its state numbers, [N]."""

    num_actions, shape, max_steps = 6, (34,), 200
    controllable = np.arange(34) < 30

    def __init__(self) -> None:
        taxi: Any = gymnasium.make("Taxi-v3").unwrapped
        table = [[taxi.P[s][a][0] for a in range(6)] for s in range(500)]  # one outcome each: (1, s', reward, terminated)
        self._next = np.array([[outcome[1] for outcome in row] for row in table])
        self._terminated = np.array([[outcome[3] for outcome in row] for row in table], np.bool_)
        self._initial = np.flatnonzero(taxi.initial_state_distrib)  # all equally likely
        self._bits = np.zeros((500, 34), np.bool_)
        for s in range(500):
            row, column, passenger, destination = taxi.decode(s)
            self._bits[s, [5 * row + column, 25 + passenger, 30 + destination]] = True
        taxi.close()

    def start(self, n: int, rng: np.random.Generator) -> Ints:
        return rng.choice(self._initial, n)

    def step(self, state: Ints, action: Ints, rng: np.random.Generator) -> tuple[Ints, Bits]:
        return self._next[state, action], self._terminated[state, action]

    def observe(self, state: Ints) -> Bits:
        return self._bits[state]


class TimerGrid(Dynamics):
    """States are (cell, time), [N, 2]; the timer shows 1 at the start and 100 at the end."""

    num_actions, shape, max_steps = 4, (SIDE * SIDE + TIMER,), TIMER - 1
    controllable = np.arange(SIDE * SIDE + TIMER) < SIDE * SIDE

    def start(self, n: int, rng: np.random.Generator) -> Ints:
        return np.stack([rng.integers(SIDE * SIDE, size=n), np.ones(n, np.int64)], axis=1)

    def step(self, state: Ints, action: Ints, rng: np.random.Generator) -> tuple[Ints, Bits]:
        time = np.minimum(state[:, 1] + 1, TIMER)
        return np.stack([_move(state[:, 0], action), time], axis=1), np.zeros(len(state), np.bool_)

    def observe(self, state: Ints) -> Bits:
        bits = np.zeros((len(state), *self.shape), np.bool_)
        rows = np.arange(len(state))
        bits[rows, state[:, 0]] = True
        bits[rows, SIDE * SIDE + state[:, 1] - 1] = True
        return bits


class DistractorGrid(Dynamics):
    """States are (cell, noise pixels), [N, 1 + 32]; pixels are drawn anew at every step."""

    num_actions, shape, max_steps = 4, (1 + NOISE_CHANNELS, SIDE, SIDE), 100
    controllable = np.arange((1 + NOISE_CHANNELS) * SIDE * SIDE) < SIDE * SIDE

    def start(self, n: int, rng: np.random.Generator) -> Ints:
        return self._with_noise(rng.integers(SIDE * SIDE, size=n), rng)

    def step(self, state: Ints, action: Ints, rng: np.random.Generator) -> tuple[Ints, Bits]:
        return self._with_noise(_move(state[:, 0], action), rng), np.zeros(len(state), np.bool_)

    def observe(self, state: Ints) -> Bits:
        player = np.arange(SIDE * SIDE) == state[:, :1]
        return np.concatenate([player, state[:, 1:] > 0], axis=1)

    def _with_noise(self, cell: Ints, rng: np.random.Generator) -> Ints:
        noise = rng.random((len(cell), NOISE_CHANNELS * SIDE * SIDE)) < NOISE
        return np.concatenate([cell[:, None], noise], axis=1).astype(np.int64)


DOMAINS: dict[str, type[Dynamics]] = {"static": StaticTaxi, "timer": TimerGrid, "distractor": DistractorGrid}


def make_dynamics(name: str) -> Dynamics:
    """The domain of that name."""
    if name not in DOMAINS:
        raise ValueError(f"unknown domain {name!r}; allowed are {', '.join(DOMAINS)}")
    return DOMAINS[name]()


def _move(cell: Ints, action: Ints) -> Ints:
    """Up, down, left, right on the grid; walls hold."""
    row, column = np.divmod(cell, SIDE)
    row = np.clip(row + (action == 1) - (action == 0), 0, SIDE - 1)
    column = np.clip(column + (action == 3) - (action == 2), 0, SIDE - 1)
    return np.asarray(row * SIDE + column)


@dataclass(frozen=True)
class Experience:
    """Transitions of a random policy, and the episode of each."""

    batch: TransitionBatch
    episode: Ints  # [n]

    def first(self, episodes: int) -> TransitionBatch:
        """The transitions of the first episodes only."""
        return take(self.batch, np.flatnonzero(self.episode < episodes))


def take(batch: TransitionBatch, rows: NDArray[np.integer]) -> TransitionBatch:
    """Some rows of a batch."""
    return TransitionBatch(
        batch.observation[rows], batch.action[rows], batch.next_observation[rows], batch.terminated[rows], batch.bits[rows]
    )


def collect(dynamics: Dynamics, episodes: int, rng: np.random.Generator) -> Experience:
    """Plays whole episodes with uniformly random actions, all of them side by side."""
    state = dynamics.start(episodes, rng)
    alive = np.arange(episodes)
    parts: list[tuple[Bits, Ints, Bits, Bits, Ints]] = []
    for _ in range(dynamics.max_steps):
        action = rng.integers(dynamics.num_actions, size=len(alive))
        next_state, terminated = dynamics.step(state, action, rng)
        parts.append((dynamics.observe(state), action, dynamics.observe(next_state), terminated, alive))
        state, alive = next_state[~terminated], alive[~terminated]
    observation, action, next_observation, terminated, episode = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Experience(TransitionBatch(observation, action, next_observation, terminated, next_observation), episode)


class ControllabilityEnv(gymnasium.Env[NDArray[np.int8], np.int64]):
    """One episode at a time, for any Gymnasium agent: `ControllabilityEnv("timer")`. There is no reward."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, domain: Name = "timer"):
        self.dynamics = make_dynamics(domain)
        self.observation_space = spaces.MultiBinary(self.dynamics.shape)
        self.action_space = spaces.Discrete(self.dynamics.num_actions)
        self._state = np.zeros((1, 1), np.int64)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[np.int8], dict[str, Any]]:
        super().reset(seed=seed)
        self._state, self._steps = self.dynamics.start(1, self.np_random), 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        self._state, terminated = self.dynamics.step(self._state, np.array([action]), self.np_random)
        self._steps += 1
        return self._observation(), 0.0, bool(terminated[0]), self._steps >= self.dynamics.max_steps, {}

    def _observation(self) -> NDArray[np.int8]:
        return self.dynamics.observe(self._state)[0].reshape(self.dynamics.shape).astype(np.int8)
