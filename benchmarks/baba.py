"""Baba Is You: steps per second with planes, bits and active ids written, random actions, one thread.

The reference is the slow engine of tests/reference on the same level in the same run. Further cases show how the cost
grows with the number of games and with the grid, and what starting up costs when the kernels are on disk already.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from reference.baba_slow import SlowGame

from protogoal.envs.baba import BabaBatch, Legend, Level, load_level
from protogoal.envs.baba.levels import NOUNS
from protogoal.envs.baba.rules import PROPERTIES

START = """
import time
import numpy as np
from protogoal.envs.baba import BabaBatch
BabaBatch("umaze-medium", 8).step(np.zeros(8, int))
print(time.process_time())
"""


def large_level(side: int = 32, types: int = 30, objects: int = 150, seed: int = 0) -> Level:
    """A crowded board: `types` kinds of objects, a rule for each on every second row, and objects strewn about."""
    rng = np.random.default_rng(seed)
    symbols = {".": "empty"}
    rows = [["."] * side for _ in range(side)]

    def put(meaning: str, r: int, c: int) -> None:
        symbol = next((s for s, m in symbols.items() if m == meaning), chr(0x100 + len(symbols)))
        symbols[symbol] = meaning
        rows[r][c] = symbol

    harmless = [p for p in PROPERTIES if p in ("PUSH", "STOP", "WEAK", "OPEN", "SHUT", "FLOAT", "MOVE", "SHIFT")]
    sentences = [("BABA", "IS", "YOU"), ("FLAG", "IS", "WIN")]
    sentences += [(noun.upper(), "IS", str(rng.choice(harmless))) for noun in NOUNS[2:types]]
    for k, words in enumerate(sentences):
        r, c = 2 * (k // (side // 4)), 4 * (k % (side // 4))
        for i, word in enumerate(words):
            put(word, r, c + i)
    empty = [(r, c) for r in range(side) for c in range(side) if rows[r][c] == "." and r > 2 * (len(sentences) // (side // 4))]
    for k, place in enumerate(rng.permutation(len(empty))[:objects]):
        put(NOUNS[k % types], *empty[place])
    return Level.parse("\n".join("".join(row) for row in rows), Legend(symbols), name=f"{side}×{side}")


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    before = time.process_time()
    work()
    return time.process_time() - before


def _fast(level: Level, num_envs: int, steps: int) -> Callable[[], float]:
    """Steps per second of a batch, in chunks of about `steps` steps."""
    batch = BabaBatch(level, num_envs)
    actions = np.random.default_rng(0).integers(0, 5, (max(1, steps // num_envs), num_envs))

    def play() -> None:
        for row in actions:
            batch.step(row)

    batch.step(actions[0])  # compiles
    return lambda: actions.size / _seconds(play)


def _slow(level: Level, steps: int) -> float:
    """Steps per second of the slow engine, with the same actions and endings."""
    actions = np.random.default_rng(0).integers(0, 5, steps)

    def play() -> None:
        game = SlowGame(level)
        for action in actions:
            game.turn(int(action))
            if game.won or game.lost:
                game = SlowGame(level)

    return steps / _seconds(play)


def run(quick: bool = False) -> list[dict[str, object]]:
    steps, slow_steps, repeats = (200_000, 2_000, 2) if quick else (1_000_000, 10_000, 5)
    medium = load_level("umaze-medium")
    rows: list[dict[str, object]] = []

    def add(case: str, level: Level, num_envs: int, share: float = 1.0) -> None:
        play = _fast(level, num_envs, int(steps * share))
        fast, slow = [], []
        for _ in range(repeats):  # in turn, and the best of each: other work on the machine strikes both
            fast.append(play())
            slow.append(_slow(level, max(50, int(slow_steps * share))))
        rows.append({"case": case, "value": max(fast), "unit": "steps/s", "reference": max(slow), "ratio": max(fast) / max(slow)})

    add("U-Maze medium, N = 1024", medium, 1024)
    for num_envs in (1, 16, 256, 4096):
        add(f"U-Maze medium, N = {num_envs}", medium, num_envs, 0.02 if num_envs == 1 else 0.2)
    for name in ("umaze-small", "umaze-paper"):
        add(f"{name}, N = 1024", load_level(name), 1024, 0.3)
    for side, types, objects in ((16, 15, 40), (32, 30, 150)):
        add(f"{side}×{side}, {types} object types, {objects} objects, N = 256", large_level(side, types, objects), 256, 0.05)
    started = min(float(subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True).stdout)
                  for _ in range(repeats))
    rows.append({"case": "start to first step, kernels on disk", "value": started, "unit": "s", "reference": None, "ratio": None})
    return rows
