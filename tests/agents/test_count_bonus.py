"""Count bonus: what a bit is worth that turns on, by hand and against a slow version; workers count together."""

import itertools
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from reference.tiny_deep import TINY

from protogoal.agents.bonus import INTRINSIC
from protogoal.agents.count_bonus import BitCounts
from protogoal.config import RaySettings
from protogoal.domains.deep_sea import DeepSeaSettings
from protogoal.envs.vector import BatchStep
from protogoal.run.local import LocalSession
from protogoal.run.ray.pacing import Pacing
from protogoal.run.ray.supervisor import Published
from protogoal.run.ray.worker import Worker, WorkerClient


def step(final, active=None):
    final = np.array(final, np.int16)
    n = len(final)
    active = final if active is None else np.array(active, np.int16)
    return BatchStep({}, active, {}, final, np.zeros(n, np.float32), np.zeros(n, bool), np.zeros(n, bool))


def test_a_bit_pays_one_over_the_root_of_the_times_it_turned_on():
    counts = BitCounts(4, scale=1.0)
    counts.active = np.array([[0, -1], [-1, -1]])
    assert counts.paid(step([[0, 1], [1, -1]])) == pytest.approx([2**-0.5, 2**-0.5])  # both turn 1 on, bit 0 was on before
    assert counts.paid(step([[0, 1], [2, 1]])) == pytest.approx([0.0, 1.0])  # what stays on pays nothing
    assert counts.paid(step([[3, -1], [-1, -1]], [[0, 1], [-1, -1]])) == pytest.approx([1.0, 0.0])  # a reset follows
    assert counts.paid(step([[1, -1], [1, -1]])) == pytest.approx([0.0, 3**-0.5])  # it began with bit 1
    assert counts.own.tolist() == [0, 3, 1, 1]


def test_what_other_workers_counted_makes_a_bit_common_here_too():
    counts = BitCounts(2, scale=0.5)
    counts.others = np.array([0, 3])
    counts.active = np.array([[-1]])
    assert counts.paid(step([[1]])) == pytest.approx([0.25])
    assert counts.own.tolist() == [0, 1]  # others' counts are not counted again


def test_the_bonus_of_random_play_is_a_slow_counters():
    rng = np.random.default_rng(0)
    counts, slow, before = BitCounts(9, 1.0), dict.fromkeys(range(9), 0), np.full((3, 4), -1)
    counts.active = before
    for _ in range(40):
        final = np.stack([np.append(np.sort(rng.choice(9, 3, replace=False)), -1) for _ in range(3)])
        on = [[b for b in final[i] if b >= 0 and b not in before[i]] for i in range(3)]
        for bit in itertools.chain(*on):
            slow[int(bit)] += 1
        assert counts.paid(step(final)) == pytest.approx([sum(slow[int(b)] ** -0.5 for b in bits) for bits in on])
        before = final


def counting(**ray):
    return TINY.__class__(**{f: getattr(TINY, f) for f in ("network", "actor", "replay", "learner", "pge", "evaluation")},
                          env=DeepSeaSettings(size=6), steps=600, ray=RaySettings(**ray)).with_agent("count-bonus")


def test_a_worker_is_paid_less_for_what_another_has_counted():
    config = counting()
    _, _, first = Worker(config, 0, 2).collect(Published(), Published(), None, True, 4)
    told, alone = (Worker(config, 1, 2).collect(Published(), Published(), others, True, 4) for others in (first.shared, None))
    assert told[2].shared.tolist() == alone[2].shared.tolist()  # the same play, and only its own counts
    assert (first.shared * alone[2].shared).any()
    paid, full = (segments.observation[INTRINSIC] for segments, _, _ in (told, alone))
    assert (paid <= full).all()
    assert (paid[full > 0] < full[full > 0]).any()  # a bit that the first has counted is worth less to the second
    assert LocalSession(config).agent.buffers(first.shared + told[2].shared) == {}  # nothing of it is played with


class Workers:
    """A client whose workers live in this process; `told` is what each was last told that the others have counted."""

    def __init__(self, number):
        self.config = counting(workers=number, envs_per_worker=2, windows_per_call=4)
        self.processes, self.deaths, self.told = [], [], {}
        self.supervisor = SimpleNamespace(
            add=self.add, settle=lambda: None, call=lambda process, what, answer, done=lambda _: None, lost=None: done(answer))
        context = SimpleNamespace(config=self.config, supervisor=self.supervisor, pacing=Pacing(self.config), missing=Counter(),
                                  lost=Counter(), event=lambda text: None)
        self.client = WorkerClient(context, None, None)

    def add(self, name, start, died, gone):
        index = len(self.processes)
        self.processes.append(SimpleNamespace(is_gone=False))
        self.deaths.append(died)
        self.begin(index, 0)
        return self.processes[index]

    def begin(self, index, life):
        worker = Worker(self.config, index, 2, life)

        def collect(weights, goals, others, *more):
            self.told[index] = others
            return worker.collect(weights, goals, others, *more)

        here = {name: SimpleNamespace(remote=getattr(worker, name)) for name in ("load", "begin_afresh", "shared")}
        self.processes[index].handle = SimpleNamespace(
            **here, collect=SimpleNamespace(options=lambda **_: SimpleNamespace(remote=collect)))
        self.processes[index].worker = worker

    def act(self, index):
        self.client.ask(index, Published(), Published())

    def states(self):
        return [process.worker.state() for process in self.processes]

    def counts(self):
        return [process.worker.shared() for process in self.processes]


def test_a_worker_in_place_of_a_lost_one_goes_on_with_what_was_last_known_of_its_counts():
    workers = Workers(2)
    workers.act(0)
    workers.act(1)
    known = workers.counts()[1]
    assert known.any()
    workers.begin(1, 1)
    assert not workers.counts()[1].any()
    workers.deaths[1]("killed")
    assert workers.counts()[1].tolist() == known.tolist()


@pytest.mark.parametrize("number", [2, 3])
def test_after_a_resume_every_worker_knows_at_once_what_all_have_counted(number):
    before = Workers(2)
    before.act(0)
    before.act(1)
    total = np.sum(before.counts(), axis=0)
    after = Workers(number)
    after.client.load(before.states())
    own = after.counts()
    for index in reversed(range(number)):
        after.act(index)
        if index == number - 1:  # nobody has acted yet
            assert (after.told[index] + own[index]).tolist() == total.tolist()
    assert (after.told[0] >= np.sum(own[1:], axis=0)).all()
