"""Words that many processes read get the same bits everywhere, through death and resumption."""

import dataclasses
import os
import signal
import time
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from reference.tiny_deep import FEW_CPUS, TINY, steps_of

ray = pytest.importorskip("ray")

from protogoal.agents.blueprint import EnvSpaces  # noqa: E402
from protogoal.config import RaySettings  # noqa: E402
from protogoal.domains.domain import make_batch_env  # noqa: E402
from protogoal.domains.user_env import OwnSettings  # noqa: E402
from protogoal.goals.spaces import BagOfWords  # noqa: E402
from protogoal.record.events import Happened  # noqa: E402
from protogoal.run import checkpoint  # noqa: E402
from protogoal.run.local import LocalSession  # noqa: E402
from protogoal.run.ray import supervisor  # noqa: E402
from protogoal.run.ray.player import PlayerRole  # noqa: E402
from protogoal.run.ray.session import RaySession  # noqa: E402
from protogoal.run.ray.state import saved_spaces  # noqa: E402
from protogoal.run.ray.supervisor import Published  # noqa: E402
from protogoal.run.ray.vocabulary import VocabularyHandle, VocabularyRole, saved_words, share_words  # noqa: E402

PATIENCE = 600.0  # seconds for anything that is waited for
PLACES = 400


class Street(gymnasium.Env):
    """A long round street; where one stands, a word is said that is said nowhere else. Episodes begin anywhere."""

    observation_space = gymnasium.spaces.Dict({"place": gymnasium.spaces.MultiDiscrete([PLACES]),
                                               "said": gymnasium.spaces.Text(8)})
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = int(self.np_random.integers(PLACES)), 0
        return self._see(), {}

    def step(self, action):
        self.place, self.time = (self.place + (1 if action else -1)) % PLACES, self.time + 1
        return self._see(), float(self.place == 0), False, self.time >= 8, {}

    def _see(self):
        return {"place": np.array([self.place]), "said": said_at(self.place)}


def said_at(place):
    return f"{chr(97 + place // 26)}{chr(97 + place % 26)}"


def said_on_the_street(env):
    return BagOfWords(PLACES, key="said")


STREET = dataclasses.replace(
    TINY, env=OwnSettings("test_ray_vocabulary:Street", "test_ray_vocabulary:said_on_the_street"), steps=10**6,
    replay=dataclasses.replace(TINY.replay, capacity=4000), ray=RaySettings(workers=2, answer_seconds=300.0, **FEW_CPUS))


def vocabulary_of(state):
    """The words of a saved run; all of its replay must have been read with them."""
    words = saved_spaces(state)[0]["vocabulary"]
    replay = state["agent"]["replay"]
    size, arrays = int(replay["size"]), replay["arrays"]
    place, active = arrays["observation.place"][:size, 1:, 0], arrays["active"][:size, :, 0]
    stays = ~(arrays["terminated"] | arrays["truncated"])[:size]  # else the next state is another episode's first
    assert stays.any()
    assert [words[bit] for bit in active[stays]] == [said_at(there) for there in place[stays]]
    return words


def test_all_readers_of_a_vocabulary_give_a_word_the_same_bit(small_ray):
    words = supervisor.start_role(VocabularyRole, [["you"]], [5], cpus=0.1)
    one, two = BagOfWords(5), BagOfWords(5)
    share_words(one, VocabularyHandle("words", words))
    share_words(two, VocabularyHandle("words", words))
    one.read("You push the boulder")
    two.read("You fall into the water")
    one.read("the water is deep")
    assert list(two.vocabulary.items()) == list(one.vocabulary.items())[: len(two.vocabulary)]
    assert len(one.vocabulary) == 5
    assert one.overflow + two.overflow > 0
    ray.kill(words)


def test_no_reader_hears_of_a_word_before_the_client(small_ray):
    words = supervisor.start_role(VocabularyRole, [["you"]], [5], True, cpus=0.1)
    answer = words.agree.remote(0, ["fall"])
    while "fall" not in ray.get(words.state.remote())[0]:
        time.sleep(0.05)
    assert ray.wait([answer], timeout=1.0)[0] == []
    version, copy = ray.get(words.watch.remote(-1, 1.0))
    assert copy == [["you", "fall"]]
    assert ray.wait([answer], timeout=1.0)[0] == []  # it is on its way to the client
    again = words.watch.remote(version, 60.0)
    assert ray.get(answer) == ["you", "fall"]
    more = words.agree.remote(0, ["push"])
    version, copy = ray.get(again)
    assert copy == [["you", "fall", "push"]]
    assert ray.get(words.watch.remote(version, 0.1)) == (version, copy)  # no news
    assert ray.get(more) == copy[0]
    ray.kill(words)


