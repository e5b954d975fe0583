"""What this machine can hold: settings that need more memory than there is are refused before training starts."""

from __future__ import annotations

import os

from protogoal.agents.agent57.neighbours import BYTES_A_NUMBER
from protogoal.agents.parts import core_shape, stored_spec
from protogoal.config import DeepConfig
from protogoal.deep.replay import replay_bytes
from protogoal.envs.vector import BatchEnv

SHARE = 0.9  # of the memory, which replay may take


def memory_bytes() -> int | None:
    """Physical memory, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(config: DeepConfig, env: BatchEnv) -> None:
    """Refuses a replay, or Agent57's memories, that do not fit, with the capacity that would."""
    needed = replay_bytes(stored_spec(config, env), env.num_bits, env.max_active, core_shape(config), config.replay)
    memory = memory_bytes()
    if memory is not None and needed > SHARE * memory:
        fits = int(config.replay.capacity * SHARE * memory / needed)
        raise ValueError(
            f"replay.capacity = {config.replay.capacity:,} needs {needed / 1e9:.1f} GB, this machine has "
            f"{memory / 1e9:.1f} GB; at most {fits:,} transitions fit"
        )
    if config.agent == "agent57" and memory is not None:
        state = env.num_envs * config.agent57.embedding_size * BYTES_A_NUMBER  # one of each environment
        fits = int((SHARE * memory - needed) / state)
        if config.agent57.memory_capacity > fits:
            raise ValueError(
                f"agent57.memory_capacity = {config.agent57.memory_capacity:,} needs "
                f"{config.agent57.memory_capacity * state / 1e9:.1f} GB, this machine has {memory / 1e9:.1f} GB; "
                f"at most {fits:,} states fit beside replay"
            )
