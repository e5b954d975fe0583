"""Randomised trials: the sums and tests by hand, against the slow version, under the null hypothesis, and where actions matter."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import trials as reference
from scipy import stats

from protogoal.goals import trials as module
from protogoal.goals.plausibility import LEAST_NATS, discoveries
from protogoal.goals.trials import FEATURES, LAGS, PROJECTIONS, RIDGE, TrialEvents, Trials, residuals, taken_before

NOTHING = np.full(LAGS - 1, -1)


def events(bits, actions, before=None, probability=None, row=None):
    """One event a transition, of an action without any before; or with all of them, actions [m, D]."""
    actions = np.asarray(actions, np.int16)
    if actions.ndim == 1:
        actions = np.concatenate([actions[:, None], np.tile(NOTHING, (len(actions), 1))], 1).astype(np.int16)
    before = np.full((len(actions), 1), -1) if before is None else np.asarray(before)
    row = np.arange(len(actions)) if row is None else np.asarray(row)
    return TrialEvents(before.astype(np.int32), actions, row.astype(np.int32), np.asarray(bits, np.int32),
                       None if probability is None else np.asarray(probability, np.float32))


def kind_of_three(bit):
    return f"kind {bit % 3}"


def kinds_of_three(bits):
    return [kind_of_three(bit) for bit in bits]


# --- by hand --------------------------------------------------------------------------------------------------------


def test_the_sums_of_three_events_by_hand():
    trials = Trials(4, num_actions=2)
    trials.update(events([3, 3, 3], [1, 1, 0]))  # nothing is on before: z = (0, …, 0, 1)
    n, u, s, lag_n, lag_u, own = (array[0] for array in trials.sums.arrays())
    assert own == pytest.approx(3 * (2 - 1))
    root = math.sqrt(2) / 2  # √2 (1 − ½)
    assert n == 3
    np.testing.assert_allclose(u[:, -1], [-root, root], rtol=1e-6)  # twice action 1, once action 0
    assert not u[:, :-1].any()
    assert s.tolist() == [0.0] * (len(s) - 1) + [3.0]
    assert not lag_n.any()
    assert not lag_u.any()
    assert trials.bits.tolist() == [3]
    assert trials.row_of.tolist() == [-1, -1, -1, 0]


def test_p_and_nats_of_eight_events_that_follow_one_action_by_hand():
    trials = Trials(2, num_actions=3)
    trials.update(events([1] * 8, [2] * 8))
    tested = trials.test()
    # r = √3 (−⅓, −⅓, ⅔), ‖Σ r‖² = 64 · 2, T₁ = 128/8 = 16 with two degrees of freedom; c = 1 + 1/16
    c = 17 / 16
    of_t_1 = stats.chi2.sf(2 / c**2 + 14 / c, 2 / c**2)
    # T = 128/(8 + 8λ), with 2/(1 + λ) degrees of freedom: a little more
    assert tested.p[0] == pytest.approx(3 * of_t_1, rel=1e-5)
    assert 3 * math.exp(-8) < tested.p[0] < 9 * 3**-8  # χ² alone, and what chance makes of eight of eight, three times
    assert tested.nats[0] == pytest.approx((16 - 2) / (2 * 8), rel=1e-5)
    assert tested.most[0] == pytest.approx((16 - 2 + 2 * math.sqrt(2 * 2)) / (2 * 8), rel=1e-5)
    assert tested.events[0] == 8


@pytest.mark.parametrize("num_actions", [3, 5, 20, 100])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_few_events_that_are_alike_have_hardly_a_smaller_p_than_chance_gives_them(num_actions, n):
    trials = Trials(2, num_actions)
    trials.update(events([1] * n, [1] * n))
    by_chance = num_actions * num_actions**-n  # 1.25e-4 for four of 20 actions; χ² alone says 9e-9
    assert trials.test().p[0] > 0.1 * by_chance


def test_an_effect_two_steps_later_by_hand():
    past = np.full((12, LAGS), -1)
    past[:, 0] = [0, 1] * 6
    past[:, 2] = 1
    trials = Trials(1, num_actions=2)
    trials.update(events([0] * 12, past))
    n, _, _, lag_n, lag_u, _ = (array[0] for array in trials.sums.arrays())
    assert n == 12
    assert lag_n.tolist() == [0, 12, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(lag_u[1], [-12 / math.sqrt(2), 12 / math.sqrt(2)], rtol=1e-6)
    tested = trials.test()
    # T₂ = 144/12 = 12 with one degree of freedom, of seven that were looked at, of three tests
    assert tested.p[0] == pytest.approx(3 * 7 * stats.chi2.sf(12, 1), rel=1e-5)
    assert tested.nats[0] == pytest.approx((12 - 1) / 24, rel=1e-5)


def test_residuals_of_a_likely_and_an_unlikely_action_by_hand():
    mu = np.array([[[0.9, 0.1]]], np.float32)
    (rare, all_of_it), (greedy, part) = (residuals(np.array([[a]], np.int16), mu, 2) for a in (1, 0))
    root = math.sqrt(2) / 2
    assert (all_of_it[0, 0], part[0, 0]) == pytest.approx((1, 0.1 / 0.9))
    np.testing.assert_allclose(rare[0, 0], [-root, root], rtol=1e-5)
    np.testing.assert_allclose(greedy[0, 0], [root / 9, -root / 9], rtol=1e-5)
    np.testing.assert_allclose(0.1 * rare + 0.9 * greedy, 0.0, atol=1e-6)  # on average nothing
    assert 0.1 * all_of_it[0, 0] + 0.9 * part[0, 0] == pytest.approx(0.2)  # an ε of 0.2: so many uniform trials


def test_an_action_that_could_not_be_taken_gives_no_weight():
    r, weight = residuals(np.array([[0], [-1]], np.int16), np.array([[[1.0, 0.0]], [[0.5, 0.5]]], np.float32), 2)
    assert not weight.any()
    assert not r.any()
    trials = Trials(2, num_actions=2)
    trials.update(events([1] * 50, [0] * 50, probability=np.tile([1.0, 0.0], (50, LAGS, 1))))
    tested = trials.test()
    assert (tested.events[0], tested.p[0], tested.nats[0]) == (0, 1, 0)


def test_a_kind_counts_once_a_transition():
    trials = Trials(9, 2, kinds_of_three)
    trials.update(events([0, 3, 6, 1, 3], [1, 0], row=[0, 0, 0, 0, 1]))
    assert trials.kinds == ["kind 0", "kind 1"]
    assert trials.kind_sums.arrays()[0].tolist() == [2, 1]
    assert trials.sums.arrays()[0][trials.row_of[[0, 1, 3, 6]]].tolist() == [1, 1, 2, 1]


def test_goals_that_each_have_an_action_of_their_own_show_as_a_kind_though_their_sum_cancels():
    trials = Trials(40, num_actions=4)
    bit = np.repeat(np.arange(40), 3)
    trials.update(events(bit, bit % 4))
    # the same number of events of each action: the pooled tests see nothing; but T₁ − 3 is 9 − 3 of each goal
    assert module.test_sums(*trials.kind_sums.arrays()).p[0] > 0.5
    excess, variance = 40 * 6, 40 * 2 * 3 * (1 - 1 / 3)
    expected = stats.chi2.sf(variance / 2 + excess, variance / 2)
    assert trials.test_kinds().p[0] == pytest.approx(2 * expected, rel=1e-4)


# --- against the slow version -----------------------------------------------------------------------------------------


def random_events(rng, num_bits, num_actions, with_probability, m=60, with_taken=False):
    row = np.sort(rng.integers(m, size=2 * m))
    before = np.where(rng.random((m, 5)) < 0.3, -1, rng.integers(num_bits, size=(m, 5)))
    probability = None
    if with_probability:
        probability = rng.dirichlet(np.ones(num_actions), size=(m, LAGS))
        probability[rng.random((m, LAGS)) < 0.1] = np.eye(num_actions)[0]
        probability[rng.random((m, LAGS, num_actions)) < 0.1] = 0.0
        probability[..., -1] += 1.0 - probability.sum(-1)
    action = np.where(rng.random((m, LAGS)) < 0.3, -1, rng.integers(num_actions, size=(m, LAGS)))
    bit = rng.choice(num_bits // 2, size=len(row), p=rng.dirichlet(np.ones(num_bits // 2)))
    taken = rng.integers(0, 50, size=(LAGS - 1, num_actions)) * (rng.random(num_actions) < 0.8)
    return replace(events(bit, action, before, probability, row), taken=taken.astype(float) if with_taken else None)


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_sums_and_tests_equal_the_slow_version(seed, num_actions, with_probability, with_taken):
    rng = np.random.default_rng(seed)
    trials = Trials(12, num_actions, kinds_of_three, seed)
    parts = [random_events(rng, 12, num_actions, with_probability, with_taken=with_taken) for _ in range(2)]
    for part in parts:
        trials.update(part)
    directions = np.random.default_rng(seed).standard_normal((12, 2 * PROJECTIONS), np.float32)
    goals, kinds = reference.collect(parts, num_actions, kind_of_three, directions)
    assert sorted(goals) == sorted(trials.bits.tolist())
    lower = np.tril_indices(FEATURES)
    for sums, rows, place in ((trials.sums, goals, trials.row_of), (trials.kind_sums, kinds, trials.kinds)):
        for key, slow in rows.items():
            i = place.index(key) if isinstance(place, list) else place[key]
            rows_of_sums = [array[i] for array in sums.arrays()]
            for name, ours, theirs in zip(sums.NAMES, rows_of_sums, slow.sums(), strict=True):
                theirs = theirs[lower] if name == "s" else theirs
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    tested, tested_kinds = trials.test(), trials.test_kinds()
    for bit, slow in goals.items():
        i = trials.row_of[bit]
        compare((tested.events[i], tested.p[i], tested.nats[i], tested.most[i]), slow.test(RIDGE))
    for kind in kinds:
        i = trials.kinds.index(kind)
        compare((tested_kinds.events[i], tested_kinds.p[i], tested_kinds.nats[i], tested_kinds.most[i]),
                reference.test_of_kind(kind, goals, kinds, kind_of_three, num_actions, RIDGE))


def compare(ours, theirs):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4, atol=1e-5)
    if abs(theirs[0] - 1) > 1e-4:  # at n = 1 a row becomes known
        if max(ours[1], theirs[1]) < 1:  # where T is just what is expected, p may be called 1
            np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-2, atol=1e-12)
        assert min(ours[1], theirs[1]) > 0.3 or max(ours[1], theirs[1]) < 1
        np.testing.assert_allclose(ours[2:], theirs[2:], rtol=1e-3, atol=1e-4)


def test_without_probabilities_actions_are_uniform():
    rng = np.random.default_rng(0)
    plain = random_events(rng, 12, 3, False)
    known = TrialEvents(plain.before, plain.action, plain.row, plain.bit, np.full((60, LAGS, 3), 1 / 3, np.float32))
    one, other = Trials(12, 3), Trials(12, 3)
    one.update(plain)
    other.update(known)
    for ours, theirs in zip(one.sums.arrays(), other.sums.arrays(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_parts_joined_are_the_same_as_one_after_another():
    rng = np.random.default_rng(3)
    parts = [random_events(rng, 12, 3, True) for _ in range(3)]
    parts[1] = TrialEvents(parts[1].before[:, :2], parts[1].action, parts[1].row, parts[1].bit, parts[1].probability)
    one, other = Trials(12, 3, kinds_of_three), Trials(12, 3, kinds_of_three)
    for part in parts:
        one.update(part)
    other.update(TrialEvents.join(parts))
    order = one.row_of[other.bits]  # rows come in another order
    for ours, theirs in zip(one.sums.arrays(), other.sums.arrays(), strict=True):
        np.testing.assert_allclose(ours[order], theirs, rtol=1e-4, atol=1e-4)
    assert len(TrialEvents.join([]).bit) == 0


def test_parts_with_and_without_probabilities_are_not_joined():
    one = TrialEvents(np.zeros((1, 1), np.int32), np.zeros((1, LAGS), np.int16), np.zeros(1, np.int32), np.zeros(1, np.int32))
    known = replace(one, probability=np.full((1, LAGS, 2), 0.5, np.float32))
    with pytest.raises(ValueError, match="cannot be joined"):
        TrialEvents.join([one, known])


def test_nats_are_those_of_the_test_that_tells_and_not_of_a_lag_with_two_events_alike():
    n, events = np.array([4000.0]), 4000
    u, s = np.zeros((1, 5, FEATURES)), np.zeros((1, FEATURES * (FEATURES + 1) // 2))
    s[0, -1] = events  # the constant alone
    taken = np.array([1000, 750, 750, 750, 750])  # a slight effect of many events
    u[0, :, -1] = np.sqrt(5) * (taken - events / 5)
    lag_n, lag_u = np.zeros((1, LAGS - 1)), np.zeros((1, LAGS - 1, 5))
    lag_n[0, 3], lag_u[0, 3] = 2.0, 2 * np.sqrt(5) * (np.arange(5) == 2) - 2 / np.sqrt(5)
    found = module.test_sums(n, u, s, lag_n, lag_u, np.zeros(1))
    assert found.p[0] < 1e-6
    assert found.nats[0] < 0.05


def test_noise_stays_noise_after_more_events_than_single_precision_counts():
    rng, trials = np.random.default_rng(0), Trials(1, 2)
    action = rng.integers(2, size=(4096, LAGS))
    one = replace(events([0] * 4096, action), taken=taken_before(action.astype(np.int16), None, 2))
    trials.update(one)
    for array in trials.sums.arrays():  # as after 2^23 events like these, of which the last are to come
        array[:] = 0
    n, _, s, lag_n, _, own = trials.sums.arrays()
    n[:], own[:], lag_n[:], s[0, -1] = 2.0**23 - 2048, 2.0**23 - 2048, 2.0**23 - 2048, 2.0**23 - 2048
    trials.update(one)
    assert n[0] == 2.0**22 + 2048
    assert lag_n[0].tolist() == [2.0**22 + 2048] * (LAGS - 1)
    assert trials.test().p[0] > 0.01


def test_looking_between_changes_nothing():
    rng = np.random.default_rng(4)
    one, other = Trials(12, 3, kinds_of_three), Trials(12, 3, kinds_of_three)
    for _ in range(4):
        part = random_events(rng, 12, 3, False, m=9)
        for trials in (one, other):
            trials.update(part)
        one.test()
        one.test_kinds()
    for look in ("test", "test_kinds"):
        for ours, theirs in zip(vars(getattr(one, look)()).values(), vars(getattr(other, look)()).values(), strict=True):
            np.testing.assert_array_equal(ours, theirs)


# --- what it is for ---------------------------------------------------------------------------------------------------


def null_events(rng, num_goals, each, num_actions, probability=None, states=30):
    """Goals that come on whatever is done; actions drawn as the probabilities say, [A] or none."""
    m = num_goals * each
    mu = np.full(num_actions, 1 / num_actions) if probability is None else np.asarray(probability)
    action = rng.choice(num_actions, size=(m, LAGS), p=mu)
    known = None if probability is None else np.tile(mu, (m, LAGS, 1))
    return events(np.repeat(np.arange(num_goals), each), action, rng.integers(states, size=(m, 3)), known)


@pytest.mark.parametrize("each", [4, 12, 60])
@pytest.mark.parametrize("mu", [[0.5, 0.5], [0.2] * 5, [0.05] * 20, [0.85, 0.05, 0.05, 0.05], [0.97, 0.01, 0.01, 0.01]])
def test_where_actions_do_not_matter_p_is_no_smaller_than_chance_makes_it(each, mu):
    num_actions = len(mu)
    trials = Trials(2000, num_actions)
    trials.update(null_events(np.random.default_rng(0), 2000, each, num_actions, mu))
    tested = trials.test()
    for level in (0.3, 0.1, 0.03, 0.01):
        assert (tested.p < level).mean() < 1.3 * level + 3 * math.sqrt(level / 2000)
    found = discoveries(tested.p, np.zeros(2000, int), tested.events > 0) & (tested.nats >= LEAST_NATS)
    assert found.sum() == 0


def test_where_actions_do_not_matter_a_kinds_p_is_no_smaller_than_chance_makes_it():
    rng = np.random.default_rng(1)
    p = []
    for _ in range(300):
        trials = Trials(30, 4)
        trials.update(null_events(rng, 30, 5, 4))
        p.append(trials.test_kinds().p[0])
    assert (np.array(p) < 0.1).mean() < 0.15
    assert (np.array(p) < 0.01).mean() < 0.03


def test_noise_that_occurs_in_few_states_does_not_pass():
    rng = np.random.default_rng(2)
    m = 200 * 40
    place = np.repeat(rng.integers(60, size=200), 40)  # every goal has one state in which it comes on
    trials = Trials(260, 5)
    trials.update(events(60 + np.repeat(np.arange(200), 40), rng.integers(5, size=(m, LAGS)), place[:, None]))
    tested = trials.test()
    assert (tested.p < 0.01).mean() < 0.03
    assert not discoveries(tested.p, np.zeros(200, int), tested.events > 0).any()


def walk(rng, steps, num_actions):
    return rng.integers(num_actions, size=steps), rng.integers(30, size=(steps, 2))


def with_past(action):
    """Actions [n] with those before, [n, D]."""
    past = np.full((len(action), LAGS), -1)
    for d in range(LAGS):
        past[d:, d] = action[: len(action) - d]
    return past


def passes(bit, on, action, before, num_actions):
    rows = np.flatnonzero(on)
    trials = Trials(64, num_actions)
    trials.update(events(np.full(len(rows), bit), with_past(action)[rows], before[rows]))
    tested = trials.test()
    return tested.p[0] < 1e-4 and tested.nats[0] >= LEAST_NATS


def ends_episodes(rng, steps, num_actions, dies):
    """Random actions [n, D] of episodes that the last action ends with this probability."""
    past, rows = np.full(LAGS, -1), np.empty((steps, LAGS), np.int16)
    for i in range(steps):
        past = np.append(rng.integers(num_actions), past[:-1])
        rows[i] = past
        if past[0] == num_actions - 1 and rng.random() < dies:
            past[:] = -1
    return rows


@pytest.mark.parametrize(("num_actions", "dies"), [(3, 1.0), (5, 0.3), (7, 1.0)])
def test_noise_does_not_pass_where_an_action_ends_episodes(num_actions, dies):
    rng = np.random.default_rng(0)
    action = ends_episodes(rng, 12_000, num_actions, dies)
    bits = rng.integers(50, size=len(action))
    trials, blind = Trials(50, num_actions), Trials(50, num_actions)
    for part in np.array_split(np.arange(len(action)), 40):
        one = events(bits[part], action[part])
        blind.update(one)
        trials.update(replace(one, taken=taken_before(action[part], None, num_actions)))
    assert trials.test_kinds().p[0] > 1e-3
    assert (trials.test().p < 0.01).mean() < 0.05
    assert blind.test_kinds().p[0] < 1e-12  # what ended an episode is missing before every event


def test_the_actions_before_all_transitions_are_counted_by_their_weight():
    action = np.full((3, LAGS), -1, np.int16)
    action[:, 1] = [0, 1, 1]
    action[2, 3] = 0
    counts = np.zeros((LAGS - 1, 2))
    counts[0], counts[2] = [1, 2], [1, 0]
    np.testing.assert_array_equal(taken_before(action, None, 2), counts)
    mu = np.tile(np.array([0.2, 0.8], np.float32), (3, LAGS, 1))
    np.testing.assert_allclose(taken_before(action, mu, 2), counts * [1, 0.25], rtol=1e-6)


def test_actions_that_are_masked_leave_trials_among_the_others():
    rng, steps = np.random.default_rng(0), 2000
    mu = np.full((steps, LAGS, 4), 1 / 3, np.float32)
    mu[np.arange(steps)[:, None], np.arange(LAGS), rng.integers(1, 4, size=(steps, LAGS))] = 0.0  # one of three is not allowed
    action = np.array([[rng.choice(4, p=p / p.sum()) for p in row] for row in mu], np.int16)
    trials = Trials(2, 4)
    works = action[:, 0] == 0
    trials.update(events([0] * works.sum(), action[works], probability=mu[works]))
    trials.update(events([1] * steps, action, probability=mu))
    tested = trials.test()
    assert tested.p[0] < 1e-12
    assert tested.p[1] > 0.01


@pytest.mark.parametrize("mu", [[0.25] * 4, [0.85, 0.05, 0.05, 0.05], [0.05, 0.45, 0.45, 0.05]])
def test_a_kind_of_which_each_goal_has_an_action_of_its_own_shows_whatever_the_policy(mu):
    rng, mu = np.random.default_rng(0), np.array(mu)
    bit = np.repeat(np.arange(300), 6)
    likely = mu * np.where(np.arange(4) == (bit % 4)[:, None], 8.0, 1.0)  # eight times as likely to come on after its own
    likely /= likely.sum(1, keepdims=True)
    action = (likely.cumsum(1) < rng.random((len(bit), 1))).sum(1)
    trials = Trials(300, 4)
    trials.update(events(bit, action, probability=np.tile(mu, (len(bit), LAGS, 1))))
    assert trials.test_kinds().p[0] < 1e-6


def test_an_action_that_works_three_times_in_ten_passes():
    rng = np.random.default_rng(3)
    action, before = walk(rng, 3000, 5)
    works = rng.random(3000) < np.where(action == 2, 0.3, 0.03)
    assert passes(40, works, action, before, 5)
    assert not passes(40, rng.random(3000) < 0.1, action, before, 5)


def test_an_effect_that_comes_three_steps_later_passes():
    rng = np.random.default_rng(4)
    action, before = walk(rng, 1500, 5)
    on = np.zeros(1500, bool)
    on[3:] = action[:-3] == 1
    assert passes(40, on, action, before, 5)


def test_an_action_that_matters_in_another_way_in_each_state_passes():
    """Left of it one must go right, right of it left: no action by itself tells anything, the state with it does."""
    rng = np.random.default_rng(5)
    action, side = rng.integers(2, size=400), rng.integers(2, size=400)
    assert passes(40, action != side, action, side[:, None], 2)


def test_what_the_epsilon_greedy_policy_prefers_does_not_pass_but_what_it_causes_does():
    """The policy takes action 0 with 0.9: noise mostly follows it, which is no sign."""
    rng = np.random.default_rng(6)
    mu = np.array([0.925, 0.025, 0.025, 0.025])
    action = rng.choice(4, size=40_000, p=mu)
    noise, caused = rng.random(40_000) < 0.02, (action == 3) & (rng.random(40_000) < 0.5)
    for on, expected in ((noise, False), (caused, True)):
        rows = np.flatnonzero(on)
        trials = Trials(8, 4)
        trials.update(events([0] * len(rows), action[rows], probability=np.tile(mu, (len(rows), LAGS, 1))))
        tested = trials.test()
        assert (tested.p[0] < 1e-4 and tested.nats[0] >= LEAST_NATS) == expected
        assert tested.events[0] == pytest.approx((0.1 if on is noise else 1.0) * len(rows), rel=0.2)


def test_one_action_tells_nothing():
    trials = Trials(3, 1)
    trials.update(events([0] * 100, [0] * 100))
    assert trials.test().p.tolist() == [1.0]
    assert trials.test().nats.tolist() == [0.0]


# --- state ------------------------------------------------------------------------------------------------------------


def test_only_what_turned_on_has_a_row_and_memory_is_as_stated():
    rng = np.random.default_rng(0)
    trials = Trials(100_000, 5)
    trials.update(events([7, 99_999], [0, 1], rng.integers(100_000, size=(2, 4))))
    assert trials.bits.tolist() == [7, 99_999]
    a_row = 4 * (5 * FEATURES + FEATURES * (FEATURES + 1) // 2 + (LAGS - 1) * 6) + 20
    assert sum(array[0].nbytes for array in trials.sums.arrays()) + 4 == a_row
    assert 500 < a_row < 560  # the figure in the docstring
    trials.update(events(np.arange(1000), np.zeros(1000)))
    assert len(trials.bits) == 1001


def test_state_survives_a_round_trip_to_the_bit():
    rng = np.random.default_rng(0)
    first, other = Trials(12, 3, kinds_of_three, seed=1), Trials(12, 3, kinds_of_three, seed=1)
    first.update(random_events(rng, 12, 3, True))
    state = first.state_dict()
    json.dumps(state, default=lambda x: x.tolist())
    other.load_state_dict(state)
    more = random_events(rng, 12, 3, True)
    first.update(more)
    other.update(more)
    assert first.kinds == other.kinds
    for sums, again in ((first.sums, other.sums), (first.kind_sums, other.kind_sums)):
        for ours, theirs in zip(sums.arrays(), again.arrays(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(vars(first.test()).values(), vars(other.test()).values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_earlier_state_leaves_nothing_of_what_came_later():
    rng = np.random.default_rng(0)
    trials, fresh = Trials(12, 3, kinds_of_three), Trials(12, 3, kinds_of_three)
    early = trials.state_dict()
    more = random_events(rng, 12, 3, False)
    trials.update(more)
    trials.load_state_dict(early)
    trials.update(more)
    fresh.update(more)
    np.testing.assert_array_equal(trials.test().p, fresh.test().p)
    np.testing.assert_array_equal(trials.test_kinds().p, fresh.test_kinds().p)


@pytest.mark.parametrize(("change", "words"), [
    ({"bits": np.array([0, 12])}, r"not one of 0…11"),
    ({"bits": np.array([-1, 1])}, r"not one of 0…11"),
    ({"bits": np.array([1, 1])}, "one twice"),
    ({"bits": np.array([1])}, "2 rows for 1 bits"),
    ({"kinds": []}, "for 0 kinds"),
])
def test_a_stored_state_that_does_not_fit_is_refused(change, words):
    trials = Trials(12, 3)
    trials.update(events([4, 5], [0, 1]))
    with pytest.raises(ValueError, match=words):
        Trials(12, 3).load_state_dict(trials.state_dict() | change)


def test_sums_of_another_number_of_actions_are_refused():
    trials = Trials(12, 3)
    trials.update(events([4, 5], [0, 1]))
    with pytest.raises(ValueError, match=r"stored trials u has shape"):
        Trials(12, 4).load_state_dict(trials.state_dict())


def test_rows_without_events_are_added_at_the_end():
    tested = module.Tested(np.array([3.0]), np.array([0.1]), np.array([0.5]), np.array([0.9])).padded(3)
    assert tested.events.tolist() == [3, 0, 0]
    assert tested.p.tolist() == [0.1, 1, 1]
    assert tested.nats.tolist() == [0.5, 0, 0]
    assert tested.most.tolist() == [0.9, math.inf, math.inf]
