"""The turn, and N games stepped by one compiled call (BABA: turn order).

    1. YOU moves, then MOVE, then what lies on SHIFT.
    2. The rules are read; NOUN IS NOUN transforms; if words came or went, they are read again.
    3. SINK, WEAK, HOT/MELT, DEFEAT, OPEN/SHUT, and WIN last, under the new rules.

Before the first turn the level's own NOUN IS NOUN rules are applied once.
Words that vanish in 3 stop counting at once: the rules in force are always those that stand on the board, so that the
planes (and the facing of what moves by itself) are the whole state.

Games lie side by side in flat arrays (`Games`), made once by `BabaBatch`, which is the caller; a step allocates
nothing and compiles nothing new for another level. A finished game starts anew within the same step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from protogoal.envs.baba.movement import CHANGED, WORDS_CHANGED, link, move, remove
from protogoal.envs.baba.rules import (
    DEAD,
    DEFEAT,
    FLOAT,
    HOT,
    MELT,
    NOOP,
    OPEN,
    SHUT,
    SINK,
    VANISHES,
    WEAK,
    WIN,
    YOU,
    Board,
    inlined,
    kernel,
    read_rules,
)


class Tables(NamedTuple):
    """What all games of a level share."""

    near: np.ndarray  # int16 [4, H·W]
    word_class: np.ndarray  # uint8 [K]
    word_value: np.ndarray  # int16 [K]
    group: np.ndarray  # int16 [K]
    word_of: np.ndarray  # int16 [G]


class Games(NamedTuple):
    """The state of N games; fields as in `rules.Board`, with the batch axis in front."""

    kind: np.ndarray  # uint8 [N, M]
    cell: np.ndarray  # int16 [N, M]
    face: np.ndarray  # uint8 [N, M]
    head: np.ndarray  # int16 [N, H·W]
    link: np.ndarray  # int16 [N, M]
    props: np.ndarray  # int32 [N, G]
    becomes: np.ndarray  # int64 [N, G]
    summary: np.ndarray  # int32 [N, 2]
    steps: np.ndarray  # int32 [N]: steps taken in this episode


class Views(NamedTuple):
    """What is seen of N games. The flattened planes are the proto-goal bits; `active` lists those that are on."""

    planes: np.ndarray  # uint8 [N, P·H·W]
    active: np.ndarray  # int16 or int32 [N, L]: slot m has its object's bit, or -1 if dead or seen in an earlier slot
    final_planes: np.ndarray  # uint8 [N, P·H·W]: s' of the last transition
    final_active: np.ndarray  # like active
    restarted: np.ndarray  # bool [N]: planes show a new episode, final_planes the end of the one before


@inlined
def board(t, g, n):
    """Game n as a Board."""
    return Board(t.near, t.word_class, t.word_value, t.group, t.word_of, g.kind[n], g.cell[n], g.face[n], g.head[n],
                 g.link[n], g.props[n], g.becomes[n], g.summary[n])


@kernel
def _first_free_slot(b):
    for o in range(len(b.kind)):
        if b.kind[o] == DEAD:
            return o
    return -1


@kernel
def _become(b, s, o, target):
    """Gives object o the kind that stands for a group: the object type itself, or for TEXT the block of its own name."""
    if b.word_class[b.kind[o]] != 0:
        s.tally[WORDS_CHANGED] = 1
    if target == len(b.props) - 1:
        b.kind[o] = b.word_of[b.group[b.kind[o]]]
        s.tally[WORDS_CHANGED] = 1
    else:
        b.kind[o] = target
    s.tally[CHANGED] = 1


@kernel
def _transform(b, s):
    """NOUN IS NOUN, all at once. X IS Y and X IS Z make both; the second takes a free slot, or is left out if none is."""
    for o in range(len(b.kind)):
        s.doomed[o] = b.kind[o] != DEAD and b.becomes[b.group[b.kind[o]]] != 0
    for o in range(len(b.kind)):
        if not s.doomed[o]:
            continue
        s.doomed[o] = 0
        targets = b.becomes[b.group[b.kind[o]]]
        if targets & VANISHES:
            remove(b, s, o)
            continue
        original = b.kind[o]
        first = True
        for g in range(len(b.props)):
            if targets >> g & 1:
                if first:
                    _become(b, s, o, g)
                    first = False
                else:
                    copy = _first_free_slot(b)
                    if copy < 0:
                        break
                    b.kind[copy] = original
                    b.face[copy] = b.face[o]
                    link(b, copy, b.cell[o])
                    _become(b, s, copy, g)


@inlined
def _partner(b, o, wanted, itself):
    """The first object in o's cell, on the same level of FLOAT, with one of the wanted properties; or -1."""
    mine = b.props[b.group[b.kind[o]]]
    p = b.head[b.cell[o]]
    while p >= 0:
        theirs = b.props[b.group[b.kind[p]]]
        if (itself or p != o) and not (mine ^ theirs) & FLOAT and (wanted == 0 or theirs & wanted):
            return p
        p = b.link[p]
    return np.int16(-1)


