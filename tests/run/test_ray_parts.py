"""Parts of the Ray engine that need no cluster: shares, states taken apart and joined, pacing, settings."""

import dataclasses
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.tiny_deep import TINY, TINY_AGENT57, differences

ray = pytest.importorskip("ray")

from protogoal.agents.agent57.agent import Agent57  # noqa: E402
from protogoal.agents.agent57.bandit import best_arm  # noqa: E402
from protogoal.agents.blueprint import EnvSpaces  # noqa: E402
from protogoal.agents.r2d2 import R2D2  # noqa: E402
from protogoal.config import RaySettings  # noqa: E402
from protogoal.domains.domain import make_batch_env  # noqa: E402
from protogoal.run import training  # noqa: E402
from protogoal.run.local import LocalSession  # noqa: E402
from protogoal.run.ray import cluster, supervisor  # noqa: E402
from protogoal.run.ray.pacing import Pacing  # noqa: E402
from protogoal.run.ray.player import PlayerClient  # noqa: E402
from protogoal.run.ray.shard import Shard, shares  # noqa: E402
from protogoal.run.ray.state import merge_replays, share_of_knowledge, split_replay, without_episodes  # noqa: E402
from protogoal.run.ray.supervisor import Published  # noqa: E402
from protogoal.run.ray.worker import Worker, WorkerClient  # noqa: E402


@given(st.integers(0, 500), st.dictionaries(st.integers(0, 6), st.integers(0, 10_000), max_size=7))
def test_a_batch_is_divided_among_shards_in_proportion(total, sizes):
    parts = shares(total, sizes)
    whole = sum(sizes.values())
    assert sum(parts.values()) == (total if whole else 0)
    assert all(abs(parts.get(shard, 0) - total * size / whole) < 1 for shard, size in sizes.items() if whole)


def replay_state(size, following, seed):
    rng = np.random.default_rng(seed)
    return {"arrays": {"action": rng.integers(9, size=(size, 3))}, "rarest": rng.integers(5, size=size),
            "turned_on": rng.integers(9, size=6), "wanted": np.array([200], np.uint8),
            "next": following, "size": size, "added": size + 4}


def test_replay_divided_and_merged_again_is_the_same():
    state = replay_state(8, 0, seed=1)
    again = merge_replays(split_replay(state, shards=2, capacity=4))
    assert differences(again | {"next": 0}, state) == []


def test_replay_is_merged_by_age_and_the_newest_are_kept():
    old_first = [replay_state(4, 2, seed=1), replay_state(4, 0, seed=2)]
    merged = merge_replays(old_first)
    first, second = (state["arrays"]["action"] for state in old_first)
    by_age = [first[2], second[0], first[3], second[1], first[0], second[2], first[1], second[3]]
    assert (merged["arrays"]["action"] == np.stack(by_age)).all()
    newest = split_replay(merged, shards=1, capacity=3)[0]
    assert (newest["arrays"]["action"] == np.stack(by_age[-3:])).all()
    assert (merged["turned_on"] == old_first[0]["turned_on"] + old_first[1]["turned_on"]).all()


def test_shards_with_room_for_different_numbers_of_bits_are_merged():
    one, two = replay_state(2, 0, seed=1), replay_state(2, 0, seed=2)
    one["arrays"]["active"], two["arrays"]["active"] = np.zeros((2, 3, 1), np.int16), np.ones((2, 3, 4), np.int16)
    merged = merge_replays([one, two])["arrays"]["active"]
    assert merged[:, 0].tolist() == [[0, -1, -1, -1], [1, 1, 1, 1]] * 2


def test_what_agent57_knows_of_its_policies_goes_from_several_workers_to_the_local_engine():
    workers = [Worker(dataclasses.replace(TINY_AGENT57, ray=RaySettings(workers=2)), index, 2) for index in range(2)]
    for worker in workers:
        worker.collect(Published(), Published(), None, True, 8)
    states = [worker.state() for worker in workers]
    local = LocalSession(TINY_AGENT57).agent.actor
    local.load_state_dict(without_episodes(Agent57, states))
    assert not local.was_restored
    pulls = np.concatenate([state["bandit"]["pulls"] for state in states])
    assert pulls.sum() > 0
    assert (local.bandit.pulls == pulls).all()
    assert local.view.moments.state_dict() == states[0]["bonus"]["moments"]
    assert best_arm(*local.bandit.arm_sums()) == best_arm(*sum(worker.actor.bandit.arm_sums() for worker in workers))
    local.load_state_dict(without_episodes(Agent57, states[:1]))  # of another number of environments: it learns them anew
    assert (local.bandit.pulls == pulls).all()


