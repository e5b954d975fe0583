"""Agent57 as a whole: split values against the slow version, the player's policy, and a run that resumes to the bit."""

import dataclasses

import numpy as np
import pytest
import torch
from reference import agent57 as slow
from reference.tiny_deep import TINY_AGENT57, steps_of

from protogoal.agents.agent57.agent import Agent57
from protogoal.agents.agent57.mixture import beta_ladder, discount_ladder
from protogoal.agents.agent57.settings import Agent57Settings
from protogoal.agents.agent57.split import Streams, combine
from protogoal.agents.blueprint import INTRINSIC
from protogoal.config import ActorSettings, DeepConfig, EvaluationSettings, LearnerSettings, NetworkSettings, ReplaySettings
from protogoal.deep.learn import Learner, unroll_inputs
from protogoal.deep.returns import h_inverse
from protogoal.domains.baba import BabaSettings
from protogoal.domains.deep_sea import DeepSeaSettings
from protogoal.domains.domain import make_batch_env
from protogoal.domains.minihack import RiverSettings
from protogoal.presets import PRESETS, at_paper_scale
from protogoal.record.store import Store
from protogoal.run import checkpoint, limits
from protogoal.run.local import LocalSession
from protogoal.settings import with_fields

TINY = DeepConfig(
    env=DeepSeaSettings(size=6),
    agent="agent57",
    network=NetworkSettings(hidden=16, rank=8, goal_hidden=8, core="lstm"),
    actor=ActorSettings(num_envs=4),
    replay=ReplaySettings(capacity=600, trace_length=5, burn_in=2),
    learner=LearnerSettings(batch_size=8, min_replay=200, target_period=7, value_transform="h"),
    exploration=Agent57Settings(num_policies=4, memory_capacity=40, curiosity_hidden=16, distillation_size=8, embedding_size=4,
                            meta_episode_length=3, bandit_window=6, episodic_memory_reward_scale=0.1),
    evaluation=EvaluationSettings(every=250, episodes=2, final_episodes=2),
    steps=600,
)  # everything on: recurrent cores, burn-in, h, own policies, the intrinsic reward as an input
ALL = dataclasses.replace(
    TINY,
    network=dataclasses.replace(TINY.network, core="none"),
    learner=dataclasses.replace(TINY.learner, value_transform="identity"),
    exploration=dataclasses.replace(TINY.exploration, learn_policies="all", reads_intrinsic=False),
)
LASTING = dataclasses.replace(ALL, exploration=dataclasses.replace(ALL.exploration, intrinsic_return_ends=False))


def agent(config):
    env, space = make_batch_env(config.env, config.actor.num_envs)
    return Agent57(config, env, space)


@pytest.mark.parametrize("config", [TINY, ALL, LASTING], ids=["own", "all", "all, novelty across episodes"])
def test_the_targets_of_both_streams_are_those_of_the_slow_version(config):
    made = agent(config)
    for _ in range(5):
        made.remember(made.act(randomly=True))
    batch = made.replay.sample(6, np.random.default_rng(0))
    learned = batch.last(config.replay.trace_length)
    streams = Streams.of(learned, config.exploration)
    steps, n, goals = streams.extrinsic.reward.shape
    rng = np.random.default_rng(1)
    q_e, q_i, target_e, target_i = (rng.normal(size=(steps + 1, n, 2, goals)).astype(np.float32) for _ in range(4))
    beta = torch.from_numpy(streams.beta)
    beta = beta if beta.ndim == 1 else beta.unsqueeze(1)
    greedy = combine(torch.from_numpy(q_e), torch.from_numpy(q_i), beta, "identity")
    learner = made.learner.extrinsic
    learner.settings = dataclasses.replace(learner.settings, value_transform="identity")
    fast = [learner._targets(learned, stream, greedy[1:], torch.from_numpy(target[1:])).numpy()
            for stream, target in ((streams.extrinsic, target_e), (streams.intrinsic, target_i))]
    betas, gammas = (f(4, *a) for f, a in ((beta_ladder, (0.3,)), (discount_ladder, (0.9999, 0.99))))
    for i in range(n):
        for g in range(goals):
            j = int(learned.goal[0, i]) if config is TINY else g
            ends = learned.terminated[:, i]
            expected = slow.split_targets(
                learned.reward[:, i], learned.observation[INTRINSIC][1:, i, 0], gammas[j] * ~ends,
                gammas[j] * (np.ones(len(ends)) if config is LASTING else ~ends), learned.action[:, i],
                q_e[:, i, :, g], q_i[:, i, :, g], target_e[:, i, :, g], target_i[:, i, :, g], betas[j], 0.95)
            for stream, slow_targets in zip(fast, expected, strict=True):
                np.testing.assert_allclose(stream[:, i, g], slow_targets, rtol=1e-4, atol=1e-5)
    assert learned.terminated.any()