@kernel
def _one_for_one(b, s, having, wanted, itself):
    """Each object with one property takes one partner with it."""
    for o in range(len(b.kind)):
        if b.kind[o] != DEAD and b.props[b.group[b.kind[o]]] & having:
            p = _partner(b, o, wanted, itself)
            if p >= 0:
                remove(b, s, o)
                if p != o:
                    remove(b, s, p)


@kernel
def _falls_to(b, s, having, wanted, itself):
    """Each object with one property vanishes if a partner is there; all at once."""
    for o in range(len(b.kind)):
        s.doomed[o] = (b.kind[o] != DEAD and b.props[b.group[b.kind[o]]] & having != 0
                       and _partner(b, o, wanted, itself) >= 0)
    for o in range(len(b.kind)):
        if s.doomed[o]:
            remove(b, s, o)
            s.doomed[o] = 0


@inlined
def _interact(b, s):
    """Step 3 but for WIN. An object can melt, be defeated or unlocked by itself; it cannot sink itself."""
    present = b.summary[0]
    if present & SINK:
        _one_for_one(b, s, SINK, 0, False)
    if present & WEAK:
        _falls_to(b, s, WEAK, 0, False)
    if present & HOT and present & MELT:
        _falls_to(b, s, MELT, HOT, True)
    if present & DEFEAT and present & YOU:
        _falls_to(b, s, YOU, DEFEAT, True)
    if present & OPEN and present & SHUT:
        _one_for_one(b, s, SHUT, OPEN, True)


@inlined
def is_won(b):
    """Whether some YOU is where a WIN is (or is WIN itself)."""
    if b.summary[0] & (YOU | WIN) != (YOU | WIN):
        return False
    for o in range(len(b.kind)):
        if b.kind[o] != DEAD and b.props[b.group[b.kind[o]]] & YOU and _partner(b, o, WIN, True) >= 0:
            return True
    return False


@inlined
def has_you(b):
    """Whether anything is YOU."""
    if not b.summary[0] & YOU:
        return False
    for o in range(len(b.kind)):  # noqa: SIM110 (numba has no generators here)
        if b.kind[o] != DEAD and b.props[b.group[b.kind[o]]] & YOU:
            return True
    return False


@inlined
def settle(b, s):
    """Step 2: reads the rules if words moved, and transforms."""
    if s.tally[WORDS_CHANGED]:
        read_rules(b, s.cancelled)
        s.tally[WORDS_CHANGED] = 0
    if b.summary[1]:
        _transform(b, s)
        if s.tally[WORDS_CHANGED]:
            read_rules(b, s.cancelled)
            s.tally[WORDS_CHANGED] = 0


@inlined
def turn(b, s, action):
    """One turn of one game; returns whether it is won."""
    move(b, s, action)
    settle(b, s)
    _interact(b, s)
    won = is_won(b)
    if s.tally[WORDS_CHANGED]:  # words that sank or melted
        read_rules(b, s.cancelled)
        s.tally[WORDS_CHANGED] = 0
    return won


