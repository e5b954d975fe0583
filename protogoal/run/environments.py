"""From settings to a batch of environments, with the proto-goal space that belongs to it.

The only place that knows which domain has which class; agents see `BatchEnv` alone. Heavy packages are imported when
their domain is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.config import BabaSettings, DeepSeaSettings, OwnSettings, RiverSettings
from protogoal.envs.vector import BatchEnv
from protogoal.envs.views import ActiveView
from protogoal.goals.spaces import ProtoGoalSpace


def make_batch_env(
    settings: BabaSettings | RiverSettings | OwnSettings | DeepSeaSettings,
    num_envs: int,
    space: ProtoGoalSpace | None = None,
    on_event: Callable[[str], None] | None = None,
    render_mode: str | None = None,
) -> tuple[BatchEnv, ProtoGoalSpace]:
    """N environments and their proto-goal space. `space`: one to share (a vocabulary, with the environments that act).

    With `render_mode`, environments are made that `picture` can draw.
    """
    if isinstance(settings, BabaSettings):
        from protogoal.envs.baba.batch import BabaBatch

        baba = BabaBatch(settings.level, num_envs, settings.max_steps)
        return (ActiveView(baba) if settings.observation == "active" else baba), baba.space
    if isinstance(settings, RiverSettings):
        from protogoal.envs.minihack.batch import river_batch, word_space
        from protogoal.envs.minihack.egocentric import EgocentricView

        words = space or word_space(settings.vocabulary)
        river = river_batch(
            settings.scenario,
            settings.monsters,
            num_envs,
            0 if render_mode else settings.workers,
            max_steps=settings.max_steps,
            crop=settings.crop,
            space=words,
            on_event=on_event,
            render_mode=render_mode,
        )
        return (EgocentricView(river, settings.reach) if settings.observation == "around" else river), words
    if isinstance(settings, DeepSeaSettings):
        from protogoal.envs.deep_sea import DeepSea

        sea = DeepSea(settings.size, num_envs, settings.layout)
        return sea, sea.space
    if isinstance(settings, OwnSettings):
        from protogoal.envs.own import own_batch

        workers = 0 if render_mode else settings.workers
        most = settings.max_active or None
        own = own_batch(settings.factory, settings.space, num_envs, workers, most, space, on_event, render_mode)
        return (ActiveView(own) if settings.observation == "bits" else own), own.space
    raise ValueError(f"no environment is made from {type(settings).__name__}; allowed are BabaSettings, RiverSettings, "
                     "OwnSettings, DeepSeaSettings")


def picture(env: BatchEnv, at_start: bool = False) -> NDArray[np.uint8]:
    """The state that the first environment's last transition led to (`at_start`: that it begins in), [height, width, 3]."""
    inner: Any = env
    while hasattr(inner, "env"):  # views of another batch
        inner = inner.env
    if hasattr(inner, "final_planes"):  # Baba
        from protogoal.envs.baba import render

        return render.frame(inner.level, render.things_in(inner.level, (inner.planes if at_start else inner.final_planes)[0]))
    drawn = inner.picture(0) if hasattr(inner, "picture") else None
    if drawn is None:
        raise ValueError(f"{type(inner).__name__} draws no pictures")
    return np.asarray(drawn, np.uint8)
