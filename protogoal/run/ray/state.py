"""Checkpoints of the Ray engine are those of the local engine: what one has begun, the other can go on with.

Parts of replay are merged into one and divided again, by age. Each worker's environments are saved beside; if there are
as many workers as before, with as many environments, they go on where they were, else their episodes begin afresh, with
what the actors know beyond them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from protogoal.agents.r2d2 import R2D2
from protogoal.goals.active import as_wide

State = Mapping[str, Any]


def merge_replays(parts: Sequence[State]) -> dict[str, Any]:
    """States of several `Replay`s as the state of one that holds all of it, oldest first."""
    if len(parts) == 1:
        return dict(parts[0])
    ages = [_by_age(part) for part in parts]
    # the k-th of n segments of a part is as old as the j-th of m of another where k/n = j/m
    rank = np.concatenate([np.arange(len(order)) / max(1, len(order)) for order in ages])
    order = np.argsort(rank, kind="stable")
    size = len(order)

    def merged(arrays: Sequence[np.ndarray]) -> np.ndarray:
        if len({array.shape[1:] for array in arrays}) > 1:  # lists of ids, for which one shard has more room
            arrays = as_wide(arrays)
        return np.concatenate([array[age] for array, age in zip(arrays, ages, strict=True)])[order]

    return {
        "arrays": {name: merged([part["arrays"][name] for part in parts]) for name in parts[0]["arrays"]},
        "rarest": merged([part["rarest"] for part in parts]),
        "turned_on": np.sum([part["turned_on"] for part in parts], axis=0),
        "wanted": parts[0]["wanted"],
        "next": size,
        "size": size,
        "added": sum(int(part["added"]) for part in parts),
    }


def split_replay(state: State, shards: int, capacity: int) -> list[dict[str, Any]]:
    """The state of one `Replay` as the states of `shards` of them, each of `capacity` segments; the newest are kept."""
    if shards == 1 and int(state["size"]) <= capacity:
        return [dict(state) | {"next": int(state["next"]) % capacity}]
    order = _by_age(state)
    parts = []
    for shard in range(shards):
        mine = order[shard::shards][-capacity:]
        parts.append({
            "arrays": {name: array[mine] for name, array in state["arrays"].items()},
            "rarest": state["rarest"][mine],
            "turned_on": _share(np.asarray(state["turned_on"]), shard, shards),
            "wanted": state["wanted"],
            "next": len(mine) % capacity,
            "size": len(mine),
            "added": int(_share(np.asarray(state["added"]), shard, shards)),
        })
    return parts


def _by_age(state: State) -> np.ndarray:
    """Places of the segments, oldest first: from `next` on, round the ring."""
    size = int(state["size"])
    return np.roll(np.arange(size), -(int(state["next"]) % size)) if size else np.arange(0)


def _share(total: np.ndarray, shard: int, shards: int) -> np.ndarray:
    """Whole numbers divided among shards; the first get the remainders."""
    share: np.ndarray = total // shards + (total % shards > shard)
    return share


def saved_spaces(state: State) -> list[State]:
    """What a checkpoint of either engine says that the proto-goal space has learned: the run's word, then each part's."""
    agent = state["agent"]
    found = [agent.get("space"), agent.get("evaluator", {}).get("space")]
    for actor in (agent["actor"], *state.get("ray", {}).get("workers", [])):
        env = actor["env"]
        while env is not None and "env" in env:  # views of another batch
            env = env["env"]
        found.append(env.get("space") if env is not None else None)
    return [space for space in found if space]


def without_episodes(agent: type[R2D2], workers: Sequence[State]) -> dict[str, Any]:
    """Several workers' states as one actor's that says: environments cannot be restored, go on with this generator.

    What the actors know beyond their episodes goes along.
    """
    return {"rng": dict(workers[0]["rng"]), "env": None} | agent.join_knowledge(workers)


def share_of_knowledge(agent: type[R2D2], workers: Sequence[State], index: int, num_envs: int) -> dict[str, Any]:
    """What `without_episodes` joins, as one of several workers with `num_envs` environments takes it up."""
    return agent.part_of_knowledge(agent.join_knowledge(workers), index, num_envs)
