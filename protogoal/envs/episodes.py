"""A group of Gymnasium environments that writes its transitions into arrays, with same-step resets and replayable episodes.

Each episode has a seed of its own, made of the batch's seed, the environment's number and the episode's number. So the
episodes do not depend on how environments are spread over processes, and an episode under way is known by its number
and the actions taken: that is how `workers.WorkerPool`, the caller, goes on after a resume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal.envs.failure import close, failure
from protogoal.envs.observed import MOST_ACTIONS, EnvironmentFailure, fitting, part_of, started
from protogoal.envs.pictures import drawn, draws
from protogoal.envs.success import told

EnvFactory = Callable[[], gymnasium.Env]
WHOLE = "observation"
"""The name of an observation that is not a dictionary."""


def parts_of(space: spaces.Space) -> dict[str, Any]:
    """The parts of an observation by name."""
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {WHOLE: space}


def episode_seed(seed: int, env: int, episode: int) -> int:
    """The seed of one episode, 32 bits."""
    return int(np.random.SeedSequence((seed, env, episode)).generate_state(1)[0])


@dataclass(frozen=True)
class Layout:
    """Name → (shape, dtype) of every array that environments and their batch share, with the batch axis in front."""

    arrays: Mapping[str, tuple[tuple[int, ...], np.dtype]]
    parts: tuple[str, ...]  # of an observation
    texts: tuple[str, ...]  # those of them that are text: latin-1 bytes, padded with zeros
    is_dict: bool
    first_action: int  # of the Discrete action space
    num_actions: int

    @staticmethod
    def of(env: gymnasium.Env, num_envs: int) -> Layout:
        """Reads an environment's spaces; refuses what cannot be kept in arrays."""
        if not isinstance(env.action_space, spaces.Discrete):
            raise ValueError(f"the action space must be Discrete; got {env.action_space}")
        if env.action_space.n > MOST_ACTIONS:
            raise ValueError(f"the environment has {env.action_space.n:,} actions; at most {MOST_ACTIONS:,} are possible")
        whole = env.observation_space
        arrays: dict[str, tuple[tuple[int, ...], np.dtype]] = {
            "action": ((num_envs,), np.dtype(np.int64)),
            "seed": ((1,), np.dtype(np.uint64)),
            "episode": ((num_envs,), np.dtype(np.int64)),
            "length": ((num_envs,), np.dtype(np.int64)),
            "reward": ((num_envs,), np.dtype(np.float32)),
            "terminated": ((num_envs,), np.dtype(np.bool_)),
            "truncated": ((num_envs,), np.dtype(np.bool_)),
            "success": ((num_envs,), np.dtype(np.int8)),
        }
        texts = []
        named = parts_of(whole)
        for name, part in named.items():
            shape: tuple[int, ...]
            dtype: np.dtype
            if isinstance(part, spaces.Text):
                texts.append(name)
                shape, dtype = (part.max_length,), np.dtype(np.uint8)
            elif isinstance(part, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
                shape, dtype = tuple(part.shape or ()), np.dtype(part.dtype)  # type: ignore[arg-type]
            else:
                raise ValueError(f"observation part {name!r} is {type(part).__name__}; allowed are Box, Discrete, "
                                 "MultiDiscrete, MultiBinary and Text, alone or in one Dict")
            for role in ("now", "final"):
                arrays[f"{role}/{name}"] = ((num_envs, *shape), dtype)
        return Layout(arrays, tuple(named), tuple(texts), isinstance(whole, spaces.Dict), int(env.action_space.start),
                      int(env.action_space.n))

    @property
    def nbytes(self) -> int:
        return sum(_padded(shape, dtype) for shape, dtype in self.arrays.values())

    def views(self, buffer: Any) -> dict[str, np.ndarray]:
        """The arrays, side by side in one buffer of `nbytes`."""
        views, offset = {}, 0
        for name, (shape, dtype) in self.arrays.items():
            views[name] = np.frombuffer(buffer, dtype, count=int(np.prod(shape)), offset=offset).reshape(shape)
            offset += _padded(shape, dtype)
        return views


def _padded(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Bytes of an array, rounded up to whole cache lines: two processes then never write to the same one."""
    return -(-int(np.prod(shape)) * dtype.itemsize // 64) * 64


class EnvGroup:
    """Environments `first` … `first + count − 1` of a batch. Reads actions from the batch's arrays, writes the rest."""

    def __init__(self, factory: EnvFactory, first: int, count: int, layout: Layout, arrays: Mapping[str, np.ndarray]):
        self._first = first
        self._layout = layout
        self._arrays = arrays
        self._envs: list[gymnasium.Env] = []
        self._last_picture: dict[int, Any] = {}  # of episodes that ended in the last step
        self._declared = {name: (arrays[f"now/{name}"].shape[1:], arrays[f"now/{name}"].dtype) for name in layout.parts}
        try:
            for _ in range(count):
                self._envs.append(factory())
        except BaseException:
            self.close()
            raise

    def reset(self) -> None:
        """Starts in every environment the episode that `episode` names."""
        for k, env in enumerate(self._envs, self._first):
            self._write("now", k, self._start(k, env))

    def _who(self, k: int, doing: str) -> str:
        seed = episode_seed(int(self._arrays["seed"][0]), k, int(self._arrays["episode"][k]))
        return f"environment {k} (seed {seed}, {doing})"

    def step(self) -> None:
        """One transition in every environment; an episode that ends is followed by the next one's start."""
        arrays, offset = self._arrays, self._layout.first_action
        self._last_picture.clear()
        actions = arrays["action"][self._first:self._first + len(self._envs)].tolist()
        for k, (env, action) in enumerate(zip(self._envs, actions, strict=True), self._first):
            try:
                observation, reward, terminated, truncated, info = env.step(action + offset)
                self._pay(k, reward)
                if type(terminated) is not bool or type(truncated) is not bool:
                    self._check_end(k, terminated=terminated, truncated=truncated)
                arrays["terminated"][k] = bool(terminated)
                arrays["truncated"][k] = truncated and not terminated
                arrays["success"][k] = told(info)
            except BaseException as error:
                raise failure(error, self._who(k, f"step {arrays['length'][k] + 1}")) from error
            if terminated or truncated:
                self._write("final", k, observation)
                if draws(env):
                    self._last_picture[k] = drawn(env)
                arrays["episode"][k] += 1
                observation = self._start(k, env)
            self._write("now", k, observation)

    def replay(self, actions: np.ndarray) -> None:
        """Starts every environment's episode and repeats its actions, int [count, T] (the first `length` of each).

        Where the episode ends on the way the environment is not deterministic: then a fresh episode starts, length 0.
        """
        for k, (env, taken) in enumerate(zip(self._envs, actions.tolist(), strict=True), self._first):
            observation = self._start(k, env)
            for t, action in enumerate(taken[:self._arrays["length"][k]], 1):
                try:
                    observation, _, terminated, truncated, _ = env.step(action + self._layout.first_action)
                except BaseException as error:
                    raise failure(error, self._who(k, f"step {t}, repeated")) from error
                if terminated or truncated:
                    self._arrays["episode"][k] += 1
                    self._arrays["length"][k] = 0
                    observation = self._start(k, env)
                    break
            self._write("now", k, observation)

    def picture(self, k: int) -> Any:
        """What environment k draws of the state its last transition led to, also when that ended the episode."""
        return self._last_picture[k] if k in self._last_picture else drawn(self._envs[k - self._first])

    def close(self) -> None:
        for env in self._envs:
            close(env)
        self._envs = []

    def _start(self, k: int, env: gymnasium.Env) -> Any:
        seed = episode_seed(int(self._arrays["seed"][0]), k, int(self._arrays["episode"][k]))
        try:
            return started(env.reset(seed=seed), lambda: self._who(k, "reset"))
        except BaseException as error:
            raise failure(error, self._who(k, "reset")) from error

    def _write(self, role: str, k: int, observation: Any) -> None:
        layout = self._layout
        for name, (shape, dtype) in self._declared.items():
            part = part_of(observation, name, layout.is_dict, lambda: self._who_now(k))
            target = self._arrays[f"{role}/{name}"]
            if name not in layout.texts:
                if type(part) is not np.ndarray or part.dtype != dtype or part.shape != shape:
                    part = fitting(part, name, shape, dtype, lambda: self._who_now(k))
                target[k] = part
            elif not isinstance(part, str):
                raise EnvironmentFailure(f"{self._who_now(k)} observed {name!r} as {type(part).__name__}, declared is text")
            elif part or target[k, 0]:
                text = part.encode("latin-1", "replace")[:target.shape[1]]
                target[k] = 0
                target[k, :len(text)] = np.frombuffer(text, np.uint8)

    def _pay(self, k: int, reward: Any) -> None:
        try:
            if reward is None:  # NumPy would write NaN
                raise TypeError
            self._arrays["reward"][k] = reward.item() if isinstance(reward, np.ndarray) else reward  # an array of one number
        except (TypeError, ValueError, OverflowError):
            shown = " ".join(repr(reward).split())
            raise EnvironmentFailure(f"{self._who_now(k)} gave the reward {shown:.80}; it must be one number") from None

    def _check_end(self, k: int, **said: Any) -> None:
        for name, value in said.items():
            if np.size(value) != 1 or np.asarray(value).item() not in (0, 1):  # an array of one is as good
                raise EnvironmentFailure(f"{self._who_now(k)} gave {name} {value!r:.80}; it must be true or false")

    def _who_now(self, k: int) -> str:
        return self._who(k, f"step {self._arrays['length'][k] + 1}")
