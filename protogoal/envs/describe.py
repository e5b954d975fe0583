"""The proto-goals of an environment in words, before anybody trains: kinds, numbers, examples, what is on at the start.

`protogoal space --env ID` prints it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any, Literal

import numpy as np

from protogoal.envs.counters import INFO, entries_with_numbers, infos
from protogoal.envs.failure import EnvironmentFailure, close, failure
from protogoal.envs.user_envs import ADDS, own_batch, reference_of, shows_a_part, space_of

LOOKED_AT = 50_000
"""Proto-goals of one part whose kinds are counted; of more, so many spread over all."""

HINTED_STEPS = 50
"""Random steps in which it is seen that `info` has numbers."""

EXAMPLES = 4
MOST_STARTING = 24


def describe(env: str, space: str = "", info: str = "") -> dict[str, Any]:
    """JSON-able: the observation's parts with their proto-goals, what the network reads, what is left out, what starts on."""
    derivation = space_of(env, space, info)
    batch = own_batch(env, space, 1, shared=derivation.space, info=info)
    try:
        _, active = batch.reset(seed=0)
        on = [_word(derivation.space, "name", int(i)) for i in active[0] if i >= 0]
        read = {name: f"{part.kind} {'×'.join(map(str, part.shape))}" for name, part in batch.observation_spec.items()}
        actions = batch.num_actions
    finally:
        batch.close()
    return {
        "env": env,
        "space": {"": "derived from the observation"}.get(space, f"{space.removeprefix(ADDS)}, "
                  f"{'added to what is derived' if space.startswith(ADDS) else 'instead of what could be derived'}"),
        "info": list(reference_of(env, info).counters),
        "more_in_info": [] if info else _entries_of_info(env),
        "is_partial": shows_a_part(env),
        "actions": actions,
        "size": derivation.space.size,
        "network": read,
        "parts": {name: _part(some) for name, some in derivation.parts.items()},
        "left_out": derivation.left_out,
        "on_at_the_start": on,
    }


def _entries_of_info(env: str) -> list[str]:
    """Entries of `info` with numbers, which could have goals too. An environment that fails is looked at up to there."""
    probe = reference_of(env)()
    found: dict[str, None] = {}
    try:
        with contextlib.suppress(EnvironmentFailure):
            for _, info in infos(probe, HINTED_STEPS):
                found |= dict.fromkeys(entries_with_numbers(info))
    finally:
        close(probe)
    return list(found)


def _word(space: Any, which: Literal["name", "kind"], i: int) -> str:
    """The name or kind of a proto-goal; a failure where a space of one's own has none."""
    who = f"{which}({i}) of the proto-goals"
    try:
        word = getattr(space, which)(i)
    except BaseException as error:
        raise failure(error, who) from error
    if not isinstance(word, str):
        raise EnvironmentFailure(f"{who} gave a {type(word).__name__}; it must give text")
    return word


def _part(space: Any) -> dict[str, Any]:
    """One part's proto-goals: how many, of which kinds, and some names of each."""
    ids = np.unique(np.linspace(0, space.size - 1, min(space.size, LOOKED_AT)).astype(np.int64))
    kinds = Counter(_word(space, "kind", int(i)) for i in ids)
    spread = ids[np.linspace(0, len(ids) - 1, 8 * EXAMPLES).astype(int)]
    named = dict.fromkeys(_word(space, "name", int(i)) for i in spread)
    names = [name for name in named if not name.endswith(")") or "(not " not in name]
    examples = [names[i] for i in np.unique(np.linspace(0, len(names) - 1, EXAMPLES).astype(int))] if names else []
    return {"size": space.size, "kinds": dict(kinds.most_common()), "examples": examples}


def in_words(told: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"{told['env']}: {told['size']:,} proto-goals, {told['actions']} actions"
             + ("; it shows only a part of its state: the network remembers (network.core)" if told["is_partial"] else ""),
             f"proto-goals: {told['space']}"]
    for name, part in told["parts"].items():
        kinds = list(part["kinds"])
        shown = ", ".join(kinds[:6]) + (f", … ({len(kinds):,} kinds)" if len(kinds) > 6 else "")
        examples = "; ".join(part["examples"]) or ("found while reading" if part["size"] else "none")
        shown_as = "info, which the network does not see" if name == INFO else name
        lines += [f"  {shown_as}: {part['size']:,}", f"    kinds     {shown}", f"    examples  {examples}"]
    if told["more_in_info"]:
        lines.append(f"info has numbers too; their goals: --info {','.join(told['more_in_info'])}")
    on = told["on_at_the_start"]
    more = f"; and {len(on) - MOST_STARTING} more" if len(on) > MOST_STARTING else ""
    starts = "; ".join(on[:MOST_STARTING]) or "none"
    lines.append(f"on at the start ({len(on)}): {starts}{more}")
    lines.append("the network reads: " + ", ".join(f"{name} ({how})" for name, how in told["network"].items()))
    for why in dict.fromkeys(told["left_out"].values()):
        lines.append(f"no goals from: {', '.join(name for name, reason in told['left_out'].items() if reason == why)} ({why})")
    return "\n".join(lines)
