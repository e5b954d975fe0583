"""The terms in which goals are spoken of: the same on the page, in the report and in the terminal.

Verdicts have a word and a sign (never a colour alone), and figures that decided them (`DECIDED`); one goal's fate is a
handful of sentences (`why`). Called by record/goals_table.py, record/report.py and record/inspector/.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from protogoal.goals.plausibility import WORDS, Verdict, reason
from protogoal.record.queries import Curve, Record
from protogoal.record.run_facts import RunFacts
from protogoal.record.schema import SEQUENCE

VERDICTS: dict[int, str] = {int(verdict): word for verdict, word in WORDS.items()}
SIGNS: dict[int, str] = {0: "○", 1: "▪", 2: "≈", 3: "∼", 4: "✕", 5: "?", 6: "✓"}
MEANINGS: dict[int, str] = {
    0: "never on",
    1: "on, but no transition ever turned it on",
    2: "no sign that what is done before it matters to it",
    3: "too rare to tell, and what is done does not matter to its kind",
    4: "pursuits of it do no better than chance; tried again now and then",
    5: "not clear yet whether it can be controlled: too rare, or one action tells too little; a few of these are on offer",
    6: "actions matter to it, or pursuits beat chance, and they do not fail",
}
STAGES: dict[str, str] = {
    "declared": "all goals: every bit of the space, and every AND made so far",
    "observed": "on at least once",
    "undecided": "observed, but not clear yet whether it can be controlled",
    "controllable": "plausible, or not reached in practice",
    "plausible": "actions matter to it, and pursuits do not fail",
    "offered": "drawn into the set that actors choose from now: plausible goals, and a few that are undecided or not reached",
    "mastered": "succeeds in most of its last pursuits",
}
# column → heading, explanation; in this order in every table of goals
FIGURES: dict[str, tuple[str, str]] = {
    "count": ("count", "how often it was attained, N(g)"),
    "pursuits": ("pursuits", "how often it was pursued"),
    "success": ("success", "share of its last pursuits that succeeded, S(g)"),
    "chance": ("chance", "share of such pursuits that would succeed by chance"),
    "events": ("trials", "exploratory actions after which it turned on"),
    "nats": ("nats", "what the action before it tells about it"),
    "p": ("p", "how likely such trials are if actions do not matter to it"),
    "seek_max": ("V_seek", "largest value of seeking it"),
    "avoid_mean": ("V_avoid", "mean value of avoiding it"),
    "control": ("control", "mean value of seeking it and of avoiding it together"),
}
BY_TRIALS, BY_VALUES = ("chance", "events", "nats", "p"), ("seek_max", "avoid_mean", "control")
DECIDED: dict[int, tuple[str, ...]] = {
    0: (), 1: ("count",), 2: ("events", "nats", "p", "control"), 3: ("events",), 4: ("pursuits", "success", "chance", "seek_max"),
    5: ("events", "p"), 6: ("events", "nats", "p", "seek_max", "control"),
}
NOTHING = "–"


def whole(number: float | None) -> str:
    """12,345, or – where nothing is known."""
    return NOTHING if number is None or math.isnan(number) else f"{round(number):,}"


def decimal(number: float | None) -> str:
    """0.62, or –."""
    return NOTHING if number is None or math.isnan(number) else f"{round(number, 2) + 0.0:.2f}".replace("-", "−")


def probability(p: float | None) -> str:
    """0.62, 0.0043, 3e−8, < 1e−99, or –."""
    if p is None or math.isnan(p):
        return NOTHING
    if p >= 0.001:
        return f"{p:.2g}"
    digits, _, exponent = f"{p:.0e}".partition("e")
    return f"{digits}e−{abs(int(exponent))}" if p > 1e-99 else "< 1e−99"


def percent(share: float | None) -> str:
    """62 %, or –."""
    return NOTHING if share is None or math.isnan(share) else f"{100 * share:.0f} %"


def short(number: float | None) -> str:
    """1.2 M, 34 k, 950; or –."""
    if number is None or math.isnan(number):
        return NOTHING
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def duration(seconds: float | None) -> str:
    """12 s, 3 min 20 s, 1 h 02 min."""
    if seconds is None:
        return NOTHING
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60:02d} s"
    return f"{total // 3600} h {total % 3600 // 60:02d} min"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def printable(text: str) -> str:
    """A name as a terminal may show it: names are data, and must not move the cursor."""
    return "".join(character if character.isprintable() else "�" for character in text)


def status_words(facts: RunFacts) -> str:
    """What the run is doing."""
    quiet = duration(facts.quiet_seconds)
    told = {"busy": f"busy, nothing written for {quiet}", "silent": f"silent for {quiet}: it was probably killed"}
    return told.get(facts.status, facts.status)


def verdict_words(verdict: int) -> str:
    """✓ plausible."""
    return f"{SIGNS[verdict]} {VERDICTS[verdict]}"


def bucket_words(bucket: int) -> str:
    return NOTHING if bucket < 0 else str(bucket)


_SHOWN: dict[str, Callable[[float | None], str]] = {"success": percent, "chance": percent, "p": probability} | dict.fromkeys(
    ("nats", *BY_VALUES), decimal)


def figure(goal: Record, column: str) -> str:
    """A goal's number as every table shows it."""
    return _SHOWN.get(column, whole)(goal[column])


