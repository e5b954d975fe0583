import json

import numpy as np
import pytest

from protogoal.goals import TASK, CounterThresholds, PGESettings, ProtoGoalEvaluator, SeekAvoid, TransitionBatch, Verdict
from protogoal.goals import evaluator as module
from protogoal.goals.desirability import desirability
from protogoal.goals.practice import LEAST_LIMIT
from protogoal.goals.selection import select
from protogoal.goals.trials import LAGS, TrialEvents

CELLS, LAMP, SUN, NEVER = range(6), 6, 7, 8


def corridor(n=3000, seed=0):
    """A walk in a corridor of 6 cells beside a lamp that flickers, a sun that is always on, and a bit that never is."""
    rng = np.random.default_rng(seed)
    state = np.zeros((n + 1, 9), bool)
    action = rng.integers(2, size=n)
    place = 0
    state[0, 0] = True
    for t in range(n):
        place = int(np.clip(place + 2 * action[t] - 1, 0, 5))
        state[t + 1, place] = True
    state[:, LAMP] = rng.random(n + 1) < 0.5
    state[:, SUN] = True
    return state, action


def filled(settings=None, seed=3, n=3000, **more):
    pge = ProtoGoalEvaluator(9, 2, settings, seed, **more)
    state, action = corridor(n)
    pge.observe(state[:-1], action, state[1:])
    return pge


def batch_of(state, action):
    seen = state.astype(np.float32)
    return TransitionBatch(seen[:-1], action, seen[1:], np.zeros(len(action), bool), state[1:])


def test_cells_are_offered_and_the_lamp_the_sun_and_the_unseen_are_pruned():
    pge = filled()
    goals = pge.refresh()
    assert set(goals.ids.tolist()) == set(CELLS)
    expected = [Verdict.PLAUSIBLE] * 6 + [Verdict.UNCONTROLLABLE, Verdict.STATIC, Verdict.UNOBSERVED]
    assert [Verdict(v) for v in pge.verdict] == expected
    assert goals.version == 1
    assert np.flatnonzero(pge.has_control).tolist() == list(CELLS)
    for goal, words in ((0, "plausible"), (LAMP, "not controllable"), (SUN, "static"), (NEVER, "never on")):
        assert words in pge.explain(goal)


def test_the_papers_rule_is_one_setting_away():
    pge = filled(PGESettings(pruning="values"))
    with pytest.raises(ValueError, match="needs a batch"):
        pge.refresh()
    goals = pge.refresh(batch_of(*corridor(1024, seed=1)))
    assert LAMP not in goals.ids
    assert pge.verdict[NEVER] == Verdict.UNOBSERVED
    assert np.isfinite(pge.values.seek_max[:6]).all()
    assert "V_seek" in pge.explain(0)


@pytest.mark.parametrize(("pruning", "offered"), [("off", set(range(9))), ("observed", set(range(8)))])
def test_without_pruning_the_draw_is_desirability_alone(pruning, offered):
    pge = filled(PGESettings(pruning=pruning, goal_set_size=20_000, optimism=0.0, retry=0.0))
    assert set(pge.refresh().ids.tolist()) == offered
    wanted = desirability(pge.table.count, pge.table.reward_mean)[pge.goal_set.ids]
    np.testing.assert_allclose(pge.goal_set.novelty, wanted)


def test_what_turned_on_too_seldom_is_undecided_and_has_a_bounded_share_of_the_choices():
    pge = ProtoGoalEvaluator(40, 2, PGESettings(p_task=0.0, p_task_most=0.0), seed=3)
    state, action = corridor()
    wide = np.zeros((len(state), 40), bool)
    wide[:, :6] = state[:, :6]
    for k in range(20):  # each once
        wide[50 * k + 7, 10 + k] = True
    pge.observe(wide[:-1], action, wide[1:])
    goals = pge.refresh()
    rare = goals.verdict == Verdict.UNDECIDED
    assert set(goals.ids[rare].tolist()) <= set(range(10, 30))
    assert rare.any()
    chosen = select(goals, np.full((5000, len(goals)), 0.5), np.zeros((5000, 40), bool), np.random.default_rng(0))
    assert (chosen >= 10).mean() == pytest.approx(pge.settings.optimism / (1 - pge.settings.retry), abs=0.03)


