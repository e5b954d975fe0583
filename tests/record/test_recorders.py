"""Recorders of other packages, with stand-ins for these; and tables as DataFrames."""

import sys
from types import SimpleNamespace

import pytest

from protogoal import api
from protogoal.record.events import Recorder
from protogoal.record.recorders import named


class Calls:
    """Remembers what is called on it."""

    def __init__(self):
        self.made = []

    def __getattr__(self, name):
        return lambda *given, **options: self.made.append((name, *given, *options.items()))


def tell(recorder):
    recorder.metrics(10, {"loss": 0.5})
    recorder.evaluation(20, 4, 3, 1.5)
    recorder.evaluation(30, 4, None, 2.0)
    recorder.event(30, "a checkpoint")
    recorder.close("stopped")


def test_tensorboard_gets_scalars_and_events(tmp_path, monkeypatch):
    calls, folders = Calls(), []
    stand_in = SimpleNamespace(SummaryWriter=lambda folder: folders.append(folder) or calls)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    tell(named("tensorboard", tmp_path))
    assert folders == [str(tmp_path / "tensorboard")]
    assert calls.made == [("add_scalar", "loss", 0.5, 10), ("add_scalar", "evaluation/success", 0.75, 20),
                          ("add_scalar", "evaluation/return", 1.5, 20), ("add_scalar", "evaluation/return", 2.0, 30),
                          ("add_text", "events", "a checkpoint", 30), ("close",)]


def test_weights_and_biases_gets_points_and_how_it_ended(tmp_path, monkeypatch):
    calls, begun = Calls(), []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **options: begun.append(options) or calls))
    tell(named("wandb", tmp_path))
    assert begun == [{"name": tmp_path.name, "dir": str(tmp_path)}]
    assert calls.made == [("log", {"loss": 0.5, "step": 10}), ("log", {"evaluation/success": 0.75, "step": 20}),
                          ("log", {"evaluation/return": 1.5, "step": 20}), ("log", {"evaluation/return": 2.0, "step": 30}),
                          ("finish", 1)]
    named("wandb", tmp_path).close("finished")
    assert calls.made[-1] == ("finish", 0)


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb")])
def test_without_the_package_the_line_says_what_to_install(tmp_path, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=f"pip install {name}"):
        named(name, tmp_path)


def test_tables_are_dataframes_where_pandas_is_installed(monkeypatch):
    columns = {"step": [1, 2], "value": [0.5, 0.25]}
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert api.table(columns) == columns
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda given: ("frame", given)))
    assert api.table(columns) == ("frame", columns)


def test_the_last_evaluation_is_announced_before_it_begins():
    pytest.importorskip("torch")
    heard = []

    class Listener(Recorder):
        def progress(self, step, facts):
            heard.extend(name for name in facts if name == "the last evaluation:")

        def evaluation(self, step, episodes, successes, mean_return):
            heard.append(episodes)

    api.train("CartPole-v1", steps=100, record=(Listener(),), evaluation__final_episodes=3)
    assert heard == ["the last evaluation:", 3]
