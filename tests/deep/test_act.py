"""Acting: goals are pursued until attained, given up or cut; the player plays the task alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from grids import Corridor
from reference.goal_sets import make_goal_set

from protogoal.deep.act import Actor, epsilon_ladder, evaluate
from protogoal.deep.network import make_network
from protogoal.deep.settings import ActorSettings, NetworkSettings, ReplaySettings
from protogoal.goals.goal_set import GoalSet
from protogoal.goals.table import TASK
from protogoal.goals.trials import LAGS

REPLAY = ReplaySettings(capacity=1000, trace_length=5)


def make_actor(env, seed=0, keeps_trials=False, **settings):
    network = make_network(env.observation_spec, 2, env.num_bits, NetworkSettings(hidden=8, rank=4), np.random.SeedSequence(0))
    actor_settings = ActorSettings(num_envs=env.num_envs, **settings)
    return Actor(env, network, actor_settings, REPLAY, np.random.SeedSequence(seed), keeps_trials=keeps_trials)


def goal_set(ids, p_task=0.0, limit=0):
    return make_goal_set(ids, p_task=p_task, limit=np.full(len(ids), limit))


def test_the_ladder_by_hand():
    ladder = epsilon_ladder(ActorSettings(num_envs=3, epsilon_base=0.4, epsilon_exponent=7.0))
    assert ladder == pytest.approx([0.4, 0.4**4.5, 0.4**8])
    assert epsilon_ladder(ActorSettings(num_envs=1)) == pytest.approx([0.4])


def test_pursuits_end_when_attained_and_are_counted_with_their_length():
    env = Corridor(length=6, num_envs=16, limit=100)
    actor = make_actor(env, epsilon_base=1.0, epsilon_exponent=0.0)
    wins = total = 0
    for _ in range(60):
        ended = actor.collect(goal_set([1, 2])).pursuits
        wins, total = wins + ended.success.sum(), total + len(ended.goal)
        assert set(ended.goal.tolist()) <= {1, 2}
        assert (ended.length >= 1).all()
    assert total > 50
    assert wins > 0.5 * total  # the rest ran into the end of the corridor


def test_a_goal_is_kept_until_its_pursuit_ends_and_never_offered_where_attained():
    env = Corridor(length=6, num_envs=8, limit=100)
    actor = make_actor(env, epsilon_base=1.0, epsilon_exponent=0.0)
    kept = chosen = 0
    for _ in range(20):
        segments = actor.collect(goal_set([1, 3])).segments
        for n in range(8):
            for t in range(1, 5):
                before, goal = segments.goal[t - 1, n], segments.goal[t, n]
                attained = segments.active[t - 1, n, 0] == before
                if attained or segments.terminated[t - 1, n] or segments.truncated[t - 1, n]:
                    assert segments.observation["cell"][t, n, 0] != goal  # a new choice; the task is no cell
                    chosen += 1
                else:
                    assert goal == before
                    kept += 1
    assert min(kept, chosen) > 50


def test_a_pursuit_that_takes_too_long_is_given_up_and_the_task_never_is():
    env = Corridor(length=50, num_envs=4, limit=1000)
    actor = make_actor(env)
    lengths = np.concatenate([actor.collect(goal_set([40, 41], limit=3)).pursuits.length for _ in range(6)])
    assert (lengths == 3).all()
    endless = make_actor(Corridor(length=50, num_envs=4, limit=1000))
    assert sum(len(endless.collect(goal_set([40, 41])).pursuits.goal) for _ in range(6)) == 0
    task = make_actor(Corridor(length=50, num_envs=4, limit=1000))
    assert sum(len(task.collect(goal_set([40, 41], p_task=1.0, limit=3)).pursuits.goal) for _ in range(6)) == 0


def test_the_task_is_followed_with_its_probability_and_without_goals_always():
    env = Corridor(length=50, num_envs=64, limit=5)
    actor = make_actor(env)
    goals = np.concatenate([actor.collect(goal_set([40, 41], p_task=0.5)).segments.goal.ravel() for _ in range(10)])
    assert 0.4 < (goals == TASK).mean() < 0.6
    alone = make_actor(env).collect(GoalSet.empty())
    assert (alone.segments.goal == TASK).all()


def test_a_pursuit_of_the_task_is_won_where_it_met_a_reward():
    env = Corridor(length=4, num_envs=16, limit=5)
    actor = make_actor(env, epsilon_base=1.0, epsilon_exponent=0.0)
    won, returns = [], []
    for _ in range(20):
        experience = actor.collect(GoalSet.empty())
        assert (experience.pursuits.goal == TASK).all()
        won += experience.pursuits.success.tolist()
        returns += experience.episode_return.tolist()
    assert won == [value > 0 for value in returns]
    assert 0 < sum(won) < len(won)


def played(actor, windows, goals, randomly=False):
    """All steps of some windows, each environment's after another: (cell before, action, cell after, episode over), [N, T] each."""
    found = [actor.collect(goals, randomly) for _ in range(windows)]
    before, action, after, over = (np.concatenate(part).T for part in zip(*(
        (e.segments.observation["cell"][:-1, :, 0], e.segments.action, e.segments.active[..., 0],
         e.segments.terminated | e.segments.truncated) for e in found), strict=True))
    return found, (before, action, after, over)