def figures_of(facts: RunFacts) -> list[str]:
    """The columns of FIGURES that a run has: those of the rule that judges its goals."""
    return [column for column in FIGURES if column not in (BY_TRIALS if facts.thresholds else BY_VALUES)]


def stages_words(funnel: dict[str, int]) -> str:
    """declared 693 → … → mastered 12; undecided 40."""
    way = " → ".join(f"{stage} {funnel[stage]:,}" for stage in SEQUENCE)
    return f"{way}; undecided {funnel['undecided']:,}"


def task_words(facts: RunFacts) -> str:
    """What became of the times when the task itself was chosen, or nothing."""
    if not facts.task_tries:
        return ""
    tries = f"of its last {facts.task_tries:,} tries" if facts.task_tries > 1 else "of its one try"
    what = "succeeded" if facts.has_success else "met a reward, or ended early what only costs (its share of choices follows that)"
    return f"The task itself was pursued too: {facts.task_wins:,} {tries} {what}."


def why(goal: Record, history: Curve | None = None) -> list[str]:
    """Why a goal was kept or pruned, and what became of it: sentences, the verdict first.

    `goal` is a record of queries.goal; with its `history` the turns of its fate are told too.
    """
    told = [_verdict_sentence(goal)]
    if goal["parents"]:
        parts = " AND ".join(f"“{name}” ({parent})" for parent, name in goal["parents"])
        told.append(f"Made at step {goal['created_step']:,} of two mastered goals: {parts}.")
    if goal["observed_step"] is not None:
        told.append(f"First observed by step {goal['observed_step']:,}.")
    if goal["pursuits"]:
        rate = percent(goal["success"])
        end = "it is mastered" if goal["mastered"] else "it is not mastered yet"
        told.append(f"Pursued {times(goal['pursuits'])}; {rate} of its last pursuits succeeded: {end}.")
    elif goal["verdict"]:
        told.append("Not pursued yet.")
    if goal["offered"]:
        told.append(f"On offer now, in timescale bucket {goal['bucket']} (0 is the slowest).")
    elif goal["verdict"] >= Verdict.UNREACHED:
        told.append("Not on offer now: it was not drawn at the last refresh.")
    turns = verdict_turns(history) if history is not None else []
    if len(turns) > 1:
        shown = turns if len(turns) <= 6 else [turns[0], *turns[-5:]]
        path = " → ".join(f"{VERDICTS[verdict]} (step {step:,})" for step, verdict in shown)
        many = "" if len(turns) <= 6 else f" {len(turns) - 1} changes, the first and the last of them:"
        told.append(f"Its verdicts so far:{many} {path}.")
    return told


def _verdict_sentence(goal: Record) -> str:
    """The verdict and the figures that decided it."""
    names = ("events", "nats", "p", "success", "chance", "seek_max", "seek_mean", "avoid_mean")
    known = {name: goal[name] for name in names if goal[name] is not None}
    sentence = reason(goal["verdict"], **known, count=goal["count"], pursuits=goal["pursuits"], is_joined=bool(goal["parents"]))
    return sentence[0].upper() + sentence[1:]


def verdict_turns(history: Curve) -> list[tuple[int, int]]:
    """(step, verdict) wherever the verdict became another."""
    turns: list[tuple[int, int]] = []
    for step, verdict in zip(history["step"].astype(int).tolist(), history["verdict"].astype(int).tolist(), strict=True):
        if not turns or turns[-1][1] != verdict:
            turns.append((step, verdict))
    return turns
