"""What this machine can hold: settings that need more memory than there is are refused before training starts."""

from __future__ import annotations

import os

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
    """Refuses a replay that does not fit, with the capacity that would."""
    needed = replay_bytes(stored_spec(config, env), env.num_bits, env.max_active, core_shape(config), config.replay)
    memory = memory_bytes()
    if memory is not None and needed > SHARE * memory:
        fits = int(config.replay.capacity * SHARE * memory / needed)
        raise ValueError(
            f"replay.capacity = {config.replay.capacity:,} needs {needed / 1e9:.1f} GB, this machine has "
            f"{memory / 1e9:.1f} GB; at most {fits:,} transitions fit"
        )
