"""Movement: YOU, then MOVE, then SHIFT, each a "take" in which all its movers go at once (BABA: turn order, movement).

Within a take nobody's position changes; an object that has been granted its move is marked as leaving, and no longer
stands in the way of those who go the same way (or, head on, the opposite way). Movers are granted their moves in the
game's order: first those with a free way, then those who push, then the blocked ones try again, until nothing changes.
A MOVE object that is still blocked turns round and tries once more. So a row of solid YOUs walks as one, and two
walkers that push the same block push it once.

In the way are: the edge and terrain; STOP, unless it is also PUSH or WEAK; PUSH that cannot itself be pushed on.
OPEN and SHUT are no obstacle to each other: whoever steps in opens, and both vanish. A WEAK object that is pushed
against something solid breaks, and so does a WEAK mover that ends up blocked.

`engine.turn` calls `move`; the rules are not re-read between the takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from protogoal.envs.baba.rules import DEAD, FLOAT, MOVE, NOOP, OPEN, PUSH, SHIFT, SHUT, STOP, WEAK, YOU, inlined, kernel

FREE, PUSHING, BLOCKED = range(3)
YOU_TAKE, MOVE_TAKE, SHIFT_TAKE = range(3)
_FIRST_TRY, _PUSHERS, _RETRY, _TURN, _LAST_TRY, _SETTLED = 0, 1, 2, 3, 4, 9  # stages of one mover


class Scratch(NamedTuple):
    """Working memory of one turn, shared by all games of a batch. Left clean: all marks are zero between turns."""

    leaving: np.ndarray  # uint8 [M]: directions granted in this take, as bits
    granted: np.ndarray  # uint8 [M]: directions granted in this pass, as bits, not yet carried out
    heading: np.ndarray  # uint8 [M]: the last direction granted
    queue: np.ndarray  # int32 [4·M]: object · 4 + direction, granted in this pass
    left: np.ndarray  # int16 [M]: objects that leave in this take
    mover: np.ndarray  # int16 [M]
    stage: np.ndarray  # uint8 [M], beside mover
    can_go: np.ndarray  # uint8 [M]: of a pushed object: the way ahead of it is, or can be made, free
    pushed: np.ndarray  # uint8 [M]
    doomed: np.ndarray  # uint8 [M]: for the interactions
    cancelled: np.ndarray  # int64 [G, 2]: for the reader
    tally: np.ndarray  # int64 [4]: length of queue, of left; whether words changed, whether anything changed


QUEUED, LEFT_COUNT, WORDS_CHANGED, CHANGED = range(4)  # places in Scratch.tally


@inlined
def unlink(b, o):
    """Takes an object out of its cell's list."""
    cell = b.cell[o]
    if b.head[cell] == o:
        b.head[cell] = b.link[o]
        return
    p = b.head[cell]
    while b.link[p] != o:
        p = b.link[p]
    b.link[p] = b.link[o]


@inlined
def link(b, o, cell):
    """Puts an object into a cell; the lists stay in slot order, so that nothing depends on who came first."""
    b.cell[o] = cell
    p = b.head[cell]
    if p < 0 or p > o:
        b.link[o] = p
        b.head[cell] = o
        return
    while b.link[p] >= 0 and b.link[p] < o:
        p = b.link[p]
    b.link[o] = b.link[p]
    b.link[p] = o


@kernel
def remove(b, s, o):
    """An object vanishes."""
    unlink(b, o)
    if b.word_class[b.kind[o]] != 0:
        s.tally[WORDS_CHANGED] = 1
    s.tally[CHANGED] = 1
    b.kind[o] = DEAD


@inlined
def opens(mine, theirs):
    """Whether a mover with properties `mine` unlocks a thing with `theirs` by stepping in."""
    if (mine ^ theirs) & FLOAT:
        return False
    if mine & OPEN:
        return theirs & SHUT != 0
    return mine & SHUT != 0 and theirs & OPEN != 0


@inlined
def _gives_way(s, o, d, shifted):
    """Whether an object is leaving, so that a mover in direction d need not mind it."""
    leaving = s.leaving[o]
    if shifted:
        return leaving != 0
    return leaving & (1 << d | 1 << (d ^ 1)) != 0


