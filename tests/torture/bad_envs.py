"""Environments as they are written at night: each kind is a corridor with one thing wrong.

Named on the command line as `bad_envs:KIND`; `bad_envs:cells` are the proto-goals of all of them. `SAID` has, for each kind that a
run must refuse or survive, the words it must be told with; see test_bad_environments.py.
"""

import os
import time
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal import BagOfWords, Factor, OneHotFactors

CELLS = 6
KINDS = {}


def kind(cls):
    """Registers a class by its name in snake_case."""
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
    KINDS[name] = cls
    return cls


def __getattr__(name):
    if name in KINDS:
        return KINDS[name]
    if name in SPACES:
        return SPACES[name]
    raise AttributeError(name)


def cells(env):
    return OneHotFactors([Factor("cell", tuple(f"cell {i}" for i in range(CELLS)))], key=getattr(env, "key", None))


def mark():
    """Says that the trouble has begun."""
    if "BAD_ENVS_MARK" in os.environ:
        Path(os.environ["BAD_ENVS_MARK"]).touch()


@kind
class Corridor(gymnasium.Env):
    """Nothing wrong with it: left and right; reward 1 at the right end, 20 steps."""

    observation_space = spaces.MultiDiscrete([CELLS])
    action_space = spaces.Discrete(2)
    bad_after = 30  # steps of this environment

    def __init__(self):
        self.made = 0

    def seen(self):
        return np.array([self.place])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 0, 0
        return self.seen(), {}

    def step(self, action):
        self.made += 1
        self.place = int(np.clip(self.place + (1 if action else -1), 0, CELLS - 1))
        self.time += 1
        won = self.place == CELLS - 1
        return self.seen(), float(won), won, self.time >= 20 and not won, {}

    @property
    def is_bad(self):
        return self.made >= self.bad_after


@kind
class NeverEnds(Corridor):
    def step(self, action):
        mark()
        return super().step(action)[0], 0.0, False, False, {}


@kind
class EndsSometimes(Corridor):
    def step(self, action):
        return super().step(action)[0], 0.0, bool(self.np_random.random() < 0.05), False, {}


@kind
class Hangs(Corridor):
    def step(self, action):
        while self.is_bad:
            mark()
            time.sleep(0.05)
        return super().step(action)


@kind
class HangsDeaf(Corridor):
    def step(self, action):
        while self.is_bad:
            try:
                mark()
                time.sleep(0.05)
            except KeyboardInterrupt:
                pass
        return super().step(action)


# --- what raises ------------------------------------------------------------------------------------------------------------


def raising(name, error, said):
    """An environment whose step raises."""
    def step(self, action):
        if self.is_bad:
            raise error
        return Corridor.step(self, action)

    KINDS[name] = type(name, (Corridor,), {"step": step})
    SAID[name] = rf"environment \d \(seed \d+, step \d+\) raised {said}"


SAID = {}
raising("raises_runtime_error", RuntimeError("the maze fell down"), "RuntimeError: the maze fell down")
raising("raises_value_error", ValueError("no such door"), "ValueError: no such door")
raising("raises_key_error", KeyError("door"), "KeyError: 'door'")
raising("raises_os_error", FileNotFoundError(2, "No such file", "maze.txt"), "FileNotFoundError: .*maze.txt")
raising("raises_assertion", AssertionError(), "AssertionError")
raising("raises_stop_iteration", StopIteration(), "StopIteration")
raising("raises_zero_division", ZeroDivisionError("division by zero"), "ZeroDivisionError")
raising("raises_memory_error", MemoryError(), "MemoryError")
raising("raises_recursion_error", RecursionError("too deep"), "RecursionError")
raising("raises_unicode_error", UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "UnicodeDecodeError")
raising("raises_many_lines", RuntimeError("one\ntwo\nthree"), "RuntimeError: one two three")
raising("leaves_python", SystemExit(3), "SystemExit: 3")
raising("raises_what_is_no_exception", type("Panic", (BaseException,), {})("index out of bounds"), ".*Panic: index")
raising("raises_without_words", type("Odd", (Exception,), {"__str__": lambda self: 1 / 0})(), ".*Odd: ")
raising("raises_without_end", RuntimeError("x" * 10**7), "RuntimeError: x{1000,3000}\n")


