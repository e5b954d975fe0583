"""The words of the game and the rules they spell (BABA: "NOUN IS PROPERTY", "NOUN IS NOUN", AND, NOT, TEXT).

A rule is read left→right and top→bottom from a run of word blocks in adjacent cells. Around each IS:

    subjects: [NOT…] NOUN (AND [NOT…] NOUN)…      targets: [NOT…] X (AND [NOT…] X)…,  X a noun or a property

In A IS B AND C IS D the second IS takes C alone, because B AND C are the targets of the first; A IS B IS C therefore
reads A IS B and B IS C. Where blocks are stacked, every way of reading one block a cell counts: the runs are parsed
with a small non-deterministic automaton instead of by enumeration, so a stack costs nothing extra.

The result of reading, kept for every game: `props[g]`, the properties of group g as a bit mask, and `becomes[g]`, the
groups that g turns into. A group is an object type, or TEXT (the last one). `movement` and `engine` use both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}

kernel = njit(**_OPTIONS)
"""Compiles a function of the engine, once, cached on disk. Without numba's runtime it cannot allocate (numba refuses to
compile it then) and does not count references to the arrays it is handed, which would cost ten times the game itself."""

inlined = njit(**_OPTIONS, forceinline=True)
"""The same for small functions on the way of every step: a call hands over some 200 words for a board's arrays."""

PROPERTIES = ("YOU", "WIN", "PUSH", "STOP", "MOVE", "DEFEAT", "SINK", "HOT", "MELT", "OPEN", "SHUT", "WEAK", "SHIFT", "FLOAT")
YOU, WIN, PUSH, STOP, MOVE, DEFEAT, SINK, HOT, MELT, OPEN, SHUT, WEAK, SHIFT, FLOAT = (1 << i for i in range(14))
OPERATORS = ("IS", "AND", "NOT")
TEXT_NOUN = "TEXT"

NO_WORD, NOUN, PROPERTY, IS, AND, NOT = range(6)  # what a kind is for the reader; objects are NO_WORD

DEAD = 255  # the kind of an empty object slot
MAX_OBJECT_TYPES = 62  # groups are bits of an int64: object types, TEXT, and one bit for VANISHES
VANISHES = np.int64(1) << 62  # X IS NOT X

# States of the reader, as bits: what the blocks read so far could be
_OPEN0, _OPEN1 = 1, 2  # a subject may start here, after an even or odd number of NOTs
_TARGET0, _TARGET1 = 4, 8  # a target must follow, after an even or odd number of NOTs
_SUBJECT, _TARGET_NOUN, _TARGET_PROPERTY = 16, 32, 64  # just read


class Board(NamedTuple):
    """One game, as views into the batch's arrays and its level's tables. M object slots, K kinds, G groups."""

    near: np.ndarray  # int16 [4, H·W]: the cell one step up, down, left, right; -1 beyond the edge or into terrain
    word_class: np.ndarray  # uint8 [K]
    word_value: np.ndarray  # int16 [K]: a noun's group, a property's mask
    group: np.ndarray  # int16 [K]
    word_of: np.ndarray  # int16 [G]: the kind of the block that names this group's objects, or -1
    kind: np.ndarray  # uint8 [M]: DEAD where the slot is empty
    cell: np.ndarray  # int16 [M]: row · width + column
    face: np.ndarray  # uint8 [M]: direction 0–3
    head: np.ndarray  # int16 [H·W]: first object in a cell, or -1; lists are in slot order
    link: np.ndarray  # int16 [M]: next object in the same cell, or -1
    props: np.ndarray  # int32 [G]
    becomes: np.ndarray  # int64 [G]
    summary: np.ndarray  # int32 [2]: all properties in force, of anything; whether anything transforms


UP, DOWN, LEFT, RIGHT, NOOP = range(5)  # actions; the first four are directions too, and d ^ 1 is the opposite of d


@inlined
def _words_at(b, cell):
    """The classes of the words in a cell, as a bit mask."""
    found = 0
    o = b.head[cell]
    while o >= 0:
        found |= 1 << b.word_class[b.kind[o]]
        o = b.link[o]
    return found & ~1


@inlined
def _next_state(state, words):
    """The reader after one more cell, over all readings of the cell and of what came before."""
    after = 0
    if words & (1 << NOT):
        if state & (_OPEN0 | _TARGET0 | _OPEN1 | _TARGET1):
            after |= (state & (_OPEN0 | _TARGET0)) << 1 | (state & (_OPEN1 | _TARGET1)) >> 1
        if state & (_SUBJECT | _TARGET_NOUN | _TARGET_PROPERTY):
            after |= _OPEN1
    if words & (1 << NOUN):
        if state & (_OPEN0 | _OPEN1 | _SUBJECT | _TARGET_NOUN | _TARGET_PROPERTY):
            after |= _SUBJECT
        if state & (_TARGET0 | _TARGET1):
            after |= _TARGET_NOUN
    if words & (1 << PROPERTY):
        if state & (_OPEN0 | _OPEN1 | _SUBJECT | _TARGET_NOUN | _TARGET_PROPERTY):
            after |= _OPEN0
        if state & (_TARGET0 | _TARGET1):
            after |= _TARGET_PROPERTY
    if words & (1 << AND):
        if state & (_OPEN0 | _OPEN1 | _SUBJECT | _TARGET0 | _TARGET1):
            after |= _OPEN0
        if state & (_TARGET_NOUN | _TARGET_PROPERTY):
            after |= _TARGET0
    if words & (1 << IS):
        if state & (_SUBJECT | _TARGET_NOUN):
            after |= _TARGET0
        if state & (_OPEN0 | _OPEN1 | _TARGET0 | _TARGET1 | _TARGET_PROPERTY):
            after |= _OPEN0
    return after