@inlined
def _look(b, s, i, d, shifted):
    """What is ahead of object i: FREE, PUSHING or BLOCKED."""
    ahead = b.near[d, b.cell[i]]
    if ahead < 0:
        return BLOCKED
    mine = b.props[b.group[b.kind[i]]]
    result = FREE
    o = b.head[ahead]
    while o >= 0:
        theirs = b.props[b.group[b.kind[o]]]
        if theirs & (PUSH | STOP) and not _gives_way(s, o, d, shifted) and not opens(mine, theirs):
            if theirs & PUSH:
                result = PUSHING
            elif not theirs & WEAK:
                return BLOCKED
        o = b.link[o]
    return result


@kernel
def _way_is_open(b, s, i, d, shifted):
    """Whether object i could step ahead, given `can_go` of all that would have to be pushed."""
    ahead = b.near[d, b.cell[i]]
    if ahead < 0:
        return False
    mine = b.props[b.group[b.kind[i]]]
    o = b.head[ahead]
    while o >= 0:
        theirs = b.props[b.group[b.kind[o]]]
        solid = theirs & (PUSH | STOP) and not theirs & WEAK and not (theirs & PUSH and s.can_go[o])
        if solid and not _gives_way(s, o, d, shifted) and not opens(mine, theirs):
            return False
        o = b.link[o]
    return True


@kernel
def _holds_push(b, cell):
    o = b.head[cell]
    while o >= 0:
        if b.props[b.group[b.kind[o]]] & PUSH:
            return True
        o = b.link[o]
    return False


@kernel
def _can_push(b, s, i, d, shifted):
    """All or nothing: whether everything i would push can go. Works from the far end of the chain back to i."""
    first = b.near[d, b.cell[i]]
    cell = first
    while True:
        beyond = b.near[d, cell]
        if beyond < 0 or not _holds_push(b, beyond):
            break
        cell = beyond
    while True:
        o = b.head[cell]
        while o >= 0:
            if b.props[b.group[b.kind[o]]] & PUSH:
                s.can_go[o] = _way_is_open(b, s, o, d, shifted)
            o = b.link[o]
        if cell == first:
            break
        cell = b.near[d ^ 1, cell]
    return _way_is_open(b, s, i, d, shifted)


@inlined
def _grant(s, o, d):
    if not s.granted[o] & 1 << d:
        s.granted[o] |= 1 << d
        s.queue[s.tally[QUEUED]] = o * 4 + d
        s.tally[QUEUED] += 1


@kernel
def _push(b, s, i, d, shifted):
    """Grants the move to everything i pushes, cell by cell; WEAK objects that cannot go break instead."""
    pusher_cell = b.cell[i]
    s.pushed[i] = 1
    while True:
        ahead = b.near[d, pusher_cell]
        any_pushed = False
        o = b.head[ahead] if ahead >= 0 else -1
        while o >= 0:
            following = b.link[o]
            theirs = b.props[b.group[b.kind[o]]]
            if theirs & PUSH and not _gives_way(s, o, d, shifted):
                p = b.head[pusher_cell]
                while p >= 0:
                    if s.pushed[p] and not opens(b.props[b.group[b.kind[p]]], theirs):
                        break
                    p = b.link[p]
                if p >= 0:
                    if s.can_go[o]:
                        s.pushed[o] = 1
                        any_pushed = True
                        _grant(s, o, d)
                    else:
                        remove(b, s, o)
            o = following
        p = b.head[pusher_cell]
        while p >= 0:
            s.pushed[p] = 0
            p = b.link[p]
        if not any_pushed:
            return
        pusher_cell = ahead


@inlined
def _carry_out(b, s):
    """Ends a pass: those granted a move are now leaving, or meet their lock and vanish with it, one for one."""
    for q in range(s.tally[QUEUED]):
        o = s.queue[q] >> 2
        d = s.queue[q] & 3
        if b.kind[o] == DEAD:
            continue
        mine = b.props[b.group[b.kind[o]]]
        if mine & (OPEN | SHUT):
            other = b.head[b.near[d, b.cell[o]]]
            while other >= 0:
                still = s.leaving[other] == 0 and s.granted[other] == 0
                if still and opens(mine, b.props[b.group[b.kind[other]]]):
                    break
                other = b.link[other]
            if other >= 0:
                remove(b, s, other)
                remove(b, s, o)
                continue
        if s.leaving[o] == 0:
            s.left[s.tally[LEFT_COUNT]] = o
            s.tally[LEFT_COUNT] += 1
        s.leaving[o] |= 1 << d
        s.heading[o] = d
    for q in range(s.tally[QUEUED]):
        s.granted[s.queue[q] >> 2] = 0
    s.tally[QUEUED] = 0


