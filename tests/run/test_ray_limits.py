"""What the Ray engine refuses, in one line and in time; and its parts that need no Ray."""

import dataclasses
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.tiny_deep import TINY, TINY_AGENT57, differences

ray = pytest.importorskip("ray")

from protogoal.agents.agent57.bandit import best_arm  # noqa: E402
from protogoal.agents.parts import EnvSpaces  # noqa: E402
from protogoal.cli import main  # noqa: E402
from protogoal.config import OwnSettings, RaySettings  # noqa: E402
from protogoal.goals.spaces import BagOfWords  # noqa: E402
from protogoal.run import checkpoint, training  # noqa: E402
from protogoal.run.environments import make_batch_env  # noqa: E402
from protogoal.run.local import LocalSession  # noqa: E402
from protogoal.run.ray import cluster, crew  # noqa: E402
from protogoal.run.ray.evaluator import Evaluating, EvaluatorRole  # noqa: E402
from protogoal.run.ray.learner import LearnerRole  # noqa: E402
from protogoal.run.ray.pacing import Pacing  # noqa: E402
from protogoal.run.ray.pge import PGERole  # noqa: E402
from protogoal.run.ray.published import Published  # noqa: E402
from protogoal.run.ray.session import RaySession  # noqa: E402
from protogoal.run.ray.shard import Shard, shares  # noqa: E402
from protogoal.run.ray.state import merge_replays, saved_spaces, split_replay, without_episodes  # noqa: E402
from protogoal.run.ray.words import Line, Words, saved_words, share_words  # noqa: E402
from protogoal.run.ray.worker import Acting, Worker  # noqa: E402

PATIENCE = 600.0  # seconds for anything that is waited for
ALONE = ["--engine", "ray"]
FEW = {f"{role}_cpus": 0.1 for role in ("worker", "learner", "shard", "pge", "evaluator")}
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
    TINY, env=OwnSettings("test_ray_limits:Street", "test_ray_limits:said_on_the_street"), steps=10**6,
    replay=dataclasses.replace(TINY.replay, capacity=4000), ray=RaySettings(workers=2, answer_seconds=300.0, **FEW))


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


