"""Verdicts by trials and by the paper's rule, discoveries among many, and the sentence that gives the reason."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import trials as reference

from protogoal.goals import trials
from protogoal.goals.plausibility import (
    ENOUGH_EVENTS,
    ENOUGH_OF_KIND,
    FALSE_DISCOVERIES,
    GOOD_NATS,
    IDLE_KIND_P,
    IDLE_P,
    LEAST_NATS,
    WORDS,
    Verdict,
    discoveries,
    judge_trials,
    judge_values,
    reason,
)
from protogoal.goals.values import SeekAvoid

# --- by trials --------------------------------------------------------------------------------------------------------

MANY, FEW = 10 * ENOUGH_EVENTS, ENOUGH_EVENTS / 2
LITTLE, MUCH = LEAST_NATS / 2, 2 * GOOD_NATS


def judge(observed, count, events, p, nats, most=0.0, kind=0, kind_events=0.0, kind_p=1.0, kinds=True):
    tested = trials.Tested(*(np.array([float(x)]) for x in (events, p, nats, most)))
    of_kind = trials.Tested(np.array([kind_events]), np.array([kind_p]), np.zeros(1), np.zeros(1)) if kinds else None
    return Verdict(judge_trials(np.array([observed]), np.array([count]), tested, np.array([kind]), of_kind)[0])


@pytest.mark.parametrize(("case", "verdict"), [
    ({"observed": False, "count": 0, "events": 0, "p": 1, "nats": 0}, Verdict.UNOBSERVED),
    ({"observed": True, "count": 0, "events": 0, "p": 1, "nats": 0}, Verdict.STATIC),
    ({"observed": True, "count": 9, "events": 0, "p": 1, "nats": 0, "kind": -1}, Verdict.UNDECIDED),
    ({"observed": True, "count": 9, "events": FEW, "p": 1, "nats": 0}, Verdict.UNDECIDED),
    ({"observed": True, "count": 9, "events": MANY, "p": 0.5, "nats": MUCH}, Verdict.UNCONTROLLABLE),
    ({"observed": True, "count": 9, "events": MANY, "p": IDLE_P, "nats": LITTLE, "kind_p": 0.9}, Verdict.UNDECIDED),
    ({"observed": True, "count": 9, "events": MANY, "p": 1e-9, "nats": LITTLE}, Verdict.UNDECIDED),  # inertia, or noise in places
    ({"observed": True, "count": 9, "events": MANY, "p": 0.5, "nats": LITTLE, "most": MUCH}, Verdict.UNDECIDED),  # good yet?
    ({"observed": True, "count": 9, "events": MANY, "p": 1e-9, "nats": MUCH, "most": MUCH}, Verdict.PLAUSIBLE),
    ({"observed": True, "count": 9, "events": FEW, "p": 1e-9, "nats": MUCH, "most": MUCH}, Verdict.PLAUSIBLE),
])
def test_each_goal_gets_its_verdict(case, verdict):
    assert judge(**case) == verdict


def test_the_order_of_verdicts_is_that_of_what_may_be_offered():
    assert sorted(Verdict) == [Verdict.UNOBSERVED, Verdict.STATIC, Verdict.UNCONTROLLABLE, Verdict.UNCONTROLLABLE_KIND,
                               Verdict.UNREACHED, Verdict.UNDECIDED, Verdict.PLAUSIBLE]
    assert set(WORDS) == set(Verdict)


def test_an_idle_kind_condemns_what_is_undecided_and_nothing_else():
    idle = {"kind_events": ENOUGH_OF_KIND, "kind_p": 0.5}
    rare = {"observed": True, "count": 3, "events": 3, "p": 1, "nats": 0}
    assert judge(**rare, **idle) == Verdict.UNCONTROLLABLE_KIND
    assert judge(**rare, **idle, kinds=False) == Verdict.UNDECIDED
    assert judge(**rare, **idle, kind=-1) == Verdict.UNDECIDED
    assert judge(**rare, kind_events=ENOUGH_OF_KIND / 2, kind_p=0.5) == Verdict.UNDECIDED
    assert judge(**rare, kind_events=ENOUGH_OF_KIND, kind_p=IDLE_KIND_P / 10) == Verdict.UNDECIDED
    assert judge(**rare | {"p": 1e-9, "nats": MUCH}, **idle) == Verdict.PLAUSIBLE  # its own evidence counts for more
    assert judge(**rare | {"events": MANY}, **idle) == Verdict.UNCONTROLLABLE
    assert judge(**rare | {"count": 0, "events": 0}, **idle) == Verdict.STATIC


def test_a_vast_kind_of_noise_does_not_raise_the_bar_for_others():
    p = np.concatenate([np.linspace(0.001, 1, 5000), [0.005]])
    tested = trials.Tested(np.full(5001, MANY), p, np.full(5001, MUCH), np.full(5001, MUCH))
    group = np.array([0] * 5000 + [1])
    verdict = judge_trials(np.ones(5001, bool), np.full(5001, 9), tested, group, None)
    assert verdict[-1] == Verdict.PLAUSIBLE
    assert not (verdict[:-1] == Verdict.PLAUSIBLE).any()


def test_discoveries_by_hand():
    # of four, 0.01·k/4 are 0.0025, 0.005, 0.0075, 0.01: the third passes, and takes the second along, which alone would not
    p = np.array([0.0075, 0.006, 0.5, 0.001])
    assert discoveries(p, np.zeros(4, int), np.ones(4, bool), 0.01).tolist() == [True, True, False, True]
    assert discoveries(p, np.arange(4), np.ones(4, bool), 0.01).tolist() == [True, True, False, True]
    assert discoveries(p, np.zeros(4, int), np.array([True, True, True, False]), 0.01).tolist() == [False] * 4
    assert discoveries(p, np.zeros(4, int), np.zeros(4, bool)).tolist() == [False] * 4
    assert len(discoveries(np.empty(0), np.empty(0, int), np.empty(0, bool))) == 0


@given(st.integers(0, 10_000), st.integers(1, 80))
@settings(deadline=None)
def test_discoveries_equal_the_slow_version(seed, n):
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.3, rng.random(n) * 0.01, rng.random(n)).round(4)  # with ties
    group, is_tested = rng.integers(-1, 4, n), rng.random(n) < 0.8
    np.testing.assert_array_equal(discoveries(p, group, is_tested, 0.1), reference.discoveries(p, group, is_tested, 0.1))


def test_of_what_is_discovered_only_the_allowed_share_is_false():
    rng = np.random.default_rng(0)
    false = total = 0
    for _ in range(200):
        p = np.concatenate([rng.random(500), rng.random(100) * 1e-6])  # the first are noise
        found = discoveries(p, np.zeros(600, int), np.ones(600, bool))
        assert found[500:].all()
        false, total = false + found[:500].sum(), total + found.sum()
    assert false / total < 1.5 * FALSE_DISCOVERIES


# --- the paper's rule ---------------------------------------------------------------------------------------------------

NAN = np.nan
#        seek_max, seek_mean, avoid_mean, hits, count → verdict
CASES = [
    (0.9, 0.7, -0.2, 5, 9, Verdict.PLAUSIBLE),
    (0.9, 0.7, -0.65, 5, 9, Verdict.UNCONTROLLABLE),
    (0.4, 0.3, -0.1, 5, 9, Verdict.UNREACHED),
    (0.5, 0.4, 0.0, 5, 9, Verdict.UNREACHED),  # not above the threshold
    (0.3, 0.2, -0.2, 5, 9, Verdict.UNREACHED),  # both fail: the first test names it
    (NAN, NAN, NAN, 0, 9, Verdict.UNDECIDED),  # not in the batch
    (0.9, 0.7, NAN, 2, 9, Verdict.UNDECIDED),  # in the batch, but it cannot tell
    (NAN, NAN, NAN, 0, 0, Verdict.UNOBSERVED),
    (0.9, 0.7, -0.2, 5, 0, Verdict.UNOBSERVED),
]


def values_of(cases):
    columns = np.array([case[:4] for case in cases]).T
    return SeekAvoid(*columns[:3], columns[3].astype(int))


def test_by_the_papers_rule_each_goal_gets_the_verdict_of_the_first_test_it_fails():
    verdict = judge_values(np.array([case[4] for case in CASES]), values_of(CASES))
    assert verdict.dtype == np.int8
    assert [Verdict(v) for v in verdict] == [case[5] for case in CASES]


def test_thresholds_move_the_papers_verdict():
    values, count = values_of(CASES[:3]), np.array([9, 9, 9])
    assert (judge_values(count, values, 0.3, 0.04) == Verdict.PLAUSIBLE).all()
    assert judge_values(count, values, 0.95, 0.1).tolist() == [Verdict.UNREACHED] * 3


def test_counts_of_another_length_are_refused():
    with pytest.raises(ValueError, match="one number a goal"):
        judge_values(np.array([9, 9]), values_of(CASES[:1]))


# --- words --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verdict", "figures", "words"), [
    (Verdict.UNOBSERVED, {"count": 0}, ["unobserved", "never on"]),
    (Verdict.STATIC, {"count": 0}, ["static", "no transition ever turned it on"]),
    (Verdict.UNCONTROLLABLE, {"count": 90, "events": 77.0, "nats": 0.04, "p": 0.3}, ["0.04 nats", "no more than chance", "0.3"]),
    (Verdict.UNCONTROLLABLE, {"count": 90, "events": 77.0, "nats": 0.04, "p": IDLE_P / 1000}, [f"less than {LEAST_NATS:g}", "77"]),
    (Verdict.UNCONTROLLABLE_KIND, {"count": 3, "events": 2.0}, ["2 trials", "its kind"]),
    (Verdict.UNREACHED, {"count": 3, "pursuits": 1234, "success": 0.1, "chance": 0.02}, ["10 %", "1,234", "2 %"]),
    (Verdict.UNDECIDED, {"count": 900, "events": 800.0, "nats": 0.11, "p": 6e-81}, ["0.11 nats", "6e-81", "pursuits must tell"]),
    (Verdict.PLAUSIBLE, {"count": 900, "events": 800.0, "nats": 0.11, "p": 6e-81, "pursuits": 50}, ["0.11 nats", "50 in all"]),
    (Verdict.UNDECIDED, {"count": 1, "events": 1.0, "p": 0.6}, ["turned on once", "1 trial:", "too few", "0.6"]),
    (Verdict.PLAUSIBLE, {"count": 5000, "events": 777.0, "nats": 1.25, "p": 3e-12}, ["1.25 nats", "3e-12", "777 trials"]),
    (Verdict.UNCONTROLLABLE, {"count": 9, "seek_max": 0.9, "seek_mean": 0.7, "avoid_mean": -0.65}, ["0.90", "0.70", "0.65"]),
    (Verdict.UNREACHED, {"count": 1, "seek_max": 0.4}, ["0.40", "turned on once"]),
    (Verdict.PLAUSIBLE, {"count": 7, "is_joined": True}, ["all of its bits are", "7 times"]),
    (Verdict.UNCONTROLLABLE_KIND, {"count": 7, "is_joined": True}, ["one of its bits is"]),
    (Verdict.UNREACHED, {"count": 7, "is_joined": True, "pursuits": 40, "chance": 0.3}, ["chance, 30 %", "40 in all"]),
    (Verdict.PLAUSIBLE, {"count": 7}, ["nothing that was is pruned"]),  # pruning: observed or off
    (Verdict.PLAUSIBLE, {"count": 0}, ["never turned on"]),
])
def test_the_reason_has_the_verdict_and_the_figures_that_decided_it(verdict, figures, words):
    sentence = reason(verdict, **figures)
    assert sentence.startswith(WORDS[verdict])
    assert sentence.endswith(".")
    for word in words:
        assert word in sentence
    assert not any(math.isnan(float(x)) for x in sentence.replace("%", "").split() if x == "nan")


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ValueError, match="9"):
        reason(9, count=1)
