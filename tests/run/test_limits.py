"""What a run takes is known before it is used, part by part."""

from dataclasses import replace

import pytest
from reference.tiny_deep import TINY

from protogoal.agents.blueprint import EnvSpaces
from protogoal.deep.replay import replay_bytes
from protogoal.deep.segments import Sizes
from protogoal.domains.domain import make_batch_env
from protogoal.goals.evaluator import evaluator_bytes
from protogoal.run import limits
from protogoal.run.local import LocalSession


@pytest.fixture
def spaces():
    env, _ = make_batch_env(TINY.env, 2)
    return EnvSpaces.of(env)


def test_every_part_is_counted_and_follows_its_setting(spaces):
    session = LocalSession(TINY)
    parts = {part.name: part.size for part in limits.memory_parts(TINY, spaces)}
    assert set(parts) == {"program", "replay", "networks", "goals", "trials", "workers"}
    assert parts["networks"] == 7 * 4 * sum(weight.numel() for weight in session.agent.network.parameters())
    table = session.agent.evaluator.table
    assert parts["goals"] > table.size * table.row_bytes(TINY.pge.max_members)
    session.close()
    vast = replace(spaces, num_bits=10 * spaces.num_bits)
    more = {part.name: part.size for part in limits.memory_parts(TINY, vast)}
    assert more["trials"] == pytest.approx(10 * parts["trials"], rel=0.1)


def test_a_run_that_does_not_fit_is_refused_with_its_sum_its_largest_parts_and_what_fits(spaces, monkeypatch):
    monkeypatch.setattr(limits, "memory_bytes", lambda: 2_000_000_000)
    limits.check_memory(TINY, spaces)
    large = replace(TINY, replay=replace(TINY.replay, capacity=10**9))
    words = (r"needs .* GB, this machine has 2.0 GB; the largest parts are replay .* \(replay.capacity = 1,000,000,000\), .*; "
             r"at most replay.capacity = [\d,]+ fits")
    with pytest.raises(ValueError, match=words) as caught:
        limits.check_memory(large, spaces)
    fits = int(str(caught.value).split("replay.capacity = ")[-1].split(" ")[0].replace(",", ""))
    limits.check_memory(replace(TINY, replay=replace(TINY.replay, capacity=fits - 1_000)), spaces)
    many = replace(TINY, pge=replace(TINY.pge, max_goals=10_000_000))
    words = r"largest parts are goals .* GB \(pge.max_goals = 10,000,000\), .*; at most pge.max_goals = [\d,]+ fits"
    with pytest.raises(ValueError, match=words) as caught:
        limits.check_memory(many, spaces)
    fits = int(str(caught.value).split("pge.max_goals = ")[-1].split(" ")[0].replace(",", ""))
    limits.check_memory(replace(many, pge=replace(many.pge, max_goals=fits - 1_000)), spaces)
    with pytest.raises(ValueError, match=r"largest parts are trials .*fewer proto-goals"):
        limits.check_memory(TINY, replace(spaces, num_bits=10_000_000))


def test_where_the_system_does_not_tell_nothing_is_refused(spaces, monkeypatch):
    monkeypatch.setattr(limits, "memory_bytes", lambda: None)
    limits.check_memory(replace(TINY, replay=replace(TINY.replay, capacity=10**9)), spaces)
    assert limits.widest_lists(TINY, spaces, limits.room_for_replay(TINY, spaces)) == spaces.num_bits


def test_lists_may_grow_to_what_memory_holds(spaces):
    def size(width):
        return replay_bytes(Sizes(spaces.observation_spec, spaces.num_bits, width, (2, TINY.network.hidden)), TINY.replay)

    most = spaces.max_active + 7
    assert limits.widest_lists(TINY, spaces, size(0) + 2 * (size(most) - size(0))) == most
    assert limits.widest_lists(TINY, spaces, 0.0) == spaces.max_active
    assert limits.widest_lists(TINY, spaces, 1e15) == spaces.num_bits


def test_an_evaluator_of_more_bits_takes_more():
    small, large = (evaluator_bytes(bits, 5, TINY.pge) for bits in (1_000, 1_000_000))
    assert large["goals"] + large["trials"] < 2e9
    assert large["trials"] > 100 * small["trials"]


def test_on_ray_every_process_is_counted(spaces):
    alone = {part.name: part.size for part in limits.memory_parts(TINY, spaces)}
    config = replace(TINY, ray=replace(TINY.ray, workers=3, shards=2))
    roles = {part.name: part for part in limits.role_parts(config, spaces)}
    assert {name: part.times for name, part in roles.items()} == {
        "replay shard": 2, "learner": 1, "proto-goal evaluator": 1, "player": 1, "worker": 3}
    assert roles["replay shard"].size == limits.ROLE + alone["replay"] // 2
    assert roles["proto-goal evaluator"].size == limits.ROLE + alone["goals"] + alone["trials"]
    assert roles["learner"].size == limits.ROLE + 6 * alone["networks"] // 7
    whole = sum(part.size * part.times for part in roles.values())
    limits.check_cluster(config, spaces, [1.2 * whole])
    with pytest.raises(ValueError, match=r"the run needs .* GB, the cluster has .* GB; the largest parts are worker 3 × 0.3 GB, "):
        limits.check_cluster(config, spaces, [whole / 3, whole / 2])
    with pytest.raises(ValueError, match=r"one process does not fit: proto-goal evaluator .* GB, the largest machine"):
        limits.check_cluster(config, replace(spaces, num_bits=10_000_000), [4e9] * 10)