def bad(said):
    """A kind that must be refused with these words."""
    def register(cls):
        kind(cls)
        SAID[next(reversed(KINDS))] = said
        return cls
    return register


@bad(r"raises_when_made raised RuntimeError: no maze today")
class RaisesWhenMade(Corridor):
    def __init__(self):
        raise RuntimeError("no maze today")


@bad(r"environment 0 \(seed \d+, reset\) raised RuntimeError: no start")
class RaisesInReset(Corridor):
    def reset(self, *, seed=None, options=None):
        raise RuntimeError("no start")


@bad(r"environment \d \(seed \d+, reset\) raised RuntimeError: once is enough")
class RaisesInTheSecondReset(Corridor):
    def reset(self, *, seed=None, options=None):
        if self.made:
            raise RuntimeError("once is enough")
        return super().reset(seed=seed)


@bad(r"\(seed \d+, reset\) raised TypeError: .*unexpected keyword argument 'seed'")
class TakesNoSeed(Corridor):
    def reset(self):
        return super().reset()


@bad(r"gave 4 values; reset must give \(observation, info\), step \(observation, reward, terminated, truncated, info\)")
class OldStep(Corridor):
    def step(self, action):
        seen, reward, won, over, info = super().step(action)
        return seen, reward, won or over, info


@bad(r"\(seed \d+, reset\) gave a ndarray when it was reset; it must give \(observation, info\)")
class OldReset(Corridor):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


@bad("is a .*; it must give a gymnasium.Env|gave a Namespace; it must give a gymnasium.Env")
class Namespace:
    pass


# --- rewards ----------------------------------------------------------------------------------------------------------------


def rewarding(name, reward, said):
    def step(self, action):
        seen, _, won, over, info = Corridor.step(self, action)
        return seen, reward if self.is_bad else 0.0, won, over, info

    KINDS[name] = type(name, (Corridor,), {"step": step})
    if said:
        SAID[name] = said


rewarding("reward_nan", float("nan"), r"environment \d \(seed \d+, step \d+\) gave the reward nan; rewards must be finite")
rewarding("reward_infinite", float("inf"), "gave the reward inf")
rewarding("reward_minus_infinite", -np.inf, "gave the reward -inf")
rewarding("reward_beyond_float32", 1e300, "gave the reward inf")
rewarding("reward_none", None, r"environment \d \(seed \d+, step \d+\) gave the reward None; it must be one number")
rewarding("reward_text", "one", "gave the reward 'one'; it must be one number")
rewarding("reward_complex", 1j, "gave the reward 1j; it must be one number|raised ComplexWarning")
rewarding("reward_list", [1.0, 2.0], r"gave the reward \[1.0, 2.0\]; it must be one number")
rewarding("reward_too_large", 10**400, "gave the reward 1000+; it must be one number")
rewarding("reward_huge", 1e9, None)
rewarding("reward_integer", 1, None)
rewarding("reward_numpy", np.float64(0.5), None)


# --- observations -----------------------------------------------------------------------------------------------------------


def observing(name, value, said, space=None):
    """Observes `value` after a while; said None: that is as good as what was declared."""
    declared = space if space is not None else Corridor.observation_space

    def seen(self):
        good = declared.sample() if space is not None else np.array([self.place])
        return value if self.is_bad else good

    KINDS[name] = type(name, (Corridor,), {"seen": seen, "observation_space": declared, "needs_any_cells": space is not None})
    if said:
        SAID[name] = rf"environment \d \(seed \d+, step \d+\) observed {said}"


