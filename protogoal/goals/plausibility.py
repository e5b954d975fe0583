"""Which goals are worth pursuing at all (paper §4.1, Algorithm 3): the verdict on every goal, and its reason in words.

`judge_trials` is ours: whether actions matter to a goal comes from randomised trials (`trials.py`), whether it can be reached
from pursuits (`practice.py`). It looks at every goal and forgets nothing, so what is rare is judged too.

    unobserved        never on
    static            on, but no transition ever turned it on
    plausible         p so small that of its kind's at most FALSE_DISCOVERIES are false, and nats of at least LEAST_NATS; or
                      pursuits of it beat chance (`practice.is_proven`)
    not controllable  its trials show no effect of actions and exclude one of GOOD_NATS; or they are too few to tell, and its kind
                      has none
    undecided         too few trials to tell; or p as small, but fewer nats: where things have inertia one action moves little, but
                      noise that only occurs in some places has no more, so pursuits must tell
    not reached       plausible or undecided, but pursuits of it fare no better than chance, or, where it is rare, those of its kind

`judge_values` is the paper's: observed ∧ reachable ∧ controllable, by the values of one batch (`values.py`):

    reachable     max_s V_seek(s, g)                    > reachability_threshold
    controllable  mean_s [V_seek(s, g) + V_avoid(s, g)] > controllability_threshold

The paper's Algorithm 3 prints the last comparison the other way round; the text and Eq. 2 say what stands here. The evaluator hands
what is left on to `desirability.py`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.practice import LEAST_SUCCESS, RARE
from protogoal.goals.trials import Tested
from protogoal.goals.values import SeekAvoid

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEAST_NATS = 0.2  # an action must tell this much about a goal; noise that only occurs in some places has less
FALSE_DISCOVERIES = 0.01  # share of false ones allowed among the goals of a kind that pass
IDLE_P = 0.01  # a larger p is no sign of control
GOOD_NATS = 0.5  # what is called not controllable may not have this much, by two standard errors
ENOUGH_EVENTS = 8.0  # of one goal, at least
ENOUGH_OF_KIND = 200.0  # of all goals of a kind
ALONE = 11  # pursuits in vain that give a goal up for itself
IDLE_KIND_P = 1e-4  # actions matter to a kind if p is smaller; few kinds, looked at often, so that chance must not do it


class Verdict(IntEnum):
    """What the evaluator thinks of a goal; what may be offered comes last."""

    UNOBSERVED = 0
    STATIC = 1
    UNCONTROLLABLE = 2
    UNCONTROLLABLE_KIND = 3
    UNREACHED = 4
    UNDECIDED = 5
    PLAUSIBLE = 6


def judge_trials(
    is_observed: Bools, count: NDArray[np.int64], tested: Tested, kind: NDArray[np.integer], tested_kinds: Tested | None
) -> NDArray[np.int8]:
    """The verdicts on B single bits by their trials alone, int8 [B].

    `tested` is for every bit, [B]; `kind` [B] numbers the kinds of `tested_kinds`, None leaves them out.
    """
    p, nats, events = tested.p, tested.nats, tested.events
    verdict = np.full(len(count), Verdict.UNDECIDED, np.int8)
    is_idle, depends = (p > IDLE_P) | (nats < LEAST_NATS), discoveries(p, kind, events > 0)
    verdict[(events >= ENOUGH_EVENTS) & (tested.most < GOOD_NATS) & is_idle] = Verdict.UNCONTROLLABLE
    if tested_kinds is not None and len(tested_kinds.p):
        idle = (tested_kinds.events >= ENOUGH_OF_KIND) & (tested_kinds.p > IDLE_KIND_P)
        verdict[(verdict == Verdict.UNDECIDED) & (kind >= 0) & idle[kind]] = Verdict.UNCONTROLLABLE_KIND
    verdict[depends] = np.where(nats[depends] >= LEAST_NATS, Verdict.PLAUSIBLE, Verdict.UNDECIDED)
    verdict[count == 0] = Verdict.STATIC
    verdict[~is_observed] = Verdict.UNOBSERVED
    return verdict


def discoveries(p: Floats, group: NDArray[np.integer], is_tested: Bools, share: float = FALSE_DISCOVERIES) -> Bools:
    """Benjamini and Hochberg within each group: the largest k with p_(k) ≤ share·k/m, and all up to it; bool [n].

    Of what passes in a group, at most `share` is expected to be false, at each look. A verdict is not kept but made anew from all
    trials: looking often lets a few more pass for a while (2 to 7 % of single noise bits at some look of eighty), and they go
    again. Groups are apart, so that a vast kind of noise does not raise the bar for others.
    """
    found = np.zeros(len(p), np.bool_)
    rows = np.flatnonzero(is_tested & (p <= share))  # no other can pass
    if len(rows) == 0:
        return found
    members = np.bincount(group[is_tested] + 1)  # a group may be −1
    rows = rows[np.lexsort((p[rows], group[rows]))]
    g, q = group[rows], p[rows]
    start = np.flatnonzero(np.diff(g, prepend=g[0] - 1))
    size = np.diff(np.append(start, len(g)))
    rank = np.arange(len(g)) - np.repeat(start, size) + 1
    last = np.where(q <= share * rank / members[g + 1], rank, 0)
    found[rows] = rank <= np.repeat(np.maximum.reduceat(last, start), size)
    return found


def judge_values(
    count: NDArray[np.int64], values: SeekAvoid, reachability_threshold: float = 0.5, controllability_threshold: float = 0.1,
    is_observed: Bools | None = None,
) -> NDArray[np.int8]:
    """The paper's verdict on every goal, int8[G]; `count` is N(g). Observed goals that the batch does not attain are undecided.

    `is_observed` [G] tells those that were on, but never turned on, from the others without a count.
    """
    count = np.asarray(count)
    if count.shape != values.seek_max.shape:
        raise ValueError(f"count has shape {count.shape}, must be {values.seek_max.shape}: one number a goal")
    verdict = np.full(count.shape, Verdict.PLAUSIBLE, dtype=np.int8)
    with np.errstate(invalid="ignore"):
        verdict[~(values.controllability > controllability_threshold)] = Verdict.UNCONTROLLABLE
        verdict[~(values.seek_max > reachability_threshold)] = Verdict.UNREACHED
    verdict[~np.isfinite(values.controllability)] = Verdict.UNDECIDED
    verdict[count <= 0] = Verdict.UNOBSERVED
    if is_observed is not None:
        verdict[is_observed & (count <= 0)] = Verdict.STATIC
    return verdict


WORDS = {
    Verdict.UNOBSERVED: "unobserved",
    Verdict.STATIC: "static",
    Verdict.UNCONTROLLABLE: "not controllable",
    Verdict.UNCONTROLLABLE_KIND: "not controllable (its kind)",
    Verdict.UNREACHED: "not reached in practice",
    Verdict.UNDECIDED: "undecided",
    Verdict.PLAUSIBLE: "plausible",
}


def reason(
    verdict: int, *, count: int, events: float = 0.0, nats: float = 0.0, p: float = 1.0, pursuits: int = 0, success: float = 0.0,
    chance: float = 0.0, seek_max: float = np.nan, seek_mean: float = np.nan, avoid_mean: float = np.nan, is_joined: bool = False,
) -> str:
    """One sentence for people: the verdict on one goal, and the figures that decided it.

    An AND-goal (`is_joined`) has no trials of its own: its bits decide.
    """
    word = WORDS[Verdict(verdict)]
    turned = "turned on once" if count == 1 else f"turned on {count:,} times"
    trials = f"{events:,.0f} trials" if events != 1 else "1 trial"
    if np.isfinite(seek_max):  # the paper's rule judged it
        what = f"the largest V_seek is {seek_max:.2f}"
        if np.isfinite(avoid_mean):
            what += f", seeking attains {seek_mean:.2f}, avoiding still {-avoid_mean + 0.0:.2f}"
        return f"{word}: {what} ({turned})."
    if verdict == Verdict.UNOBSERVED:
        return f"{word}: it was never on."
    if verdict == Verdict.PLAUSIBLE and count == 0:
        return f"{word}: it was never turned on, but that is not pruned here."
    if is_joined and verdict != Verdict.UNREACHED:
        return f"{word}: {'all of its bits are' if verdict == Verdict.PLAUSIBLE else 'one of its bits is'} ({turned})."
    if verdict == Verdict.STATIC:
        return f"{word}: it was on, but no transition ever turned it on."
    if verdict == Verdict.UNCONTROLLABLE:
        short = f"less than {LEAST_NATS:g}" if p <= IDLE_P else "no more than chance"
        return f"{word}: what action comes before it tells {nats:.2f} nats, {short} (p = {p:.2g}, {trials})."
    if verdict == Verdict.UNCONTROLLABLE_KIND:
        return f"{word}: {trials} are too few to tell, and none of its kind depends on actions."
    if verdict == Verdict.UNREACHED and count < RARE and success == 0.0 and pursuits < ALONE and chance <= LEAST_SUCCESS:
        tried = "it was not pursued yet" if pursuits == 0 else f"it was pursued {pursuits} times in vain" if pursuits > 1 else (
            "it was pursued once in vain")
        return f"{word}: {turned}, {tried}, and pursuits of such rare goals of its kind hardly ever succeed."
    if verdict == Verdict.UNREACHED:
        return (f"{word}: pursuits of it fare no better than chance, {100 * chance:.0f} %, or than one in ten; of the last 10, "
                f"{100 * success:.0f} % succeeded ({pursuits:,} in all).")
    if verdict == Verdict.PLAUSIBLE and nats < LEAST_NATS and pursuits:
        return (f"{word}: one action tells little about it, {nats:.2f} nats (p = {p:.2g}, {trials}), but pursuits attain it "
                f"more than twice as often as it comes otherwise ({pursuits:,} in all).")
    if verdict == Verdict.PLAUSIBLE and count and events == 0:
        return f"{word}: it was on, and nothing that was is pruned here ({turned})."
    if verdict == Verdict.UNDECIDED and p <= IDLE_P:
        return (f"{word}: {turned}; what action comes before it tells {nats:.2f} nats, not nothing (p = {p:.2g}, {trials}) but too "
                "little to be sure of control: pursuits must tell.")
    if verdict == Verdict.UNDECIDED:
        return f"{word}: {turned}, {trials}: too few to tell whether actions matter (p = {p:.2g})."
    return f"{word}: what action comes before it tells {nats:.2f} nats (p = {p:.2g}, {trials})."
