"""Agent57's parts: ladders, bandit, memory, embedding, distillation; each by hand and against tests/reference/agent57.py."""

import dataclasses

import numpy as np
import pytest
import torch
from reference import agent57 as slow

from protogoal.agents.agent57.bandit import SlidingWindowUCB, best_arm
from protogoal.agents.agent57.curiosity import CuriousView
from protogoal.agents.agent57.embedding import ControllableEmbedding
from protogoal.agents.agent57.memory import MEAN_HORIZON, EpisodicMemory
from protogoal.agents.agent57.mixture import beta_ladder, discount_ladder
from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.agents.blueprint import INTRINSIC
from protogoal.agents.distillation import RandomDistillation, RunningMoments
from protogoal.deep.segments import Segments
from protogoal.envs.deep_sea import DeepSea
from protogoal.envs.vector import ArraySpec

SMALL = Agent57Settings(memory_capacity=50, embedding_size=4, neighbours=3, curiosity_hidden=32, distillation_size=16)


# --- mixture ------------------------------------------------------------------------------------------------------


def test_the_ladders_begin_greedy_and_end_curious():
    beta, discount = beta_ladder(32, 0.3), discount_ladder(32, 0.9999, 0.99)
    assert beta[0] == 0.0
    assert beta[-1] == np.float32(0.3)
    assert discount[0] == pytest.approx(0.9999)
    assert discount[-1] == pytest.approx(0.99)
    assert (np.diff(beta) > 0).all()
    assert (np.diff(discount) < 0).all()


def test_the_middle_of_the_ladders_by_hand():
    assert beta_ladder(32, 0.3)[15] == pytest.approx(0.15)  # σ(0)
    assert beta_ladder(4, 0.3)[1] == pytest.approx(0.15)
    assert discount_ladder(3, 0.9999, 0.99)[1] == pytest.approx(0.999)  # √(1e-4 · 1e-2) = 1e-3


@pytest.mark.parametrize("n", [1, 2, 3, 16, 32])
def test_the_ladders_are_those_of_the_formulas(n):
    np.testing.assert_allclose(beta_ladder(n, 0.3), [slow.beta(j, n, 0.3) for j in range(n)], rtol=1e-6)
    np.testing.assert_allclose(discount_ladder(n, 0.997, 0.9), [slow.discount(j, n, 0.997, 0.9) for j in range(n)], rtol=1e-6)


def test_a_single_policy_is_the_curious_one():
    assert beta_ladder(1, 0.3) == pytest.approx([0.3])


# --- bandit -------------------------------------------------------------------------------------------------------


def play(bandit, reward_of, episodes):
    rows, arms = np.arange(len(bandit.pulls)), []
    for t in range(episodes):
        arm = bandit.choose(rows)
        bandit.update(rows, arm, np.array([reward_of(t, a) for a in arm]))
        arms.append(arm)
    return np.array(arms)  # [episodes, n]


def test_every_arm_is_tried_once_before_anything_else():
    bandit = SlidingWindowUCB(3, 4, window=10, epsilon=0.5, bonus=1.0, rng=np.random.default_rng(0))
    arms = play(bandit, lambda t, a: 0.0, 4)
    assert (np.sort(arms, 0) == np.arange(4)[:, None]).all()
    assert len(set(arms[0])) == 3  # not all bandits try the same one first


def test_the_bandit_follows_a_reward_that_moves_to_another_arm():
    bandit = SlidingWindowUCB(8, 4, window=40, epsilon=0.2, bonus=1.0, rng=np.random.default_rng(0))
    arms = play(bandit, lambda t, a: 5.0 * (a == (1 if t < 200 else 3)), 400)
    assert (arms[150:200] == 1).mean() > 0.7
    assert (arms[350:] == 3).mean() > 0.7
    assert best_arm(*bandit.arm_sums()) == 3


