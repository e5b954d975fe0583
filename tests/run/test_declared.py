"""What a run declares is known from its configuration alone, without the record."""

from pathlib import Path

import pytest

from protogoal.cli import main
from protogoal.domains.user_env import own_environment
from protogoal.presets import PRESETS
from protogoal.record.goal_rows import untouched
from protogoal.record.store import Store
from protogoal.run.directory import RunDirectory
from protogoal.run.playing import declared_space
from protogoal.run.trust import EVERYTHING


@pytest.mark.parametrize("preset", ["taxi-protogoal", "baba-umaze-small-protogoal"])
def test_the_space_of_a_run_is_made_from_its_configuration(tmp_path, preset):
    RunDirectory.create(tmp_path / "run", preset, PRESETS[preset])
    space = declared_space(tmp_path / "run")
    assert space.size > 30
    assert space.name(0)


def test_code_of_ones_own_is_not_imported_unasked(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "envs")
    config = own_environment("own_corridor:make", "own_corridor:cells")
    RunDirectory.create(tmp_path / "run", "own", config)
    with pytest.raises(ValueError, match="names code to import"):
        declared_space(tmp_path / "run")
    assert declared_space(tmp_path / "run", EVERYTHING).size > 0


def test_why_answers_for_a_goal_never_observed(tmp_path, capsys):
    run = RunDirectory.create(tmp_path / "run", "taxi-protogoal", PRESETS["taxi-protogoal"])
    with Store.create(run.database) as store:
        row = {name: array[:1] for name, array in untouched(1).items()} | {"count": [4], "verdict": [6]}
        store.refresh(80, {"id": [0], "declared": 34, **row}, lambda goal: ("taxi at (0,0)", "taxi", (0, 0), (goal,), ()))
    for why in ("3", "taxi at (0,3)"):
        assert main(["goals", str(run.path), "--why", why]) == 0
        assert "Unobserved: it was not on in any of the 80 steps." in capsys.readouterr().out
    assert main(["goals", str(run.path), "--why", "boulder"]) == 2
    assert "no goal is called 'boulder', observed or not" in capsys.readouterr().err
