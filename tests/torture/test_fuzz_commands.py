"""Command lines from the grammar of the command itself: exit code 0, or 2 with one line."""

import argparse
import dataclasses

import numpy as np
import pytest
from amount import amount

from protogoal.cli import main, make_parser
from protogoal.presets import PRESETS

LINES = amount(40, 2000)
VALUES = ["0", "1", "-1", "3", "0.5", "1e999", "nan", "inf", "", " ", "x", "(", "()", "None", "True", "[1]", "--", "-", "=", "ü",
          "\udc80", "10" * 15, "1e-400", "../..", "/", "/dev/null", "a" * 300, "a\nb", "%s", "{}",
          "taxi-protogoal", "auto", "1:2", "::"]
ENDLESS = {"inspect", "bench", "reproduce"}  # with right words these take long; they get wrong ones


def fields(config, prefix=""):
    """Dotted names of all fields."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from fields(value, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


TAXI = [name for name in fields(PRESETS["taxi-protogoal"]) if name != "steps"]
DEEP = list(fields(PRESETS["baba-umaze-small-protogoal"]))
COMMANDS = {name: sub for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction)
            for name, sub in action.choices.items()}


def train_line(rng, runs):
    """A training of some steps on Taxi with wild fields, or one of a deep preset that must be refused."""
    if rng.random() < 0.7:
        words = ["train", str(rng.choice(["taxi-protogoal", "taxi-qlearning"])), "--run", str(runs / str(rng.integers(10**9)))]
        for _ in range(rng.integers(3)):
            words += [f"--{rng.choice(TAXI)}", str(rng.choice(VALUES))]
        return [*words, "--steps", "200"]
    words = ["train", str(rng.choice(list(PRESETS))), "--run", str(runs / str(rng.integers(10**9)))]
    for _ in range(rng.integers(1, 3)):
        words += [f"--{rng.choice(DEEP)}", str(rng.choice(VALUES))]
    return [*words, "--steps", str(rng.choice(["-5", "x", "0"]))]


def other_line(rng, runs, victims):
    """A command with its own options and any values."""
    name = str(rng.choice([command for command in COMMANDS if command != "train"]))
    words = [name]
    for action in COMMANDS[name]._actions:
        if not action.option_strings and action.dest != "help":
            right = [str(path) for path in victims.values()] if action.dest in ("run", "runs") and name not in ENDLESS else []
            words += [str(rng.choice([*right, *right, *right, *VALUES])) for _ in range(rng.integers(1, 3 if action.nargs else 2))]
        elif action.option_strings and (action.required or rng.random() < 0.2):
            words.append(str(rng.choice(action.option_strings)))
            if action.nargs != 0:
                small = ["1", "2"] if action.dest in ("episodes", "steps") else []
                words.append(str(runs / "out.gif") if action.dest == "out" else str(rng.choice([*small * 20, *VALUES])))
    if name in ENDLESS:
        words.append("--nonsense")
    return words


def test_any_line_ends_in_0_or_in_2_with_one_line(victims, tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(12)
    for _ in range(LINES):
        words = train_line(rng, tmp_path) if rng.random() < 0.4 else other_line(rng, tmp_path, victims)
        try:
            code = main(words)
        except SystemExit as leaving:  # --help, --version
            code = leaving.code or 0
        except Exception as error:
            raise AssertionError(f"{words}: {type(error).__name__}: {error}") from error
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("protogoal: ", "protogoal play: "))]
        assert code in (0, 2), (words, said)
        assert len(said) == (1 if code else 0), (words, said)
