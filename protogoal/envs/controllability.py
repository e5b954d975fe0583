"""Eight small domains where it is known which proto-goals can be controlled: the paper's three (§6.2 and appendix), five of ours.

static      Gymnasium's Taxi: 25 taxi cells, 5 passenger places, 4 destinations. Nothing an agent does changes the
            destination, though it differs between episodes.
timer       A 4×4 grid and a timer that shows 1…100, one bit each. Time passes whatever the agent does.
distractor  The grid, and two channels of pixels that light up at random.
television  The grid, and 8 screens that show one of 1,000 pictures each, another one at every step: all of them are rare.
weather     The grid, and pixels that light up at random, but only in rain. The weather changes by itself.
weak        The grid, a lamp that the fifth action, press, lights 3 times in 10, and four lamps that light up at random.
delayed     The grid, a lamp that lights up 3 steps after a press, and four that light up at random.
long-timer  The timer with 1…1,000, in episodes as long.

Each is a `Dynamics`, stepped for many episodes at once, and one at a time as a Gymnasium environment (`ControllabilityEnv`). An
observation is all bits, and every bit has a name and a kind (`Dynamics.space`). experiments/controllability.py uses them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from protogoal.goals.active import dense_bits, sparse_bits
from protogoal.goals.spaces import Factor, OneHotFactors, ProtoGoalSpace

Ints = NDArray[np.int64]
Bits = NDArray[np.bool_]
Name = Literal["static", "timer", "distractor", "television", "weather", "weak", "delayed", "long-timer"]

SIDE = 4  # of every grid but Taxi's
CELLS = SIDE * SIDE
NOISE_CHANNELS = 2
PIXELS = NOISE_CHANNELS * CELLS
NOISE = 0.1  # probability that a pixel is lit
SCREENS, PICTURES = 8, 1000
CHANGE = 0.1  # probability that the weather changes
PRESS = 4  # the fifth action, where there is one
WEAK = 0.3  # probability that a press lights the lamp
DELAY = 3  # steps between a press and the light
FLICKERING = 4  # lamps beside it that no press lights


class BitSpace(OneHotFactors):
    """Every entry of an observation of bits is a proto-goal; factors, one after the other, name them."""

    def _active(self, s: Any, a: Any, s_next: Any) -> Any:
        return sparse_bits(np.asarray(s_next).reshape(len(s_next), self.size).astype(np.bool_))


class Dynamics(ABC):
    """What the eight have in common; states are int64[N, …], all methods work on N episodes at once."""

    num_actions: int
    max_steps: int  # then an episode is truncated
    table_size: int  # states that a tabular agent tells apart
    space: ProtoGoalSpace  # names and kinds of the B bits
    shape: tuple[int, ...]  # of an observation
    controllable: Bits  # [B], the ground truth

    @abstractmethod
    def start(self, n: int, rng: np.random.Generator) -> Ints:
        """Returns n initial states."""

    @abstractmethod
    def step(self, state: Ints, action: Ints, rng: np.random.Generator) -> tuple[Ints, Bits]:
        """Returns the next states and where the episode is terminated, [N]."""

    @abstractmethod
    def active(self, state: Ints) -> Ints:
        """Returns the bits that are on, [N, L], padded with −1."""

    @abstractmethod
    def table_state(self, state: Ints) -> Ints:
        """Returns the part of the state that matters to what can be controlled, as a number below `table_size`, [N]."""

    def observe(self, state: Ints) -> Bits:
        """Returns the observations, [N, B]: every entry is a proto-goal."""
        return dense_bits(self.active(state), self.space.size)


class StaticTaxi(Dynamics):
    """Taxi's own transition table, told as 34 bits; states are its state numbers, [N]."""

    num_actions, max_steps, table_size = 6, 200, 500

    def __init__(self) -> None:
        places = ("Red", "Green", "Yellow", "Blue")
        passenger = (*(f"passenger at {p}" for p in places), "passenger in taxi")
        self.space = BitSpace([Factor.positions("taxi", 5, 5), Factor("passenger", passenger),
                               Factor("destination", tuple(f"destination {p}" for p in places))])
        self.shape = (self.space.size,)
        self.controllable = np.arange(34) < 30
        taxi: Any = gymnasium.make("Taxi-v3").unwrapped
        table = [[taxi.P[s][a][0] for a in range(6)] for s in range(500)]  # one outcome each: (1, s', reward, terminated)
        self._next = np.array([[outcome[1] for outcome in row] for row in table])
        self._terminated = np.array([[outcome[3] for outcome in row] for row in table], np.bool_)
        self._initial = np.flatnonzero(taxi.initial_state_distrib)  # all equally likely
        row, column, passenger, destination = np.array([list(taxi.decode(s)) for s in range(500)]).T
        self._active = np.stack([5 * row + column, 25 + passenger, 30 + destination], axis=1)
        taxi.close()

    def start(self, n: int, rng: np.random.Generator) -> Ints:
        return rng.choice(self._initial, n)

    def step(self, state: Ints, action: Ints, rng: np.random.Generator) -> tuple[Ints, Bits]:
        return self._next[state, action], self._terminated[state, action]

    def active(self, state: Ints) -> Ints:
        return self._active[state]

    def table_state(self, state: Ints) -> Ints:
        return state


