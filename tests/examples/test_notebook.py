"""The tutorial's notebook runs from its first cell to its last, with the parameters made small; its page has the example's code."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = {"actor__num_envs": 4, "learner__min_replay": 200, "learner__batch_size": 4, "learner__replay_ratio": 1,
         "network__hidden": 16, "network__rank": 8, "network__channels": (4,), "evaluation__final_episodes": 2,
         "evaluation__max_steps": 50, "refresh_every": 400}
PLACES = {f"agent at ({row},{column})" for row in range(5) for column in range(5)}


@pytest.mark.filterwarnings("ignore")
def test_the_tutorials_notebook_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("minigrid")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples" / "tutorial.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert ["parameters" in cell["metadata"].get("tags", ()) for cell in cells] == [True] + [False] * (len(cells) - 1)
    names = {"__name__": "__main__"}
    for k, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"tutorial.ipynb, cell {k}", "exec"), names)
        if k == 0:
            assert set(names) >= {"STEPS", "FIELDS"}
            names.update(STEPS=800, FIELDS=SMALL)
    assert "proto-goals: derived from the observation" in capsys.readouterr().out
    assert names["actions"]
    assert set(names["own"].goals(as_table=False)["name"]) <= PLACES


def test_the_tutorials_page_has_the_code_of_the_example():
    docstring, code = (ROOT / "examples" / "doorkey_goals.py").read_text().split('"""\n\n', 1)
    assert docstring.startswith('"""')
    assert code in (ROOT / "docs" / "tutorial.md").read_text()