@pytest.mark.parametrize("epsilon", [1.0, 0.3])
def test_trials_are_the_random_actions_before_what_turned_on(epsilon, monkeypatch):
    env = Corridor(length=6, num_envs=4, limit=11)
    actor = make_actor(env, keeps_trials=True, epsilon_base=epsilon, epsilon_exponent=0.0)
    drawn = []
    step = env.step

    def remember(action):
        drawn.append(actor.past[:, 0].copy())
        return step(action)

    monkeypatch.setattr(env, "step", remember)
    found, (before, action, after, over) = played(actor, 12, goal_set([2]))
    is_random = np.array(drawn).T >= 0  # [N, T]
    assert (np.array(drawn).T[is_random] == action[is_random]).all()
    assert is_random.mean() == pytest.approx(epsilon, abs=0.12)
    expected = []
    for t in range(before.shape[1]):
        for n in range(4):
            past = []
            for d in range(LAGS):
                if t - d < 0 or over[n, t - d : t].any():
                    break
                past.append(int(action[n, t - d]) if is_random[n, t - d] else -1)
            past += [-1] * (LAGS - len(past))
            if after[n, t] != before[n, t] and max(past) >= 0:
                expected.append((int(before[n, t]), int(after[n, t]), past))
    events = [(int(e.trials.before[row, 0]), int(bit), e.trials.action[row].tolist())
              for e in found for row, bit in zip(e.trials.row, e.trials.bit, strict=True)]
    assert events == expected
    assert len(events) > 20
    assert all(e.trials.probability is None for e in found)  # uniform


def test_an_agent_without_an_evaluator_keeps_no_trials():
    assert len(make_actor(Corridor()).collect(GoalSet.empty(), act_randomly=True).trials.bit) == 0


def test_values_of_the_goals_on_offer_are_told():
    actor = make_actor(Corridor(num_envs=4))
    experience = actor.collect(goal_set([2, 4]))
    assert experience.offered.tolist() == [2, 4]
    assert experience.value.shape == (2,)
    assert np.isfinite(experience.value).all()


def test_the_same_seed_gives_the_same_segments_and_a_saved_actor_goes_on_to_the_bit():
    first, second = (make_actor(Corridor(num_envs=4), seed=3) for _ in range(2))
    other = make_actor(Corridor(num_envs=4), seed=4)
    goals = goal_set([2, 4])
    for k in range(6):
        if k == 3:
            other.load_state_dict(first.state_dict())
        arrays = [actor.collect(goals).segments.arrays() for actor in (first, second, other)]
        for name, array in arrays[0].items():
            assert (arrays[1][name] == array).all(), name
            assert k < 3 or (arrays[2][name] == array).all(), name


