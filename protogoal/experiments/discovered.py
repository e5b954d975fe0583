"""Which goals a run discovered, and when: first observed, first offered, first mastered (paper §6.3, §6.4).

`arms.collect` writes goals.csv with `discoveries`; `plot` draws it. Where goals have several kinds (Baba: the player and each
word block in every cell), the number mastered of each kind against steps; where they are words, one line a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protogoal.experiments.drawing import pyplot, save

GOALS = ("arm", "seed", "goal", "kind", "observed", "offered", "mastered", "pursuits", "success", "count")
MOST_WORDS, MOST_CONJUNCTIONS = 14, 6

_QUERY = """
SELECT name, kind, observed_step,
       (SELECT min(step) FROM goal_history h WHERE h.goal = goals.id AND h.offered = 1),
       (SELECT min(step) FROM goal_history h WHERE h.goal = goals.id AND h.mastered = 1),
       pursuits, success, count
FROM goals WHERE observed_step IS NOT NULL ORDER BY observed_step, id"""


def discoveries(store: Any) -> list[tuple[Any, ...]]:
    """A row for each observed goal of a run, in the order of `GOALS` without arm and seed; never is an empty field."""
    return [tuple("" if value is None else value for value in row) for row in store.rows(_QUERY)]


def plot(rows: Sequence[Mapping[str, str]], colours: Sequence[str], title: str, path: Path, end: float = 0.0) -> None:
    """Draws goals.csv; `end` is the last step of the longest run."""
    plt = pyplot()
    single = [row for row in rows if " AND " not in row["goal"]]
    kinds = sorted({row["kind"] for row in single if row["mastered"]}, key=lambda kind: _mastered_of(single, kind).mean())
    by_word = len(kinds) < 2 or len(kinds) > len(colours)
    if by_word:
        spans = _spans(rows)
        names = ["\nAND ".join(name.split(" AND ")) for name, _ in spans]
        lines = [line for name in names for line in name.split("\n")]
        size = 4.5 + 0.085 * max((len(line) for line in lines), default=0), 1.6 + 0.19 * max(len(lines), 6)
    else:
        spans, names, size = [], [], (7, 4.2)
    figure, axes = plt.subplots(figsize=size, constrained_layout=True)
    if by_word:
        _plot_words(axes, spans, names)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    else:
        _plot_kinds(axes, single, kinds, colours, end)
    axes.set(xlabel="environment steps (millions)")
    of = len({row["goal"] for row in rows if row["offered"] and row["mastered"]})
    words = f"first offered and mastered, {len(spans)} of {of}" if by_word else "mastered"
    figure.suptitle(f"{title}:{' ' if len(title) < 40 and not by_word else chr(10)}goals {words}", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def _mastered_of(rows: Sequence[Mapping[str, str]], kind: str) -> np.ndarray:
    """Steps at which goals of a kind were first mastered, ascending."""
    return np.sort([int(row["mastered"]) for row in rows if row["kind"] == kind and row["mastered"]])


def _plot_kinds(axes: Any, rows: Sequence[Mapping[str, str]], kinds: Sequence[str], colours: Sequence[str], end: float) -> None:
    """Goals of each kind that were ever mastered, mean over runs, against steps, to the end of the run."""
    runs = len({(row["arm"], row["seed"]) for row in rows})
    last = max(end, *(int(row["mastered"]) for row in rows if row["mastered"]))
    for colour, kind in zip(colours, kinds, strict=False):
        steps = _mastered_of(rows, kind)
        number = np.arange(len(steps) + 1) / runs
        where = " at a cell" if any(row["kind"] == kind and " at (" in row["goal"] for row in rows) else ""
        moments = np.concatenate([[0], steps, [last]]) / 1e6
        axes.step(moments, np.append(number, number[-1]), where="post", color=colour, linewidth=2, label=kind + where)
    axes.set(ylabel="goals mastered so far" + f", mean of {runs} runs" * (runs > 1), xlim=(0, last / 1e6), ylim=(0, None))
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


Span = tuple[str, tuple[float, float]]


def _spans(rows: Sequence[Mapping[str, str]]) -> list[Span]:
    """From first offered to first mastered, in millions of steps, earliest run of each, in the order mastered: of many words
    every so many'th, and the conjunctions that most runs mastered."""
    spans: dict[str, tuple[float, float]] = {}
    runs = Counter(row["goal"] for row in rows if row["offered"] and row["mastered"])
    for row in rows:
        if row["offered"] and row["mastered"]:
            span = int(row["offered"]) / 1e6, int(row["mastered"]) / 1e6
            spans[row["goal"]] = min(span, spans.get(row["goal"], span), key=lambda pair: pair[1])
    ordered = sorted(spans.items(), key=lambda item: item[1][1])
    joined = sorted((item for item in ordered if " AND " in item[0]), key=lambda item: -runs[item[0]])[:MOST_CONJUNCTIONS]
    words = [item for item in ordered if " AND " not in item[0]]
    some = np.unique(np.linspace(0, max(len(words) - 1, 0), MOST_WORDS).astype(int))
    return sorted([words[k] for k in some if words] + joined, key=lambda item: item[1][1])


def _plot_words(axes: Any, spans: Sequence[Span], names: Sequence[str]) -> None:
    """A line a goal, the first mastered on top; a name of two lines has room for two."""
    place, places = 0.0, []
    for (name, (offered, mastered)), words in zip(spans, names, strict=True):
        rows = 1 + words.count("\n")
        place += rows / 2
        places.append(place)
        colour = "#D55E00" if " AND " in name else "#0072B2"
        axes.plot([offered, mastered], [place, place], color=colour, linewidth=1.5)
        axes.plot(offered, place, "o", color="white", markeredgecolor=colour)
        axes.plot(mastered, place, "o", color=colour)
        place += rows / 2
    axes.set_yticks(places, [name.replace("word: ", "") for name in names], fontsize=8)
    axes.set(xscale="log", ylabel="", ylim=(place + 0.5, -0.5))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.plot([], [], "o", color="white", markeredgecolor="#0072B2", label="first offered")
    axes.plot([], [], "o", color="#0072B2", label="first mastered")
    axes.grid(axis="x", alpha=0.25)