class Grid(Dynamics):
    """A player on a 4×4 grid, and something beside it; states are (cell, the rest), [N, 1 + R]. No episode is terminated."""

    num_actions, max_steps, table_size = 4, 100, CELLS

    def __init__(self, *beside: Factor):
        self.space = BitSpace([Factor.positions("player", SIDE, SIDE), *beside])
        self.shape = (self.space.size,)
        self.controllable = np.arange(self.space.size) < CELLS

    @abstractmethod
    def start_beside(self, n: int, rng: np.random.Generator) -> Ints:
        """Returns n initial states of the rest, [N, R]."""

    @abstractmethod
    def step_beside(self, rest: Ints, action: Ints, rng: np.random.Generator) -> Ints:
        """Returns its next states, [N, R]."""

    @abstractmethod
    def active_beside(self, rest: Ints) -> Ints:
        """Returns which of its bits are on, [N, L], counted from 0, −1 where none."""

    def start(self, n: int, rng: np.random.Generator) -> Ints:
        return np.concatenate([rng.integers(CELLS, size=(n, 1)), self.start_beside(n, rng)], axis=1)

    def step(self, state: Ints, action: Ints, rng: np.random.Generator) -> tuple[Ints, Bits]:
        rest = self.step_beside(state[:, 1:], action, rng)
        return np.concatenate([_move(state[:, :1], action[:, None]), rest], axis=1), np.zeros(len(state), np.bool_)

    def active(self, state: Ints) -> Ints:
        rest = self.active_beside(state[:, 1:])
        return np.concatenate([state[:, :1], np.where(rest >= 0, rest + CELLS, -1)], axis=1)

    def table_state(self, state: Ints) -> Ints:
        return state[:, 0]


class TimerGrid(Grid):
    """The rest is the time, [N, 1]: the timer shows 1 at the start and its last number at the end."""

    def __init__(self, last: int):
        super().__init__(Factor("timer", tuple(f"timer shows {t}" for t in range(1, last + 1))))
        self.last, self.max_steps = last, last - 1

    def start_beside(self, n: int, rng: np.random.Generator) -> Ints:
        return np.ones((n, 1), np.int64)

    def step_beside(self, rest: Ints, action: Ints, rng: np.random.Generator) -> Ints:
        return np.minimum(rest + 1, self.last)

    def active_beside(self, rest: Ints) -> Ints:
        return rest - 1


class DistractorGrid(Grid):
    """The rest are pixels, [N, 32], drawn anew at every step; the observation is three planes."""

    def __init__(self) -> None:
        super().__init__(*(Factor.positions(f"noise {c}", SIDE, SIDE) for c in range(NOISE_CHANNELS)))
        self.shape = (1 + NOISE_CHANNELS, SIDE, SIDE)

    def start_beside(self, n: int, rng: np.random.Generator) -> Ints:
        return _pixels((n, PIXELS), rng)

    def step_beside(self, rest: Ints, action: Ints, rng: np.random.Generator) -> Ints:
        return _pixels((len(rest), PIXELS), rng)

    def active_beside(self, rest: Ints) -> Ints:
        return _lit(rest)


class TelevisionGrid(Grid):
    """The rest is what the screens show, [N, 8], drawn anew at every step."""

    def __init__(self) -> None:
        super().__init__(*(Factor(f"screen {s}", tuple(f"screen {s} shows {p}" for p in range(PICTURES))) for s in range(SCREENS)))

    def start_beside(self, n: int, rng: np.random.Generator) -> Ints:
        return rng.integers(PICTURES, size=(n, SCREENS))

    def step_beside(self, rest: Ints, action: Ints, rng: np.random.Generator) -> Ints:
        return rng.integers(PICTURES, size=rest.shape)

    def active_beside(self, rest: Ints) -> Ints:
        return rest + PICTURES * np.arange(SCREENS)