def test_without_noise_the_bandit_pulls_an_arm_of_the_largest_score():
    bandit = SlidingWindowUCB(1, 3, window=7, epsilon=0.0, bonus=1.0, rng=np.random.default_rng(1))
    rng, row = np.random.default_rng(2), np.array([0])
    arms, rewards = [], []
    for t in range(60):
        arm = int(bandit.choose(row)[0])
        if t >= 3:
            scores = slow.ucb_scores(arms, rewards, 3, 7, 1.0)
            assert scores[arm] == pytest.approx(max(scores))
        arms.append(arm)
        rewards.append(float(rng.random()))
        bandit.update(row, np.array([arm]), np.array(rewards[-1:]))


def test_before_any_reward_the_player_takes_the_policy_for_the_task():
    bandit = SlidingWindowUCB(4, 6, window=20, epsilon=0.5, bonus=1.0, rng=np.random.default_rng(0))
    assert best_arm(*bandit.arm_sums()) == 0
    play(bandit, lambda t, a: 0.0, 30)
    assert best_arm(*bandit.arm_sums()) == 0


# --- episodic memory ----------------------------------------------------------------------------------------------


def test_the_episodic_reward_of_a_sequence_by_hand():
    changes = {"embedding_size": 1, "neighbours": 1, "kernel_epsilon": 1.0, "cluster_distance": 0.0, "pseudo_count": 0.5}
    settings = dataclasses.replace(SMALL, **changes)
    memory = EpisodicMemory(1, settings)
    rewards = [float(memory.reward(np.array([[x]], np.float32))[0]) for x in (0.0, 2.0, 2.0)]
    # nothing to compare with; d² = 4 = its mean, K = 1/(1+1), s = √½ + ½; d² = 0, K = 1, s = 1½
    assert rewards == pytest.approx([0.0, 1 / (0.5**0.5 + 0.5), 1 / 1.5])


@pytest.mark.parametrize("seed", range(3))
def test_episodic_rewards_are_those_of_the_slow_memory(seed):
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 3, size=(40, 2, 4)).astype(np.float32)  # many repeat
    memory = EpisodicMemory(2, SMALL)
    fast = np.array([memory.reward(state) for state in states])
    for env in range(2):
        expected = slow.episodic_rewards(states[:, env], 3, SMALL.kernel_epsilon, SMALL.cluster_distance, SMALL.pseudo_count,
                                         SMALL.max_similarity, MEAN_HORIZON)
        np.testing.assert_allclose(fast[:, env], expected, rtol=1e-4)


def test_a_state_too_similar_to_memory_is_worth_nothing():
    memory = EpisodicMemory(1, dataclasses.replace(SMALL, max_similarity=1.5))
    state = np.ones((1, 4), np.float32)
    assert [float(memory.reward(state)[0]) for _ in range(3)] == [0.0, 0.0, 0.0]  # √3 > 1.5
    assert memory.reward(5 * state)[0] > 0


def test_a_full_memory_forgets_the_oldest():
    memory = EpisodicMemory(1, dataclasses.replace(SMALL, memory_capacity=2, neighbours=1))
    for x in (1.0, 2.0, 3.0):
        memory.reward(np.full((1, 4), x, np.float32))
    assert sorted(memory.state_dict()["states"][0, :, 0].tolist()) == [2.0, 3.0]


def test_a_huge_embedding_stays_finite():
    memory = EpisodicMemory(1, SMALL)
    for x in (0.0, 1e30, -1e30, 1.0):
        assert np.isfinite(memory.reward(np.full((1, 4), x, np.float32))).all()


def test_the_mean_distance_outlives_what_is_remembered():
    memory = EpisodicMemory(2, SMALL)
    for x in (0.0, 1.0, 3.0):
        memory.reward(np.full((2, 4), x, np.float32))
    before = memory.distances()
    assert (before["mean"] > 0).all()
    memory.forget(np.array([0]))
    assert memory.added.tolist() == [0, 3]
    np.testing.assert_array_equal(memory.distances()["mean"], before["mean"])


