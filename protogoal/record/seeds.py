"""Runs of one configuration that differ in their seed alone, told as one: a mean curve and its interval.

A run's record says which configuration it has (`configuration`, a checksum of all settings but the seed); one that does not is
compared by preset, agent and steps. `lines` says what the report and the page's overview draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protogoal.record.queries import Curve
from protogoal.record.run_facts import RunFacts
from protogoal.record.statistics import mean_interval, t_interval


@dataclass(frozen=True)
class Group:
    """Some runs of one configuration, by their place among all runs that are shown."""

    label: str
    members: tuple[int, ...]


def groups(facts: list[RunFacts]) -> list[Group]:
    """The runs by configuration, in their order; a run alone is a group of its own and keeps its label."""
    found: dict[str, list[int]] = {}
    for place, fact in enumerate(facts):
        found.setdefault(fact.configuration, []).append(place)
    apart = [[place] for members in found.values() if _same_seed(facts, members) for place in members]
    together = [members for members in found.values() if not _same_seed(facts, members)]
    return [Group(_label([facts[place] for place in members]), tuple(members)) for members in sorted(together + apart)]


def _same_seed(facts: list[RunFacts], members: list[int]) -> bool:
    """Whether two of them have one seed: then something else makes them differ."""
    seeds = [facts[place].seed for place in members]
    return len(members) > 1 and (None in seeds or len(set(seeds)) < len(seeds))


def _label(facts: list[RunFacts]) -> str:
    if len(facts) == 1:
        return facts[0].label
    seeds = ", ".join(str(fact.seed) for fact in facts)
    return f"{facts[0].preset or facts[0].agent or 'runs'}, seeds {seeds}"


def mean_curve(curves: list[Curve], value: str) -> Curve:
    """The mean over seeds of one column, with its t interval, where all of them have been: step, seconds, `value`, low, high.

    Between its own points a seed's line is straight. Nothing where the curves do not overlap, or one has no point.
    """
    ends = [(curve["step"][0], curve["step"][-1]) if len(curve["step"]) else (np.inf, -np.inf) for curve in curves]
    start, end = max(first for first, _ in ends), min(last for _, last in ends)
    grid = np.unique(np.concatenate([curve["step"] for curve in curves]))
    grid = grid[(grid >= start) & (grid <= end)]
    each = np.stack([np.interp(grid, curve["step"], curve[value]) for curve in curves]) if len(grid) else np.empty((len(curves), 0))
    seconds = [np.interp(grid, curve["step"], curve["seconds"]) for curve in curves] if len(grid) else each
    low, high = t_interval(each, -np.inf, np.inf)
    if value == "success":
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    return {"step": grid, "seconds": np.mean(seconds, axis=0), value: each.mean(0), "low": low, "high": high}


@dataclass(frozen=True)
class Line:
    """A curve to draw, and its label: of one run, or the mean of `seeds`, which are drawn thin behind it."""

    label: str
    curve: Curve
    seeds: Sequence[Curve] = ()
    run: int = 0
    """The place of its run, or of the first of them: it has one colour in every figure."""


def lines(curves: Sequence[Curve], facts: list[RunFacts], value: str, together: bool = True) -> list[Line]:
    """The curves of runs that have any points; with `together`, runs that differ in their seed alone are one line."""
    drawn = []
    for group in groups(facts) if together else [Group(fact.label, (place,)) for place, fact in enumerate(facts)]:
        places = [place for place in group.members if len(curves[place]["step"])]
        if len(places) > 1:
            several = [curves[place] for place in places]
            drawn.append(Line(group.label, mean_curve(several, value), several, places[0]))
        elif places:
            drawn.append(Line(facts[places[0]].label, curves[places[0]], (), places[0]))
    return drawn


def success_words(facts: list[RunFacts]) -> str:
    """What the last evaluations of some seeds say together: "mean 62 % (21–100 %) of 3 seeds"; nothing before all have played."""
    last = [fact.success for fact in facts if fact.success is not None]
    if len(last) < len(facts) or len(last) < 2:
        return ""
    mean, low, high = mean_interval(last)
    return f"mean {100 * mean:.0f} % ({100 * low:.0f}–{100 * high:.0f} %) of {len(last)} seeds"
