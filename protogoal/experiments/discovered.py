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
MOST_WORDS, MOST_CONJUNCTIONS = 34, 12

_QUERY = """
SELECT name, kind, observed_step,
       (SELECT min(step) FROM goal_history h WHERE h.goal = goals.id AND h.offered = 1),
       (SELECT min(step) FROM goal_history h WHERE h.goal = goals.id AND h.mastered = 1),
       pursuits, success, count
FROM goals WHERE observed_step IS NOT NULL ORDER BY observed_step, id"""


def discoveries(store: Any) -> list[tuple[Any, ...]]:
    """A row for each observed goal of a run, in the order of `GOALS` without arm and seed; never is an empty field."""
    return [tuple("" if value is None else value for value in row) for row in store.rows(_QUERY)]


def plot(rows: Sequence[Mapping[str, str]], colours: Sequence[str], title: str, path: Path) -> None:
    """Draws goals.csv."""
    plt = pyplot()
    single = [row for row in rows if " AND " not in row["goal"]]
    kinds = sorted({row["kind"] for row in single if row["mastered"]}, key=lambda kind: _mastered_of(single, kind).mean())
    by_word = len(kinds) < 2 or len(kinds) > len(colours)
    figure, axes = plt.subplots(figsize=(7, 7.5 if by_word else 4.2), constrained_layout=True)
    if by_word:
        _plot_words(axes, rows)
    else:
        _plot_kinds(axes, single, kinds, colours)
    axes.set(xlabel="environment steps (millions)", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def _mastered_of(rows: Sequence[Mapping[str, str]], kind: str) -> np.ndarray:
    """Steps at which goals of a kind were first mastered, ascending."""
    return np.sort([int(row["mastered"]) for row in rows if row["kind"] == kind and row["mastered"]])


def _plot_kinds(axes: Any, rows: Sequence[Mapping[str, str]], kinds: Sequence[str], colours: Sequence[str]) -> None:
    """Goals of each kind that were ever mastered, mean over runs, against steps."""
    runs = len({(row["arm"], row["seed"]) for row in rows})
    last = max(int(row["mastered"]) for row in rows if row["mastered"])
    for colour, kind in zip(colours, kinds, strict=False):
        steps = _mastered_of(rows, kind)
        number = np.minimum(np.arange(1, len(steps) + 2), len(steps)) / runs
        where = " at a cell" if any(row["kind"] == kind and " at (" in row["goal"] for row in rows) else ""
        axes.step(np.append(steps, last) / 1e6, number, where="post", color=colour, linewidth=2, label=kind + where)
    axes.set(ylabel="goals mastered so far", xlim=(0, None))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    if axes.get_ylim()[1] < 10:  # all labels are minor ones
        axes.yaxis.set_minor_formatter("{x:g}")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _plot_words(axes: Any, rows: Sequence[Mapping[str, str]]) -> None:
    """From first offered to first mastered, earliest run of each: words mastered first, conjunctions that most runs mastered."""
    spans: dict[str, tuple[float, float]] = {}
    runs = Counter(row["goal"] for row in rows if row["offered"] and row["mastered"])
    for row in rows:
        if row["offered"] and row["mastered"]:
            span = int(row["offered"]) / 1e6, int(row["mastered"]) / 1e6
            spans[row["goal"]] = min(span, spans.get(row["goal"], span), key=lambda pair: pair[1])
    ordered = sorted(spans.items(), key=lambda item: item[1][1])
    joined = sorted((item for item in ordered if " AND " in item[0]), key=lambda item: -runs[item[0]])[:MOST_CONJUNCTIONS]
    words = [item for item in ordered if " AND " not in item[0]][:MOST_WORDS]
    first = sorted(words + joined, key=lambda item: item[1][1], reverse=True)
    for place, (name, (offered, mastered)) in enumerate(first):
        colour = "#D55E00" if " AND " in name else "#0072B2"
        axes.plot([offered, mastered], [place, place], color=colour, linewidth=1.5)
        axes.plot(offered, place, "o", color="white", markeredgecolor=colour)
        axes.plot(mastered, place, "o", color=colour)
    axes.set_yticks(range(len(first)), [name.replace("word: ", "") for name, _ in first], fontsize=8)
    axes.set(xscale="log", ylabel="")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.plot([], [], "o", color="white", markeredgecolor="#0072B2", label="first offered")
    axes.plot([], [], "o", color="#0072B2", label="first mastered")
    axes.legend(frameon=False, loc="upper right")
    axes.grid(axis="x", alpha=0.25)