def test_the_order_of_transitions_and_the_ends_of_episodes_reach_the_trials():
    pge = ProtoGoalEvaluator(3, 4)
    before, after = np.zeros((6, 3), bool), np.zeros((6, 3), bool)
    after[5, 2] = True
    action, first = np.array([3, 2, 1, 0, 1, 2]), np.array([True, False, True, False, False, False])
    pge.observe(before, action, after, first=first)
    assert pge.trials.bits.tolist() == [2]
    lag_n, lag_u = pge.trials.sums.arrays()[3:5]
    assert lag_n[0].tolist() == [1, 1, 1] + [0] * (LAGS - 4)  # the episode began three steps before
    assert lag_u[0, :2].argmax(1).tolist() == [1, 0]
    assert not lag_u[0, 2].any()  # no other transition has an action three steps before: nothing to compare it with
    assert pge.trials.sums.arrays()[1][0, :, -1].argmax() == 2


def test_transitions_told_one_at_a_time_judge_as_told_at_once():
    rng = np.random.default_rng(0)
    action, first = rng.integers(3, size=600), rng.random(600) < 0.02
    policy = rng.dirichlet(np.ones(3), size=600)
    after = np.zeros((600, 2), bool)
    after[3:, 0] = action[:-3] == 1  # an effect three steps later
    before = np.zeros((600, 2), bool)
    together, apart = ProtoGoalEvaluator(2, 3), ProtoGoalEvaluator(2, 3)
    together.observe(before, action, after, probability=policy, first=first)
    for i in range(600):
        if i == 300:  # what was done last is part of the state
            state, apart = apart.state_dict(), ProtoGoalEvaluator(2, 3)
            apart.load_state_dict(state)
        apart.observe(before[i : i + 1], action[i : i + 1], after[i : i + 1], probability=policy[i : i + 1], first=first[i : i + 1])
    for name, one, other in zip(together.trials.sums.NAMES, together.trials.sums.arrays(), apart.trials.sums.arrays(), strict=True):
        if name != "lag_u":  # centred by what was known then
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(together.trials.taken, apart.trials.taken, rtol=1e-4)
    for pge in (together, apart):
        pge.refresh()
        assert pge.verdict[0] == Verdict.PLAUSIBLE
        assert pge.tested.nats[0] > 0.5


def test_what_pursuits_attain_far_more_often_is_plausible_though_one_action_tells_little():
    pge = inert()
    assert pge.verdict[0] == Verdict.UNDECIDED
    assert "pursuits must tell" in pge.explain(0)
    pge.record_pursuit([0] * 20, [True] * 20, [3] * 20)
    pge.refresh()
    assert pge.verdict[0] == Verdict.PLAUSIBLE
    assert "more than twice as often" in pge.explain(0)
    pge = inert()
    pge.record_pursuit([0] * 20, [True] * 20, [60] * 20)  # as often as it comes by itself
    pge.refresh()
    assert pge.verdict[0] != Verdict.PLAUSIBLE


def inert():
    """A goal that comes every twentieth step or so, and depends on the action a little: p is tiny, and so are its nats."""
    rng, pge = np.random.default_rng(0), ProtoGoalEvaluator(1, 2)
    action = rng.integers(2, size=20_000)
    after = rng.random(20_000) < np.where(action == 1, 0.07, 0.03)
    pge.observe(np.zeros((20_000, 1), bool), action, after[:, None])
    pge.refresh()
    return pge


def test_probabilities_of_the_policy_reach_the_trials():
    pge = ProtoGoalEvaluator(2, 2)
    after = np.array([[True, False]] * 3)
    pge.observe(np.zeros((3, 2), bool), [0, 1, 0], after, probability=[[0.9, 0.1], [0.9, 0.1], [1.0, 0.0]], first=[True] * 3)
    assert pge.trials.sums.arrays()[0][0] == pytest.approx(0.1 / 0.9 + 1.0)


