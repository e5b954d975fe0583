"""The Ray engine on real Ray: two nodes on this machine, processes killed by signal."""

import dataclasses
import os
import signal
import sqlite3
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reference.tiny_deep import TINY, TINY_AGENT57, differences, steps_of

ray = pytest.importorskip("ray")

from protogoal.config import RaySettings  # noqa: E402
from protogoal.record.store import Store  # noqa: E402
from protogoal.registry import AGENTS  # noqa: E402
from protogoal.run import checkpoint, training  # noqa: E402
from protogoal.run.directory import RunDirectory  # noqa: E402
from protogoal.run.local import LocalSession  # noqa: E402
from protogoal.run.ray.session import RaySession  # noqa: E402
from protogoal.run.ray.shard import ADDS_AHEAD  # noqa: E402
from protogoal.run.ray.worker import WorkerClient  # noqa: E402

PATIENCE = 600.0  # seconds for anything that is waited for
CPUS = {f"{role}_cpus": 0.25 for role in ("worker", "learner", "shard", "pge", "player")}
LOCKSTEP = RaySettings(workers=1, synchronous=True, prefetch=0, **CPUS)
FREE = RaySettings(workers=2, shards=2, backup_seconds=0.2, answer_seconds=300.0, updates_per_call=4, backlog=2_000, **CPUS)


@pytest.fixture(scope="module")
def cluster():
    """A head that fills to one half before roles go to the second node, and then has room for all of them."""
    from ray.cluster_utils import Cluster

    os.environ |= {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    quick = {"health_check_period_ms": 1000, "health_check_failure_threshold": 10}  # a busy machine is not a dead one
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False, "_system_config": quick})
    second = cluster.add_node(num_cpus=4)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield SimpleNamespace(cluster=cluster, second=second)
    ray.shutdown()
    cluster.shutdown()


def run(session, until=None):
    """Trains until a condition holds, or to the end."""
    deadline = time.monotonic() + PATIENCE
    for _ in steps_of(session):
        if until is not None and until():
            return
        assert time.monotonic() < deadline, "nothing happened"


def saved(state):
    """A state as it comes back from disk."""
    with tempfile.TemporaryDirectory() as folder:
        return checkpoint.load(checkpoint.save(Path(folder), 1, state))[1]


def without_clock(state):
    state = {key: value for key, value in state.items() if key != "ray"}
    sums = ("seconds", "cpu_seconds", "figures", "facts")  # by call
    log = {key: value for key, value in state["log"].items() if key not in sums}
    return state | {"log": log}


# --- lockstep: the local engine's run, to the bit -------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole():
    """All segments of a local run are kept; so is its state half way."""
    config = dataclasses.replace(TINY, replay=dataclasses.replace(TINY.replay, capacity=2000), ray=LOCKSTEP, steps=800)
    session = LocalSession(config)
    run(session, until=lambda: session.step >= 400)
    half = saved(session.state_dict())
    run(session)
    return SimpleNamespace(config=config, half=half, end=session.state_dict())


@pytest.fixture(scope="module")
def lockstep(cluster, whole):
    session = RaySession(whole.config)
    yield session
    session.close()


def test_in_lockstep_with_one_worker_the_segments_and_all_else_equal_the_local_engines(lockstep, whole):
    run(lockstep)
    state = without_clock(lockstep.state_dict())
    assert differences(state["agent"]["replay"], whole.end["agent"]["replay"]) == []  # every segment ever made
    ours, theirs = (each["agent"]["evaluator"] for each in (state, whole.end))
    for part in ("table", "trials", "practice", "tested", "verdict", "slots", "goal_set"):  # both judge alike
        assert differences({part: ours[part]}, {part: theirs[part]}) == []
    assert len(ours["trials"]["bits"]) > 10
    assert len(set(ours["verdict"].tolist())) > 2
    assert ours["goal_set"]["version"] > 2
    assert differences(state, without_clock(whole.end)) == []


def test_what_one_engine_began_the_other_goes_on_with_to_the_bit(lockstep, whole):
    lockstep.load_state_dict(whole.half)
    assert lockstep.step == whole.half["agent"]["steps"]
    run(lockstep, until=lambda: lockstep.step >= 600)
    local = LocalSession(whole.config)
    local.load_state_dict(saved(lockstep.state_dict()))
    run(local)
    assert differences(without_clock(local.state_dict()), without_clock(whole.end)) == []


