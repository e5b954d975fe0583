"""What this machine can hold: settings that need more memory than there is are refused before training starts."""

from __future__ import annotations

import os

from protogoal import registry
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
    """Refuses a replay, or another memory of the agent's, that does not fit, with the size that would."""
    memory = memory_bytes()
    if memory is None:
        return
    agent = registry.agent(config.agent)
    stored = agent.stored_spec(config, env), env.num_bits, env.max_active, agent.core_shape(config)
    taken = 0.0
    for name, needed in {"replay.capacity": replay_bytes(*stored, config.replay), **agent.memory_bytes(config)}.items():
        section, _, field = name.partition(".")
        size = getattr(getattr(config, section), field)
        if needed > SHARE * memory - taken:
            raise ValueError(f"{name} = {size:,} needs {needed / 1e9:.1f} GB, this machine has {memory / 1e9:.1f} GB; "
                             f"at most {max(0, int(size * (SHARE * memory - taken) / needed)):,} fit")
        taken += needed