def test_the_evaluator_reads_with_the_words_of_all(small_ray):
    known = [said_at(place) for place in range(20, 10, -1)]
    words = supervisor.start_role(VocabularyRole, [known], [PLACES], cpus=0.1)
    env, space = make_batch_env(STREET.env, 1)
    role = PlayerRole(STREET, EnvSpaces.of(env), space, VocabularyHandle("words", words))
    role.play(Published(), 2, {})
    agreed = ray.get(words.state.remote())[0]
    assert agreed[: len(known)] == known
    assert len(agreed) > len(known)  # what it has read
    assert list(role.space.vocabulary) == agreed
    ray.get(words.load.remote([known]))
    role.load(np.random.default_rng(1).bit_generator.state)
    assert list(role.space.vocabulary) == known
    ray.kill(words)


@pytest.fixture(scope="module")
def street(small_ray):
    """A run with text on two workers, and a way to go on with it for some steps and save it, as it comes back from disk."""
    session = RaySession(STREET)
    training = steps_of(session)

    def until(step):
        deadline = time.monotonic() + PATIENCE
        while session.step < step:
            next(training)
            assert time.monotonic() < deadline, "nothing happened"

    def go_on(steps, folder):
        until(session.step + steps)
        return saved(session.state_dict(), folder)

    yield SimpleNamespace(session=session, until=until, go_on=go_on)
    session.close()


def saved(state, folder):
    return checkpoint.load(checkpoint.save(folder, state["agent"]["steps"], state))[1]


def test_a_run_that_is_loaded_goes_on_with_its_vocabulary_on_either_engine(street, tmp_path):
    state = street.go_on(400, tmp_path)
    words = vocabulary_of(state)
    assert state["agent"]["evaluator"]["space"]["vocabulary"] == words
    local = LocalSession(STREET)
    local.load_state_dict(state)
    assert list(local.space.vocabulary)[: len(words)] == words
    for step in steps_of(local):
        if step > state["agent"]["steps"] + 200:
            break
    longer = saved(local.state_dict(), tmp_path)
    assert vocabulary_of(longer)[: len(words)] == words

    other = RaySession(STREET)  # it has read some words already, in another order
    try:
        assert other.vocabulary.words != street.session.vocabulary.words
        other.load_state_dict(longer)
        for step in steps_of(other):
            if step > longer["agent"]["steps"] + 200:
                break
        now = vocabulary_of(saved(other.state_dict(), tmp_path))
    finally:
        other.close()
    assert now[: len(vocabulary_of(longer))] == vocabulary_of(longer)
    assert len(now) > len(vocabulary_of(longer))


def test_the_process_of_the_vocabulary_is_replaced_and_nothing_is_lost(street, tmp_path):
    session, process = street.session, street.session.vocabulary.process
    words = vocabulary_of(street.go_on(40, tmp_path))
    life = process.life
    street.until(session.step + 40)  # while words are read
    os.kill(process.whereabouts["pid"], signal.SIGKILL)
    state = street.go_on(600, tmp_path)
    assert process.life > life
    now = vocabulary_of(state)
    assert now[: len(words)] == words
    assert len(now) > len(words)
    assert session.context.lost["steps"] == 0
    assert session.context.lost["counts"] == 0


def test_a_single_worker_with_another_number_of_environments_leaves_a_checkpoint_for_either_engine(small_ray, tmp_path):
    config = dataclasses.replace(STREET, agent="r2d2", ray=RaySettings(workers=1, envs_per_worker=2, **FEW_CPUS))
    session = RaySession(config)
    try:
        for step in steps_of(session):
            if step >= 300:
                break
        state = saved(session.state_dict(), tmp_path)
        local = LocalSession(config)
        assert local.env.num_envs == 4
        local.load_state_dict(state)
        assert not local.agent.actor.was_restored
        assert state["agent"]["space"]["vocabulary"] == vocabulary_of(state) != []
        assert list(local.space.vocabulary)[: len(vocabulary_of(state))] == vocabulary_of(state)
        session.context.told.clear()
        session.load_state_dict(state)
        assert not [event for event in session.context.told if isinstance(event, Happened)]  # its own episodes go on
    finally:
        session.close()


def test_the_words_of_a_checkpoint_are_the_longest_that_any_part_of_it_has():
    def space(words):
        return {"vocabulary": words, "overflow": 0}

    state = {"agent": {"actor": {"env": {"env": {"space": space(["you", "see"])}, "episodes": 1}}},
             "ray": {"workers": [{"env": None}, {"env": {"space": space(["you", "see", "it"])}}]}}
    bag = BagOfWords(4)
    assert saved_words(bag, saved_spaces(state)) == [["you", "see", "it"]]
    assert list(bag.vocabulary) == ["you", "see", "it"]
    assert saved_spaces({"agent": {"actor": {"env": None}}}) == []
    with pytest.raises(ValueError, match="at most 2"):
        saved_words(BagOfWords(2), saved_spaces(state))
