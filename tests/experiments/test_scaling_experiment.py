import pytest
from reference.tiny_deep import TINY

pytest.importorskip("ray")

from protogoal.agents.counting import count
from protogoal.experiments import scaling, scaling_figures, scaling_load, scaling_parts
from protogoal.experiments.curves import write_csv
from protogoal.run.ray.supervisor import Published


@pytest.fixture(scope="module")
def windows():
    return scaling_load.record(TINY, num_envs=4, windows=3)


def test_a_simulated_worker_repeats_what_was_recorded_at_its_rate(windows, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(scaling_load.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(scaling_load.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    worker = scaling_load.SimulatedWorker(windows, rate=200.0)  # 20 steps a window
    made = [worker.collect(Published(), Published(), None, False, 1) for _ in range(6)]
    assert made[4][0] is windows[1][0]
    assert now[0] == pytest.approx(100.0 + 6 * 20 / 200)


def test_a_crowded_table_holds_the_goals_asked_for_and_counts_them(windows):
    evaluator = scaling_load.crowded(TINY, windows, conjunctions=20)
    assert evaluator.table.size == evaluator.num_bits + 20
    before = evaluator.table.count.sum()
    count(evaluator, windows[0][1])
    assert evaluator.table.count.sum() > before


def test_every_component_is_measured(windows):
    parts = scaling_parts.Parts(TINY, conjunctions=10)
    alone = scaling_parts.components(parts, least=0.001)
    assert set(alone) == {"act", "environment", "count", "insert", "sample", "update", "refresh", "goal set", "weights"}
    assert all(seconds > 0 for seconds in alone.values())
    assert all(size > 0 for size in scaling_parts.sizes(parts).values())


def test_figures_and_words_follow_from_the_csv_alone(tmp_path):
    rates = (1_000, 2_000)
    load = [(rate, rate * 0.99, name, rate * cost) for rate in rates
            for name, cost in (("session", 1e-5), ("learner", 2e-5), ("workers", 1e-6))]
    write_csv(tmp_path / "load.csv", scaling.LOAD, load)
    write_csv(tmp_path / "kept.csv", scaling.KEPT, [(rate, rate * 0.99, 0.0, 0.0, 0.1, 3, 3.2, 500) for rate in rates])
    write_csv(tmp_path / "components.csv", scaling.ALONE, [("act", 1e-4), ("update", 0.64)])
    write_csv(tmp_path / "sizes.csv", scaling.SIZES, [("weights", 17e6)])
    speed = [("local", 0, "session", 1000, 2.0, 3.0), ("ray", 0, "session", 1000, 4.0, 1.0), ("ray", 0, "learner", 1000, 4.0, 5.0)]
    write_csv(tmp_path / "speed.csv", scaling.SPEED, speed)
    soak = [("ray", 5.0 * i, 100 * i, name, 100.0, 0.1 * i) for i in range(1, 50) for name in ("session", "workers", "workers")]
    write_csv(tmp_path / "soak.csv", scaling.SOAK, soak)
    costly = ["learning, one core", "acting, one core", "learner, without computing", "session"]
    assert list(scaling_figures.costs(tmp_path)) == costly
    assert scaling_figures.costs(tmp_path)["session"] == pytest.approx(1e-5 / 0.99)
    assert [row[1:] for row in scaling_figures.growth(tmp_path)] == [("session", 100.0, 100.0), ("workers", 200.0, 200.0)]
    scaling.plot(tmp_path)
    scaling.describe(tmp_path, "cpu")
    assert {"load.png", "soak.png", "README.md"} <= {path.name for path in tmp_path.iterdir()}
    words = (tmp_path / "README.md").read_text()
    assert "| learner, without computing | 20.2 | 49,500 |" in words
    assert "| ray | 250 | 6.0 |" in words
    assert "0.50 of the steps a second at 2.00 times the CPU time" in words


def test_processes_of_ray_are_told_apart():
    assert scaling.role_of(["ray::Worker.collect()"]) == "workers"
    assert scaling.role_of(["ray::PGERole"]) == "proto-goal evaluator"
    assert scaling.role_of(["ray::IDLE"]) == ""
    assert scaling.role_of(["bash"]) == ""