def test_a_checkpoint_of_another_network_is_refused_in_one_line(lockstep, whole, tmp_path):
    """The last of the lockstep session: it cannot be used after this."""
    learner = whole.half["agent"]["learner"]
    wider = {name: np.repeat(array, 2, axis=0) for name, array in learner["network"].items()}
    other = whole.half | {"agent": whole.half["agent"] | {"learner": learner | {"network": wider}}}
    run = RunDirectory.create(tmp_path / "run", "tiny", whole.config)
    with pytest.raises(ValueError, match=r"^the checkpoint in .* does not fit this run: learner: .*shape") as refused:
        training.load_state(lockstep, other, run)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("agent", [name for name in AGENTS if name != "protogoal"])
def test_every_other_agent_in_lockstep_is_the_local_engines_too(cluster, agent):
    tiny = TINY_AGENT57 if agent == TINY_AGENT57.agent else dataclasses.replace(TINY, env=TINY_AGENT57.env).with_agent(agent)
    config = dataclasses.replace(tiny, ray=LOCKSTEP, steps=500)  # an evaluation would be due at the end: there is the last alone
    local, session = LocalSession(config), RaySession(config)
    run(local)
    run(session)
    state = without_clock(session.state_dict())
    session.close()
    assert int(state["agent"]["learner"]["updates"]) > 3
    assert differences(state, without_clock(local.state_dict())) == []


