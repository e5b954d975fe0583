"""The compiled engine against the slow one, object for object, on random play over random levels."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.baba_slow import STEPS, SlowGame, read_sentence

from protogoal.envs.baba import BabaBatch, Legend, Level
from protogoal.envs.baba.rules import DEAD, PROPERTIES
from protogoal.envs.baba.sentences import sentences

STEPS_PER_LEVEL = 105
LEVELS = 1000
assert STEPS_PER_LEVEL * LEVELS >= 100_000

OBJECTS = ("baba", "rock", "flag", "door", "belt")
NOUNS = ("BABA", "ROCK", "FLAG", "DOOR", "BELT", "TEXT")
DIRECTIONS = tuple(STEPS)
THEMES = (  # rules that only matter together
    ("DOOR IS SHUT AND STOP", "ROCK IS OPEN AND PUSH"),
    ("DOOR IS SHUT", "BABA IS OPEN"),
    ("DOOR IS SHUT AND PUSH", "ROCK IS OPEN AND MOVE"),
    ("BABA IS MELT", "ROCK IS HOT", "ROCK IS PUSH"),
    ("ROCK IS PUSH AND WEAK", "DOOR IS STOP"),
    ("BABA IS YOU AND STOP", "ROCK IS YOU AND PUSH"),
    ("ROCK IS MOVE AND PUSH", "BELT IS SHIFT"),
    ("ROCK IS MOVE AND STOP", "FLAG IS MOVE AND PUSH", "BABA IS PUSH"),
    ("ROCK IS FLAG AND DOOR", "FLAG IS ROCK"),
    ("BELT IS SHIFT AND FLOAT", "ROCK IS FLOAT AND SINK"),
)


def random_sentence(rng: np.random.Generator) -> list[str]:
    """A few words that make a rule, mostly noun IS property; now and then with AND, NOT and nouns as targets."""

    def noun() -> list[str]:
        return ["NOT"] * (rng.random() < 0.08) + [rng.choice(NOUNS, p=(0.2, 0.2, 0.2, 0.15, 0.15, 0.1))]

    def target() -> list[str]:
        return ["NOT"] * (rng.random() < 0.08) + [rng.choice(NOUNS if rng.random() < 0.25 else PROPERTIES)]

    words = noun()
    while rng.random() < 0.15:
        words += ["AND", *noun()]
    words += ["IS", *target()]
    while rng.random() < 0.3:
        words += ["AND", *target()]
    if rng.random() < 0.05:
        words += ["IS", *target()]
    return [str(word) for word in words]


def random_level(rng: np.random.Generator) -> Level:
    """A small board, crowded with rules, stacks, terrain, loose words, and things that face every way."""
    height, width = int(rng.integers(3, 9)), int(rng.integers(4, 10))
    cells: dict[tuple[int, int], list[str]] = {}

    def spell(words: list[str], row: int, column: int, down: bool) -> None:
        for k, word in enumerate(words):
            place = (row + k, column) if down else (row, column + k)
            if place[0] < height and place[1] < width:
                cells.setdefault(place, []).append(word)

    def anywhere() -> tuple[int, int]:
        return int(rng.integers(height)), int(rng.integers(width))

    spell([str(rng.choice(("BABA", "BABA", "BABA", "ROCK", "TEXT"))), "IS", "YOU"], 0, int(rng.integers(width - 2)), False)
    theme = [rule.split() for rule in THEMES[rng.integers(len(THEMES))]] if rng.random() < 0.6 else []
    for words in theme + [random_sentence(rng) for _ in range(rng.integers(1, 5))]:
        down = rng.random() < 0.4
        starts = [(r, c) for r in range(height - (len(words) - 1) * down) for c in range(width - (len(words) - 1) * (not down))]
        starts = [s for s in starts if not any((s[0] + k * down, s[1] + k * (not down)) in cells for k in range(len(words)))]
        if starts and rng.random() < 0.95:
            spell(words, *starts[rng.integers(len(starts))], down)
        else:
            spell(words, *anywhere(), down)
    for _ in range(rng.integers(2, 13)):
        words = (*NOUNS, "IS", "IS", "IS", "AND", "NOT", *PROPERTIES)
        name = rng.choice(OBJECTS) if rng.random() < 0.8 else rng.choice(words)
        place = list(cells)[rng.integers(len(cells))] if rng.random() < 0.15 else anywhere()
        cells.setdefault(place, []).append(f"{name} {rng.choice(DIRECTIONS)}")
    symbols = {".": "empty", "#": "terrain"}
    rows = [["."] * width for _ in range(height)]
    for k, ((r, c), names) in enumerate(sorted(cells.items())):
        symbols[chr(0x100 + k)] = " + ".join(names)
        rows[r][c] = chr(0x100 + k)
    for r, c in [anywhere() for _ in range(rng.integers(0, 4))]:
        if rows[r][c] == ".":
            rows[r][c] = "#"
    return Level.parse("\n".join("".join(row) for row in rows), Legend(symbols, player_at_start=False))


def snapshot(batch: BabaBatch) -> list[tuple[int, str, int, int, str]]:
    """What the compiled engine holds, in the slow engine's terms."""
    state = batch.get_state()
    rows = zip(state["kind"][0].tolist(), state["cell"][0].tolist(), state["face"][0].tolist(), strict=True)
    kinds, width = batch.level.kinds, batch.level.width
    return [(slot, kinds[kind], cell // width, cell % width, DIRECTIONS[face])
            for slot, (kind, cell, face) in enumerate(rows) if kind != DEAD]


@settings(max_examples=LEVELS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_compiled_and_slow_engine_agree_object_for_object(seed):
    rng = np.random.default_rng(seed)
    level = random_level(rng)
    fast, slow = BabaBatch(level, 1, max_episode_steps=10**6, autoreset=False), SlowGame(level)
    restart, start = fast.get_state(), SlowGame(level).snapshot()
    assert snapshot(fast) == start
    plane_of = {name: k * level.height for k, name in enumerate(level.kinds)}
    actions = rng.integers(0, 5, STEPS_PER_LEVEL)
    for step, action in enumerate(actions):
        result = fast.step(actions[step : step + 1])
        slow.turn(int(action))
        expected = slow.snapshot()
        assert snapshot(fast) == expected, f"step {step}"
        assert bool(result.reward[0]) == slow.won
        assert bool(result.terminated[0]) == (slow.won or slow.lost)
        bits = sorted({(plane_of[name] + row) * level.width + column for _, name, row, column, _ in expected})
        assert np.flatnonzero(fast.bits[0]).tolist() == bits
        assert sorted(bit for bit in result.active[0].tolist() if bit >= 0) == bits
        if not slow.things or (slow.lost and step % 10 == 9):  # nothing more will happen: play on from the start
            fast.set_state(restart)
            slow = SlowGame(level)


@given(st.lists(st.sampled_from(("BABA", "ROCK", "TEXT", "IS", "AND", "NOT", "YOU", "WIN")), min_size=1, max_size=9))
def test_sentences_for_people_are_those_of_the_slow_engine(words):
    found = sentences({(0, c): [word] for c, word in enumerate(words)})
    assert {(s.subject_negated, s.subject, s.target_negated, s.target) for s in found} == read_sentence(tuple(words))
