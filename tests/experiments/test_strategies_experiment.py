from dataclasses import replace

import numpy as np
import pytest

from protogoal.config import TabularConfig
from protogoal.experiments import experiment, strategies
from protogoal.experiments.arms import CURVES
from protogoal.experiments.curves import write_csv
from protogoal.goals.desirability import CRITERIA
from protogoal.goals.strategies import STRATEGIES
from protogoal.presets import PRESETS
from protogoal.run.tabular import TabularSession


def test_every_strategy_is_an_arm_of_both_domains():
    assert {name for _, name in strategies.ARMS.values()} == set(STRATEGIES)
    assert {u for u, _ in strategies.ARMS.values()} == set(CRITERIA)
    for comparison in strategies.COMPARISONS.values():
        assert [tuple(arm.fields.values()) for arm in comparison.arms] == list(strategies.ARMS.values())
        assert all(arm.preset in PRESETS for arm in comparison.arms)


@pytest.mark.parametrize(("utility", "strategy"), strategies.ARMS.values())
def test_the_tabular_agent_pursues_goals_with_every_strategy(utility, strategy):
    config = TabularConfig(steps=3_000)
    agent = TabularSession(replace(config, pge=replace(config.pge, desirability=utility, strategy=strategy))).agent
    agent.advance(3_000)
    pursuits = agent.take_pursuits()
    assert agent.compiled_selection == (strategy == "paper")
    assert len(np.unique(pursuits.goal)) > 10
    assert pursuits.success.mean() > 0.2


def test_figures_and_table_are_made_of_the_csv_alone(tmp_path):
    for name, comparison in strategies.COMPARISONS.items():
        rows = [(arm.label, seed, step, 1.0, 10, min(10, step // 100 + k)) for k, arm in enumerate(comparison.arms)
                for seed in range(2) for step in (0, 500, 1000)]
        write_csv(tmp_path / name / "curves.csv", CURVES, rows)
    experiment("strategies").plot(tmp_path)
    strategies.describe(tmp_path)
    assert (tmp_path / "taxi" / "learning.png").stat().st_size > 1000
    assert (tmp_path / "baba-small" / "learning.png").exists()
    table = (tmp_path / "README.md").read_text()
    assert "| [taxi](taxi/README.md) | uniform | 2 | 1,000 | 1.00 | 0.16–1.00 | 0.35 | 0.06–0.90 |" in table
    assert table.count("\n| [") == 8