def test_what_was_forgotten_is_not_saved_and_a_loaded_memory_goes_on_alike():
    rng = np.random.default_rng(0)
    one, other = EpisodicMemory(3, SMALL), EpisodicMemory(3, SMALL)
    for t in range(90):
        one.reward(rng.normal(size=(3, 4)).astype(np.float32))
        if t == 70:
            one.forget(np.array([1]))
    saved = one.state_dict()
    assert saved["states"].shape == (3, 50, 4)
    assert (saved["states"][1, 19:] == 0).all()
    other.load_state_dict(saved)
    for _ in range(40):
        state = rng.normal(size=(3, 4)).astype(np.float32)
        np.testing.assert_array_equal(one.reward(state), other.reward(state))
    np.testing.assert_array_equal(one.state_dict()["states"], other.state_dict()["states"])


# --- learned parts ------------------------------------------------------------------------------------------------


def segments(observation, action, spec="vector"):
    """Segments of one unbroken episode: observation [T+1, N, …], action [T, N]."""
    steps, n = action.shape
    no = np.zeros((steps, n), bool)
    return Segments({spec: observation}, np.zeros((steps + 1, n), bool), action.astype(np.int16), np.zeros((steps, n), np.float32),
                    no, no, np.zeros((steps, n, 1), np.int16), no[..., None], np.zeros((steps, n), np.int32),
                    np.zeros(n, np.int16), np.zeros(n, np.float32), np.ones(n, np.float32), np.zeros((n, 0, 0), np.float16),
                    np.ones(n, np.float32))


def test_the_embedding_does_not_learn_across_the_end_of_an_episode():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    embedding = ControllableEmbedding({"vector": ArraySpec((8,), np.float32, "vector")}, 2, SMALL)
    batch = segments(rng.normal(size=(4, 2, 8)).astype(np.float32), rng.integers(2, size=(3, 2)))
    terminated, truncated = batch.terminated.copy(), batch.truncated.copy()
    terminated[0, 0] = truncated[2, 1] = True
    goes_on = [(t, n) for t in range(3) for n in range(2) if (t, n) not in ((0, 0), (2, 1))]
    single = [embedding.loss(segments(batch.observation["vector"][t : t + 2, [n]], batch.action[[t]][:, [n]])) for t, n in goes_on]
    loss = embedding.loss(dataclasses.replace(batch, terminated=terminated, truncated=truncated))
    torch.testing.assert_close(loss, torch.stack(single).mean())