@pytest.mark.parametrize("config", [TINY, ALL], ids=["own", "all"])
def test_both_networks_learn_from_what_the_actor_saw_for_the_action_that_is_greedy_for_the_sum(config, monkeypatch):
    made = agent(with_fields(config, {"exploration.beta": 20.0}))  # so that the sum is greedy for other actions than Q_e
    for _ in range(6):
        made.remember(made.act(randomly=True))
    batch, network, burn_in = made.replay.sample(6, np.random.default_rng(0)), made.network, config.replay.burn_in
    assert batch.is_first[1:].any()
    observation, *rest = unroll_inputs(batch)
    with torch.inference_mode():
        z = network.unroll(observation, *rest)[0][burn_in:]  # [T+1, N, 2H]
        policies = torch.from_numpy(batch.goal[burn_in])[:, None] if config is TINY else torch.arange(4).expand(6, 4)
        states, n, _ = z.shape
        members = policies.expand(states, n, -1).flatten(0, 1).unsqueeze(-1).long()  # [(T+1)·N, K, 1]
        q_e, q_i = (part.q_each(half, members).view(states, n, -1, 2).transpose(2, 3)
                    for part, half in zip((network.extrinsic, network.intrinsic), z.flatten(0, 1).chunk(2, -1), strict=True))
        greedy = network.q_each(z.flatten(0, 1), members).view(states, n, -1, 2).transpose(2, 3)  # [T+1, N, A, K]
    seen = []

    def descend(learner, batch, goals, values, q_greedy):
        seen.append((values.online, q_greedy))
        return {"loss": 0.0}

    monkeypatch.setattr(Learner, "descend", descend)
    made.learner.update(batch)
    for (online, q_greedy), expected in zip(seen, (q_e, q_i), strict=True):
        torch.testing.assert_close(online, expected[1:], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(q_greedy, greedy[1:], rtol=1e-4, atol=1e-5)
    assert not torch.equal(q_e.argmax(2), greedy.argmax(2))


def test_a_loss_that_is_not_finite_ends_the_run_before_a_weight_is_spoiled():
    made = agent(ALL)
    for _ in range(3):
        made.remember(made.act(randomly=True))
    batch = made.replay.sample(5, np.random.default_rng(0))
    before = {name: weight.clone() for name, weight in made.network.state_dict().items()}
    with pytest.raises(ValueError, match="the loss of update 1 is nan: training has diverged"):
        made.learner.update(dataclasses.replace(batch, reward=batch.reward * np.nan))
    assert all(torch.equal(weight, before[name]) for name, weight in made.network.state_dict().items())


def test_the_intrinsic_stream_learns_from_the_intrinsic_reward_alone():
    made = agent(ALL)
    for _ in range(3):
        made.remember(made.act(randomly=True))
    batch = made.replay.sample(5, np.random.default_rng(0))
    paid = dataclasses.replace(batch, reward=batch.reward + 100.0)
    before, after = Streams.of(batch, ALL.exploration), Streams.of(paid, ALL.exploration)
    assert (before.intrinsic.reward == after.intrinsic.reward).all()
    assert (after.extrinsic.reward - before.extrinsic.reward == 100.0).all()


def test_a_policy_is_greedy_for_the_weighted_sum_and_the_first_for_the_task_alone():
    made = agent(ALL)
    network = made.network
    z = torch.randn(3, 32)
    policies = torch.arange(4).expand(3, 4).unsqueeze(-1)
    with torch.inference_mode():
        q_e, q_i = network.extrinsic.q_each(z[:, :16], policies), network.intrinsic.q_each(z[:, 16:], policies)
        q = network.q_each(z, policies)
    torch.testing.assert_close(q, q_e + torch.from_numpy(beta_ladder(4, 0.3))[:, None] * q_i)
    torch.testing.assert_close(q[:, 0], q_e[:, 0])


def test_with_the_transform_the_sum_is_of_the_untransformed_values():
    q_e, q_i = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0])
    expected = h_inverse(q_e.numpy()) + 0.5 * h_inverse(q_i.numpy())
    np.testing.assert_allclose(combine(q_e, q_i, torch.tensor(0.5), "h").numpy(), expected, rtol=1e-6)


