"""One vocabulary for all workers: a word must have the same bit wherever it is read.

A word that a worker has never seen is agreed upon here before it gets a bit, which happens a few hundred times a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import ray

from protogoal.goals.spaces import BagOfWords, ProtoGoalSpace, Union


class Words:
    """The vocabularies of a proto-goal space, in the order in which its bags of words stand."""

    def __init__(self, vocabularies: Sequence[Sequence[str]], capacities: Sequence[int]):
        self._words = [dict.fromkeys(words) for words in vocabularies]
        self._capacities = list(capacities)

    def agree(self, bag: int, new: list[str]) -> list[str]:
        """The whole vocabulary of one bag, with these words in it as far as there is room."""
        words = self._words[bag]
        for word in new:
            if len(words) < self._capacities[bag]:
                words.setdefault(word)
        return list(words)


def bags(space: ProtoGoalSpace) -> list[BagOfWords]:
    """The bags of words in a space."""
    if isinstance(space, Union):
        return [bag for part in space.spaces for bag in bags(part)]
    return [space] if isinstance(space, BagOfWords) else []


def share_words(space: ProtoGoalSpace, words: Any) -> None:
    """Makes a space ask the actor `words` (None: nobody) for the bits of new words, and takes over what is agreed already."""
    if words is None:
        return
    for i, bag in enumerate(bags(space)):
        bag.agree = partial(_ask, words, i)
    take_words(space)


def take_words(space: ProtoGoalSpace) -> None:
    """Brings the vocabularies up to date."""
    for bag in bags(space):
        if bag.agree is not None:
            bag.vocabulary = {word: i for i, word in enumerate(bag.agree([]))}


def _ask(words: Any, bag: int, new: list[str]) -> list[str]:
    answer: list[str] = ray.get(words.agree.remote(bag, new))
    return answer