@inlined
def _relocate(b, s):
    """Ends a take: everyone who is leaving arrives."""
    for k in range(s.tally[LEFT_COUNT]):
        o = s.left[k]
        s.leaving[o] = 0
        if b.kind[o] == DEAD:
            continue
        d = s.heading[o]
        unlink(b, o)
        link(b, o, b.near[d, b.cell[o]])
        b.face[o] = d
        s.tally[CHANGED] = 1
        if b.word_class[b.kind[o]] != 0:
            s.tally[WORDS_CHANGED] = 1
    s.tally[LEFT_COUNT] = 0


@inlined
def _take(b, s, num_movers, turns_round, shifted):
    """Moves all movers, each in the direction it faces. The stages of a mover are those of the game."""
    unsettled = num_movers
    for m in range(num_movers):
        s.stage[m] = _FIRST_TRY
    while unsettled > 0:
        stage = _SETTLED
        for m in range(num_movers):
            stage = min(stage, s.stage[m])
        for m in range(num_movers):
            if s.stage[m] != stage:
                continue
            i = s.mover[m]
            if b.kind[i] == DEAD:
                s.stage[m] = _SETTLED
                unsettled -= 1
                continue
            if stage == _TURN and turns_round:
                b.face[i] ^= 1
            d = b.face[i]
            ahead = _look(b, s, i, d, shifted)
            if stage == _FIRST_TRY and ahead == PUSHING:
                s.stage[m] = _PUSHERS
                continue
            if ahead == PUSHING:
                if _can_push(b, s, i, d, shifted):
                    _push(b, s, i, d, shifted)
                    ahead = FREE
                else:
                    ahead = BLOCKED
            if ahead == FREE:
                if stage > _FIRST_TRY:  # the way may now be free for those who were blocked
                    for j in range(num_movers):
                        if _RETRY <= s.stage[j] < _SETTLED:
                            s.stage[j] = _FIRST_TRY
                _grant(s, i, d)
                s.stage[m] = _SETTLED
                unsettled -= 1
            elif stage < _RETRY:
                s.stage[m] = _RETRY
            elif stage == _RETRY:
                s.stage[m] = _TURN
            elif stage == _TURN and turns_round:
                s.stage[m] = _LAST_TRY
            else:
                if b.props[b.group[b.kind[i]]] & WEAK:
                    remove(b, s, i)
                s.stage[m] = _SETTLED
                unsettled -= 1
        _carry_out(b, s)
    _relocate(b, s)


@inlined
def _gather(b, s, take, d):
    """Lists the movers of a take and turns them to where they go; returns how many there are."""
    movers = 0
    for i in range(len(b.kind)):
        if b.kind[i] == DEAD:
            continue
        mine = b.props[b.group[b.kind[i]]]
        if take == YOU_TAKE:
            if mine & YOU:
                b.face[i] = d
                s.mover[movers] = i
                movers += 1
        elif take == MOVE_TAKE:
            if mine & MOVE:
                s.mover[movers] = i
                movers += 1
        else:
            o = b.head[b.cell[i]]
            while o >= 0:
                theirs = b.props[b.group[b.kind[o]]]
                if o != i and theirs & SHIFT and not (mine ^ theirs) & FLOAT:
                    s.mover[movers] = i
                    s.heading[i] = b.face[o]
                    movers += 1
                    break
                o = b.link[o]
    if take == SHIFT_TAKE:  # only now, so that two SHIFTs on one another both use their old facing
        for m in range(movers):
            b.face[s.mover[m]] = s.heading[s.mover[m]]
    return movers


@inlined
def move(b, s, action):
    """Step 1 of a turn. Of several SHIFTs under one object the first counts; two rules that say MOVE move it once."""
    for take in range(3):
        wanted = YOU if take == YOU_TAKE else MOVE if take == MOVE_TAKE else SHIFT
        if b.summary[0] & wanted and not (take == YOU_TAKE and action == NOOP):
            movers = _gather(b, s, take, action)
            if movers > 0:
                _take(b, s, movers, take == MOVE_TAKE, take == SHIFT_TAKE)