def test_the_player_takes_the_arm_that_paid_most():
    made = agent(ALL)
    rows = np.arange(4)
    made.actor.bandit.update(rows, np.full(4, 2), np.full(4, 9.0))
    made.remember(made.act(randomly=True))
    assert int(made.network.task_policy) == 2
    with torch.inference_mode():
        z = torch.randn(1, 32)
        assert torch.equal(made.network.q_each(z, torch.tensor([[[-1]]])), made.network.q_each(z, torch.tensor([[[2]]])))


def test_an_episode_is_acted_by_one_policy_and_its_return_is_told_to_the_bandit():
    made = agent(dataclasses.replace(ALL, replay=dataclasses.replace(ALL.replay, burn_in=0)))
    goals = np.concatenate([made.act(randomly=True).segments.goal for _ in range(6)])  # 30 steps, five episodes of six
    assert (goals.reshape(5, 6, 4) == goals.reshape(5, 6, 4)[:, :1]).all()
    assert (made.actor.bandit.pulls == 5).all()


def train(session, store, windows):
    for _ in zip(range(windows), steps_of(session, store), strict=False):
        pass


def plain(state):
    """Every array and number of a state by its place, but for the seconds."""
    found, stack = {}, [("", state)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{place}/{k}", v) for k, v in value.items() if k not in ("seconds", "cpu_seconds")]
        elif isinstance(value, list | tuple):
            stack += [(f"{place}/{k}", v) for k, v in enumerate(value)]
        else:
            found[place] = value.tobytes() if isinstance(value, np.ndarray) else value
    return found


@pytest.mark.parametrize("config", [TINY, ALL], ids=["own", "all"])
def test_a_run_that_is_saved_and_loaded_goes_on_to_the_bit_and_threads_change_nothing(config, tmp_path):
    with Store.create(tmp_path / "run.db") as store:
        whole = LocalSession(dataclasses.replace(config, threads=2))
        train(whole, store, 1000)
        half = LocalSession(dataclasses.replace(config, threads=1))
        train(half, store, 17)
        checkpoint.save(tmp_path / "checkpoints", half.step, half.state_dict())
        rest = LocalSession(dataclasses.replace(config, threads=1))
        rest.load_state_dict(checkpoint.load_latest(tmp_path / "checkpoints")[1])
        train(rest, store, 1000)
    assert whole.step == rest.step == config.steps
    assert whole.agent.learner.updates > 5
    assert plain(whole.state_dict()) == plain(rest.state_dict())


@pytest.mark.parametrize("env", [BabaSettings(max_steps=30), RiverSettings(max_steps=30, workers=0)], ids=["baba", "minihack"])
def test_it_trains_on_the_papers_domains(env, tmp_path):
    if isinstance(env, RiverSettings):
        pytest.importorskip("minihack")
    config = dataclasses.replace(ALL, env=env, steps=400)
    with Store.create(tmp_path / "run.db") as store:
        session = LocalSession(config)
        train(session, store, 1000)
    assert session.agent.learner.updates > 0
    assert 0 <= session.evaluate(2, seed=0).successes <= 2


def test_the_presets_have_the_settings_of_the_paper_and_of_gridworlds():
    for name in ("baba-umaze-small", "baba-umaze-medium", "baba-umaze-paper", "minihack-narrow-river", "minihack-wide-river-lava"):
        ours = PRESETS[f"{name}-agent57"]
        paper = at_paper_scale(ours)
        assert ours.agent == "agent57"
        assert ours.replay == PRESETS[f"{name}-r2d2"].replay  # agents differ in how they explore
        assert (ours.exploration.num_policies, ours.exploration.kernel_epsilon) == (16, 0.01)
        assert ours.exploration.memory_capacity == 5000
        assert (paper.exploration.num_policies, paper.exploration.episodic_memory_reward_scale) == (32, 0.001)
        assert (paper.exploration.meta_episode_length, paper.exploration.memory_capacity) == (10, 10_000)
        assert (ours.exploration.intrinsic_return_ends, paper.exploration.intrinsic_return_ends) == (False, True)
    assert PRESETS["deep-sea-agent57"].exploration.intrinsic_return_ends  # episodes of one length


@pytest.mark.parametrize("field", ["replay.capacity", "exploration.memory_capacity"])
def test_what_does_not_fit_into_memory_is_refused_in_one_line(field, monkeypatch):
    monkeypatch.setattr(limits, "memory_bytes", lambda: 600_000_000)
    words = rf"the run needs .* GB, this machine has 0.6 GB; .*{field} = 10,000,000.*; at most {field} = .* fits"
    with pytest.raises(ValueError, match=words):
        LocalSession(with_fields(TINY_AGENT57, {field: 10_000_000}))