def test_an_and_goal_is_as_plausible_as_the_least_of_its_bits():
    pge = filled()
    table = pge.table
    cell_and_lamp, two_cells, cell_and_sun = table.add(3, LAMP), table.add(2, 3), table.add(3, SUN)
    state, action = corridor(seed=1)
    pge.observe(state[:-1], action, state[1:])
    pge.refresh()
    assert pge.verdict[cell_and_lamp] == Verdict.UNCONTROLLABLE
    assert pge.verdict[two_cells] == Verdict.UNOBSERVED  # nobody is in two cells at once
    assert pge.verdict[cell_and_sun] == Verdict.STATIC


def test_mastered_goals_are_recombined():
    pge = filled(PGESettings(recombinations=3))
    pge.refresh()
    pge.record_pursuit(np.repeat(CELLS, 10), np.ones(60, bool), np.full(60, 4))
    assert pge.mastered[:6].all()
    for _ in range(10):
        pge.refresh()
    assert pge.table.size > 9
    assert len(pge.verdict) == len(pge.has_control) == len(pge.values.hits) == len(pge.tested.p) == pge.table.size
    assert pge.name(9) == " AND ".join(f"bit {i}" for i in pge.table.members(9))
    for goal in range(pge.table.size):
        assert pge.explain(goal).endswith(".")


def test_a_goal_that_pursuits_do_not_reach_is_called_so_and_offered_seldom_but_for_ever():
    pge = filled()
    pge.record_pursuit([3] * 60, [False] * 60, [5] * 60)
    offered = 0
    for _ in range(20):
        goals = pge.refresh()
        assert pge.verdict[3] == Verdict.UNREACHED
        assert pge.has_control[3]
        offered += 3 in goals.ids
    assert offered > 10  # the only one of its verdict, so it has that whole share
    assert goals.share[goals.ids == 3].tolist() == [pge.settings.retry] or 3 not in goals.ids
    assert "not reached in practice" in pge.explain(3)
    pge.record_pursuit([3] * 100, [True] * 100, [5] * 100)
    pge.refresh()
    assert pge.verdict[3] == Verdict.PLAUSIBLE


def test_limits_competence_and_timescales_are_published_with_the_goals():
    pge = filled()
    pge.record_pursuit([2] * 10, [True] * 10, [20] * 10)
    pge.record_pursuit([4] * 9, [True] * 3 + [False] * 6, [1] * 9)
    pge.record_values(np.array([2, 4]), np.array([0.25, 0.75]))
    goals = pge.refresh()
    two, four = (int(np.flatnonzero(goals.ids == g)[0]) for g in (2, 4))
    assert goals.limit[[two, four]].tolist() == [60, LEAST_LIMIT]
    assert goals.competence[two] == 1.0 >= goals.competence[four]
    np.testing.assert_allclose(goals.timescale[[two, four]], [0.25, 0.75])
    assert np.isnan(np.delete(goals.timescale, [two, four])).all()
    plain = filled(PGESettings(competence=False, patience=0.0))
    plain.record_pursuit([2] * 10, [True] * 5 + [False] * 5, [20] * 10)
    goals = plain.refresh()
    assert (goals.competence == 1).all()
    assert (goals.limit == 0).all()


def test_p_task_is_a_share_of_the_steps_by_hand():
    pge = ProtoGoalEvaluator(4, 2, PGESettings(p_task=0.1, p_task_most=0.8, p_task_of="steps"))
    assert pge.p_task == pytest.approx(0.1)  # nothing was pursued: all lengths count as 1
    pge.record_pursuit([0, TASK], [False, False], [10, 90])
    # 0.1 of the steps: p · 90 = 0.1 (p · 90 + (1 − p) · 10)
    assert pge.p_task == pytest.approx(0.1 * 10 / (0.1 * 10 + 0.9 * 90))
    p = pge.p_task
    assert p * 90 / (p * 90 + (1 - p) * 10) == pytest.approx(0.1)
    assert ProtoGoalEvaluator(4, 2, PGESettings(p_task=1.0, p_task_most=1.0)).p_task == 1.0


