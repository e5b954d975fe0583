"""The river for the deep agent: many `RiverEnv`s in workers, and the words of their messages as proto-goals.

`BagOfWords` discovers its vocabulary as it reads (paper appendix A, figure 6). A run makes one of these for acting and,
with the same space, one for evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from protogoal.envs.gym_batch import GymBatchEnv
from protogoal.envs.minihack.env import RiverEnv
from protogoal.goals.spaces import BagOfWords, ProtoGoalSpace

MOST_WORDS = 16_384


def word_space(capacity: int = MOST_WORDS) -> BagOfWords:
    """One bit a word of the message, up to `capacity` words.

    A random policy reads 34 without monsters. With them the names of what they carry go past 256 in 1,500 episodes.
    """
    return BagOfWords(capacity, key="message")


def river_batch(scenario: str = "narrow-river", monsters: int = 0, num_envs: int = 32, num_workers: int = 0, *,
                max_steps: int = 350, crop: int = 9, space: ProtoGoalSpace | None = None,
                on_event: Callable[[str], None] | None = None, render_mode: str | None = None) -> GymBatchEnv:
    """N rivers as a `BatchEnv`; `space` defaults to a fresh `word_space()`. `render_mode` is for `picture`."""
    factory = partial(RiverEnv, scenario=scenario, monsters=monsters, max_steps=max_steps, crop=crop, render_mode=render_mode)
    return GymBatchEnv(factory, space or word_space(), num_envs, num_workers, on_event, hidden=("message",))