@inlined
def _signs(state):
    """With which signs a noun read in this state counts: bits 1 (plain), 2 (negated), for the last subject of an IS in
    the low half, for the earlier ones in the high half."""
    last = 0
    earlier = 0
    if state & (_OPEN0 | _SUBJECT | _TARGET_NOUN | _TARGET_PROPERTY):
        earlier |= 1
    if state & _OPEN1:
        earlier |= 2
    last = earlier
    if state & _TARGET0:
        last |= 1
    if state & _TARGET1:
        last |= 2
    return last | earlier << 2


@kernel
def _state_before(b, cell, back):
    """The reader's state on arriving at a cell, from the start of its run of words; `back` is the way to that start."""
    start = cell
    before = b.near[back, start]
    while before >= 0 and _words_at(b, before) != 0:
        start = before
        before = b.near[back, start]
    state = _OPEN0
    while start != cell:
        state = _next_state(state, _words_at(b, start))
        start = b.near[back ^ 1, start]
    return state


@inlined
def _nouns_at(b, cell):
    """The groups named by the words in a cell, as a bit mask."""
    groups = np.int64(0)
    o = b.head[cell]
    while o >= 0:
        if b.word_class[b.kind[o]] == NOUN:
            groups |= np.int64(1) << b.word_value[b.kind[o]]
        o = b.link[o]
    return groups


@inlined
def _properties_at(b, cell):
    """The properties named by the words in a cell, as a bit mask."""
    mask = 0
    o = b.head[cell]
    while o >= 0:
        if b.word_class[b.kind[o]] == PROPERTY:
            mask |= b.word_value[b.kind[o]]
        o = b.link[o]
    return mask


@kernel
def _named(groups, signs, num_groups):
    """The groups meant by nouns with the given signs; NOT X means every object type but X, and never TEXT."""
    named = np.int64(0)
    if signs & 1:
        named |= groups
    if signs & 2:
        objects = (np.int64(1) << (num_groups - 1)) - 1
        for g in range(num_groups):
            if groups >> g & 1:
                named |= objects & ~(np.int64(1) << g)
    return named


@kernel
def _subjects(b, verb, back):
    """The groups that the IS in cell `verb` speaks of, over all readings of what stands before it."""
    num_groups = len(b.props)
    here = b.near[back, verb]
    named = np.int64(0)
    last = True
    while here >= 0:
        nouns = _nouns_at(b, here)
        if nouns == 0:
            break
        signs = _signs(_state_before(b, here, back))
        named |= _named(nouns, signs & 3 if last else signs >> 2, num_groups)
        last = False
        # On to the noun before: over the NOTs of this one, then an AND
        here = b.near[back, here]
        joined = False
        while here >= 0:
            words = _words_at(b, here)
            if words & (1 << AND):
                joined = True
                break
            if not words & (1 << NOT):
                break
            here = b.near[back, here]
        if not joined:
            break
        here = b.near[back, here]
    return named


@kernel
def _tell(b, subjects, verb, forward, cancelled):
    """Gives the subjects of one IS its targets: properties and groups, asserted or (with NOT) cancelled.

    `cancelled` [G, 2] gathers what is taken away, properties and groups, until every rule has been read."""
    num_groups = len(b.props)
    here = b.near[forward, verb]
    state = _TARGET0
    while here >= 0 and state & (_TARGET0 | _TARGET1 | _TARGET_NOUN):
        words = _words_at(b, here)
        plain = state & _TARGET0
        negated = state & _TARGET1
        if plain or negated:
            nouns = _nouns_at(b, here)
            properties = _properties_at(b, here)
            for g in range(num_groups):
                if subjects >> g & 1:
                    if plain:
                        b.props[g] |= properties
                        b.becomes[g] |= nouns
                    if negated:
                        cancelled[g, 0] |= properties
                        cancelled[g, 1] |= nouns
        after = 0
        if words & (1 << NOT):
            after |= (plain << 1) | (negated >> 1)
        if (plain or negated) and words & ((1 << NOUN) | (1 << PROPERTY)):
            after |= _TARGET_NOUN
        if state & _TARGET_NOUN and words & (1 << AND):
            after |= _TARGET0
        state = after
        here = b.near[forward, here]


@kernel
def read_rules(b, cancelled):
    """Reads every rule on the board into `props`, `becomes` and `summary`. `cancelled` is scratch, int64 [G, 2]."""
    num_groups = len(b.props)
    b.props[:] = 0
    b.becomes[:] = 0
    cancelled[:] = 0
    for o in range(len(b.kind)):
        if b.kind[o] != DEAD and b.word_class[b.kind[o]] == IS:
            verb = b.cell[o]
            for back in (LEFT, UP):
                after = b.near[back ^ 1, verb]
                if after >= 0 and _words_at(b, after) != 0:
                    subjects = _subjects(b, verb, back)
                    if subjects != 0:
                        _tell(b, subjects, verb, back ^ 1, cancelled)
    everything = 0
    anything_transforms = 0
    for g in range(num_groups):
        b.props[g] &= ~cancelled[g, 0]
        b.becomes[g] &= ~cancelled[g, 1]
        itself = np.int64(1) << g
        if b.becomes[g] & itself:
            b.becomes[g] = 0  # X IS X: nothing else may become of it
        elif b.becomes[g] == 0 and cancelled[g, 1] & itself:
            b.becomes[g] = VANISHES
        if b.becomes[g] != 0:
            anything_transforms = 1
        if g == num_groups - 1:
            b.props[g] |= PUSH  # text is always PUSH
        everything |= b.props[g]
    b.summary[0] = everything
    b.summary[1] = anything_transforms
