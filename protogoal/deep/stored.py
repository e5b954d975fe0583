"""What replay and an actor take back from a checkpoint, checked first: shapes, kinds of numbers, and every index within its range.

Called by `load_state_dict` of `deep.replay.Replay`, `deep.segments.SegmentBuilder`, `deep.act.Actor` and `agents.r2d2.R2D2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.envs.vector import PAD, ArraySpec
from protogoal.goals.stored import stored_array, stored_like

State = Mapping[str, Any]


def check_segments(
    state: State, own: Mapping[str, NDArray[Any]], spec: Mapping[str, ArraySpec], num_bits: int, rows: int | None = None
) -> None:
    """Arrays of segments by name, as `own` has them (with `rows` rows, if given); ids within bits and values."""
    for name, mine in own.items():
        low, high = None, None
        part = spec.get(name.removeprefix("observation."))
        if name == "active":
            low, high = PAD, num_bits - 1
        elif name == "goal":
            low = PAD
        elif name in ("action", "previous_action"):
            low = 0
        elif part is not None and part.num_values:
            low, high = PAD if part.kind == "active" else 0, part.num_values - 1
        kind = "i" if mine.dtype.kind == "u" else mine.dtype.kind
        stored_array(state[name], name, mine.shape if rows is None else (rows, *mine.shape[1:]), kind, low, high)


def stored_width(state: State, name: str) -> int:
    """Room that a stored array of lists has for ids."""
    return int(np.asarray(state[name]).shape[-1]) if np.ndim(state[name]) else 0


def check_actions(state: State, num_actions: int, *names: str) -> None:
    """Actions that the environments have."""
    for name in names:
        actions = np.asarray(state[name])
        if actions.size and actions.max() >= num_actions:
            raise ValueError(f"stored {name} holds {actions.max()}; this run's actions are 0…{num_actions - 1}")


def check_actor(state: State, own: Mapping[str, NDArray[Any]], num_bits: int, num_actions: int) -> None:
    """Arrays of an actor by name, as `own` has them."""
    most = {"active": num_bits - 1, "members": num_bits - 1, "slots": num_bits - 1, "previous_action": num_actions - 1,
            "past": num_actions - 1}
    least = {"active": PAD, "members": PAD, "slots": PAD, "goal": -1, "past": -1, "previous_action": 0, "pursuit_steps": 0,
             "limit": 0}
    for name, mine in own.items():
        stored_like(state[name], name, mine, least.get(name), most.get(name))