# --- asynchronous, with faults --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def free(cluster, tmp_path_factory):
    """A run that goes on while tests kill parts of it."""
    path = tmp_path_factory.mktemp("free") / "run.db"
    config = dataclasses.replace(TINY, ray=FREE, steps=10_000_000, evaluation=dataclasses.replace(TINY.evaluation, every=400))
    session = RaySession(config)
    store = Store.create(path)
    training = steps_of(session, store)

    def until(condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            next(training)
            assert time.monotonic() < deadline, "nothing happened"

    def events():
        store.flush()
        with sqlite3.connect(path) as database:
            return [text for (text,) in database.execute("SELECT text FROM events ORDER BY rowid")]

    def kill(process):
        """Kills a role's process; trains until it is replaced, works again, and the run has gone on."""
        life = process.life
        os.kill(process.whereabouts["pid"], signal.SIGKILL)
        until(lambda: process.life > life and process.is_ready)
        step, updates = session.step, session.context.pacing.updates
        until(lambda: session.step > step + 200 and session.context.pacing.updates > updates)
        return next(text for text in reversed(events()) if "died" in text)

    until(lambda: session.context.pacing.updates > 20)
    yield SimpleNamespace(session=session, until=until, kill=kill, events=events, path=path, config=config, context=session.context)
    session.close()
    store.close()


def test_the_roles_live_on_two_nodes(free):
    assert len({process.whereabouts["node"] for process in free.context.supervisor.processes}) == 2


def test_the_ratio_of_learning_to_acting_is_held(free):
    start = free.session.step
    free.until(lambda: free.session.step > start + 2000)
    pacing = free.context.pacing
    per_update = free.config.learner.batch_size * free.config.replay.trace_length
    behind = (pacing.steps - pacing.forgiven - free.config.learner.min_replay) / per_update - pacing.updates
    slack = free.config.ray.max_lag + 2 * free.config.ray.calls_ahead * free.session.workers.steps_per_call / per_update
    assert -1 <= behind <= slack


@pytest.mark.parametrize("role", ["learner", "proto-goal evaluator", "replay shard 1"])
def test_acting_waits_for_a_role_that_does_not_keep_up_and_nothing_piles_up(free, role):
    session, supervisor, ray_settings = free.session, free.context.supervisor, free.config.ray
    process = next(process for process in supervisor.processes if process.name == role)

    def acting():
        return sum(supervisor.waiting(worker, "collect") for worker in session.workers.processes)

    os.kill(process.whereabouts["pid"], signal.SIGSTOP)  # it lives, and answers nothing
    try:
        free.until(lambda: session.workers.held is not None and not acting())
        on_their_way = ray_settings.workers * ray_settings.calls_ahead
        assert all(supervisor.waiting(shard, "add") <= ADDS_AHEAD + on_their_way for shard in session.replay.processes)
        assert session.pge.uncounted <= ray_settings.backlog + on_their_way * session.workers.steps_per_call
        step = session.step
    finally:
        os.kill(process.whereabouts["pid"], signal.SIGCONT)
    free.until(lambda: session.step > step + 200)


def test_a_killed_worker_is_replaced_and_the_steps_it_was_making_are_counted_as_lost(free):
    acting: WorkerClient = free.session.workers
    before = free.context.lost["steps"]
    said = free.kill(acting.processes[1])
    lost = free.context.lost["steps"] - before
    assert 0 < lost <= free.config.ray.calls_ahead * acting.steps_per_call
    assert said.startswith("worker 1 died")
    assert f"up to {lost:,} steps" in said


def test_a_killed_proto_goal_evaluator_goes_on_from_its_last_refresh_and_counts_the_rest_again(free):
    judging = free.session.pge
    free.until(lambda: judging.goals.version > 1)
    ids = judging.mirror.table.member_array.copy()
    said = free.kill(judging.process)
    assert said.startswith("proto-goal evaluator died")
    assert "counted again, none lost" in said
    assert (judging.mirror.table.member_array[: len(ids)] == ids).all()  # no goal changed its id
    state = free.session.state_dict()
    assert int(state["agent"]["evaluator"]["table"]["transitions"]) == free.session.step  # each transition counted once


def test_a_killed_player_plays_its_evaluations_again(free):
    said = free.kill(free.session.player.process)
    assert said.startswith("player died")
    due = free.session.player.next_step
    free.until(lambda: free.session.player.next_step > due and not free.session.player.queue)
    with sqlite3.connect(free.path) as database:
        steps = [step for (step,) in database.execute("SELECT step FROM evaluations ORDER BY step")]
    assert len(steps) == len(set(steps)) > 1


def test_a_killed_replay_shard_loses_its_part_of_replay_and_no_more(free):
    memory = free.session.replay
    free.until(lambda: memory.transitions == free.config.replay.capacity)
    before = free.context.lost["transitions"]
    said = free.kill(memory.processes[0])
    lost = free.context.lost["transitions"] - before
    assert free.config.replay.capacity / 2 <= lost <= free.config.replay.capacity / 2 + 9 * free.session.workers.steps_per_call
    assert said.startswith("replay shard 0 died")
    assert f"{lost:,} transitions lost" in said
    free.until(lambda: memory.transitions == free.config.replay.capacity)


def test_a_killed_learner_goes_on_from_its_last_copy(free):
    before = free.context.lost["updates"]
    said = free.kill(free.session.learner.process)
    lost = free.context.lost["updates"] - before
    assert said.startswith("learner died")
    assert f"the last {lost:,} updates lost" in said
    assert lost < free.context.pacing.updates


def test_a_saved_run_with_two_workers_and_two_shards_can_be_loaded_by_either_engine(free):
    state = saved(free.session.state_dict())
    assert len(state["ray"]["workers"]) == 2
    assert int(state["agent"]["replay"]["size"]) * free.config.replay.trace_length == free.config.replay.capacity
    local = LocalSession(free.config)
    local.load_state_dict(state)
    assert local.step == free.session.step
    run(local, until=lambda: local.step > free.session.step + 100)
    goals = free.session.pge.goals.version
    free.session.load_state_dict(state)
    assert "could not be restored" not in free.events()[-1]
    free.until(lambda: free.session.step > state["agent"]["steps"] + 400 and free.session.pge.goals.version > goals + 1)


def test_a_lost_machine_takes_its_roles_along_and_the_run_goes_on_without_it(free, cluster):
    """The last test: the second node is gone after it."""
    there = [m for m in free.context.supervisor.processes if m.whereabouts["node"] == cluster.second.node_id]
    lives = {process.name: process.life for process in there}
    cluster.cluster.remove_node(cluster.second)
    free.until(lambda: all(m.life > lives[m.name] and m.is_ready for m in there))
    step, updates = free.session.step, free.context.pacing.updates
    free.until(lambda: free.session.step > step + 400 and free.context.pacing.updates > updates)
    assert len({process.whereabouts["node"] for process in free.context.supervisor.processes}) == 1
    free.session.state_dict()
