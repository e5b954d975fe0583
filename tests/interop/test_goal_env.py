import dataclasses
import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from protogoal.goals import TASK, BagOfWords, Factor, NamedCallables, OneHotFactors, PGESettings, ProtoGoalEvaluator, Union
from protogoal.interop.goal_env import ON, GoalEnvSettings, ProtoGoalEnv, make_goal_env

CELLS = 6
LETTERS = "abcdefghijklmnopqrstuvwxyz "
PGE = PGESettings(p_task=0.2, p_task_most=0.2)
QUICK = GoalEnvSettings(refresh_every=100, pursuit_limit=8, trials=0.5)


class Corridor(gymnasium.Env):
    """Cells 0…5, left and right; reward 1 and termination at the right end, truncation after 30 steps."""

    observation_space = spaces.MultiDiscrete([CELLS])
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time, self.resets = 0, 0, self.resets + 1
        return np.array([self.place]), {}

    def step(self, action):
        self.place = int(np.clip(self.place + (1 if action else -1), 0, CELLS - 1))
        self.time += 1
        won = self.place == CELLS - 1
        return np.array([self.place]), float(won), won, self.time >= 30 and not won, {}


def corridor_space():
    return OneHotFactors([Factor("cell", tuple(f"cell {i}" for i in range(CELLS)))])


@pytest.fixture
def env():
    return ProtoGoalEnv(Corridor(), corridor_space(), PGE, QUICK, seed=1)


