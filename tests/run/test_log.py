"""Figures of the last seconds: every ten of them, by the clock, into the run's metrics."""

import dataclasses
import time

import numpy as np
import pytest
from reference.tiny_deep import TINY, steps_of

from protogoal.record.events import Recorder
from protogoal.run import log
from protogoal.run.local import LocalSession


class Clock:
    """The module `time`, but for a clock that stands still until it is moved."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def perf_counter(self):
        return self.now

    def __getattr__(self, name):
        return getattr(time, name)


def test_what_is_under_way_counts_up_to_the_report_and_from_there_to_the_next(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(log, "time", clock)
    run = log.RunLog()
    with run.timing("loop"):
        clock.now += 8.0
        with run.timing("evaluate"):
            clock.now += 2.0
        first = run.metrics(500)
        clock.now += 3.0
    with run.timing("loop"):
        clock.now += 2.0
        second = run.metrics(600)
    assert (first["steps_per_second"], first["time/evaluate"]) == pytest.approx((50.0, 0.2))
    assert second["steps_per_second"] == pytest.approx(20.0)
    assert "time/evaluate" not in second


class Curves(Recorder):
    def __init__(self):
        self.points = []
        self.values = []

    def metrics(self, step, values):
        self.points += [(step, name) for name in values]
        self.values.append((step, values))


def test_every_ten_seconds_there_are_the_figures_of_these_seconds(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(log, "time", clock)
    run = log.RunLog()
    run.acted(np.array([1.0, 0.0]), np.array([1, 0]))
    run.learned({"loss": 6.0}, 3)
    clock.now += 9.9
    assert run.recent(500) == {}
    clock.now += 0.1
    assert run.recent(600) == pytest.approx({"recent/return": 0.5, "recent/wins": 0.5, "recent/loss": 2.0, "recent/pursuits": 0.0,
                                             "recent/updates_per_second": 0.3})
    assert run.recent(600) == {}  # they begin anew
    clock.now += 20.0
    assert run.recent(1000) == pytest.approx({"recent/pursuits": 0.0, "recent/updates_per_second": 0.0,
                                              "recent/steps_per_second": 20.0})


def test_a_run_records_them(monkeypatch):
    clock, curves = Clock(), Curves()
    monkeypatch.setattr(log, "time", clock)
    told = []
    for step in steps_of(LocalSession(dataclasses.replace(TINY, threads=1, steps=600)), curves):
        recent = {at for at, name in curves.points if name == "recent/updates_per_second"}
        told.append((clock.now, len(recent)))
        clock.now += 4.0
        assert max(recent, default=0) <= step
    assert told[-1][1] == (len(told) - 1) // 3  # four seconds a turn: every third turn
    assert {"recent/return", "recent/steps_per_second", "recent/pursuit_success"} <= {name for _, name in curves.points}


def test_the_parts_of_the_loop_are_no_more_than_all_of_it_at_every_report():
    curves = Curves()
    for _ in steps_of(LocalSession(dataclasses.replace(TINY, threads=1, steps=600)), curves):
        pass
    parts = ("act", "learn", "remember", "pge", "evaluate")
    shares = {step: sum(values.get(f"time/{part}", 0.0) for part in parts) for step, values in curves.values
              if "time/evaluate" in values}
    assert sorted(shares)[-1] == 600
    assert len(shares) == 3
    assert all(0.0 < share <= 1.0 for share in shares.values())
