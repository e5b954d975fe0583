"""Made-up runs that look like real ones: for the tests of the page and the report, and to look at them by hand.

    python tests/record/synthetic_runs.py OUT        writes OUT/baba, OUT/baba-other, OUT/rivers, OUT/taxi, OUT/qlearning

A goal has a distance (how hard it is to reach) and may be beyond control (it flickers whatever one does). Counts, trials (or
values, where the paper's rule judges), pursuits and success follow from these two as they do in a real run; nothing is learned.
"""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from protogoal.goals.plausibility import Verdict, judge_trials, judge_values
from protogoal.goals.practice import DOUBT, doubt
from protogoal.goals.table import TASK
from protogoal.goals.trials import Tested
from protogoal.goals.values import SeekAvoid
from protogoal.record.store import Store

WORDS = re.findall(r"\S+", """
you push the boulder into water it sinks without a trace now can cross fall crawl to bank try but there is solid stone
see here river lava burn crisp kill newt jackal miss bites hits feel hungry door closed great strength move perhaps
that's why cannot past swim rat lichen touch stuck drown another level stairs up corridor dark""")


@dataclass(frozen=True)
class Bit:
    name: str
    kind: str
    cell: tuple[int, int] | None
    distance: float  # in steps, about
    controllable: bool = True
    possible: bool = True


def baba_bits(rows: int = 9, cols: int = 11) -> list[Bit]:
    bits = []
    walls = {(r, c) for r in range(5, 9) for c in range(4, 7)}
    start = {"baba": (2, 5), "FLAG": (4, 5), "flag": (8, 10), "BABA": (0, 4), "IS": (0, 5), "YOU": (0, 6), "WIN": (8, 2)}
    for kind, (r0, c0) in start.items():
        for r in range(rows):
            for c in range(cols):
                far = abs(r - r0) + abs(c - c0) + (8 if abs(c - c0) > 1 and r > 5 else 0)
                fixed = kind in ("flag", "BABA", "YOU") or (kind in ("IS", "WIN") and (r, c) != (r0, c0) and far > 2)
                distance = far * (1.0 if kind == "baba" else 3.5)
                here = (r, c) == (r0, c0)
                bits.append(Bit(f"{kind} at ({r},{c})", kind, (r, c), distance, not here or kind == "baba",
                                (r, c) not in walls and (here or not fixed)))
    return bits


def taxi_bits() -> list[Bit]:
    bits = [Bit(f"taxi at ({r},{c})", "taxi", (r, c), abs(r - 2) + abs(c - 2)) for r in range(5) for c in range(5)]
    bits += [Bit(f"passenger at {place}", "passenger", None, 9.0 + 2 * i) for i, place in enumerate("RGYB")]
    bits += [Bit("passenger in taxi", "passenger", None, 12.0)]
    return bits + [Bit(f"destination {place}", "destination", None, 1.0, controllable=False) for place in "RGYB"]


def word_bits() -> list[Bit]:
    rng = np.random.default_rng(1)
    beyond = {"newt", "jackal", "rat", "lichen", "bites", "hits", "miss", "hungry", "feel"}
    known = dict.fromkeys(WORDS)
    bits = [Bit(f"word: {word}", "word", None, float(rng.uniform(2, 45)), word not in beyond) for word in known]
    return bits + [Bit(f"television {i}", "television", None, 22.0, controllable=False) for i in range(24)]