def walk(env, steps, seed=0):
    """A random walk: (observation, action, reward, next observation, terminated, truncated, info) of each step."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset()
    for _ in range(steps):
        action = int(rng.integers(2))
        after, reward, terminated, truncated, info = env.step(action)
        yield observation, action, reward, after, terminated, truncated, info
        observation = env.reset()[0] if terminated or truncated else after


def test_it_is_a_gymnasium_environment(env):
    check_env(env, skip_render_check=True)


def test_rewards_of_steps_are_those_that_compute_reward_gives(env):
    steps = list(walk(env, 600))
    achieved = np.stack([after["achieved_goal"] for _, _, _, after, *_ in steps])
    desired = np.stack([after["desired_goal"] for _, _, _, after, *_ in steps])
    rewards = np.array([reward for _, _, reward, *_ in steps])
    np.testing.assert_array_equal(env.compute_reward(achieved, desired, [{}] * 600), rewards)
    one_by_one = [env.compute_reward(a, d, {}) for a, d in zip(achieved, desired, strict=True)]
    np.testing.assert_array_equal(one_by_one, rewards)
    assert 0 < rewards.mean() < 1
    ended = np.array([terminated for *_, terminated, _, _ in steps])
    np.testing.assert_array_equal(env.compute_terminated(achieved, desired), ended)
    assert not env.compute_truncated(achieved, desired).any()


def test_any_goal_can_be_checked_against_any_step(env):
    table = env.evaluator.table
    table.add(2, 3)
    for _, _, _, after, _, _, info in walk(env, 200):
        place = int(after["observation"][0])
        for goal in range(table.size):
            attained = set(table.members(goal)) <= {place}
            assert env.compute_reward(after["achieved_goal"], env.desired(goal)) == attained
            assert env.compute_terminated(after["achieved_goal"], env.desired(goal)) == (attained or info["task_terminated"])
        assert env.compute_reward(after["achieved_goal"], env.desired(TASK)) == info["task_reward"]


def test_an_achieved_goal_put_in_the_place_of_the_desired_one_is_attained_there(env):
    for _, _, _, after, _, _, info in walk(env, 400):
        achieved = after["achieved_goal"]
        is_task = achieved[-2] > 0.5
        assert env.compute_reward(achieved, achieved) == (info["task_reward"] if is_task else 1.0)
        assert (achieved[:-2] > 0.5).sum() == (0 if is_task else 1)  # one proto-goal, never the whole state


class Paying(Corridor):
    """Pays this and that, whatever is done."""

    rewards = (-1.0, -0.25, 0.0, 0.125, 1.0, 20.0, -200.0)

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, self.rewards[self.time % len(self.rewards)], terminated, truncated, info


def test_fractional_and_negative_rewards_survive_the_encoding():
    env = ProtoGoalEnv(Paying(), corridor_space(), PGE, QUICK, seed=1)
    seen = set()
    for *_, after, _, _, info in walk(env, 400):
        achieved, reward = after["achieved_goal"], info["task_reward"]
        is_task = not (achieved[:-2] > 0.5).any()
        assert env.compute_reward(achieved, env.desired(TASK)) == pytest.approx(reward, abs=1e-4)
        assert (achieved[-2] > 0.5) == is_task
        seen.add((reward, is_task))
    assert seen == set(itertools.product(Paying.rewards, (True, False)))


def test_a_pursuit_goes_on_from_where_the_last_one_ended(env):
    continued = 0
    steps = list(walk(env, 600))
    for (*_, before, terminated, truncated, info), (start, *_) in itertools.pairwise(steps):
        if terminated or truncated:
            assert start["observation"][0] == (0 if info["task_over"] else before["observation"][0])
            continued += not info["task_over"]
    assert continued > 10
    assert env.env.resets == 1 + sum(info["task_over"] for *_, info in steps)


def test_the_last_observation_of_a_pursuit_still_has_its_goal(env):
    for before, _, _, after, _, _, _ in walk(env, 400):
        np.testing.assert_array_equal(before["desired_goal"], after["desired_goal"])


def test_attainment_terminates_and_a_limit_truncates(env):
    kinds = set()
    for *_, terminated, truncated, info in walk(env, 800):
        assert not (terminated and truncated)
        assert terminated == (info["attained"] or info["task_terminated"])
        kinds.add((terminated, truncated, info["task_over"]))
    assert (False, True, False) in kinds  # a pursuit given up within an episode
    assert (True, False, False) in kinds  # a goal attained within an episode


def test_attainment_may_be_reported_as_truncation():
    env = ProtoGoalEnv(Corridor(), corridor_space(), PGE, GoalEnvSettings(refresh_every=100, attainment="truncated"), seed=1)
    seen = [(terminated, truncated) for *_, terminated, truncated, info in walk(env, 400)
            if info["attained"] and not info["task_terminated"]]
    assert set(seen) == {(False, True)}


def test_a_reset_in_the_middle_of_a_pursuit_begins_a_new_episode(env):
    env.reset()
    env.step(1)
    assert env.reset()[0]["observation"][0] == 0
    while True:
        _, _, terminated, truncated, _ = env.step(1)
        if terminated or truncated:
            break
    with pytest.raises(RuntimeError, match="reset"):
        env.step(1)


def test_a_goal_can_be_asked_for(env):
    observation, info = env.reset(options={"goal": 3, "fresh": True})
    assert info["goal"] == 3
    np.testing.assert_array_equal(observation["desired_goal"], env.desired(3))
    for _ in range(3):
        *_, info = env.step(1)
    assert info["attained"]
    with pytest.raises(ValueError, match="unknown goal id 99"):
        env.reset(options={"goal": 99})


def test_the_evaluator_is_fed_and_its_goals_are_pursued(env):
    pursued = [info["goal"] for *_, info in walk(env, 1000)]
    pge = env.evaluator
    assert pge.goal_set.version == 10
    assert pge.table.transitions == 1000
    assert 500 < pge.table.count.sum() < 1000  # the cells that were entered
    assert pge.table.pursuits.sum() > 40
    assert len(set(pursued) - {TASK}) >= 4


def test_hindsight_prefers_what_has_just_been_attained():
    space = Union([corridor_space(), NamedCallables({"always": lambda s, a, s_next: True})])
    env = ProtoGoalEnv(Corridor(), space, PGESettings(pruning="observed"), QUICK)
    moved_to_always = 0
    for before, _, _, after, *_ in walk(env, 300):
        moved = before["observation"][0] != after["observation"][0]
        moved_to_always += moved and after["achieved_goal"][CELLS] > 0.5
    assert moved_to_always == 0


def test_values_decide_among_the_candidates(env):
    list(walk(env, 1000))
    seen = []

    def values(batch):
        seen.append({key: len(array) for key, array in batch.items()})
        return batch["desired_goal"][:, 2]  # only cell 2 looks reachable

    env.values = values
    chosen = [env.reset(options={"fresh": True})[1]["goal"] for _ in range(300)]
    share = chosen.count(2) / len(chosen)
    env.values = None
    without = [env.reset(options={"fresh": True})[1]["goal"] for _ in range(300)]
    assert share > without.count(2) / len(without)
    k = len(env.evaluator.goal_set)
    assert {"observation": k, "achieved_goal": k, "desired_goal": k} in seen


def test_random_actions_are_taken_on_their_share_of_the_steps_and_only_these_are_trials():
    settings = GoalEnvSettings(refresh_every=10_000, trials=0.3)
    env = ProtoGoalEnv(Corridor(), corridor_space(), PGE, settings, seed=1)
    observation, _ = env.reset()
    changed, moves = 0, []
    for _ in range(2000):
        before = int(observation["observation"][0])
        observation, _, terminated, truncated, info = env.step(1)
        changed += info["action"] != 1
        moves.append((before, info["action"], int(observation["observation"][0])))
        if terminated or truncated:
            observation = env.reset()[0]
    assert changed == pytest.approx(0.15 * 2000, rel=0.2)  # half of the random actions are the same by chance
    assert all(after == np.clip(before + (1 if action else -1), 0, CELLS - 1) for before, action, after in moves)
    env.refresh()
    events = env.evaluator.trials.test().events.sum()
    entered = sum(before != after for before, _, after in moves)
    assert events == pytest.approx(0.3 * entered, rel=0.25)
    never = ProtoGoalEnv(Corridor(), corridor_space(), PGE, GoalEnvSettings(trials=0.0), seed=1)
    assert all(info["action"] == action for _, action, *_, info in walk(never, 200))


def test_a_lamp_that_flickers_is_not_pursued_and_cells_are():
    rng = np.random.default_rng(0)
    space = Union([corridor_space(), NamedCallables({"lamp": lambda s, a, s_next: bool(rng.random() < 0.5)})])
    env = ProtoGoalEnv(Corridor(), space, PGE, QUICK)
    list(walk(env, 3000))
    assert "not controllable" in env.evaluator.explain(CELLS)
    assert CELLS not in env.evaluator.goal_set.ids
    assert env.evaluator.has_control[1 : CELLS - 1].all()


def test_the_papers_rule_refreshes_from_the_last_transitions():
    env = ProtoGoalEnv(Corridor(), corridor_space(), PGESettings(pruning="values", batch_size=64), QUICK, seed=1)
    assert all(info["action"] == action for _, action, *_, info in walk(env, 500))  # it needs no random actions
    assert env.evaluator.goal_set.version == 5
    assert np.isfinite(env.evaluator.values.seek_max).any()


def test_two_environments_share_one_evaluator():
    pge = ProtoGoalEvaluator(corridor_space(), 2, PGE)
    first, second = (ProtoGoalEnv(Corridor(), corridor_space(), settings=QUICK, evaluator=pge, seed=i) for i in range(2))
    list(walk(first, 100))
    list(walk(second, 100))
    assert pge.table.transitions == 200
    assert pge.goal_set.version == 2


def test_the_same_seed_gives_the_same_run():
    runs = []
    for seed in (7, 7, 8):
        env = ProtoGoalEnv(Corridor(), corridor_space(), PGE, QUICK, seed=seed)
        runs.append([(info["goal"], after["achieved_goal"].tolist()) for _, _, _, after, *_, info in walk(env, 500)])
    assert runs[0] == runs[1] != runs[2]


def test_dictionary_and_text_observations_reach_the_space():
    class Talking(Corridor):
        observation_space = spaces.Dict({"place": spaces.MultiDiscrete([CELLS]), "says": spaces.Text(20, charset=LETTERS)})

        def reset(self, **more):
            place, info = super().reset(**more)
            return {"place": place, "says": "hello"}, info

        def step(self, action):
            place, *rest = super().step(action)
            return {"place": place, "says": f"cell {'abcdef'[place[0]]}"}, *rest

    space = Union([BagOfWords(16, key="says"), OneHotFactors(corridor_space().factors, key="place")])
    env = make_goal_env(Talking(), space, PGE, QUICK)
    list(walk(env, 150))
    assert "cell" in space.spaces[0].vocabulary
    assert env.evaluator.goal_set.version == 1
    observation, _ = env.reset(seed=0)
    assert observation["observation"].tolist() == [1, 0, 0, 0, 0, 0]  # what the agent sees: one vector, without the text
    assert env.observation_space.contains(observation)


def test_a_dictionary_with_text_alone_cannot_be_seen():
    silent = Corridor()
    silent.observation_space = spaces.Dict({"says": spaces.Text(20)})
    with pytest.raises(ValueError, match="no part that can be seen: says; allowed are Box"):
        make_goal_env(silent, corridor_space())


@pytest.mark.parametrize(("fields", "words"), [
    ({"pursuit_limit": 0}, "pursuit_limit must be at least 1"), ({"refresh_every": 0}, "refresh_every"),
    ({"replay_size": -1}, "replay_size"), ({"trials": 1.5}, "trials"),
    ({"task_hindsight": 1.5}, "task_hindsight"), ({"attainment": "done"}, "attainment"),
])
def test_settings_out_of_range_name_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        GoalEnvSettings(**fields)


def test_what_cannot_be_wrapped_is_refused_in_one_line():
    continuous = Corridor()
    continuous.action_space = spaces.Box(-1, 1, (1,))
    with pytest.raises(ValueError, match="must be Discrete"):
        ProtoGoalEnv(continuous, corridor_space())
    with pytest.raises(ValueError, match="6 bits"):
        ProtoGoalEnv(Corridor(), corridor_space(), evaluator=ProtoGoalEvaluator(5, 2))
    graph = Corridor()
    graph.observation_space = spaces.Graph(spaces.Box(0, 1, (2,)), None)
    with pytest.raises(ValueError, match="must flatten"):
        ProtoGoalEnv(graph, corridor_space())


def test_a_reward_too_large_for_the_encoding_is_refused(env, monkeypatch):
    env.reset()
    monkeypatch.setattr(env.env, "step", lambda action: (np.array([1]), 1e6, False, False, {}))
    with pytest.raises(ValueError, match="smaller than 256"):
        env.step(1)
    assert ON * 256 < 0.5


def test_without_a_space_the_proto_goals_follow_from_what_is_observed():
    env = make_goal_env(gymnasium.make("FrozenLake-v1"), settings=QUICK)
    assert env.space.size == 16
    assert env.space.name(5) == "at (1,1)"
    list(walk(env, 20))


class Many(Corridor):
    """Parts within parts, one of a space of one's own, and two actions at once."""

    class Own(spaces.Box):
        pass

    observation_space = spaces.Dict({
        "a": spaces.Tuple([spaces.Discrete(CELLS), spaces.Dict({"b": spaces.MultiBinary(2), "says": spaces.Text(9)})]),
        "own": Own(-1.0, 1.0, (2,), np.float32)})
    action_space = spaces.MultiDiscrete([2, 2])

    def _seen(self, place):
        return {"a": (int(place[0]), {"b": np.array([1, 0], np.int8), "says": "go"}), "own": np.zeros(2, np.float32)}

    def reset(self, **more):
        place, info = super().reset(**more)
        return self._seen(place), info

    def step(self, action):
        place, *rest = super().step(action[1])
        return self._seen(place), *rest