VECTOR = spaces.Box(-1.0, 1.0, (4,), np.float32)
PLANES = spaces.Box(0, 1, (2, 3, 3), np.uint8)
MAP = spaces.Box(0, 99, (3, 4), np.int16)
PARTS = spaces.Dict({"place": spaces.Discrete(6), "words": spaces.Text(5)})
observing("cell_beyond", np.array([6]), r"6 in 'observation'; its space allows 0…5")
observing("cell_below", np.array([-5]), r"-5 in 'observation'; its space allows 0…5")
observing("discrete_beyond", 8, r"8 in 'observation'; its space allows 0…7", spaces.Discrete(8))
observing("discrete_below", -5, r"-5 in 'observation'; its space allows 0…7", spaces.Discrete(8))
observing("discrete_shifted", 9, r"9 in 'observation'; its space allows 10…12", spaces.Discrete(3, start=10))
observing("discrete_far_beyond", 2**70, r"'observation' as int, declared is int64|.* in 'observation'", spaces.Discrete(8))
observing("discrete_fraction", 0.5, "0.5 in 'observation', declared is int64", spaces.Discrete(8))
observing("discrete_of_wrong_shape", np.array([1, 2]), r"'observation' of shape \(2,\), declared is \(\)", spaces.Discrete(8))
observing("planes_300", np.full((2, 3, 3), 300), "300 in 'observation', declared is uint8", PLANES)
observing("planes_2", np.full((2, 3, 3), 2, np.uint8), "2 in 'observation'; its space allows 0…1", PLANES)
observing("planes_minus_1", np.full((2, 3, 3), -1), "-1 in 'observation', declared is uint8", PLANES)
observing("map_beyond", np.full((3, 4), 100, np.int16), "100 in 'observation'; its space allows 0…99", MAP)
observing("map_turned", np.zeros((4, 3), np.int16), r"'observation' of shape \(4, 3\), declared is \(3, 4\)", MAP)
observing("scalar_for_a_vector", 0.5, r"'observation' of shape \(\), declared is \(4,\)", VECTOR)
observing("vector_too_long", np.zeros(5, np.float32), r"'observation' of shape \(5,\), declared is \(4,\)", VECTOR)
observing("vector_ragged", [[1.0], 2.0], "'observation' as lists of different lengths", VECTOR)
observing("vector_of_text", np.array(["a", "b", "c", "d"]), "'observation' as ndarray, declared is float32", VECTOR)
observing("vector_of_objects", np.array([None] * 4), "'observation' as ndarray, declared is float32", VECTOR)
observing("nothing_at_all", None, "'observation' as NoneType, declared is float32", VECTOR)
observing("a_dict_for_a_vector", {"x": 1}, "'observation' as dict, declared is float32", VECTOR)
observing("a_part_missing", {"place": 1}, "a dict without 'words'", PARTS)
observing("an_array_for_a_dict", np.zeros(3), "a ndarray without 'place'", PARTS)
observing("bytes_for_text", {"place": 1, "words": b"ab"}, "'words' as bytes, declared is text", PARTS)
observing("binary_2", np.array([0, 1, 2], np.int8), "2 in 'observation'; its space allows 0…1", spaces.MultiBinary(3))
# as good as declared
observing("float64_for_float32", np.zeros(4), None, VECTOR)
observing("float_that_is_whole", 3.0, None, spaces.Discrete(8))
observing("another_whole_type", np.zeros((3, 4), np.int64), None, MAP)
observing("big_endian", np.zeros((3, 4), ">i2"), None, MAP)
observing("a_list", [0.0, 0.5, 1.0, -1.0], None, VECTOR)
observing("not_contiguous", np.zeros((4, 3), np.int16).T, None, MAP)
observing("an_extra_part", {"place": 1, "words": "ab", "more": 3}, None, PARTS)
observing("text_too_long", {"place": 1, "words": "abcdefgh"}, None, PARTS)
observing("text_of_surrogates", {"place": 1, "words": "\ud800"}, None, PARTS)
observing("vector_beyond_its_bounds", np.full(4, 7.0, np.float32), None, VECTOR)

