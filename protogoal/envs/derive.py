"""Proto-goals from an observation space: what might be worth achieving in an environment nobody has described.

| observed | proto-goals |
|---|---|
| Discrete, MultiDiscrete, whole numbers of a small range | every value |
| MultiBinary | every bit; each plane anywhere |
| bytes | every value of every byte; none of more than 16,384 |
| small whole numbers on a grid | each value anywhere, and in each cell |
| numbers | bins by the quantiles of the first steps, and records beyond them |
| pictures | the brightness of 8 × 8 cells; none where numbers in `info` are named |
| text | words |
| numbers in `info` that are named | levels, and rises |

MiniGrid and NetHack are known, and have predicates and names of their own. What has no proto-goals is said, with the reason.
`user_envs.space_of` is the caller; `protogoal space` prints the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from protogoal.envs import known, nethack
from protogoal.envs.counters import INFO, Counters
from protogoal.envs.episodes import WHOLE, parts_of
from protogoal.envs.first_steps import FirstSteps, remembered_steps
from protogoal.envs.readable import CROP, Readable, wrappers
from protogoal.envs.readers import channel_ranges, kind_of
from protogoal.envs.taxi import TaxiSpace
from protogoal.envs.way import LEVELS as WAY_LEVELS
from protogoal.envs.way import WAY
from protogoal.goals.derived.counters import CounterLevels
from protogoal.goals.derived.grids import GridValues
from protogoal.goals.derived.minigrid import DIRECTIONS, MiniGridMap, MiniGridView
from protogoal.goals.derived.nethack import STATUS, UNTOLD, NetHackMap
from protogoal.goals.derived.numbers import Numbers
from protogoal.goals.derived.pictures import SIDE, PictureCells, channel_axis, picture_sides, plane_axis
from protogoal.goals.derived.together import Derived, Moments
from protogoal.goals.derived.values import EveryBit, EveryValue
from protogoal.goals.spaces import MOST_BITS, BagOfWords, ProtoGoalSpace

MOST_NUMBERS = 128
"""Numbers of one part that have goals of their own; of more, those that change most often."""

MOST_VALUES = 32
"""Values of whole numbers in a Box that have goals one by one; with more they have bins."""

MOST_LISTED = 2**20
"""Of values of Discrete or MultiDiscrete there are no goals where they are more than this."""

MOST_BYTES = 16_384
"""Bytes of one part that have goals one by one; of more none has."""

MOST_WORDS = 1_000

LEAST_DEVIATION = 1e-6


@dataclass(frozen=True)
class Derivation:
    """A proto-goal space, and of what it was made: part of the observation → its space; and what has none, with the reason."""

    space: ProtoGoalSpace
    parts: dict[str, ProtoGoalSpace] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def derive(env: gymnasium.Env[Any, Any], others: Sequence[ProtoGoalSpace] = (), who: Any = None) -> Derivation:
    """The proto-goals of an environment; `others` are added to them. One that has a name, `who`, is looked at once."""
    named = parts_of(env.observation_space)
    left_out = left_out_of(env)
    makers = {name: _maker(env, name, part) for name, part in named.items()}
    first = _first_steps(env, named, who)
    made: dict[str, ProtoGoalSpace] = {}
    for name, make in makers.items():
        try:
            made[name] = make(first)
        except _None as reason:
            left_out[name] = str(reason)
    left_out |= _too_many(made)
    made |= {f"your own {i + 1}" if len(others) > 1 else "your own": space for i, space in enumerate(others)}
    if not made:
        reasons = "; ".join(f"{name} ({why})" for name, why in left_out.items()) or "it observes nothing"
        raise ValueError(f"no proto-goals follow from what the environment observes ({reasons}); "
                         "name a function that makes them: --space module:function")
    return Derivation(Derived(list(made.values()), _moments(named, first)), made, left_out)


def beside(space: ProtoGoalSpace, env: gymnasium.Env[Any, Any], who: Any = None) -> Derivation:
    """A space of one's own instead; the numbers that the network reads are measured all the same."""
    named = parts_of(env.observation_space)
    measured = {name: part for name, part in named.items() if name != INFO and kind_of(part) == "numbers"}
    moments = _moments(named, _first_steps(env, measured, who))
    return Derivation(Derived([space], moments) if moments else space, {"your own": space}, left_out_of(env))


def _too_many(made: dict[str, ProtoGoalSpace]) -> dict[str, str]:
    """Takes out the largest parts until the goals of all together are few enough; and why."""
    taken: dict[str, str] = {}
    while sum(space.size for space in made.values()) > MOST_BITS:
        name = max(made, key=lambda part: made[part].size)
        taken[name] = f"has {made.pop(name).size:,} proto-goals; all parts together may have {MOST_BITS:,}"
    return taken