class FakeRun:
    """A run that writes itself into `path`/run.db, a refresh at a time."""

    def __init__(self, path: Path, preset: str, bits: list[Bit], seed: int = 0, refresh_steps: int = 2_000,
                 total: int = 200, wins: bool = True, plain: bool = False, by_values: bool = False):
        path.mkdir(parents=True, exist_ok=True)
        (path / "config.json").write_text(json.dumps({"preset": preset}))
        agent = "qlearning" if plain else "protogoal"
        facts = {"preset": preset, "agent": agent, "seed": seed, "total_steps": total * refresh_steps,
                 "reachability_threshold": 0.5, "controllability_threshold": 0.1}
        self.seconds = 0.0  # that have passed, as the store is told
        self.store = Store.create(path / "run.db", facts, clock=lambda: self.seconds)
        self.bits, self.total, self.wins, self.plain, self.by_values = bits, total, wins, plain, by_values
        self.rng = np.random.default_rng(seed)
        self.refresh_steps, self.refreshes = refresh_steps, 0
        self.parents: list[tuple[int, int]] = []
        cells = [bit.cell for bit in bits if bit.cell is not None]
        self.grid = (max(row for row, _ in cells) + 1, max(col for _, col in cells) + 1) if cells else None
        self.members: list[tuple[int, ...]] = [(i,) for i in range(len(bits))]
        self.count = np.zeros(len(bits), np.int64)
        self.pursuits = np.zeros(len(bits), np.int64)
        self.recent: dict[int, list[bool]] = {}

    def describe(self, goal: int) -> tuple[str, str, tuple[int, int] | None, tuple[int, ...], tuple[int, ...]]:
        bits = self.members[goal]
        if len(bits) == 1:
            bit = self.bits[bits[0]]
            name = bit.name if self.count[goal] or bit.kind != "word" else f"word #{goal} (not seen yet)"
            return name, bit.kind, bit.cell, bits, ()
        kind = " AND ".join(sorted({self.bits[i].kind for i in bits}))
        return "", kind, None, bits, self.parents[goal - len(self.bits)]

    def advance(self) -> None:
        """One refresh later."""
        self.refreshes += 1
        step, share = self.refreshes * self.refresh_steps, self.refreshes / self.total
        self.seconds += 6.0
        noise = self.rng.normal
        success = 1 / (1 + np.exp(-14 * (share - 0.55))) if self.wins else 0.02 * share
        self.store.metrics(step, {
            "loss": 0.02 + 0.2 * np.exp(-4 * share) * (1 + 0.1 * noise()), "speed": 420 + 25 * noise(),
            "return": success + 0.02 * noise(), "episode_length": 150 - 100 * success + 4 * noise()})
        if self.refreshes % 4 == 0:
            won = int(self.rng.binomial(50, min(1.0, success)))
            self.store.evaluation(step, 50, won, won / 50)
            if won and not getattr(self, "won", False):
                self.won = True
                self.store.event(step, f"first win at the task: {won} of 50 episodes")
        if self.refreshes % 25 == 0:
            self.store.event(step, f"checkpoint at step {step:,}")
        if not self.plain:
            self._goals(step, share)
        if self.refreshes % 10 == 0:
            self._clips(step)

    def _goals(self, step: int, share: float) -> None:
        distance = np.array([max(self.bits[i].distance for i in members) * (1 + 0.4 * (len(members) - 1))
                             for members in self.members])
        possible = np.array([all(self.bits[i].possible for i in members) and self._at_once(members)
                             for members in self.members])
        controllable = np.array([all(self.bits[i].controllable for i in members) for members in self.members])
        skill = 4 + 44 * share
        rate = 900 * np.exp(-distance / (0.5 * skill)) / np.array([len(m) for m in self.members]) * possible
        self.count += self.rng.poisson(rate)
        size = len(self.members)
        judged = self._by_values(share, distance, controllable, rate) if self.by_values else self._by_trials(controllable)
        verdict = judged["verdict"]
        seldom = (verdict == Verdict.UNREACHED) | (verdict == Verdict.UNDECIDED)
        plausible = np.flatnonzero((verdict == Verdict.PLAUSIBLE) | (seldom & (self.rng.random(size) < 0.2)))
        bucket = np.full(size, -1)
        if plausible.size:
            weight = 1 / np.sqrt(np.maximum(self.count[plausible], 1))
            offered = np.unique(self.rng.choice(plausible, 60, p=weight / weight.sum()))
            order = offered[np.argsort(-distance[offered])]
            for b, part in enumerate(np.array_split(order, 5)):
                bucket[part] = b
            goals = self.rng.choice(offered, 80)
            reached = np.clip(1.3 - 1.8 * distance[goals] / skill, 0.0, 0.97) * controllable[goals]
            won = self.rng.random(80) < reached
            lengths = np.where(won, self.rng.poisson(distance[goals] + 1), 50)
            self.store.pursuits(step, goals, won, lengths)
            self.store.pursuits(step, [TASK] * 4, self.rng.random(4) < share * self.wins, [60] * 4)
            for goal, success in zip(goals.tolist(), won.tolist(), strict=True):
                self.pursuits[goal] += 1
                self.recent[goal] = [*self.recent.get(goal, []), success][-10:]
        success = self._success(size)
        mastered = (self.pursuits >= 10) & (success > 0.6)
        state = {"count": self.count, "reward_mean": np.where(self.count > 0, 0.001 * share, 0), "pursuits": self.pursuits,
                 "success": success, **judged, "bucket": bucket, "offered": bucket >= 0, "mastered": mastered}
        ids = np.flatnonzero((self.count > 0) | (verdict == Verdict.STATIC))
        self.store.refresh(step, {"id": ids, **{name: np.asarray(column)[ids] for name, column in state.items()},
                                  "declared": size, "grid": self.grid}, self.describe, seconds=0.2)
        able = np.flatnonzero(mastered)
        if able.size >= 2:
            first, second = (int(goal) for goal in self.rng.choice(able, 2, replace=False))
            union = tuple(sorted({*self.members[first], *self.members[second]}))
            if len(union) <= 4 and union not in self.members:
                self.members.append(union)
                self.parents.append((first, second))
                self.count, self.pursuits = np.append(self.count, 0), np.append(self.pursuits, 0)

    def _success(self, size: int) -> np.ndarray:
        return np.array([np.mean(self.recent.get(goal, [0])) for goal in range(size)])

    def _by_trials(self, controllable: np.ndarray) -> dict[str, np.ndarray]:
        """What trials and pursuits say. Things that stand where they began are static: they never turn on."""
        size, b = len(self.members), len(self.bits)
        static = np.array([bit.distance == 0 and not bit.controllable for bit in self.bits] + [False] * (size - b))
        self.count[static] = 0
        events = np.where(np.arange(size) < b, np.floor(0.004 * self.count), 0.0)  # most steps are not exploratory
        nats = np.where(events > 0, np.clip(np.where(controllable, 1.1, 0.03) + 0.3 * self.rng.standard_normal(size) / np.sqrt(
            np.maximum(events, 0.5)), 0, 1.6), 0.0)
        p = np.where(events > 0, np.exp(-np.where(controllable, events * nats, self.rng.exponential(size=size))), 1.0)
        names = sorted({bit.kind for bit in self.bits})
        kind = np.array([names.index(bit.kind) for bit in self.bits])
        pooled = np.bincount(kind, events[:b], len(names))
        moved = np.bincount(kind, controllable[:b] & (events[:b] > 0), len(names))
        kinds = Tested(pooled, np.where(moved > 0, 0.0, 0.5), np.zeros(len(names)), np.zeros(len(names)))
        bits = Tested(events[:b], p[:b], nats[:b], nats[:b] + 1 / np.sqrt(np.maximum(events[:b], 1)))
        verdict = judge_trials((self.count > 0)[:b] | static[:b], self.count[:b], bits, kind, kinds)
        least = [min(verdict[list(members)]) if self.count[b + i] else 0 for i, members in enumerate(self.members[b:])]
        verdict = np.concatenate([verdict, np.array(least, np.int8)])
        chance = np.clip(self.count / (40.0 * self.refreshes * 50), 0, 0.6)
        tries = np.array([float(len(self.recent.get(goal, []))) for goal in range(size)])
        fails = doubt(self._success(size) * tries, tries, chance) < DOUBT
        verdict[fails & (verdict > Verdict.UNREACHED)] = Verdict.UNREACHED
        unknown = np.full(size, np.nan)
        return {"verdict": verdict, "chance": chance, "events": events, "nats": nats, "p": p, "seek_max": unknown,
                "seek_mean": unknown, "avoid_mean": unknown}

    def _by_values(self, share: float, distance: np.ndarray, controllable: np.ndarray, rate: np.ndarray) -> dict[str, np.ndarray]:
        """What the paper's rule says."""
        size, skill = len(self.members), 4 + 44 * share
        noise = 0.02 * self.rng.standard_normal(size)
        seek_max = np.clip(0.99 - 0.9 * np.clip((distance - skill) / 20, 0, 1) * (1 - 0.3 * share), 0, 1) + noise
        seek_mean = np.clip(0.95 ** (distance * 0.8) * (0.4 + 0.6 * share) + noise, 0, 1)
        avoid_mean = -np.where(controllable, seek_mean * (0.75 - 0.6 * share), seek_mean - 0.03)
        sampled = (self.count > 0) & (self.rng.random(size) < np.clip(rate / 3, 0.15, 1))
        values = [np.where(sampled, value, np.nan) for value in (seek_max, seek_mean, avoid_mean)]
        tested = Tested.nothing(size)
        return {"verdict": judge_values(self.count, SeekAvoid(*values, sampled.astype(np.int64))), "chance": np.zeros(size),
                **vars(tested), "seek_max": values[0], "seek_mean": values[1], "avoid_mean": values[2]}

    def _at_once(self, members: tuple[int, ...]) -> bool:
        """One thing is in one place at a time."""
        placed = [self.bits[i].kind for i in members if self.bits[i].cell is not None]
        return len(placed) == len(set(placed))

    def _clips(self, step: int) -> None:
        if not self.plain:
            for goal in self.rng.choice(list(self.recent) or [0], 2):
                won = bool(self.recent.get(int(goal), [False])[-1])
                self.store.clip(step, "pursuit", int(goal), won, gif(self.rng, won))
        won = self.wins and self.rng.random() < self.refreshes / self.total
        self.store.clip(step, "player", -1, won, gif(self.rng, won))

    def play(self, refreshes: int | None = None, close: bool = True) -> FakeRun:
        for _ in range(self.total if refreshes is None else refreshes):
            self.advance()
        if close:
            self.store.close()
        else:
            self.store.flush()
        return self