KINDS["vector_nan"] = type("vector_nan", (Corridor,), {
    "observation_space": VECTOR, "needs_any_cells": True,
    "seen": lambda self: np.full(4, np.nan if self.is_bad else 0.0, np.float32)})
SAID["vector_nan"] = r"environment \d \(seed \d+, step \d+\) observed a number in 'observation' that is not finite"


# --- ends -------------------------------------------------------------------------------------------------------------------


def ending(name, value, said):
    """Gives `value` as terminated after a while; said None: that is as good as true or false."""
    KINDS[name] = type(name, (Corridor,), {
        "step": lambda self, action: (*Corridor.step(self, action)[:2], value if self.is_bad else False, False, {})})
    if said:
        SAID[name] = rf"environment \d \(seed \d+, step \d+\) gave terminated {said}; it must be true or false"


ending("end_in_words", "False", "'False'")
ending("end_of_nothing", None, "None")
ending("end_nan", float("nan"), "nan")
ending("ends_of_two", np.array([True, False]), r"array\(\[ True, False\]\)")
ending("end_of_7", 7, "7")
ending("end_of_0", 0, None)
ending("end_without_axes", np.array(True), None)


# --- spaces -----------------------------------------------------------------------------------------------------------------


def declaring(name, said, **declared):
    KINDS[name] = type(name, (Corridor,), declared)
    SAID[name] = said


declaring("actions_continuous", "the action space must be Discrete", action_space=spaces.Box(-1, 1, (1,)))
declaring("actions_many_at_once", "the action space must be Discrete", action_space=spaces.MultiDiscrete([200, 200]))
declaring("actions_too_many", "the environment has 40,000 actions; at most 32,767", action_space=spaces.Discrete(40_000))
declaring("observes_a_graph", "nothing of the observation can be read: observation is Graph, which is none of Box",
          observation_space=spaces.Graph(spaces.Discrete(2), None))
declaring("observes_what_is_called_info", "no part of an observation may be called '#info'",
          observation_space=spaces.Dict({"#info": spaces.Discrete(2)}))
declaring("observes_too_much", "has 40,000 numbers", observation_space=spaces.Box(-1, 1, (200, 200), np.float32),
          needs_any_cells=True, seen=lambda self: np.zeros((200, 200), np.float32))


@bad(r"raised AssertionError: action 1 is gone")
class ActionsThatVanish(Corridor):
    def step(self, action):
        if self.is_bad:
            self.action_space = spaces.Discrete(1)
        assert action < self.action_space.n, f"action {action} is gone"
        return super().step(action)


# --- the rest: a run goes on ------------------------------------------------------------------------------------------------


@kind
class EndsBothWays(Corridor):
    def step(self, action):
        return *super().step(action)[:2], True, True, {}


@kind
class EndsWithNumpy(Corridor):
    def step(self, action):
        seen, reward, won, over, info = super().step(action)
        return seen, reward, np.bool_(won), np.bool_(over), info


@kind
class GivesItsOwnArray(Corridor):
    def reset(self, *, seed=None, options=None):
        self.array = np.zeros(1, np.int64)
        return super().reset(seed=seed)

    def seen(self):
        self.array[0] = self.place  # the same array at every step
        return self.array


@kind
class GivesReadOnlyArrays(Corridor):
    def seen(self):
        array = np.array([self.place])
        array.flags.writeable = False
        return array


@kind
class RaisesWhenClosed(Corridor):
    def close(self):
        raise RuntimeError("closed twice")


@kind
class GoesElsewhere(Corridor):
    def step(self, action):
        os.chdir("/")
        return super().step(action)


@kind
class SeedsEverything(Corridor):
    def step(self, action):
        np.random.seed(0)  # noqa: NPY002
        return super().step(action)


@kind
class Leaks(Corridor):
    kept: list = []  # noqa: RUF012

    def step(self, action):
        self.kept.append(bytearray(10_000))
        return super().step(action)


@kind
class NotDeterministic(Corridor):
    observation_space = spaces.MultiDiscrete([CELLS, 65_536])
    needs_any_cells = True

    def reset(self, *, seed=None, options=None):
        self.weather = int.from_bytes(os.urandom(2), "big")
        return super().reset(seed=seed)

    def seen(self):
        return np.array([self.place, self.weather])