class _None(Exception):
    """A part has no proto-goals; the words say why."""


Maker = Callable[[FirstSteps], ProtoGoalSpace]


def left_out_of(env: gymnasium.Env[Any, Any]) -> dict[str, str]:
    """Parts that cannot be read, and why."""
    return next((dict(inner.left_out) for inner in wrappers(env) if isinstance(inner, Readable)), {})


def _first_steps(env: gymnasium.Env[Any, Any], named: Mapping[str, Any], who: Any) -> FirstSteps:
    """What the parts need to know that must be seen; nothing is played where none needs anything."""
    numbers = [name for name, part in named.items() if kind_of(part) == "numbers"]
    texts = [name for name, part in named.items() if kind_of(part) == "text"]
    return remembered_steps(env, numbers, texts, who) if numbers or texts else FirstSteps({}, {})


def _moments(named: Mapping[str, Any], first: FirstSteps) -> Moments:
    """Mean and deviation of each number that the network reads."""
    measured = {name: rows for name, rows in first.seen.items() if name != INFO and kind_of(named[name]) == "numbers"}
    return {name: _mean_and_deviation(rows) for name, rows in measured.items()}


def _mean_and_deviation(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sound = rows[np.isfinite(rows).all(1)]
    sound = sound if len(sound) else np.zeros((1, rows.shape[1]))
    return sound.mean(0), np.maximum(sound.std(0), LEAST_DEVIATION)


def _maker(env: gymnasium.Env[Any, Any], name: str, part: Any) -> Maker:
    """How the proto-goals of one part are made, once the first steps have been seen."""
    key = None if not isinstance(env.observation_space, spaces.Dict) else name
    word = "state" if name == WHOLE else known.part_name(env, name)
    if name == INFO:
        return lambda first: _counters(env, first.seen[INFO])
    kind = kind_of(part)
    if kind == "picture" and INFO in parts_of(env.observation_space):  # whoever names numbers says what matters
        return _nothing("the network reads it; goals are those of info")
    if nethack.is_nethack(env) and nethack.AXES.get(name) == len(part.shape or ()):
        return _nethack(name, part, parts_of(env.observation_space))
    if kind == "grid" and known.shows_things(env, part):
        return lambda first: (MiniGridMap if known.sees_all(env) else MiniGridView)(part.shape[0], part.shape[1], key)
    if known.is_minigrid(env) and name == WAY:
        counted = enumerate(WAY_LEVELS.items())
        return lambda first: Derived([CounterLevels([word], [i], WAY, levels) for i, (word, levels) in counted])
    if known.is_minigrid(env) and name == "direction":
        return lambda first: EveryValue(["direction"], [len(DIRECTIONS)], names=DIRECTIONS, key=key)
    if kind == "values":
        return lambda first: _values(env, word, part, key)
    if kind in ("binary", "planes"):
        bit = name if name != WHOLE else "plane" if len(part.shape) == 3 else "bit"
        return lambda first: EveryBit(bit, part.shape, key, plane_axis(part.shape), known.plane_names(env))
    if kind == "bytes" and part.shape[0] > MOST_BYTES:
        return _nothing(f"has {part.shape[0]:,} bytes, too many to list; --space or --info name goals instead")
    if kind == "bytes":
        words = [f"byte {i}" if name == WHOLE else f"{name} {i}" for i in range(part.shape[0])]
        return lambda first: EveryValue(words, [256] * part.shape[0], key=key)
    if kind == "grid":
        return lambda first: _grid(word, part, key, known.value_names(env, name, part))
    if kind == "picture":
        sides = picture_sides(part.shape)
        return lambda first: PictureCells("picture" if name == WHOLE else name, min(SIDE, sides[0]), min(SIDE, sides[1]), key)
    if kind == "text":
        return lambda first: _words(name, first, key)
    called = known.number_names(env, word, part)
    if are_few(part):
        lows = part.low.ravel().astype(np.int64)
        return lambda first: EveryValue(called, (part.high.ravel() - lows + 1).tolist(), lows.tolist(), key=key)
    return lambda first: _numbers(called, first.seen[name], part, key)


def are_few(part: Any) -> bool:
    """Whether numbers are whole and have few values: those of a MultiDiscrete that was declared as a Box."""
    if not np.issubdtype(part.dtype, np.integer) or part.low.size > MOST_NUMBERS:
        return False
    return bool((part.high.astype(float) - part.low.astype(float) < MOST_VALUES).all())


def _values(env: gymnasium.Env[Any, Any], word: str, part: Any, key: str | None) -> ProtoGoalSpace:
    total = int(part.n if isinstance(part, spaces.Discrete) else np.sum(part.nvec))
    if total > MOST_LISTED:
        raise _None(f"has {total:,} values, too many to list")
    if isinstance(part, spaces.Discrete):
        if key is None and known.is_taxi(env):
            return TaxiSpace()
        columns = known.grid_width(env, int(part.n)) if key is None else 0
        return EveryValue([word], [int(part.n)], [int(part.start)], columns=columns, key=key)
    sizes, starts = np.asarray(part.nvec).ravel(), np.asarray(part.start).ravel()
    return EveryValue([f"{word} {i}" for i in range(len(sizes))] if len(sizes) > 1 else [word], sizes.tolist(), starts.tolist(),
                      key=key)


def _grid(word: str, part: Any, key: str | None, called: Sequence[str] = ()) -> ProtoGoalSpace:
    if len(part.shape) == 2:
        low = int(part.low.min())
        return GridValues(word, part.shape[0], part.shape[1], [low], [int(part.high.max()) - low + 1], key=key, called=called)
    axis = channel_axis(part.shape)
    lows, sizes = channel_ranges(part)
    rows, columns = (int(n) for n in np.delete(part.shape, axis))
    return GridValues(word, rows, columns, lows.tolist(), sizes.tolist(), axis + 1, key)


def _words(name: str, first: FirstSteps, key: str | None) -> ProtoGoalSpace:
    if not first.changes[name]:
        raise _None("the network reads it; it never changes within an episode")
    return BagOfWords(MOST_WORDS, key, name if sum(first.changes.values()) > 1 else "word")


def _numbers(words: Sequence[str], seen: np.ndarray, part: Any, key: str | None,
             columns: Sequence[int] | None = None) -> ProtoGoalSpace:
    columns = liveliest(seen, MOST_NUMBERS) if columns is None else list(columns)
    low, high = (np.asarray(bound, np.float64).ravel()[columns] for bound in (part.low, part.high))
    are_whole = np.issubdtype(part.dtype, np.integer)
    return Numbers.fit([words[i] for i in columns], seen[:, columns], low, high, bool(are_whole), columns, key)


def liveliest(seen: np.ndarray, most: int) -> list[int]:
    """Of more numbers than `most` those that changed in most of the first steps, [n, D]; in their order."""
    changes = (np.diff(seen, axis=0) != 0).sum(0)
    return sorted(np.argsort(-changes, kind="stable")[:most].tolist())


def _nethack(name: str, part: Any, named: Mapping[str, Any]) -> Maker:
    told_of = nethack.map_of(named)
    if name == told_of:
        kinds, table = nethack.glyph_kinds()
        has_status = "blstats" in named
        rows, columns = nethack.WHOLE if name == CROP else part.shape
        table = table if has_status or name == CROP else nethack.without_heroes(kinds, table)
        return lambda first: NetHackMap(kinds, table, rows, columns, name, has_status)
    if name == "blstats":
        told = [i for i, word in enumerate(STATUS[: part.shape[0]]) if word not in UNTOLD]
        return lambda first: _numbers(STATUS, first.seen[name], part, name, told)

    return _nothing(f"the network reads it; its goals are those of {told_of}" if told_of else "the network reads it")


def _nothing(reason: str) -> Maker:
    """No proto-goals."""

    def none(first: FirstSteps) -> ProtoGoalSpace:
        raise _None(reason)

    return none


def _counters(env: gymnasium.Env[Any, Any], seen: np.ndarray) -> ProtoGoalSpace:
    """Numbers of `info`: counters where all that was seen is whole and not negative, else bins and records."""
    words = next(inner.names for inner in wrappers(env) if isinstance(inner, Counters))
    counts = [i for i in range(len(words)) if ((seen[:, i] % 1 == 0) & (seen[:, i] >= 0) | np.isnan(seen[:, i])).all()]
    others = [i for i in range(len(words)) if i not in counts]
    made: list[ProtoGoalSpace] = []
    if counts:
        made.append(CounterLevels([words[i] for i in counts], counts, INFO))
    if others:
        unbounded = np.full(len(others), np.inf)
        made.append(Numbers.fit([words[i] for i in others], seen[:, others], -unbounded, unbounded, False, others, INFO))
    return made[0] if len(made) == 1 else Derived(made)