def test_what_agent57_knows_of_its_policies_goes_to_another_number_of_workers():
    made = [Worker(dataclasses.replace(TINY_AGENT57, ray=RaySettings(workers=2)), index, 2) for index in range(2)]
    for worker in made:
        worker.collect(Published(), Published(), None, True, 8)
    states = [worker.state() for worker in made]
    config = dataclasses.replace(TINY_AGENT57, ray=RaySettings(workers=3))
    for index in range(3):  # six environments where there were four: the last two begin with what the first two have learned
        worker = Worker(config, index, 2)
        generator = worker.actor.bandit.rng.bit_generator.state
        assert not worker.begin_afresh(share_of_knowledge(Agent57, states, index, 2))
        source = states[index % 2]
        assert (worker.actor.bandit.pulls == source["bandit"]["pulls"]).all()
        assert (worker.actor.bandit.state_dict()["reward"] == source["bandit"]["reward"]).all()
        assert worker.actor.bandit.rng.bit_generator.state == generator
        assert (worker.actor.view.memory.distances()["mean"] == source["bonus"]["distances"]["mean"]).all()
        assert (source["bonus"]["distances"]["mean"] > 0).all()
        assert worker.actor.view.moments.state_dict() == states[0]["bonus"]["moments"]
    assert share_of_knowledge(R2D2, [Worker(TINY, 0, 2).state()], 0, 2) == {}  # the others' actors know nothing of the kind


def test_the_policy_for_the_task_is_the_best_over_all_workers_whoever_reported_last():
    reports = []
    collect = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: (None, None, None)))
    supervisor = SimpleNamespace(add=lambda *_: SimpleNamespace(is_gone=False, handle=SimpleNamespace(collect=collect)),
                           call=lambda process, what, answer, done, lost: reports.append(done))
    config = dataclasses.replace(TINY_AGENT57, ray=RaySettings(workers=2))
    acting = WorkerClient(SimpleNamespace(config=config, supervisor=supervisor, pacing=Pacing(config)), None, None)
    for worker in (0, 1, 0):
        acting.ask(worker, Published(), Published())
    for done, arms in zip(reports, ([[10, 10], [4, 5]], [[2, 2], [2, 1]], [[10, 10], [1, 5]]), strict=True):
        assert acting.buffers() == {} or done is reports[2]
        done(SimpleNamespace(shared=np.array(arms, float)))
    assert acting.buffers() == {"task_policy": 1}  # (1 + 2)/12 and (5 + 1)/12, though worker 1 alone prefers the first
    acting.processes[0].is_gone = True
    assert acting.buffers() == {"task_policy": 0}
    acting.ask(1, Published(), Published())
    reports[-1](SimpleNamespace(shared=np.zeros((2, 2))))  # no episode has ended yet
    assert acting.buffers() == {}


def test_evaluations_that_the_player_cannot_play_in_time_are_left_out_and_counted():
    said = []
    supervisor = SimpleNamespace(add=lambda *_: SimpleNamespace(is_ready=False))
    config = dataclasses.replace(TINY, steps=10_000)
    context = SimpleNamespace(config=config, spaces=None, supervisor=supervisor, pacing=Pacing(config), lost=Counter(),
                              event=said.append)
    evaluating = PlayerClient(context, None, None)
    for step in range(250, 1750, 250):
        context.pacing.steps = step
        assert evaluating.is_due()
        evaluating.add(2, Published())
    assert [step for step, _, _ in evaluating.queue] == [250, 500, 750, 1000]
    assert context.lost["evaluations"] == 2
    assert len(said) == 1
    assert "4 evaluations behind" in said[0]
    evaluating.queue.pop(0)
    evaluating.add(2, Published())
    assert len(evaluating.queue) == 4


def test_at_the_end_of_a_run_no_evaluation_is_due_beside_the_last():
    supervisor = SimpleNamespace(add=lambda *_: None)
    evaluating = PlayerClient(SimpleNamespace(config=TINY, spaces=None, supervisor=supervisor, pacing=Pacing(TINY)), None, None)
    evaluating.context.pacing.steps = TINY.steps
    assert not evaluating.is_due()
    evaluating.context.pacing.steps = TINY.steps - 1
    assert evaluating.is_due()