def test_p_task_rises_with_success_at_the_task():
    settings = PGESettings(p_task=0.1, p_task_most=0.8, p_task_of="choices")
    found = []
    for wins in (0, 5, 25, 50, 100):
        pge = ProtoGoalEvaluator(4, 2, settings)
        pge.record_pursuit([TASK] * 100, np.arange(100) < wins, [20] * 100)
        found.append(pge.p_task)
        assert pge.p_task == pytest.approx(0.1 + 0.7 * min(1.0, wins / 100 / module.GOOD_SUCCESS))
    assert found[0] == pytest.approx(0.1)
    assert found == sorted(found)
    assert found[-1] == pytest.approx(0.8)
    fixed = ProtoGoalEvaluator(4, 2, PGESettings(p_task=0.3, p_task_most=0.3, p_task_of="choices"))
    fixed.record_pursuit([TASK] * 100, [True] * 100, [20] * 100)
    assert fixed.p_task == pytest.approx(0.3)


def test_tabular_values_take_the_same_path():
    pge = ProtoGoalEvaluator(CounterThresholds({"gold": [1, 2, 3]}), 4, PGESettings(pruning="values"))
    pge.observe(np.zeros((4, 3), bool), np.zeros(4, int), np.ones((4, 3), bool))
    values = SeekAvoid(np.array([0.9, 0.4, 0.9]), np.array([0.8, 0.3, 0.5]), np.array([-0.1, -0.1, -0.45]), np.array([5, 5, 5]))
    pge.refresh_values(values)
    assert [Verdict(v).name for v in pge.verdict] == ["PLAUSIBLE", "UNREACHED", "UNCONTROLLABLE"]
    assert pge.name(0) == "gold ≥ 1"
    with pytest.raises(ValueError, match="the table has 3"):
        pge.refresh_values(SeekAvoid(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2, int)))


def test_what_is_attained_already_is_not_selected():
    pge = filled()
    rng = np.random.default_rng(0)
    bits = corridor()[0][:50]
    assert (select(pge.goal_set, np.empty((50, 0)), bits, rng) == TASK).all()  # before the first refresh
    k = len(pge.refresh())
    chosen = select(pge.goal_set, np.ones((50, k)), bits, rng)
    on = chosen != TASK
    assert on.any()
    assert not bits[on, chosen[on]].any()


def test_with_few_slots_only_goals_that_have_one_are_offered():
    pge = filled(num_slots=3)
    for _ in range(5):
        goals = pge.refresh()
        assert 0 < len(goals) <= 3
        assert (goals.slots[:, 0] >= 0).all()
        assert len(set(goals.slots[:, 0].tolist())) == len(goals)


def test_state_round_trip_continues_to_the_bit():
    pge = filled(num_slots=4)
    pge.refresh()
    pge.record_pursuit(np.repeat(CELLS, 10), np.ones(60, bool), np.full(60, 4))
    pge.record_pursuit([LAMP] * 30, [False] * 30, [9] * 30)
    pge.refresh()
    state = pge.state_dict()
    json.dumps(state, default=lambda x: x.tolist())  # plain arrays and JSON, nothing else
    other = filled(seed=99, num_slots=4)
    other.refresh()
    other.load_state_dict(state)
    more, action = corridor(seed=5)
    for each in (pge, other):
        each.observe(more[:-1], action, more[1:])
        for _ in range(3):
            each.refresh()
    for name, array in vars(pge.goal_set).items():
        np.testing.assert_array_equal(array, getattr(other.goal_set, name))
    np.testing.assert_array_equal(pge.verdict, other.verdict)
    for name, array in pge.snapshot().items():
        np.testing.assert_array_equal(array, other.snapshot()[name])


