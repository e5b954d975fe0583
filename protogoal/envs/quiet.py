"""BabyAI's levels print each draft that they throw away, some in every episode; here nobody hears it.

`user_envs.EnvReference` wraps with it.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import gymnasium


class Quiet(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that prints nothing when it is reset."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        with contextlib.redirect_stdout(io.StringIO()):
            return self.env.reset(seed=seed, options=options)


def quiet(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment, silenced where it is known to talk."""
    return Quiet(env) if type(env.unwrapped).__module__.startswith("minigrid.envs.babyai.") else env
