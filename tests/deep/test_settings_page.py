"""One set of settings for all domains; docs/settings.md has every field in which it differs from the paper's, with both values."""

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from protogoal.domains.default import DEFAULT
from protogoal.domains.user_env import own_environment
from protogoal.presets import PRESETS, at_paper_scale

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
OWN = own_environment("a:b", "a:b")
TASKS = {name: config for name, config in PRESETS.items() if not config.has_paper_settings} | {"own": OWN}
ELSEWHERE = ("env.", "ray.", "exploration.", "agent", "seed", "threads")
MAY_DIFFER = {"steps", "actor.num_envs", "evaluation.every", "evaluation.episodes"}


def leaves(config, prefix=""):
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            yield from leaves(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, value


def words(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def said():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[1:-1] for cells in rows}


def departures(configs, names):
    values = [dict(leaves(config)) for config in configs]
    rows = {name: [words(column[name]) for column in values] for name in values[0] if names(name)}
    return {name: row for name, row in rows.items() if len(set(row)) > 1}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_preset_differs_from_the_default_in_nothing_that_one_would_have_to_find(name):
    config = TASKS[name]
    of_agent = {"network.rank", "network.goal_hidden"} if config.agent == "agent57" else set()
    differs = departures([DEFAULT, config], lambda field: not field.startswith(ELSEWHERE))
    assert set(differs) <= MAY_DIFFER | of_agent


def test_every_departure_from_the_papers_settings_is_in_the_table():
    true = departures([at_paper_scale(OWN), OWN], lambda name: not name.startswith(ELSEWHERE))
    assert {name: row for name, row in said().items() if not name.startswith("exploration.")} == true


def test_so_is_every_one_of_agent57():
    ours = PRESETS["baba-umaze-medium-agent57"]
    true = departures([at_paper_scale(ours), ours], lambda name: name.startswith("exploration."))
    assert {name: row for name, row in said().items() if name.startswith("exploration.")} == true