# --- proto-goals that are wrong ---------------------------------------------------------------------------------------------


class Cells(OneHotFactors):
    """Cells of anything: the first number of an observation, or none."""

    def __init__(self, change=lambda bits: bits):
        super().__init__([Factor("cell", tuple(f"cell {i}" for i in range(CELLS)))])
        self.change, self.calls = change, 0

    def _bits(self, s, a, s_next):
        self.calls += 1
        n = len(next(iter(s_next.values()))) if isinstance(s_next, dict) else len(s_next)
        bits = np.zeros((n, CELLS), bool)
        bits[:, self.calls % CELLS] = True
        return self.change(bits) if self.calls > 20 else bits


class Ids(Cells):
    """The same in ids."""

    def _active(self, s, a, s_next):
        return super()._active(s, a, s_next) if self.calls < 20 else self.change(self)


def _grow(space):
    space.size += 1
    return np.zeros((2, 1), int)


def _fail(bits):
    raise IndexError("no such cell")


SPACES = {
    "any_cells": lambda env: Cells(),
    "bits_too_wide": lambda env: Cells(lambda bits: np.zeros((len(bits), CELLS + 1), bool)),
    "bits_of_numbers": lambda env: Cells(lambda bits: bits.astype(float)),
    "bits_of_one": lambda env: Cells(lambda bits: bits[0]),
    "bits_none": lambda env: Cells(lambda bits: None),
    "bits_raise": lambda env: Cells(_fail),
    "ids_beyond": lambda env: Ids(lambda space: [[0, CELLS]] * 2),
    "ids_twice": lambda env: Ids(lambda space: [[3, 3]] * 2),
    "ids_unsorted": lambda env: Ids(lambda space: [[0, 1], [3, 1]]),
    "ids_of_one": lambda env: Ids(lambda space: [[3]]),
    "ids_none": lambda env: Ids(lambda space: None),
    "another_size": lambda env: Ids(_grow),
    "no_bits": lambda env: OneHotFactors([]),
    "too_many_bits": lambda env: BagOfWords(10**8),
    "space_raises": lambda env: 1 // 0,
    "space_of_another_kind": lambda env: 3,
}
SPACES_SAID = {
    "bits_too_wide": r"the proto-goal space gave bool bits of shape \(2, 7\); it must give bool \[N, 6\]",
    "bits_of_numbers": "the proto-goal space gave float64 bits",
    "bits_of_one": r"the proto-goal space gave bool bits of shape \(6,\)",
    "bits_none": "the proto-goal space gave object bits",
    "bits_raise": "the proto-goal space raised IndexError: no such cell",
    "ids_beyond": "the proto-goal space gave the id 6; allowed are 0…5",
    "ids_twice": "the proto-goal space gave the id 3 twice; ids must ascend",
    "ids_unsorted": "the proto-goal space gave the id 1 after 3; ids must ascend",
    "ids_of_one": "the proto-goal space gave 1 rows for 2 transitions",
    "ids_none": "the proto-goal space gave object ids",
    "another_size": "the proto-goal space has 7 bits now, it had 6",
    "no_bits": "a proto-goal space has 0 bits; allowed are 1…10,000,000",
    "too_many_bits": "a proto-goal space has 100,000,000 bits; allowed are 1…10,000,000",
    "space_raises": "bad_envs:space_raises raised ZeroDivisionError",
    "space_of_another_kind": "gave a int; it must give a ProtoGoalSpace",
}


# --- what takes its process with it: only in workers --------------------------------------------------------------------------


@kind
class KilledForMemory(Corridor):
    def step(self, action):
        if self.is_bad:
            os.kill(os.getpid(), 9)
        return super().step(action)


@kind
class LeavesAtOnce(Corridor):
    def step(self, action):
        if self.is_bad:
            os._exit(7)
        return super().step(action)