def test_learning_is_forgiven_what_it_could_not_learn():
    config = dataclasses.replace(TINY, ray=RaySettings(max_lag=3))  # 40 transitions an update, 200 before the first
    pacing = Pacing(config)
    pacing.acted(400, transitions=400)
    assert pacing.due(transitions=400) == 5
    assert pacing.must_wait(transitions=400)
    pacing.promised = 5
    assert pacing.due(transitions=400) == 0
    pacing.promised, pacing.updates = 0, 5
    assert not pacing.must_wait(transitions=400)
    assert pacing.ratio == 1.0
    pacing.acted(100, transitions=100)  # replay was lost
    assert pacing.due(transitions=600) == 0
    pacing.acted(80, transitions=600)
    assert pacing.due(transitions=600) == 2


@pytest.mark.parametrize(("capacity", "trace", "shards"), [(603, 10, 1), (603, 10, 4), (20, 10, 3), (600, 5, 2)])
def test_full_shards_are_enough_to_learn_from(capacity, trace, shards):
    replay, learner = dataclasses.replace(TINY.replay, capacity=capacity, trace_length=trace), TINY.learner
    config = dataclasses.replace(TINY, replay=replay, ray=RaySettings(shards=shards),
                                 learner=dataclasses.replace(learner, min_replay=10**6))
    env, _ = make_batch_env(config.env, 1)
    held = sum(Shard(config, EnvSpaces.of(env), i).replay.capacity * trace for i in range(shards))
    assert Pacing(config).can_learn(held)
    assert not Pacing(config).can_learn(held - 1)
    soon = dataclasses.replace(config, learner=dataclasses.replace(learner, min_replay=10))
    assert Pacing(soon).can_learn(10)  # and what was asked for, where that is less


class Asked(SimpleNamespace):
    """A supervisor with two roles that have been asked to work, on a Ray whose clock is moved by hand; `answered` have answered."""

    def __init__(self, monkeypatch):
        super().__init__(now=100.0, during_wait=0.0, answered=set(), done=[], died=[])
        monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(supervisor, "ray", SimpleNamespace(wait=self.wait, get=lambda answer, timeout: answer,
                                                               kill=lambda handle: None))
        self.people = supervisor.Supervisor(answer_seconds=10)
        for name in ("quick", "slow"):
            hello = SimpleNamespace(remote=lambda name=name: f"{name}'s hello")
            process = self.people.add(name, lambda life, hello=hello: SimpleNamespace(hello=hello), self.died.append)
            self.answered.add(f"{name}'s hello")
            self.people.call(process, "work", name, self.done.append)
        self.take()

    def wait(self, answers, num_returns, timeout, fetch_local):
        there = [answer for answer in answers if answer in self.answered]
        if timeout and not there:
            self.now += timeout
        if timeout:
            self.now += self.during_wait
        return there[:num_returns], []

    def take(self):
        self.people.take(timeout=1.0)


def test_a_role_that_has_answered_is_not_given_up_however_long_the_session_was_held_up(monkeypatch):
    asked = Asked(monkeypatch)
    asked.now += 3600.0  # a stop from outside, or a slow disk
    asked.answered |= {"quick", "slow"}
    asked.take()
    assert (sorted(asked.done), asked.died) == (["quick", "slow"], [])


@pytest.mark.parametrize("is_waiting", [False, True])
def test_time_for_which_the_session_was_held_up_is_no_silence(monkeypatch, is_waiting):
    asked = Asked(monkeypatch)
    for _ in range(8):
        asked.take()
    if is_waiting:  # for answers, when it is stopped
        asked.during_wait = 3600.0
    else:
        asked.now += 3600.0
    asked.take()
    asked.during_wait = 0.0
    assert asked.died == []
    asked.answered.add("quick")
    for _ in range(3):
        asked.take()
    assert asked.done == ["quick"]
    assert asked.died == ["it did not answer for 10 s"]  # and the silent is still found


def test_ray_settings_are_checked():
    for field in ("workers", "shards", "calls_ahead"):
        with pytest.raises(ValueError, match=field):
            RaySettings(**{field: 0})
    assert cluster.demands(RaySettings(workers=8, worker_cpus=0.5)) == {"CPU": 8.0, "GPU": 0.0}


def test_fields_of_the_ray_section_can_be_set_for_one_resumption():
    config = training.with_ray(TINY, "ray", {"workers": 7, "address": "auto"})
    assert (config.ray.workers, config.ray.address) == (7, "auto")
    with pytest.raises(ValueError, match="--workers is for"):
        training.with_ray(TINY, "local", {"workers": 7})