class WeatherGrid(Grid):
    """The rest is the weather, 0 sun or 1 rain, and pixels, [N, 1 + 32]."""

    def __init__(self) -> None:
        pixels = (Factor.positions(f"drop {c}", SIDE, SIDE) for c in range(NOISE_CHANNELS))
        super().__init__(Factor("weather", ("sun", "rain")), *pixels)

    def start_beside(self, n: int, rng: np.random.Generator) -> Ints:
        return self._with_pixels(rng.integers(2, size=(n, 1)), rng)

    def step_beside(self, rest: Ints, action: Ints, rng: np.random.Generator) -> Ints:
        weather = rest[:, :1] ^ (rng.random((len(rest), 1)) < CHANGE)
        return self._with_pixels(weather, rng)

    def active_beside(self, rest: Ints) -> Ints:
        drops = _lit(rest[:, 1:])
        return np.concatenate([rest[:, :1], np.where(drops >= 0, drops + 2, -1)], axis=1)

    def _with_pixels(self, weather: Ints, rng: np.random.Generator) -> Ints:
        return np.concatenate([weather, weather * _pixels((len(weather), PIXELS), rng)], axis=1)


class LampGrid(Grid):
    """A fifth action, press, and lamps: the first is lit by it, the other four light up at random.

    The rest is what the first lamp remembers, [N, memory], the last of it 1 if it is lit, and the others, [N, 4].
    """

    num_actions = PRESS + 1

    def __init__(self, memory: int):
        super().__init__(Factor("lamp", ("lamp lit", *(f"flickering lamp {i} lit" for i in range(FLICKERING)))))
        self.controllable = np.arange(self.space.size) <= CELLS
        self.memory = memory

    @abstractmethod
    def step_lamp(self, lamp: Ints, pressed: Ints, rng: np.random.Generator) -> Ints:
        """Returns the first lamp's next states, [N, memory], after presses (1), [N, 1]."""

    def start_beside(self, n: int, rng: np.random.Generator) -> Ints:
        return np.concatenate([np.zeros((n, self.memory), np.int64), _pixels((n, FLICKERING), rng)], axis=1)

    def step_beside(self, rest: Ints, action: Ints, rng: np.random.Generator) -> Ints:
        lamp = self.step_lamp(rest[:, : self.memory], (action == PRESS).astype(np.int64)[:, None], rng)
        return np.concatenate([lamp, _pixels((len(rest), FLICKERING), rng)], axis=1)

    def active_beside(self, rest: Ints) -> Ints:
        return _lit(rest[:, self.memory - 1 :])


class WeakGrid(LampGrid):
    """The lamp is lit for one step, by a press that works."""

    def __init__(self) -> None:
        super().__init__(memory=1)

    def step_lamp(self, lamp: Ints, pressed: Ints, rng: np.random.Generator) -> Ints:
        return pressed * (rng.random(pressed.shape) < WEAK)


class DelayedGrid(LampGrid):
    """The lamp remembers the last four steps: it is lit by a press three steps before the last."""

    table_size = CELLS << DELAY

    def __init__(self) -> None:
        super().__init__(memory=1 + DELAY)

    def step_lamp(self, lamp: Ints, pressed: Ints, rng: np.random.Generator) -> Ints:
        return np.concatenate([pressed, lamp[:, :-1]], axis=1)

    def table_state(self, state: Ints) -> Ints:
        return np.asarray(state[:, 0] << DELAY | state[:, 1 : 1 + DELAY] @ (1 << np.arange(DELAY)))


DOMAINS: dict[str, Callable[[], Dynamics]] = {
    "static": StaticTaxi,
    "timer": lambda: TimerGrid(100),
    "distractor": DistractorGrid,
    "television": TelevisionGrid,
    "weather": WeatherGrid,
    "weak": WeakGrid,
    "delayed": DelayedGrid,
    "long-timer": lambda: TimerGrid(1000),
}


def make_dynamics(name: str) -> Dynamics:
    """The domain of that name."""
    if name not in DOMAINS:
        raise ValueError(f"unknown domain {name!r}; allowed are {', '.join(DOMAINS)}")
    return DOMAINS[name]()


def _move(cell: Ints, action: Ints) -> Ints:
    """Up, down, left, right on the grid; walls hold, and any other action stays."""
    row, column = np.divmod(cell, SIDE)
    row = np.clip(row + (action == 1) - (action == 0), 0, SIDE - 1)
    column = np.clip(column + (action == 3) - (action == 2), 0, SIDE - 1)
    return np.asarray(row * SIDE + column)


def _pixels(shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    """Pixels that are lit (1) or not, at random, [N, P]."""
    return (rng.random(shape) < NOISE).astype(np.int64)


def _lit(pixels: Ints) -> Ints:
    """The places of those that are lit, −1 for the others, [N, P]."""
    return np.where(pixels > 0, np.arange(pixels.shape[1]), -1)


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
