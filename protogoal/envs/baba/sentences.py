"""The rules on a board as sentences, for people: "BABA IS YOU", and the blocks that spell it.

The engine keeps properties as bit masks and never needs to know which block said what; drawings and players do. Used by
`Level.parse` (is anything YOU at the start?), `render` (which words are crossed out) and `play`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from protogoal.envs.baba.rules import OPERATORS, PROPERTIES

Cell = tuple[int, int]
MAX_READINGS = 256  # of one run of stacked blocks; more than anyone could follow on a screen


@dataclass(frozen=True)
class Sentence:
    """One rule: subject IS target, each perhaps with NOT, and the blocks it is made of as (cell, word)."""

    subject: str
    target: str
    subject_negated: bool = False
    target_negated: bool = False
    blocks: frozenset[tuple[Cell, str]] = frozenset()

    def __str__(self) -> str:
        return f"{'NOT ' * self.subject_negated}{self.subject} IS {'NOT ' * self.target_negated}{self.target}"


def _is_noun(word: str) -> bool:
    return word not in OPERATORS and word not in PROPERTIES


def _parts(words: Sequence[str], start: int) -> list[tuple[int, bool, int]]:
    """A chain [NOT…] X (AND [NOT…] X)… from `start`: (place, negated, first place) of each X."""
    parts: list[tuple[int, bool, int]] = []
    i = start
    while True:
        first = i
        while i < len(words) and words[i] == "NOT":
            i += 1
        if i == len(words) or words[i] in OPERATORS:
            return parts
        parts.append((i, (i - first) % 2 == 1, first))
        if i + 1 >= len(words) or words[i + 1] != "AND":
            return parts
        i += 2


def _line(words: Sequence[str], cells: Sequence[Cell]) -> list[Sentence]:
    """The sentences in one line of blocks without stacks."""
    verbs = [i for i in range(1, len(words) - 1) if words[i] == "IS" and _is_noun(words[i - 1])]
    targets = {verb: _parts(words, verb + 1) for verb in verbs}
    taken = {place for parts in targets.values() for place, _, _ in parts}
    found = []
    for verb in verbs:
        subjects = []
        i = verb - 1
        while True:
            first = i
            while first > 0 and words[first - 1] == "NOT":
                first -= 1
            subjects.append((i, (i - first) % 2 == 1, first))
            i = first - 2
            if i < 0 or words[first - 1] != "AND" or not _is_noun(words[i]) or i in taken:
                break
        for s, s_negated, s_first in subjects:
            for t, t_negated, _ in targets[verb]:
                blocks = frozenset((cells[k], words[k]) for k in range(s_first, t + 1))
                found.append(Sentence(words[s], words[t], s_negated, t_negated, blocks))
    return found


def sentences(words: Mapping[Cell, Sequence[str]]) -> list[Sentence]:
    """All rules spelled by the word blocks in these cells; stacked blocks are read every way."""
    found: list[Sentence] = []
    for down, right in ((0, 1), (1, 0)):
        for r, c in sorted(words):
            if (r - down, c - right) in words:
                continue
            cells = []
            while (r, c) in words:
                cells.append((r, c))
                r, c = r + down, c + right
            if len(cells) >= 3:
                for reading in islice(product(*(sorted(set(words[cell])) for cell in cells)), MAX_READINGS):
                    found += [s for s in _line(reading, cells) if s not in found]
    return found


def in_force(found: Sequence[Sentence]) -> list[Sentence]:
    """The sentences that are not cancelled: X IS P falls to X IS NOT P, and NOT X IS P too where X is its exception."""
    cancelled = {(s.subject, s.target) for s in found if s.target_negated and not s.subject_negated}
    return [s for s in found if s.target_negated or s.subject_negated or (s.subject, s.target) not in cancelled]