def test_the_embedding_ignores_what_no_action_controls():
    """The first number is moved by the action, the second is noise: a change of the first moves f, of the second hardly."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    embedding = ControllableEmbedding({"vector": ArraySpec((8,), np.float32, "vector")}, 2, SMALL)
    optimizer = torch.optim.Adam(embedding.parameters(), 3e-3)

    def states(place, noise):
        return np.concatenate([np.eye(4, dtype=np.float32)[place], np.eye(4, dtype=np.float32)[noise]], -1)

    for _ in range(300):
        action = rng.integers(2, size=(8, 16))
        place = np.cumsum(np.concatenate([rng.integers(4, size=(1, 16)), 2 * action - 1]), 0) % 4
        loss = embedding.loss(segments(states(place, rng.integers(4, size=place.shape)), action))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1

    def f(place, noise):
        return embedding({"vector": torch.from_numpy(states(np.array([place]), np.array([noise])))})

    moved = np.mean([float((f(p, 0) - f((p + 1) % 4, 0)).square().sum().detach()) for p in range(4)])
    flickered = np.mean([float((f(p, 0) - f(p, 1)).square().sum().detach()) for p in range(4)])
    assert flickered < 0.1 * moved


def test_the_error_of_distillation_falls_where_it_was_and_not_elsewhere():
    torch.manual_seed(0)
    spec = {"active": ArraySpec((1,), np.int16, "active", 10)}
    distillation = RandomDistillation(spec, SMALL)
    optimizer = torch.optim.Adam([p for p in distillation.parameters() if p.requires_grad], 3e-3)
    before = {name: tensor.clone() for name, tensor in distillation.fixed.state_dict().items()}
    every = {"active": torch.arange(10)[:, None]}
    at_first = distillation.error(every).detach()
    visited = np.arange(33).reshape(-1, 1, 1).astype(np.int16) % 3
    batch = segments(visited, np.zeros((32, 1), np.int64), "active")
    errors = []
    for _ in range(100):
        loss = distillation.loss(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(float(loss.detach()))
    assert errors[50] < errors[0] / 2
    assert errors[99] < errors[50]
    now = distillation.error(every).detach()
    assert (now[:3] < 0.1 * at_first[:3]).all()
    assert now[3:].mean() > 5 * now[:3].mean()
    assert all(torch.equal(tensor, before[name]) for name, tensor in distillation.fixed.state_dict().items())


def test_novelty_is_centred_scaled_and_clipped():
    moments = RunningMoments()
    moments.update(np.array([1.0, 3.0]))  # mean 2, deviation 1
    np.testing.assert_allclose(moments.novelty(np.array([0.0, 2.0, 3.5, 99.0]), 5.0), [1.0, 1.0, 2.5, 5.0])


def test_moments_of_a_steady_stream_are_its_mean_and_deviation():
    rng = np.random.default_rng(0)
    moments = RunningMoments()
    for _ in range(500):
        moments.update(rng.normal(7.0, 2.0, size=32))
    assert moments.mean == pytest.approx(7.0, abs=0.1)
    assert moments.deviation == pytest.approx(2.0, abs=0.1)


# --- the view -----------------------------------------------------------------------------------------------------


class Networks:
    def __init__(self, env, settings):
        torch.manual_seed(0)
        self.embedding = ControllableEmbedding(env.observation_spec, env.num_actions, settings)
        self.distillation = RandomDistillation(env.observation_spec, settings)


def view(meta_episode_length=3, **changes):
    settings = dataclasses.replace(SMALL, meta_episode_length=meta_episode_length, **changes)
    sea = DeepSea(4, 2)
    return CuriousView(sea, Networks(sea, settings), settings)


def test_the_memory_is_emptied_every_meta_episode_length_episodes():
    seen = view(meta_episode_length=3)
    seen.reset(seed=0)
    held = []
    for _ in range(7 * 4):  # seven episodes of four steps
        seen.step(np.zeros(2, np.int64))
        held.append(int(seen.memory.added[0]))
    assert [held[4 * k - 1] for k in range(1, 8)] == [4, 8, 0, 4, 8, 0, 4]


def test_the_intrinsic_reward_is_the_product_of_both_novelties():
    both = view(episodic_memory_reward_scale=0.5)
    one, other = (view(episodic_memory_reward_scale=1.0, **off) for off in ({"is_lifelong": False}, {"is_episodic": False}))
    for v in (both, one, other):
        v.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        action = rng.integers(2, size=2)
        rewards = [v.step(action).observation[INTRINSIC][:, 0] for v in (both, one, other)]
        np.testing.assert_allclose(rewards[0], 0.5 * rewards[1] * (rewards[2] + 1.0), rtol=1e-5)


def test_the_reward_of_the_last_step_stands_with_the_state_after_the_reset():
    seen = view()
    seen.reset(seed=0)
    for _ in range(3):
        seen.step(np.zeros(2, np.int64))
    step = seen.step(np.zeros(2, np.int64))
    assert step.terminated.all()
    assert (step.observation[INTRINSIC] == step.final_observation[INTRINSIC]).all()
    assert (step.observation[INTRINSIC] > 0).all()


def test_a_state_that_ends_an_episode_counts_as_known_and_not_towards_the_mean_error():
    seen = view(is_episodic=False)
    seen.reset(seed=0)
    for _ in range(3):
        seen.step(np.zeros(2, np.int64))
    moments = seen.moments.state_dict()
    step = seen.step(np.zeros(2, np.int64))
    assert step.terminated.all()
    assert (step.observation[INTRINSIC] == 0).all()  # α − 1
    assert seen.moments.state_dict() == moments


def test_a_view_that_is_saved_and_loaded_goes_on_to_the_bit():
    rng = np.random.default_rng(0)
    one = view()
    one.reset(seed=0)
    for _ in range(6):
        one.step(rng.integers(2, size=2))
    two = view()
    two.set_state(one.get_state())
    two.load_knowledge(one.knowledge())
    for _ in range(12):
        action = rng.integers(2, size=2)
        a, b = one.step(action), two.step(action)
        for name, array in a.observation.items():
            assert (array == b.observation[name]).all()
