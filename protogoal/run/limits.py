"""What this machine can hold: a run that needs more memory than there is is refused before training starts, with what to change.

    program     Python with its libraries
    replay      full, with room for as many bits as are on at first
    networks    weights of every row: the learner's, the target, the mean, the actor's; gradients; two moments
    goals       a row of the goal table for every bit, and for every AND-goal that may come
    trials      a row of sums for every bit that turns on; half of those declared are taken to
    workers     processes that step environments

`check_memory` adds them up, `check_cluster` for the processes of `run.ray`; `widest_lists` says how many bits on at once replay may
keep in what is left.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from protogoal import registry
from protogoal.agents.blueprint import Spaces
from protogoal.config import DeepConfig
from protogoal.deep.replay import replay_bytes
from protogoal.goals.evaluator import evaluator_bytes
from protogoal.settings import with_fields

SHARE = 0.9  # of the memory, which a run may take
PROGRAM = 400_000_000  # bytes of a process that learns
ROLE = 250_000_000  # bytes of a process of Ray's, beside what it is for
WORKER = 120_000_000  # bytes of a process that steps environments
COPIES = 7  # of every weight
LEARNED = 6  # of them in the process that learns
SHOWN = 3  # parts that a refusal names


@dataclass(frozen=True)
class Part:
    """Memory that one part of a run takes, and the setting by which it becomes less ("" where there is none)."""

    name: str
    size: int  # bytes
    setting: str = ""
    times: int = 1  # processes that take as much each

    def words(self, config: DeepConfig) -> str:
        section, _, field = self.setting.partition(".")
        value = getattr(getattr(config, section), field) if field else None
        times = f"{self.times} × " if self.times > 1 else ""
        return f"{self.name} {times}{_gb(self.size)}" + (f" ({self.setting} = {value:,})" if field else "")


def memory_bytes() -> int | None:
    """Physical memory, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def memory_parts(config: DeepConfig, env: Spaces) -> list[Part]:
    """What a run on one machine takes, part by part."""
    agent = registry.agent(config.agent)
    goals = evaluator_bytes(env.num_bits, env.num_actions, config.pge) if agent.sets_goals else {}
    own = [Part(name, size, name) for name, size in agent.memory_bytes(config).items()]
    workers = int(getattr(config.env, "workers", 0))
    return [
        Part("program", PROGRAM),
        Part("replay", replay_bytes(agent.stored(config, env), config.replay), "replay.capacity"),
        Part("networks", 4 * COPIES * _parameters(config, env), "network.goal_slots"),
        *(Part(name, size, "pge.max_goals" if name == "goals" and config.pge.max_goals > env.num_bits else "")
          for name, size in goals.items()),
        Part("workers", workers * WORKER, "env.workers" if workers else ""),
        *own,
    ]


def role_parts(config: DeepConfig, env: Spaces) -> list[Part]:
    """What each process of a run on Ray takes; environments are stepped in the workers themselves."""
    size = {part.name: part.size for part in memory_parts(config, env)}
    network, workers, shards = size["networks"] // COPIES, config.ray.workers, config.ray.shards
    own = sum(registry.agent(config.agent).memory_bytes(config).values())
    return [
        Part("replay shard", ROLE + size["replay"] // shards, "replay.capacity", shards),
        Part("learner", ROLE + LEARNED * network, "network.goal_slots"),
        Part("proto-goal evaluator", ROLE + size.get("goals", 0) + size.get("trials", 0)),
        Part("player", ROLE + network),
        Part("worker", ROLE + network + own // workers, "", workers),
    ]


def check_cluster(config: DeepConfig, env: Spaces, machines: Sequence[float]) -> None:
    """Refuses a run on Ray of which one process fits no machine, or all of them not the machines together (bytes each)."""
    parts = sorted(role_parts(config, env), key=lambda part: -part.size * part.times)
    role = max(parts, key=lambda part: part.size)
    most = max(machines, default=0.0)
    if role.size > SHARE * most:
        advice = "; use more ray.shards, or a smaller replay.capacity" if role.name == "replay shard" else ""
        largest = f"the largest machine of the cluster has {_gb(most)}"
        raise ValueError(f"one process does not fit: {role.words(config)}, {largest}{advice}")
    needed = sum(part.size * part.times for part in parts)
    if needed > SHARE * sum(machines):
        largest = ", ".join(part.words(config) for part in parts[:SHOWN])
        raise ValueError(f"the run needs {_gb(needed)}, the cluster has {_gb(sum(machines))}; the largest parts are {largest}")


def _parameters(config: DeepConfig, env: Spaces) -> int:
    """Weights of a network: of one with one row for goals, and as many rows more as there will be."""
    agent = registry.agent(config.agent)
    networks = (agent.make_network(with_fields(config, {"network.goal_slots": slots}), env) for slots in (1, 2))
    one, two = (sum(weight.numel() for weight in network.parameters()) for network in networks)
    return int(one + (min(env.num_bits, config.network.goal_slots) - 1) * (two - one))


def check_memory(config: DeepConfig, env: Spaces) -> None:
    """Refuses a run that does not fit: the sum, its largest parts, and what the largest that can be changed may be."""
    memory = memory_bytes()
    if memory is None:
        return
    parts = sorted(memory_parts(config, env), key=lambda part: -part.size)
    needed, there = sum(part.size for part in parts), SHARE * memory
    if needed <= there:
        return
    largest = ", ".join(part.words(config) for part in parts[:SHOWN])
    part = next(part for part in parts if part.setting)
    section, _, field = part.setting.partition(".")
    fits = int(getattr(getattr(config, section), field) * max(0.0, 1.0 - (needed - there) / part.size))
    advice = f"at most {part.setting} = {fits:,} fits" if fits else "fewer proto-goals, or a larger machine"
    raise ValueError(f"the run needs {_gb(needed)}, this machine has {_gb(memory)}; the largest parts are {largest}; {advice}")


def room_for_replay(config: DeepConfig, env: Spaces) -> float | None:
    """Bytes that the other parts leave; None where the system does not tell."""
    memory = memory_bytes()
    others = sum(part.size for part in memory_parts(config, env) if part.name != "replay") if memory else 0
    return None if memory is None else SHARE * memory - others


def widest_lists(config: DeepConfig, env: Spaces, room: float | None) -> int:
    """How many bits on at once a replay may keep of a transition in that many bytes."""
    if room is None:
        return env.num_bits
    stored = registry.agent(config.agent).stored(config, env)
    none, one = (replay_bytes(stored._replace(max_active=width), config.replay) for width in (0, 1))
    most = int((room - none) / (one - none) / 2)  # widening needs the old and the new at once
    return max(env.max_active, min(env.num_bits, most))


def dropped_words(most: int, dropped: int) -> str:
    """What people are told when replay cannot keep all bits that are on."""
    return (f"replay has no room for more than {most:,} bits on at once; {dropped:,} were dropped so far, those that are not "
            "plausible first; a smaller replay.capacity leaves more room")


def _gb(size: Any) -> str:
    return f"{size / 1e9:.1f} GB"
