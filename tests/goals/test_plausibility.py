"""Verdicts, and the sentence that gives the reason."""

import numpy as np
import pytest

from protogoal.goals.plausibility import Verdict, is_plausible, judge, reason
from protogoal.goals.values import SeekAvoid

NAN = np.nan
#        seek_max, seek_mean, avoid_mean, hits, count → verdict
CASES = [
    (0.9, 0.7, -0.2, 5, 9, Verdict.PLAUSIBLE),
    (0.9, 0.7, -0.65, 5, 9, Verdict.UNCONTROLLABLE),
    (0.4, 0.3, -0.1, 5, 9, Verdict.UNREACHABLE),
    (0.5, 0.4, 0.0, 5, 9, Verdict.UNREACHABLE),  # not above the threshold
    (0.3, 0.2, -0.2, 5, 9, Verdict.UNREACHABLE),  # both fail: the first test names it
    (NAN, NAN, NAN, 0, 9, Verdict.UNSAMPLED),  # not in the batch
    (0.9, 0.7, NAN, 2, 9, Verdict.UNSAMPLED),  # in the batch, undecided
    (NAN, NAN, NAN, 0, 0, Verdict.UNOBSERVED),
    (0.9, 0.7, -0.2, 5, 0, Verdict.UNOBSERVED),
]


def values_of(cases):
    columns = np.array([case[:4] for case in cases]).T
    return SeekAvoid(*columns[:3], columns[3].astype(int))


def test_each_goal_gets_the_verdict_of_the_first_test_it_fails():
    verdict = judge(np.array([case[4] for case in CASES]), values_of(CASES))
    assert verdict.dtype == np.int8
    assert [Verdict(v) for v in verdict] == [case[5] for case in CASES]


def test_only_plausible_and_unsampled_goals_may_be_offered():
    assert [v for v in Verdict if is_plausible(np.array([v]))[0]] == [Verdict.UNSAMPLED, Verdict.PLAUSIBLE]


def test_thresholds_move_the_verdict():
    values, count = values_of(CASES[:3]), np.array([9, 9, 9])
    assert (judge(count, values, 0.3, 0.04) == Verdict.PLAUSIBLE).all()
    assert judge(count, values, 0.95, 0.1).tolist() == [Verdict.UNREACHABLE] * 3


def test_goals_with_fewer_hits_than_asked_for_are_not_judged():
    assert judge(np.array([9]), values_of(CASES[1:2]), min_hits=6)[0] == Verdict.UNSAMPLED


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (CASES[0], ["plausible", "0.40 above 0.5", "0.50 more", "0.40 above 0.1", "9 times"]),
        (CASES[1], ["not controllable", "0.70", "0.65", "0.05 short of 0.1"]),
        (CASES[2], ["not reachable", "0.40", "0.10 short of 0.5"]),
        (CASES[5], ["optimism", "not in the last batch"]),
        (CASES[6], ["optimism", "too rarely in the last batch"]),
        (CASES[7], ["never observed"]),
    ],
)
def test_the_reason_names_the_test_and_the_margin(case, words):
    seek_max, seek_mean, avoid_mean, _, count, verdict = case
    sentence = reason(verdict, seek_max, seek_mean, avoid_mean, count)
    assert sentence.endswith(".")
    for word in words:
        assert word in sentence


def test_a_small_threshold_is_told_with_digits_that_tell():
    sentence = reason(Verdict.UNCONTROLLABLE, 1.0, 0.0905, -0.0895, 9, 0.3, 0.002)
    assert "the difference 0.0010 is 0.0010 short of 0.002" in sentence


def test_what_was_seen_once_is_told_so():
    assert "observed once" in reason(Verdict.UNSAMPLED, NAN, NAN, NAN, 1)


def test_thresholds_out_of_range_and_counts_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"reachability_threshold is 1\.5, must lie between 0 and 1"):
        judge(np.array([9]), values_of(CASES[:1]), 1.5)
    with pytest.raises(ValueError, match="controllability_threshold"):
        judge(np.array([9]), values_of(CASES[:1]), 0.5, -0.1)
    with pytest.raises(ValueError, match="one number a goal"):
        judge(np.array([9, 9]), values_of(CASES[:1]))
    with pytest.raises(ValueError, match="verdict is 9"):
        reason(9, 0, 0, 0, 1)
