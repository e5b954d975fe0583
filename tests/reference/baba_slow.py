"""Baba Is You, slowly and obviously: one game of Python objects, names instead of numbers, every reading spelled out.

Compared object for object with the compiled engine. It shares nothing with that engine but the `Level` it starts from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

from protogoal.envs.baba.levels import Level

PROPERTIES = {"YOU", "WIN", "PUSH", "STOP", "MOVE", "DEFEAT", "SINK", "HOT", "MELT", "OPEN", "SHUT", "WEAK", "SHIFT", "FLOAT"}
STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
ACTIONS = ("up", "down", "left", "right", None)


def word_type(word: str) -> str:
    if word in ("IS", "AND", "NOT"):
        return word
    return "property" if word in PROPERTIES else "noun"


@dataclass(eq=False)
class Thing:
    slot: int
    name: str
    row: int
    column: int
    face: str
    alive: bool = True

    @property
    def is_word(self) -> bool:
        return self.name.isupper()

    @property
    def noun(self) -> str:
        """What rules call it: TEXT for a word, else its name in upper case."""
        return "TEXT" if self.is_word else self.name.upper()

    @property
    def place(self) -> tuple[int, int]:
        return self.row, self.column


@cache
def read_sentence(words: tuple[str, ...]) -> set[tuple[bool, str, bool, str]]:
    """The rules in one line of words without stacks: (subject negated, subject, target negated, target)."""
    types = [word_type(word) for word in words]

    def nots_before(i: int) -> int:
        count = 0
        while i - count - 1 >= 0 and types[i - count - 1] == "NOT":
            count += 1
        return count

    def targets_of(verb: int) -> list[tuple[int, bool]]:
        found = []
        i = verb + 1
        while True:
            negated = False
            while i < len(words) and types[i] == "NOT":
                negated = not negated
                i += 1
            if i >= len(words) or types[i] not in ("noun", "property"):
                return found
            found.append((i, negated))
            i += 1
            if i >= len(words) or types[i] != "AND":
                return found
            i += 1

    verbs = [i for i in range(1, len(words)) if types[i] == "IS" and types[i - 1] == "noun"]
    already_targets = {i for verb in verbs for i, _ in targets_of(verb)}
    rules = set()
    for verb in verbs:
        subjects = [verb - 1]
        while True:
            i = subjects[-1]
            joint = i - nots_before(i) - 1
            if joint < 1 or types[joint] != "AND" or types[joint - 1] != "noun" or joint - 1 in already_targets:
                break
            subjects.append(joint - 1)
        for subject in subjects:
            for target, negated in targets_of(verb):
                rules.add((nots_before(subject) % 2 == 1, words[subject], negated, words[target]))
    return rules


class SlowGame:
    """One game. `won` and `lost` speak of the last turn."""

    def __init__(self, level: Level):
        self.level = level
        self.slots: list[Thing | None] = [None] * level.capacity
        self.object_names = [name for name in level.kinds if name.islower()]
        directions = list(STEPS)
        for slot, (kind, cell, face) in enumerate(zip(level.kind, level.cell, level.face, strict=True)):
            row, column = divmod(int(cell), level.width)
            self.slots[slot] = Thing(slot, level.kinds[kind], row, column, directions[face])
        self.won = False
        self.words: dict[tuple[int, int], set[str]] | None = None  # as last read
        self.by_place: dict[tuple[int, int], list[Thing]] | None = None  # None after something has come or moved
        self.read_rules()
        self.transform()
        self.read_rules()

    @property
    def things(self) -> list[Thing]:
        return [thing for thing in self.slots if thing is not None]

    def at(self, place: tuple[int, int]) -> list[Thing]:
        if self.by_place is None:
            self.by_place = {}
            for thing in self.things:
                self.by_place.setdefault(thing.place, []).append(thing)
        return [thing for thing in self.by_place.get(place, ()) if thing.alive]

    def remove(self, thing: Thing) -> None:
        thing.alive = False
        self.slots[thing.slot] = None

    # Rules

    def read_rules(self) -> None:
        words: dict[tuple[int, int], set[str]] = {}
        for thing in self.things:
            if thing.is_word:
                words.setdefault(thing.place, set()).add(thing.name)
        if words == self.words:
            return
        self.words = words
        rules = set()
        for down, right in ((0, 1), (1, 0)):
            for row, column in words:
                if (row - down, column - right) not in words:  # a run of words begins here
                    run = []
                    while (row, column) in words:
                        run.append(words[row, column])
                        row, column = row + down, column + right
                    for reading in product(*run):
                        rules |= read_sentence(reading)
        nouns = [name.upper() for name in self.object_names]
        asserted: set[tuple[str, str]] = set()
        cancelled: set[tuple[str, str]] = set()
        for subject_negated, subject, target_negated, target in rules:
            for noun in [n for n in nouns if n != subject] if subject_negated else [subject]:
                (cancelled if target_negated else asserted).add((noun, target))
        self.rules = asserted - cancelled
        self.destroyed = {noun for noun in nouns if (noun, noun) in cancelled} | (
            {"TEXT"} if ("TEXT", "TEXT") in cancelled else set())
        self.qualities = {name: {target for noun, target in self.rules if noun == name.upper()} for name in self.object_names}
        of_text = {target for noun, target in self.rules if noun == "TEXT"} | {"PUSH"}
        self.qualities |= {name: of_text for name in self.level.kinds if name.isupper()}

    def has(self, thing: Thing, quality: str) -> bool:
        return quality in self.qualities[thing.name]

    def same_level(self, a: Thing, b: Thing) -> bool:
        return self.has(a, "FLOAT") == self.has(b, "FLOAT")

    # Movement

    def ahead(self, thing: Thing, direction: str) -> tuple[int, int] | None:
        row, column = thing.row + STEPS[direction][0], thing.column + STEPS[direction][1]
        inside = 0 <= row < self.level.height and 0 <= column < self.level.width
        return (row, column) if inside and not self.level.terrain[row, column] else None

    def unlocks(self, mover: Thing, other: Thing) -> bool:
        if not self.same_level(mover, other):
            return False
        if self.has(mover, "OPEN"):
            return self.has(other, "SHUT")
        return self.has(mover, "SHUT") and self.has(other, "OPEN")

    def obstacles(self, mover: Thing, direction: str) -> list[Thing]:
        """What must be pushed or stops the mover in the cell ahead, once those who are leaving are left out."""
        found = []
        for other in self.at(self.ahead(mover, direction)):
            leaving = self.leaving.get(other, set())
            gives_way = bool(leaving) if self.shifting else bool(leaving & {direction, OPPOSITE[direction]})
            if gives_way or self.unlocks(mover, other):
                continue
            if self.has(other, "PUSH") or (self.has(other, "STOP") and not self.has(other, "WEAK")):
                found.append(other)
        return found

    def can_go(self, thing: Thing, direction: str) -> bool:
        if self.ahead(thing, direction) is None:
            return False
        return all(self.has(o, "PUSH") and (self.has(o, "WEAK") or self.can_go(o, direction))
                   for o in self.obstacles(thing, direction))

    def push(self, pusher: Thing, direction: str) -> None:
        pushers = [pusher]
        while pushers:
            pushed = sorted({o for p in pushers for o in self.obstacles(p, direction)}, key=lambda o: o.slot)
            can = {o: self.can_go(o, direction) for o in pushed}
            for thing in pushed:
                if can[thing]:
                    self.grant(thing, direction)
                else:
                    self.remove(thing)  # WEAK
            pushers = [thing for thing in pushed if can[thing]]

    def grant(self, thing: Thing, direction: str) -> None:
        if (thing, direction) not in self.granted:
            self.granted.append((thing, direction))

    def carry_out(self) -> None:
        """Those granted a move in this pass are now leaving, unless they meet their lock."""
        for thing, direction in self.granted:
            if not thing.alive:
                continue
            locks = [o for o in self.at(self.ahead(thing, direction))
                     if self.unlocks(thing, o) and o not in self.leaving and all(o is not g for g, _ in self.granted)]
            if locks:
                self.remove(locks[0])
                self.remove(thing)
            else:
                self.leaving.setdefault(thing, set()).add(direction)
                self.heading[thing] = direction
        self.granted = []

    def take(self, movers: list[Thing], turns_round: bool, shifting: bool) -> None:
        """The game's loop: free ways, then pushers, then the blocked again; a blocked MOVE turns round."""
        if not movers:
            return
        self.leaving: dict[Thing, set[str]] = {}
        self.heading: dict[Thing, str] = {}
        self.granted: list[tuple[Thing, str]] = []
        self.shifting = shifting
        stage = dict.fromkeys(movers, 0)
        while stage:
            now = min(stage.values())
            for mover in list(movers):
                if stage.get(mover) != now:
                    continue
                if not mover.alive:
                    del stage[mover]
                    continue
                if now == 3 and turns_round:
                    mover.face = OPPOSITE[mover.face]
                direction = mover.face
                obstacles = self.obstacles(mover, direction) if self.ahead(mover, direction) else []
                if now == 0 and obstacles and all(self.has(o, "PUSH") for o in obstacles):
                    stage[mover] = 1  # pushers wait until those with a free way have gone
                elif not self.can_go(mover, direction):
                    if now < 2:
                        stage[mover] = 2
                    elif now == 2:
                        stage[mover] = 3
                    elif now == 3 and turns_round:
                        stage[mover] = 4
                    else:
                        if self.has(mover, "WEAK"):
                            self.remove(mover)
                        del stage[mover]
                else:
                    if obstacles:
                        self.push(mover, direction)
                    if now > 0:
                        stage = {m: 0 if s >= 2 else s for m, s in stage.items()}
                    self.grant(mover, direction)
                    del stage[mover]
            self.carry_out()
        for thing, direction in self.heading.items():
            if thing.alive:
                thing.row += STEPS[direction][0]
                thing.column += STEPS[direction][1]
                thing.face = direction
        self.by_place = None

    # The turn

    def transform(self) -> None:
        nouns = [name.upper() for name in self.object_names] + ["TEXT"]
        targets_of = {name: [noun for noun in nouns if noun in self.qualities[name]] for name in self.level.kinds}
        for thing in self.things:
            targets = targets_of[thing.name]
            if thing.noun in targets:
                continue
            if not targets:
                if thing.noun in self.destroyed:
                    self.remove(thing)
                continue
            names = [thing.name.upper() if target == "TEXT" else target.lower() for target in targets]
            thing.name = names[0]
            for name in names[1:]:
                if None in self.slots:
                    slot = self.slots.index(None)
                    self.slots[slot] = Thing(slot, name, thing.row, thing.column, thing.face)
                    self.by_place = None

    def interact(self) -> None:
        def here(thing: Thing) -> list[Thing]:
            return [o for o in self.at(thing.place) if self.same_level(thing, o)]

        for thing in self.things:
            if thing.alive and self.has(thing, "SINK"):
                others = [o for o in here(thing) if o is not thing]
                if others:
                    self.remove(thing)
                    self.remove(others[0])
        for thing in [t for t in self.things if self.has(t, "WEAK") and len(here(t)) > 1]:
            self.remove(thing)
        for thing in [t for t in self.things if self.has(t, "MELT") and any(self.has(o, "HOT") for o in here(t))]:
            self.remove(thing)
        for thing in [t for t in self.things if self.has(t, "YOU") and any(self.has(o, "DEFEAT") for o in here(t))]:
            self.remove(thing)
        for thing in self.things:
            if thing.alive and self.has(thing, "SHUT"):
                keys = [o for o in here(thing) if self.has(o, "OPEN")]
                if keys:
                    self.remove(thing)
                    if keys[0] is not thing:
                        self.remove(keys[0])
        self.won = any(self.has(t, "YOU") and any(self.has(o, "WIN") for o in here(t)) for t in self.things)

    def turn(self, action: int) -> None:
        direction = ACTIONS[action]
        if direction is not None:
            yous = [t for t in self.things if self.has(t, "YOU")]
            for thing in yous:
                thing.face = direction
            self.take(yous, turns_round=False, shifting=False)
        self.take([t for t in self.things if self.has(t, "MOVE")], turns_round=True, shifting=False)
        faces = {}
        belts = [t for t in self.things if self.has(t, "SHIFT")]
        for thing in self.things:
            under = [o for o in belts if o is not thing and o.place == thing.place and self.same_level(thing, o)]
            if under:
                faces[thing] = under[0].face
        for thing, face in faces.items():
            thing.face = face
        self.take(list(faces), turns_round=False, shifting=True)
        self.read_rules()
        self.transform()
        self.read_rules()
        self.interact()
        self.read_rules()

    @property
    def lost(self) -> bool:
        return not any(self.has(thing, "YOU") for thing in self.things)

    def snapshot(self) -> list[tuple[int, str, int, int, str]]:
        return [(t.slot, t.name, t.row, t.column, t.face) for t in self.things]
