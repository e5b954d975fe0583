"""protogoal from Python: an environment of one's own trained, asked, judged, saved and opened again."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import protogoal
from protogoal.goals.plausibility import WORDS
from protogoal.presets import PRESETS
from protogoal.record.recorders import CSV
from protogoal.record.store import Store
from protogoal.run import checkpoint
from protogoal.run.directory import RunDirectory

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent / "envs"))
import own_corridor

TINY = {"actor__num_envs": 4, "learner__min_replay": 200, "learner__batch_size": 8, "network__hidden": 16, "network__rank": 8,
        "network__goal_hidden": 8, "evaluation__final_episodes": 4, "evaluation__every": 1000, "refresh_every": 400,
        "replay__capacity": 5000, "record": ()}


class Told(protogoal.Recorder):
    """Keeps what it is told."""

    def __init__(self):
        self.evaluations, self.closed = [], None

    def evaluation(self, step, episodes, successes, mean_return):
        self.evaluations.append((step, episodes, successes))

    def close(self, status):
        self.closed = status


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tmp_path_factory.mktemp("api") / "run"


@pytest.fixture(scope="module")
def agent(run):
    """Trained on the corridor of tests/envs, whose end is five steps to the right."""
    told, table = Told(), run.parent / "metrics.csv"
    made = protogoal.train(own_corridor.make, own_corridor.cells, steps=2400, run=run, **TINY | {"record": (told, CSV(table))})
    assert told.closed == "finished"
    assert [step for step, _, _ in told.evaluations] == [1000, 2000, 2400]
    assert "evaluation/success" in table.read_text()
    return made


def test_an_agent_says_what_to_do_for_the_task_and_for_a_goal_by_name(agent):
    agent.reset()
    assert agent.predict(np.array([0])) == 1
    assert agent.predict(np.array([4]), goal="cell 2") == 0
    agent.reset()
    assert agent.predict(np.array([[0], [3], [4]])).tolist() == [1, 1, 1]  # a batch


@pytest.mark.parametrize(("wrong", "words"), [
    (np.array([6]), "not in the environment's space"), (np.zeros((2, 2), int), "has shape"), (np.array([0.5]), "has the type"),
    ({"place": np.array([1])}, "the environment observes one array; got a dict"), ("cell 3", "has"),
])
def test_what_is_no_observation_of_the_environment_is_refused(agent, wrong, words):
    agent.reset()
    with pytest.raises(ValueError, match=words):
        agent.predict(wrong)


def test_episodes_under_way_are_not_mixed_up_with_others(agent):
    agent.reset()
    agent.predict(np.array([0]))
    with pytest.raises(ValueError, match="call reset"):
        agent.predict(np.array([[0], [1]]))


def test_goals_are_a_table_and_unknown_names_are_told(agent):
    goals = agent.goals(as_table=False)
    assert list(goals["name"]) == [f"cell {i}" for i in range(6)]
    assert set(goals["verdict"]) <= set(WORDS.values())
    with pytest.raises(ValueError, match="did you mean 'cell 3'"):
        agent.predict(np.array([0]), goal="cel 3")


def test_an_agent_is_evaluated_for_the_task_and_for_a_goal(agent):
    result = agent.evaluate(8)
    assert (result["success"], result["episodes"], result["steps"]) == (1.0, 8, 2400)
    assert agent.evaluate(8, goal="cell 3")["success"] == 1.0


def test_a_saved_agent_needs_nothing_but_its_file(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    script = ("import sys, numpy as np, protogoal\n"
              "agent = protogoal.load('agent.npz')\n"
              "print(agent.predict(np.array([0])), agent.predict(np.array([4]), goal='cell 2'), agent.steps)\n"
              "print(*agent.goals(as_table=False)['name'], sep='|')\n"
              "agent.save('again.npz')\n"
              "assert protogoal.load('again.npz').predict(np.array([[0], [3]])).tolist() == [1, 1]\n"
              "assert 'own_corridor' not in sys.modules\n"
              "agent.evaluate(2)\n")
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["1 0 2400", "|".join(f"cell {i}" for i in range(6))], done.stderr
    assert "needs its environment: agent.npz names code to import" in done.stderr.splitlines()[-1]


def test_a_saved_agent_is_evaluated_where_its_code_is_trusted(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    again = protogoal.load(tmp_path / "agent.npz", trust=True)
    agent.reset()
    assert again.predict(np.array([0])) == agent.predict(np.array([0]))
    assert again.evaluate(8) == agent.evaluate(8)
    assert list(again.goals(as_table=False)["count"]) == list(agent.goals(as_table=False)["count"])


def test_an_agent_of_a_scripts_own_functions_can_be_saved_and_asked(agent, tmp_path):
    made = protogoal.train(lambda: own_corridor.make(), lambda env: own_corridor.cells(env), steps=400, **TINY)
    made.save(tmp_path / "agent.npz")
    assert protogoal.load(tmp_path / "agent.npz").evaluate(2) == made.evaluate(2)  # here its functions are still there
    script = "import sys, numpy, protogoal; a = protogoal.load(sys.argv[1]); print(a.predict(numpy.array([3]))); a.evaluate(2)"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "agent.npz")], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(made.predict(np.array([3])))], done.stderr
    assert "trained on functions of a script" in done.stderr.splitlines()[-1]


def changed(state, place, value):
    *way, last = place.split("/")
    for key in way:
        state = state[key]
    state[last] = value


@pytest.mark.parametrize(("place", "value"), [
    ("steps", "many"), ("network", {}), ("observed/num_actions", 10**9), ("observed/num_actions", 0),
    ("observed/reader/space", {"box": 3}), ("observed/reader", {}),
    ("goals/members", np.full((6, 2), 10**9)), ("goals/columns", {"id": np.arange(2)}),
    ("goals/slots", []),
])
def test_a_saved_agent_that_somebody_crafted_is_one_line(agent, tmp_path, place, value):
    agent.save(tmp_path / "agent.npz")
    about, state = checkpoint.read_file(tmp_path / "agent.npz")
    changed(state, place, value)
    checkpoint.write_file(tmp_path / "agent.npz", about, state)
    with pytest.raises(ValueError, match=r"stored|this version can read") as refused:
        protogoal.load(tmp_path / "agent.npz")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("about", [{}, {"format": 2}, {"format": 2, "class": "DeepConfig", "config": []}, [], 3])
def test_a_file_that_says_nothing_of_itself_is_one_line(tmp_path, about):
    checkpoint.write_file(tmp_path / "agent.npz", about, {})
    with pytest.raises(ValueError, match="no agent that this version can read"):
        protogoal.load(tmp_path / "agent.npz")
    (tmp_path / "agent.npz").write_bytes(b"no agent")
    with pytest.raises(ValueError, match="no saved agent, or is damaged"):
        protogoal.load(tmp_path / "agent.npz")


def test_a_run_is_opened_and_read_again(agent, run):
    again = protogoal.load(run, trust=True)
    agent.reset()
    assert again.predict(np.array([2])) == agent.predict(np.array([2]))
    record = protogoal.read_run(run)
    assert list(record.evaluations["step"]) == [1000, 2000, 2400]
    assert {"loss", "train_return"} <= set(record.metrics["name"])
    assert list(record.goals["name"])[:6] == [f"cell {i}" for i in range(6)]
    with pytest.raises(ValueError, match="neither its directory nor a saved agent"):
        protogoal.load(run / "nothing")


def test_tables_of_a_run_that_has_recorded_nothing_yet_have_their_columns(tmp_path):
    run = RunDirectory.create(tmp_path / "run", "taxi-qlearning", PRESETS["taxi-qlearning"], "local")
    Store.create(run.path / "run.db").close()
    record = protogoal.read_run(run.path)
    assert set(record.metrics) == {"name", "step", "seconds", "value"}
    assert {"step", "episodes", "successes", "mean_return"} <= set(record.evaluations)
    assert {"id", "name", "kind", "verdict"} <= set(record.goals)
    assert set(record.events) == {"step", "seconds", "text"}
    assert len(record.goals["name"]) == len(record.metrics["value"]) == 0


def test_functions_that_cannot_be_found_again_are_refused_where_a_run_shall_last(tmp_path):
    def inside():
        return own_corridor.make()

    with pytest.raises(ValueError, match="defined in a function, so the run could not be opened again"):
        protogoal.train(inside, own_corridor.cells, steps=100, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="'babba' is neither module:function nor a Gymnasium environment"):
        protogoal.train("babba", steps=100)


def test_a_script_is_told_so_at_the_start(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; sys.path.insert(0, sys.argv[1])\nimport own_corridor, protogoal\n"
                      "def make(): return own_corridor.make()\n"
                      "protogoal.train(make, own_corridor.cells, steps=100, run='run')\n")
    command = [sys.executable, str(script), str(Path(__file__).parent / "envs")]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    assert "make is defined in the script itself" in said
    assert not (tmp_path / "run").exists()


def test_the_tabular_agents_have_the_same_door(tmp_path):
    agent = protogoal.train("taxi", steps=6000, record=())
    assert 0 <= agent.predict(100) < 6
    assert "passenger in taxi" in agent.goals(as_table=False)["name"]
    agent.save(tmp_path / "taxi.npz")
    assert protogoal.load(tmp_path / "taxi.npz").predict(100) == agent.predict(100)
    with pytest.raises(ValueError, match="a state is a whole number below 500"):
        agent.predict(500)


def test_the_notebook_runs(tmp_path, monkeypatch):
    cells = json.loads((Path(__file__).parents[1] / "examples" / "protogoal.ipynb").read_text())["cells"]
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "protogoal.ipynb", "exec"), space)
    assert space["path"] == [0, 1, 2, 3]