@inlined
def _show(b, planes, active):
    """Rewrites a game's planes and active bits from its objects; terrain, if shown, is never touched."""
    num_cells = len(b.head)
    for m in range(len(b.kind)):
        if active[m] >= 0:
            planes[active[m]] = 0
    for m in range(len(b.kind)):
        active[m] = -1
        if b.kind[m] != DEAD:
            bit = b.kind[m] * num_cells + b.cell[m]
            if planes[bit] == 0:
                planes[bit] = 1
                active[m] = bit


@kernel
def relist(b, s):
    """Rebuilds the lists of cells and the rules from kind and cell alone."""
    b.head[:] = -1
    b.link[:] = -1
    for o in range(len(b.kind)):
        if b.kind[o] != DEAD:
            link(b, o, b.cell[o])
    read_rules(b, s.cancelled)


@inlined
def _copy(target, source):
    """Copies one row; a plain loop, because slice assignment would allocate."""
    for k in range(len(target)):
        target[k] = source[k]


@kernel
def rebuild(t, g, s, views):
    """Makes everything that follows from kind, cell and face of all games: lists, rules, planes, active bits."""
    for n in range(len(g.kind)):
        b = board(t, g, n)
        relist(b, s)
        _show(b, views.planes[n], views.active[n])
        _copy(views.final_planes[n], views.planes[n])
        _copy(views.final_active[n], views.active[n])
        views.restarted[n] = False


@kernel
def has_player(t, g, n):
    """Whether anything in game n is YOU."""
    return has_you(board(t, g, n))


@kernel
def transform_start(t, g, s, views):
    """What the rules of a level make of its things before the first turn."""
    for n in range(len(g.kind)):
        b = board(t, g, n)
        settle(b, s)
        _show(b, views.planes[n], views.active[n])


@inlined
def _restart(start, start_views, g, views, n):
    """Puts game n back to the start."""
    _copy(g.kind[n], start.kind[0])
    _copy(g.cell[n], start.cell[0])
    _copy(g.face[n], start.face[0])
    _copy(g.head[n], start.head[0])
    _copy(g.link[n], start.link[0])
    _copy(g.props[n], start.props[0])
    _copy(g.becomes[n], start.becomes[0])
    _copy(g.summary[n], start.summary[0])
    g.steps[n] = 0
    _copy(views.planes[n], start_views.planes[0])
    _copy(views.active[n], start_views.active[0])


@kernel
def step_all(t, g, s, start, start_views, views, actions, max_episode_steps, autoreset, reward, terminated, truncated):
    """One step of all N games; without autoreset a finished game simply goes on.

    Returns -1, or the place of the first bad action, and then nothing has moved."""
    for n in range(len(actions)):
        if actions[n] < 0 or actions[n] > NOOP:
            return n
    for n in range(len(actions)):
        b = board(t, g, n)
        if views.restarted[n]:
            _copy(views.final_planes[n], views.planes[n])
            _copy(views.final_active[n], views.active[n])
            views.restarted[n] = False
        s.tally[CHANGED] = 0
        won = turn(b, s, actions[n])
        if s.tally[CHANGED]:
            _show(b, views.planes[n], views.active[n])
            _show(b, views.final_planes[n], views.final_active[n])
        g.steps[n] += 1
        reward[n] = 1.0 if won else 0.0
        terminated[n] = won or not has_you(b)
        truncated[n] = not terminated[n] and g.steps[n] >= max_episode_steps
        if autoreset and (terminated[n] or truncated[n]):
            _restart(start, start_views, g, views, n)
            views.restarted[n] = True
    return -1


@kernel
def restart_all(start, start_views, g, views):
    """Puts all games back to the start."""
    for n in range(len(g.kind)):
        _restart(start, start_views, g, views, n)
        _copy(views.final_planes[n], views.planes[n])
        _copy(views.final_active[n], views.active[n])
        views.restarted[n] = False