@pytest.mark.parametrize("join", ["bilinear", "concat"])
def test_goals_that_are_encoded_once_are_pursued_as_if_they_were_in_every_state(join, monkeypatch):
    windows = []
    for in_every_state in (False, True):
        env = Corridor(length=9, num_envs=8, limit=30)
        network = make_network(env.observation_spec, 2, env.num_bits, NetworkSettings(hidden=8, rank=4, join=join),
                               np.random.SeedSequence(0))
        actor = Actor(env, network, ActorSettings(num_envs=8, epsilon_base=0.3), REPLAY, np.random.SeedSequence(3))
        if in_every_state:
            def values(z, goals, actor=actor, q_of=network.q_of):
                if goals.shape[1] == 1 and len(z) == len(actor.slots):  # of what is pursued, not of what is on offer
                    goals = actor.network.encode(torch.from_numpy(actor.slots)).unsqueeze(1)
                return q_of(z, goals)
            monkeypatch.setattr(network, "q_of", values)
        windows.append([actor.collect(goal_set([2, 3, 5])).segments for _ in range(6)])
    for once, every in zip(*windows, strict=True):
        assert (once.action == every.action).all()
        assert (once.goal == every.goal).all()


class Right(torch.nn.Module):
    """A network that always goes right."""

    num_actions = 2
    core_shape = (0, 0)

    def initial_core(self, batch):
        return torch.zeros(batch, 0, 0)

    def unroll(self, observation, action, reward, is_first, core):
        return torch.zeros(*is_first.shape, 1), core

    def q_each(self, z, slots):
        return torch.tensor([0.0, 1.0]).expand(len(z), slots.shape[1], 2)


def test_environments_that_do_not_repeat_themselves_begin_afresh():
    first, other = make_actor(Corridor(length=9)), make_actor(Corridor(length=9))
    first.collect(goal_set([3]))
    state = first.state_dict()
    state["env"]["cell"] = (state["env"]["cell"] + 1) % 9
    other.load_state_dict(state)
    assert not other.was_restored
    assert other.is_first.all()
    assert (other.env.cell == 0).all()


def test_the_player_counts_each_environments_first_episodes():
    result = evaluate(Right(), Corridor(length=6, num_envs=4), 10, 0.0, np.random.default_rng(0))
    assert (result.episodes, result.successes, result.mean_return, result.mean_length) == (10, 10, 1.0, 5.0)
    never = evaluate(Right(), Corridor(length=60, num_envs=4, limit=20), 4, 0.0, np.random.default_rng(0))
    assert (never.successes, never.mean_length) == (0, 20.0)


def test_the_player_does_not_favour_short_episodes():
    fast_and_slow = Corridor(length=6, num_envs=2, limit=3, start=np.array([0, 4]))  # the second wins at once, the first never
    result = evaluate(Right(), fast_and_slow, 3, 0.0, np.random.default_rng(0))
    assert (result.episodes, result.successes, result.mean_length) == (3, 1, (3 + 3 + 1) / 3)


def test_random_actions_ignore_the_network():
    env = Corridor(num_envs=64, length=40, limit=500)
    actions = make_actor(env).collect(goal_set([3]), act_randomly=True).segments.action
    assert 0.35 < actions.mean() < 0.65


def test_a_number_of_environments_below_one_is_refused():
    with pytest.raises(ValueError, match=r"ActorSettings.num_envs must be in \[1"):
        ActorSettings(num_envs=0)
    with pytest.raises(ValueError, match="capacity must hold one segment"):
        replace(REPLAY, capacity=3)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda env, o, a: ({"cell": o["cell"][:, :0]}, a), "has shape"),
        (lambda env, o, a: ({"cell": o["cell"] * np.nan}, a), "NaN or infinite"),
        (lambda env, o, a: ({"other": o["cell"]}, a), "it declared"),
        (lambda env, o, a: (o, a + env.num_bits), "the space has bits"),
        (lambda env, o, a: (o, np.zeros((1, 1), int)), "bits have shape"),
    ],
)
def test_environments_that_do_not_keep_their_word_are_refused_before_training(break_it, message):
    env = Corridor(kind="vector")
    honest = env.reset
    env.reset = lambda seed=None: break_it(env, *honest(seed))
    with pytest.raises(ValueError, match=message):
        make_actor(env)