def refused(capsys, *options):
    """Exit code 2 and one line."""
    assert main(["train", "baba-umaze-small-protogoal", "--run", "never-written", *ALONE, *options]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert not os.path.exists("never-written")
    return line


def test_without_ray_the_line_says_what_to_install(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "ray" else find(name, *a))
    assert "pip install 'protogoal[ray]'" in refused(capsys)


def test_an_address_nobody_answers_is_refused_at_once(capsys):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    assert f"nobody answers at {address}" in refused(capsys, "--address", address)
    assert "address must be auto or HOST:PORT" in refused(capsys, "--address", "somewhere")


def test_without_a_cluster_on_this_machine_auto_is_refused(capsys):
    if ray._private.services.find_gcs_addresses():
        pytest.skip("a Ray cluster runs on this machine")
    assert "cannot use the Ray cluster at auto: Could not find any running Ray instance" in refused(capsys, "--address", "auto")


def test_an_address_where_something_else_listens_is_refused_in_time(capsys):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        start = time.monotonic()
        line = refused(capsys, "--address", address, "--ray.connect_seconds", "2")
        assert time.monotonic() - start < 60
    assert f"no Ray cluster answers at {address}" in line


def test_options_of_the_ray_engine_are_refused_elsewhere(capsys):
    assert main(["train", "taxi-protogoal", "--run", "never-written", "--workers", "2"]) == 2
    assert "--workers is for deep agents with --engine ray" in capsys.readouterr().err
    assert main(["train", "taxi-protogoal", "--run", "never-written", "--engine", "ray"]) == 2
    assert "local engine only" in capsys.readouterr().err


# --- with Ray -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_ray():
    os.environ |= {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    here = Path(__file__).parent
    with pytest.MonkeyPatch.context() as patch:  # the roles import this file, for its environment
        patch.setenv("PYTHONPATH", os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")]))
        ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.mark.parametrize(("fields", "words"), [
    ({"workers": 100}, "needs 104 CPUs"),
    (FEW | {"learner_gpus": 1.0}, "needs 1 GPUs"),
    (FEW | {"learner_cpus": 4.0}, "the cluster has 3"),
])
def test_more_resources_than_the_cluster_has_are_refused(small_ray, fields, words):
    with pytest.raises(ValueError, match=words):
        RaySession(dataclasses.replace(TINY, ray=RaySettings(**fields)))
    assert ray.is_initialized()  # what was there before stays


def test_a_run_joins_the_cluster_at_an_address_and_killed_goes_on_from_its_last_checkpoint(small_ray, tmp_path):
    run = tmp_path / "run"
    fields = FEW | {"workers": 1, "envs_per_worker": 4, "address": ray.get_runtime_context().gcs_address}
    code = f"""
import dataclasses, pathlib, sys
sys.path.insert(0, sys.argv[2])
from reference.tiny_deep import TINY_AGENT57
from protogoal.run import training
training.CHECKPOINT_SECONDS, training.CHECKPOINT_SHARE = 0.1, 1.0
training.train(pathlib.Path(sys.argv[1]), "tiny", dataclasses.replace(TINY_AGENT57, steps=10**7), "ray", {fields!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(run), str(Path(__file__).parents[1])],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and not list(run.glob("checkpoints/[0-9]*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    while ray.available_resources().get("CPU") != 3.0 and time.monotonic() < deadline:  # its roles end with it
        time.sleep(0.1)
    config, step = run / "config.json", latest(run)
    assert step > 0
    config.write_text(config.read_text().replace('"steps": 10000000', f'"steps": {step + 200}'))
    training.resume(run)  # on Ray, as before
    assert latest(run) >= step + 200
    assert ray.is_initialized()


def test_a_shard_larger_than_any_machine_is_refused(small_ray):
    huge = dataclasses.replace(TINY.replay, capacity=10**10)
    with pytest.raises(ValueError, match="GB a shard"):
        RaySession(dataclasses.replace(TINY, replay=huge, ray=RaySettings(**FEW)))


def test_a_role_that_dies_again_and_again_ends_the_run_with_its_reason(small_ray):
    class Mortal(crew.Role):
        def work(self):
            os._exit(1)

    deaths = []
    people = crew.Crew(answer_seconds=60)
    member = people.add("mortal", lambda _: crew.start_role(Mortal, cpus=0.1), deaths.append)
    with pytest.raises(ValueError, match="mortal failed 3 times in a row"):  # noqa: PT012
        for _ in range(3):
            people.wait_ready()
            people.call(member, "work", member.handle.work.remote(), lambda _: None)
            people.settle()
    assert len(deaths) == 2
    people.disband()


def test_a_role_that_cannot_be_made_ends_the_run_with_its_reason(small_ray):
    class Stillborn(crew.Role):
        def __init__(self):
            raise RuntimeError("no such level")

    people = crew.Crew(answer_seconds=60)
    people.add("stillborn", lambda _: crew.start_role(Stillborn, cpus=0.1), lambda _: None)
    with pytest.raises(ValueError, match=r"stillborn failed 3 times in a row: .*RuntimeError: no such level"):
        people.wait_ready()
    people.disband()


def test_a_role_for_which_there_is_no_room_is_not_waited_for_longer_than_said(small_ray):
    given_up = []
    people = crew.Crew(answer_seconds=1.0)
    people.add("giant", lambda _: crew.start_role(crew.Role, cpus=50), lambda _: None, given_up.append)
    start = time.monotonic()
    while not given_up and time.monotonic() - start < 30:
        people.take(timeout=0.2)
    assert given_up == ["giant did not start within 1 s"]
    people.disband()


def test_a_shard_that_is_gone_or_empty_is_passed_over_and_a_mistake_in_its_code_ends_the_run(small_ray):
    class Mistaken(Shard):
        def sample(self, *_):
            raise TypeError("a mistake")

        sample_transitions = sample

    env, space = make_batch_env(TINY.env, 1)
    spaces = EnvSpaces.of(env)
    mistaken, empty, gone = (crew.start_role(cls, TINY, spaces, 0, cpus=0.1) for cls in (Mistaken, Shard, Shard))
    ray.kill(gone)
    learner, judge = LearnerRole(TINY, spaces), PGERole(TINY, spaces, space)
    for shard in (empty, gone):
        learner.set_shards({0: shard})
        judge.set_shards({0: shard})
        assert learner.learn(1, {0: 100}, Published())[0].updates == 0
        assert judge.refresh({0: 100}) is None
    judge.set_shards({0: mistaken})
    with pytest.raises(TypeError, match="a mistake"):
        judge.refresh({0: 100})
    people = crew.Crew(answer_seconds=60)
    member = people.add("learner", lambda _: crew.start_role(LearnerRole, TINY, spaces, cpus=0.1), lambda _: None)
    people.call(member, "set_shards", member.handle.set_shards.remote({0: mistaken}), lambda _: None)
    answer, *_ = member.handle.learn.options(num_returns=3).remote(1, {0: 100}, Published())
    people.call(member, "learn", answer, lambda _: None)
    with pytest.raises(TypeError, match="a mistake"):  # and not in silence
        people.settle()
    people.disband()
    for actor in (mistaken, empty):
        ray.kill(actor)


def test_all_readers_of_a_vocabulary_give_a_word_the_same_bit(small_ray):
    words = crew.start_role(Words, [["you"]], [5], cpus=0.1)
    one, two = BagOfWords(5), BagOfWords(5)
    share_words(one, Line("words", words))
    share_words(two, Line("words", words))
    one.read("You push the boulder")
    two.read("You fall into the water")
    one.read("the water is deep")
    assert list(two.vocabulary.items()) == list(one.vocabulary.items())[: len(two.vocabulary)]
    assert len(one.vocabulary) == 5
    assert one.overflow + two.overflow > 0
    ray.kill(words)


def test_no_reader_hears_of_a_word_before_the_desk(small_ray):
    words = crew.start_role(Words, [["you"]], [5], True, cpus=0.1)
    answer = words.agree.remote(0, ["fall"])
    while "fall" not in ray.get(words.state.remote())[0]:
        time.sleep(0.05)
    assert ray.wait([answer], timeout=1.0)[0] == []
    version, copy = ray.get(words.watch.remote(-1, 1.0))
    assert copy == [["you", "fall"]]
    assert ray.wait([answer], timeout=1.0)[0] == []  # it is on its way to the desk
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
    words = crew.start_role(Words, [known], [PLACES], cpus=0.1)
    env, _ = make_batch_env(STREET.env, 1)
    role = EvaluatorRole(STREET, EnvSpaces.of(env), Line("words", words))
    role.play(Published(), 2, None)
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
    training = session.train(Silent())

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


class Silent:
    """A store that keeps nothing."""

    def __getattr__(self, name):
        return lambda *_, **__: None


def saved(state, folder):
    return checkpoint.load(checkpoint.save(folder, state["agent"]["steps"], state))[1]


def test_a_run_that_is_loaded_goes_on_with_its_vocabulary_on_either_engine(street, tmp_path):
    state = street.go_on(400, tmp_path)
    words = vocabulary_of(state)
    assert state["agent"]["evaluator"]["space"]["vocabulary"] == words
    local = LocalSession(STREET)
    local.load_state_dict(state)
    assert list(local.space.vocabulary)[: len(words)] == words
    for step, _ in local.train(Silent()):
        if step > state["agent"]["steps"] + 200:
            break
    longer = saved(local.state_dict(), tmp_path)
    assert vocabulary_of(longer)[: len(words)] == words

    other = RaySession(STREET)  # it has read some words already, in another order
    try:
        assert other.vocabulary.words != street.session.vocabulary.words
        other.load_state_dict(longer)
        for step, _ in other.train(Silent()):
            if step > longer["agent"]["steps"] + 200:
                break
        now = vocabulary_of(saved(other.state_dict(), tmp_path))
    finally:
        other.close()
    assert now[: len(vocabulary_of(longer))] == vocabulary_of(longer)
    assert len(now) > len(vocabulary_of(longer))


def test_the_process_of_the_vocabulary_is_replaced_and_nothing_is_lost(street, tmp_path):
    session, member = street.session, street.session.vocabulary.member
    words = vocabulary_of(street.go_on(40, tmp_path))
    life = member.life
    street.until(session.step + 40)  # while words are read
    os.kill(member.whereabouts["pid"], signal.SIGKILL)
    state = street.go_on(600, tmp_path)
    assert member.life > life
    now = vocabulary_of(state)
    assert now[: len(words)] == words
    assert len(now) > len(words)
    assert session.office.lost["steps"] == 0
    assert session.office.lost["counts"] == 0


def test_a_single_worker_with_another_number_of_environments_leaves_a_checkpoint_for_either_engine(small_ray, tmp_path):
    config = dataclasses.replace(STREET, agent="r2d2", ray=RaySettings(workers=1, envs_per_worker=2, **FEW))
    session = RaySession(config)
    try:
        for step, _ in session.train(Silent()):
            if step >= 300:
                break
        state = saved(session.state_dict(), tmp_path)
        local = LocalSession(config)
        assert local.env.num_envs == 4
        local.load_state_dict(state)
        assert not local.agent.actor.was_restored
        assert state["agent"]["space"]["vocabulary"] == vocabulary_of(state) != []
        assert list(local.space.vocabulary)[: len(vocabulary_of(state))] == vocabulary_of(state)
        session.office._events.clear()
        session.load_state_dict(state)
        assert not session.office._events  # its own episodes go on
    finally:
        session.close()


# --- from the command line ------------------------------------------------------------------------------------------


def test_ctrl_c_on_a_ray_run_leaves_a_checkpoint_that_either_engine_resumes(tmp_path):
    """The command starts a Ray of its own, and leaves none behind."""
    run = tmp_path / "run"
    code = """
import dataclasses, pathlib, sys
sys.path.insert(0, sys.argv[2])
from reference.tiny_deep import TINY
from protogoal.run import training
training.train(pathlib.Path(sys.argv[1]), "tiny", dataclasses.replace(TINY, steps=10**7), "ray", {"workers": 1})
"""
    command = [sys.executable, "-c", code, str(run), str(Path(__file__).parents[1])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    steps = ""
    while "ratio" not in steps and process.poll() is None:
        steps = process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # to the whole group, Ray's processes included, as a terminal sends it
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "go on with: protogoal resume" in output
    config = run / "config.json"
    config.write_text(config.read_text().replace('"steps": 10000000', f'"steps": {latest(run) + 200}'))
    assert '"engine": "ray"' in config.read_text()
    assert main(["resume", str(run), "--engine", "local"]) == 0
    assert main(["eval", str(run), "--episodes", "2"]) == 0


def latest(run):
    return max(int(path.name) for path in (run / "checkpoints").glob("[0-9]*"))


# --- parts ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 500), st.dictionaries(st.integers(0, 6), st.integers(0, 10_000), max_size=7))
def test_a_batch_is_divided_among_shards_in_proportion(total, sizes):
    parts = shares(total, sizes)
    whole = sum(sizes.values())
    assert sum(parts.values()) == (total if whole else 0)
    assert all(abs(parts.get(shard, 0) - total * size / whole) < 1 for shard, size in sizes.items() if whole)


def replay_state(size, following, seed):
    rng = np.random.default_rng(seed)
    return {"arrays": {"action": rng.integers(9, size=(size, 3))}, "rarest": rng.integers(5, size=size),
            "turned_on": rng.integers(9, size=6), "next": following, "size": size, "added": size + 4}


def test_replay_divided_and_merged_again_is_the_same():
    state = replay_state(8, 0, seed=1)
    again = merge_replays(split_replay(state, shards=2, capacity=4))
    assert differences(again | {"next": 0}, state) == []


def test_what_agent57_knows_of_its_policies_goes_from_several_workers_to_the_local_engine():
    workers = [Worker(dataclasses.replace(TINY_AGENT57, ray=RaySettings(workers=2)), index, 2) for index in range(2)]
    for worker in workers:
        worker.collect(Published(), Published(), True, 8)
    states = [worker.state() for worker in workers]
    local = LocalSession(TINY_AGENT57).agent.actor
    local.load_state_dict(without_episodes(states))
    assert not local.was_restored
    pulls = np.concatenate([state["bandit"]["pulls"] for state in states])
    assert pulls.sum() > 0
    assert (local.bandit.pulls == pulls).all()
    assert local.bandit.greedy_arm() == best_arm(*sum(worker.actor.bandit.arm_sums() for worker in workers))
    local.load_state_dict(without_episodes(states[:1]))  # of another number of environments: it learns them anew
    assert (local.bandit.pulls == pulls).all()


def test_the_policy_for_the_task_is_the_best_over_all_workers_whoever_reported_last():
    reports = []
    collect = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: (None, None, None)))
    crew = SimpleNamespace(add=lambda *_: SimpleNamespace(is_gone=False, handle=SimpleNamespace(collect=collect)),
                           call=lambda member, what, answer, done, lost: reports.append(done))
    config = dataclasses.replace(TINY_AGENT57, ray=RaySettings(workers=2))
    acting = Acting(SimpleNamespace(config=config, crew=crew, pacing=Pacing(config)), None)
    for worker in (0, 1, 0):
        acting.ask(worker, Published(), Published())
    for done, arms in zip(reports, ([[10, 10], [4, 5]], [[2, 2], [2, 1]], [[10, 10], [1, 5]]), strict=True):
        assert acting.task_policy is None or done is reports[2]
        done(SimpleNamespace(arms=np.array(arms, float)))
    assert acting.task_policy == 1  # (1 + 2)/12 and (5 + 1)/12, though worker 1 alone prefers the first
    acting.members[0].is_gone = True
    assert acting.task_policy == 0


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


def test_replay_is_merged_by_age_and_the_newest_are_kept():
    old_first = [replay_state(4, 2, seed=1), replay_state(4, 0, seed=2)]
    merged = merge_replays(old_first)
    first, second = (state["arrays"]["action"] for state in old_first)
    by_age = [first[2], second[0], first[3], second[1], first[0], second[2], first[1], second[3]]
    assert (merged["arrays"]["action"] == np.stack(by_age)).all()
    newest = split_replay(merged, shards=1, capacity=3)[0]
    assert (newest["arrays"]["action"] == np.stack(by_age[-3:])).all()
    assert (merged["turned_on"] == old_first[0]["turned_on"] + old_first[1]["turned_on"]).all()


def test_evaluations_that_the_evaluator_cannot_play_in_time_are_left_out_and_counted():
    said = []
    crew = SimpleNamespace(add=lambda *_: SimpleNamespace(is_ready=False))
    office = SimpleNamespace(config=TINY, spaces=None, crew=crew, pacing=Pacing(TINY), lost=Counter(), event=said.append)
    evaluating = Evaluating(office)
    for step in range(250, 1750, 250):
        office.pacing.steps = step
        assert evaluating.is_due()
        evaluating.add(2, Published())
    assert [step for step, _, _ in evaluating.queue] == [250, 500, 750, 1000]
    assert office.lost["evaluations"] == 2
    assert len(said) == 1
    assert "4 evaluations behind" in said[0]
    evaluating.queue.pop(0)
    evaluating.add(2, Published())
    assert len(evaluating.queue) == 4


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