def test_the_snapshot_has_rows_for_what_was_observed_offered_or_pursued_alone():
    pge = ProtoGoalEvaluator(1_000_000, 2, PGESettings(pruning="off", goal_set_size=3), seed=0)
    before, after = sparse_rows([[5], [9]]), sparse_rows([[7], [9]])
    on = np.array([[True], [False]])
    pge.table.see(before)
    pge.table.observe(after, on, np.zeros(2))
    pge.record_pursuit([500_000], [False], [3])
    pge.refresh()
    told = pge.snapshot()
    assert set(told["id"]) == {5, 7, 9, 500_000, *pge.goal_set.ids.tolist()}
    assert (told["declared"], told["plausible"], told["grid"]) == (1_000_000, 1_000_000, None)
    assert {len(array) for name, array in told.items() if isinstance(array, np.ndarray)} == {len(told["id"])}
    row = {name: array[told["id"] == 7][0] for name, array in told.items() if isinstance(array, np.ndarray)}
    assert row["count"] == 1
    assert told["pursuits"][told["id"] == 500_000] == 1
    assert set(told["id"][told["offered"]]) == set(pge.goal_set.ids)


def sparse_rows(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, np.int32)


def test_counting_window_by_window_judges_as_counting_at_once():
    """What a worker sends: the bits that are on, which turned on, and the trials among them."""
    state, action = corridor()
    one, other = ProtoGoalEvaluator(9, 2, seed=1), ProtoGoalEvaluator(9, 2, seed=1)
    one.observe(state[:-1], action, state[1:])
    events = []
    other.count = lambda active, on, reward, trials: events.append((active, on, reward, trials))
    other.observe(state[:-1], action, state[1:])
    del other.count
    (active, on, reward, trials), = events
    for part in np.array_split(np.arange(len(action)), 7):
        inside = np.isin(trials.row, part)
        window = TrialEvents(trials.before[part], trials.action[part], (trials.row[inside] - part[0]).astype(np.int32),
                             trials.bit[inside])
        other.count(active[part], on[part], reward[part], window)
    one.refresh()
    other.refresh()
    np.testing.assert_array_equal(one.verdict, other.verdict)
    np.testing.assert_allclose(one.tested.p, other.tested.p, rtol=1e-3)
    np.testing.assert_array_equal(one.goal_set.ids, other.goal_set.ids)


@pytest.mark.parametrize(("change", "words"), [
    ({"action": np.array([0, 2])}, r"must be in \[0, 2\)"),
    ({"action": np.array([0])}, "of the same n transitions"),
    ({"after": np.zeros((3, 9), bool)}, "of the same n transitions"),
    ({"before": np.zeros((2, 8), bool)}, r"\[n, 9\]"),
    ({"probability": np.full((2, 3), 1 / 3)}, r"probability .*\[2, 2\]"),
    ({"probability": np.array([[0.5, 0.2], [1.0, 0.0]])}, "probability .* sum to 1"),
    ({"first": np.zeros(3, bool)}, r"first .*\[2\]"),
])
def test_transitions_that_do_not_fit_are_refused_in_words_and_change_nothing(change, words):
    pge = ProtoGoalEvaluator(9, 2)
    good = {"before": np.zeros((2, 9), bool), "action": np.array([0, 1]), "after": np.ones((2, 9), bool)}
    with pytest.raises(ValueError, match=words):
        pge.observe(**good | change)
    assert pge.table.transitions == 0
    assert not pge.table.observed.any()


@pytest.mark.parametrize(("field", "value"), [
    ("reachability_threshold", 1.5), ("controllability_threshold", -0.1), ("p_task", 2.0), ("goal_set_size", 0),
    ("num_buckets", 0), ("mastery_threshold", 1.1), ("batch_size", 1), ("recombinations", -1), ("optimism", 1.2), ("retry", 0.95),
    ("pruning", "all"), ("p_task_of", "episodes"), ("p_task_most", -1.0), ("patience", -1.0), ("patience", float("nan")),
    ("horizon", 0), ("batch_size", 10**10), ("goal_set_size", 10**12), ("num_buckets", 10**12), ("num_candidates", 10**12),
    ("recombinations", 10**12), ("max_goals", 10**10), ("max_members", 10**9),
])
def test_settings_out_of_range_name_the_field(field, value):
    with pytest.raises(ValueError, match=field):
        PGESettings(**{field: value})
