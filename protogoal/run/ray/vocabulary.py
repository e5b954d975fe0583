"""One vocabulary for all who read: a word must have the same bit wherever it is read.

A word that a reader has never seen is agreed upon here before it gets a bit, which happens some hundred or thousand times a run.
`VocabularyClient` has a copy, and hears of each new word before any reader does: a bit with two meanings would spoil
all of replay. If the process dies, a new one starts from the copy, under a name by which the readers find it; those that
ask meanwhile wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayActorError

from protogoal.goals.spaces import BagOfWords, ProtoGoalSpace, Union
from protogoal.run.ray.supervisor import WATCH, Role, RunContext, start_role

WATCH_SECONDS = 5.0
"""How long a watch lasts in which nothing happens."""

REDIAL_SECONDS = 0.2


class VocabularyRole(Role):
    """The vocabularies of a proto-goal space, in the order in which its bags of words stand.

    Where it `is_watched`, nothing is answered that the one who watches has not got.
    """

    def __init__(self, vocabularies: Sequence[Sequence[str]], capacities: Sequence[int], is_watched: bool = False):
        self._capacities, self._is_watched = list(capacities), is_watched
        self._version, self._seen = 0, -1  # as it is, and as the one who watches has it
        self._changed, self._watched = asyncio.Event(), asyncio.Event()
        self.load(vocabularies)

    async def agree(self, bag: int, new: Sequence[str], known: int = 0) -> list[str]:
        """The vocabulary of one bag after the first `known` words, with the new ones in it as far as there is room."""
        words = self._words[bag]
        size = len(words)
        for word in new:
            if len(words) < self._capacities[bag]:
                words.setdefault(word)
        if len(words) > size:
            self._tell()
        answer, version = list(itertools.islice(words, known, None)), self._version
        while self._is_watched and self._seen < version:
            await self._watched.wait()
        return answer

    async def watch(self, version: int, seconds: float) -> tuple[int, list[list[str]]]:
        """From one who has that version: answers when there is another, or after some seconds, with what there is now."""
        self._seen = version
        self._watched.set()
        self._watched = asyncio.Event()
        if version == self._version:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
        return self._version, self.state()

    def _tell(self) -> None:
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def state(self) -> list[list[str]]:
        return [list(words) for words in self._words]

    def load(self, vocabularies: Sequence[Sequence[str]]) -> None:
        """Goes on from vocabularies."""
        self._words = [dict.fromkeys(words) for words in vocabularies]
        self._tell()


class VocabularyHandle:
    """How a reader reaches `VocabularyRole`, whichever process that is now."""

    def __init__(self, name: str, handle: Any):
        self.name, self.handle = name, handle

    def agree(self, bag: int, new: Sequence[str], known: int = 0) -> list[str]:
        """`VocabularyRole.agree`; waits for a new process if the old one has died. The session ends a wait that is too long."""
        while True:
            try:
                answer: list[str] = ray.get(self.handle.agree.remote(bag, new, known))
                return answer
            except RayActorError:
                time.sleep(REDIAL_SECONDS)
                self._redial()

    def _redial(self) -> None:
        lives = [name for name in ray.util.list_named_actors() if name.startswith(self.name)]
        if lives:
            with contextlib.suppress(ValueError):  # it is gone already
                self.handle = ray.get_actor(max(lives))


class VocabularyClient:
    """The client of `VocabularyRole`. `readers` is what readers ask: it always leads to the newest process."""

    def __init__(self, context: RunContext, space: ProtoGoalSpace):
        self.context = context
        self.words = vocabularies(space)
        self._capacities = [bag.size for bag in bags(space)]
        self._name = f"words-{uuid.uuid4().hex}"
        self._version = -1
        self.process = context.supervisor.add("vocabulary", self._start, self._died)
        self.readers = VocabularyHandle(self._name, self.process.handle)
        self._watch()

    def _start(self, life: int) -> Any:
        return start_role(VocabularyRole, self.words, self._capacities, True, cpus=0, name=f"{self._name}-{life:06d}")

    def _watch(self) -> None:
        seconds = min(WATCH_SECONDS, self.context.supervisor.answer_seconds / 4)
        self.context.supervisor.call(self.process, WATCH, self.process.handle.watch.remote(self._version, seconds), self._heard)

    def _heard(self, answer: tuple[int, list[list[str]]]) -> None:
        self._version, self.words = answer
        self._watch()

    def _died(self, why: str) -> None:
        self.context.event(f"vocabulary died ({why}): it starts again with {sum(map(len, self.words)):,} words")
        self.readers.handle, self._version = self.process.handle, -1
        self._watch()

    def load(self, words: Sequence[Sequence[str]]) -> None:
        """Goes on from vocabularies; the readers have to take them over."""
        self.words = [list(some) for some in words]
        self.context.supervisor.call(self.process, "load", self.process.handle.load.remote(self.words))


def bags(space: ProtoGoalSpace) -> list[BagOfWords]:
    """The bags of words in a space."""
    if isinstance(space, Union):
        return [bag for part in space.spaces for bag in bags(part)]
    return [space] if isinstance(space, BagOfWords) else []


def vocabularies(space: ProtoGoalSpace) -> list[list[str]]:
    """Of each bag its words, in the order of their bits."""
    return [list(bag.vocabulary) for bag in bags(space)]


def set_words(space: ProtoGoalSpace, words: Sequence[Sequence[str]]) -> None:
    """Gives each bag its words."""
    for bag, some in zip(bags(space), words, strict=True):
        bag.vocabulary = {word: i for i, word in enumerate(some)}


def share_words(space: ProtoGoalSpace, vocabulary: VocabularyHandle | None) -> None:
    """Makes a space ask (None: nobody) for the bits of new words, and takes over what is agreed already."""
    if vocabulary is None:
        return
    for i, bag in enumerate(bags(space)):
        bag.agree = partial(vocabulary.agree, i)
    take_words(space, vocabulary)


def take_words(space: ProtoGoalSpace, vocabulary: VocabularyHandle | None) -> None:
    """Brings the vocabularies up to date; what a space knew before counts for nothing."""
    if vocabulary is not None:
        set_words(space, [vocabulary.agree(i, []) for i in range(len(bags(space)))])


def saved_words(space: ProtoGoalSpace, states: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Of several states of a space the longest vocabularies: all begin alike, as words are only ever added.

    `space` gets them; what else it has learned is the first state's.
    """
    longest = [list[str]() for _ in bags(space)]
    for state in reversed(states):
        space.load_state_dict(state)
        longest = [max(pair, key=len) for pair in zip(longest, vocabularies(space), strict=True)]
    set_words(space, longest)
    return longest
