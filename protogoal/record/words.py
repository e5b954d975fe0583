"""The words in which goals are spoken of: the same on the page, in the report and in the terminal.

Verdicts have a word and a sign (never a colour alone); one goal's fate is a handful of sentences (`why`). Called by
record/goals_table.py, record/report.py and record/inspector/.
"""

from __future__ import annotations

import math

from protogoal.goals.plausibility import Verdict, reason
from protogoal.record.queries import Curve, Record
from protogoal.record.run_facts import RunFacts

VERDICTS: dict[int, str] = {
    Verdict.UNOBSERVED: "unobserved",
    Verdict.UNREACHABLE: "not reachable",
    Verdict.UNCONTROLLABLE: "not controllable",
    Verdict.UNSAMPLED: "unsampled",
    Verdict.PLAUSIBLE: "plausible",
}
SIGNS: dict[int, str] = {0: "○", 1: "✕", 2: "≈", 3: "?", 4: "✓"}
MEANINGS: dict[int, str] = {
    0: "never seen",
    1: "seen, but no visited state promises to reach it",
    2: "it happens as often whether one seeks it or avoids it",
    3: "seen before, but not or too rarely in the last batch; kept by optimism",
    4: "seen, reachable and controllable",
}
STAGES: dict[str, str] = {
    "declared": "all goals: every bit of the space, and every AND made so far",
    "observed": "attained at least once",
    "reachable": "observed, and some state promises to reach it",
    "controllable": "reachable, and seeking it differs from avoiding it",
    "offered": "drawn into the set that actors choose from now",
    "mastered": "succeeds in most of its last pursuits",
}
STATUS: dict[str, str] = {"running": "running", "silent": "silent", "finished": "finished", "stopped": "stopped"}
NOTHING = "–"


def whole(number: float | None) -> str:
    """12,345, or – where nothing is known."""
    return NOTHING if number is None or math.isnan(number) else f"{round(number):,}"


def decimal(number: float | None) -> str:
    """0.62, or –."""
    return NOTHING if number is None or math.isnan(number) else f"{round(number, 2) + 0.0:.2f}".replace("-", "−")


def signed(number: float | None) -> str:
    """+0.12 or −0.05, with a third digit where the number is small, or –."""
    if number is None or math.isnan(number):
        return NOTHING
    return f"{number:+.{2 if abs(number) >= 0.05 else 3}f}".replace("-", "−")


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
    if facts.status == "silent":
        return f"silent for {duration(facts.quiet_seconds)}: it was probably killed"
    return STATUS.get(facts.status, facts.status)


def verdict_words(verdict: int) -> str:
    """✓ plausible."""
    return f"{SIGNS[verdict]} {VERDICTS[verdict]}"


def success_of(goal: Record) -> float | None:
    """S(g), known only of a goal that was pursued."""
    return goal["success"] if goal["pursuits"] else None


def bucket_words(bucket: int) -> str:
    return NOTHING if bucket < 0 else str(bucket)


def why(goal: Record, facts: RunFacts, history: Curve | None = None) -> list[str]:
    """Why a goal was kept or pruned, and what became of it: sentences, the verdict first.

    `goal` is a record of queries.goal; with its `history` the turns of its fate are told too.
    """
    known = {name: math.nan if goal[name] is None else goal[name] for name in ("seek_max", "seek_mean", "avoid_mean")}
    sentence = reason(goal["verdict"], **known, count=goal["count"],
                      reachability_threshold=facts.reachability_threshold,
                      controllability_threshold=facts.controllability_threshold)
    told = [sentence[0].upper() + sentence[1:]]
    if goal["parents"]:
        parts = " AND ".join(f"“{name}” ({parent})" for parent, name in goal["parents"])
        told.append(f"Made at step {goal['created_step']:,} of two mastered goals: {parts}.")
    if goal["observed_step"] is not None:
        told.append(f"First observed by step {goal['observed_step']:,}.")
    if goal["pursuits"]:
        rate = percent(goal["success"])
        end = "so it is mastered" if goal["mastered"] else "so it is not mastered"
        told.append(f"Pursued {times(goal['pursuits'])}; {rate} of its last pursuits succeeded, {end}.")
    elif goal["verdict"]:
        told.append("Not pursued yet.")
    if goal["offered"]:
        nevertheless = "" if goal["verdict"] >= Verdict.UNSAMPLED else ", since pruning is off"
        told.append(f"On offer now{nevertheless}, in timescale bucket {goal['bucket']} (0 is the slowest).")
    elif goal["verdict"] >= Verdict.UNSAMPLED:
        told.append("Not on offer now: it was not drawn at the last refresh.")
    turns = verdict_turns(history) if history is not None else []
    if len(turns) > 1:
        shown = turns if len(turns) <= 6 else [turns[0], *turns[-5:]]
        path = " → ".join(f"{VERDICTS[verdict]} (step {step:,})" for step, verdict in shown)
        many = "" if len(turns) <= 6 else f" {len(turns) - 1} changes, the first and the last of them:"
        told.append(f"Its verdicts so far:{many} {path}.")
    return told


def verdict_turns(history: Curve) -> list[tuple[int, int]]:
    """(step, verdict) wherever the verdict became another."""
    turns: list[tuple[int, int]] = []
    for step, verdict in zip(history["step"].astype(int).tolist(), history["verdict"].astype(int).tolist(), strict=True):
        if not turns or turns[-1][1] != verdict:
            turns.append((step, verdict))
    return turns
