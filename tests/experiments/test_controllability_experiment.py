"""The controllability experiment: its score, its data, its files, and that figures come from the CSV alone."""

import numpy as np
import pytest

from protogoal.envs.controllability import DOMAINS, make_dynamics
from protogoal.experiments import controllability
from protogoal.experiments.controllability_data import collect, random_policy, train
from protogoal.experiments.curves import read_csv


def test_f1_is_that_of_the_textbook():
    truth = np.array([True, True, True, False, False])
    called = np.array([True, True, False, True, False])
    assert controllability.f1_score(called, truth) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert controllability.f1_score(truth, truth) == 1
    assert controllability.f1_score(~truth, truth) == 0
    assert controllability.f1_score(np.zeros(2, bool), np.zeros(2, bool)) == 1


def test_seeds_that_agree_have_no_interval_and_others_have_students():
    assert controllability.in_words(np.ones(20)) == "1.00, all 20 seeds"
    assert controllability.in_words(np.array([0.5, 0.7])) == "0.600 (0.000–1.000)"  # 12.7 standard errors of 0.1, cut at 0 and 1
    low, high = controllability.interval(np.array([0.4, 0.5, 0.6]))
    assert (low, high) == pytest.approx((0.5 - 4.303 * 0.1 / 3**0.5, 0.5 + 4.303 * 0.1 / 3**0.5), abs=1e-3)


@pytest.mark.parametrize("domain", ["static", "distractor", "delayed"])
def test_the_data_is_one_trajectory_an_episode(domain):
    dynamics = make_dynamics(domain)
    experience = collect(dynamics, random_policy(dynamics), 3, np.random.default_rng(1))
    for episode in range(3):
        rows = experience.rows_of(episode, episode + 1)
        assert (experience.episode[rows] == episode).all()
        np.testing.assert_array_equal(experience.before[rows][1:], experience.after[rows][:-1])
        assert not experience.terminated[rows][:-1].any()
    np.testing.assert_allclose(experience.probability, 1 / dynamics.num_actions)


@pytest.mark.parametrize("place", [0, -1])  # a cell; the last goal: a passenger's place, a cell or the lamp
@pytest.mark.parametrize("domain", ["static", "weather", "weak", "delayed"])
def test_the_trained_policy_attains_a_goal_more_often_than_a_random_one(domain, place):
    dynamics = make_dynamics(domain)
    policies = train(dynamics, np.random.default_rng(0)), random_policy(dynamics)
    goal = np.full(200, np.arange(len(policies[0].goals))[place])
    often = []
    for policy in policies:
        rng = np.random.default_rng(3)
        state, attained = dynamics.start(200, rng), 0
        for _ in range(20):
            mu = policy.probability(dynamics.table_state(state), goal)
            state, _ = dynamics.step(state, (rng.random((200, 1)) > mu.cumsum(1)[:, :-1]).sum(1), rng)
            attained += int(dynamics.observe(state)[:, policy.goals[place]].sum())
        often.append(attained)
    assert often[0] > 1.4 * often[1]


@pytest.mark.parametrize("policy", controllability.POLICIES)
@pytest.mark.parametrize("domain", ["timer", "weather", "delayed"])
def test_trials_tell_what_can_be_controlled_where_lspi_does_not(domain, policy):
    rows = controllability.judge(domain, policy, 103, (50,)).f1
    score = {(row[3], row[4]): row[8] for row in rows}
    assert score["trials", "all"] >= 0.95
    assert score["lspi", "1024"] < score["trials", "all"]


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(controllability, "judge_all", lambda jobs: (controllability.judge(*job) for job in jobs))


def test_it_writes_csv_figures_and_a_readme_and_draws_again_from_the_csv(in_this_process, tmp_path, capsys):
    out = tmp_path / "controllability"
    controllability.run("smoke", 1, out)
    rows = read_csv(out / "f1.csv")
    assert {(r["domain"], r["policy"], r["evidence"]) for r in rows} == {
        (d, p, e) for d in DOMAINS for p in ("random", "trained") for e in ("trials", "lspi")
    }
    assert all(0 <= float(r["f1"]) <= 1 for r in rows)
    seen = {(r["domain"], r["policy"]): int(r["observed"]) for r in rows if r["episodes"] == "5"}
    assert sum(int(r["bits"]) for r in read_csv(out / "verdicts.csv")) == sum(seen.values())
    figures = [out / name for name in ("f1.png", "values.png")]
    assert all(figure.read_bytes().startswith(b"\x89PNG") for figure in figures)
    readme = (out / "README.md").read_text()
    assert "protogoal reproduce controllability --scale smoke --seeds 1" in readme
    assert "| television | trained |" in capsys.readouterr().out
    for figure in figures:
        figure.unlink()
    controllability.plot(out)
    assert all(figure.exists() for figure in figures)


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(in_this_process, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write to"):
        controllability.run("smoke", 1, tmp_path / "file" / "below")