@pytest.mark.parametrize("is_derived", [True, False])
def test_parts_within_parts_are_shown_and_several_actions_are_their_combinations(is_derived):
    class Cells(OneHotFactors):
        def _active(self, s, a, s_next):
            return super()._active(None, None, s_next["a"][0][:, None])

    bits = Cells(corridor_space().factors)
    env = make_goal_env(Many(), None if is_derived else bits, PGE, QUICK)
    observation, _ = env.reset(seed=0)
    assert env.action_space == spaces.Discrete(4)
    assert observation["observation"].tolist() == [1, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert env.observation_space.contains(observation)
    observation = env.step(3)[0]
    assert observation["observation"][:2].tolist() == [0, 1]
    assert any("1" in env.space.name(int(i)) for i in np.flatnonzero(observation["achieved_goal"][:-2]))


def test_parts_that_an_agent_cannot_see_are_named_in_a_warning():
    odd = Corridor()
    odd.observation_space = spaces.Dict({"place": spaces.Discrete(2), "net": spaces.Graph(spaces.Box(0, 1, (2,)), None)})
    with pytest.warns(UserWarning, match=r"the agent does not see net \(Graph\)"):
        make_goal_env(odd, corridor_space())


def test_a_pursuit_ends_with_the_goals_own_limit_and_no_later_than_the_settings_say():
    env = ProtoGoalEnv(Corridor(), corridor_space(), PGE, dataclasses.replace(QUICK, trials=0.0))
    list(walk(env, 150))
    goals = env.evaluator.goal_set
    far = int(goals.ids.max())
    for own, expected in ((3, 3), (0, 8), (99, 8)):
        env.evaluator.goal_set = dataclasses.replace(goals, limit=np.full(len(goals), own))
        env.reset(options={"goal": far, "fresh": True})
        steps = next(i for i in range(1, 20) if any(env.step(0)[2:4]))
        assert steps == expected