def gif(rng: np.random.Generator, won: bool, rows: int = 9, cols: int = 11, pixels: int = 12) -> bytes:
    """A block that walks over a grid, to a flag if `won`."""
    frames, (r, c), (goal_r, goal_c) = [], (2, 5), (rows - 1, cols - 1)
    for _ in range(24):
        image = Image.new("RGB", (cols * pixels, rows * pixels), (24, 28, 36))
        draw = ImageDraw.Draw(image)
        for (y, x), colour in (((goal_r, goal_c), (240, 228, 66)), ((r, c), (255, 255, 255))):
            draw.rectangle((x * pixels + 1, y * pixels + 1, x * pixels + pixels - 2, y * pixels + pixels - 2), fill=colour)
        frames.append(image)
        dr, dc = (np.sign(goal_r - r), 0) if won and r != goal_r else (0, np.sign(goal_c - c)) if won else rng.integers(-1, 2, 2)
        r, c = int(np.clip(r + dr, 0, rows - 1)), int(np.clip(c + dc, 0, cols - 1))
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=120, loop=0)
    return buffer.getvalue()


def write_all(out: Path, total: int = 200) -> dict[str, Path]:
    """The five runs of the module's docstring."""
    runs: dict[str, dict[str, Any]] = {
        "baba": {"preset": "baba-umaze-medium-protogoal", "bits": baba_bits()},
        "baba-other": {"preset": "baba-umaze-medium-protogoal", "bits": baba_bits(), "seed": 1, "wins": False},
        "rivers": {"preset": "minihack-narrow-river-protogoal", "bits": word_bits()},
        "taxi": {"preset": "taxi-protogoal", "bits": taxi_bits(), "refresh_steps": 1_000, "by_values": True},
        "qlearning": {"preset": "taxi-qlearning", "bits": taxi_bits(), "refresh_steps": 1_000, "plain": True},
    }
    for name, settings in runs.items():
        FakeRun(out / name, total=total, **settings).play()
    return {name: out / name for name in runs}


if __name__ == "__main__":
    for path in write_all(Path(sys.argv[1])).values():
        print(path)
