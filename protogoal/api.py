"""protogoal from Python: train an agent, load one, ask it what to do, which goals it has, how good it is.

    agent = protogoal.train("MiniGrid-DoorKey-5x5-v0", steps=60_000)
    action = agent.predict(observation, goal="yellow key carried")

The command line calls the same functions. `agents` and `run` do the work.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protogoal.config import config_class
from protogoal.domains.user_env import own_environment
from protogoal.envs.user_envs import reference
from protogoal.presets import PRESETS, announced_presets
from protogoal.record.events import Recorder
from protogoal.record.reader import StoreReader
from protogoal.record.statistics import exact_interval
from protogoal.run import checkpoint
from protogoal.run.directory import RunDirectory
from protogoal.run.goal_columns import goal_id
from protogoal.run.playing import load_session, watch
from protogoal.run.training import Askable, make_player
from protogoal.run.training import train as train_run
from protogoal.run.trust import Trust, check
from protogoal.settings import from_dict, to_dict, with_fields

Table = Any
"""A pandas DataFrame where pandas is installed, else a dict of columns, each an array."""

FORMAT = 2  # of a saved agent


def train(
    env: str | Callable[..., Any],
    proto_goals: str | Callable[..., Any] | None = None,
    steps: int | None = None,
    *,
    info: str = "",
    agent: str = "protogoal",
    run: str | Path | None = None,
    seed: int = 0,
    engine: str = "local",
    record: Sequence[str | Recorder] = ("progress",),
    **fields: Any,
) -> Agent:
    """Trains an agent to the end (or to Ctrl-C), and returns it.

    env          the id of a Gymnasium environment, "package:ID", a function that makes one, "module:function"; or the
                 name of a task that comes with protogoal ("baba-umaze-small"), which has proto-goals of its own
    proto_goals  a function from an environment to its proto-goal space, or "module:function"; without one they follow from what
                 the environment observes, and "+module:function" adds to those
    info         entries of the environment's info, separated by commas, whose numbers are proto-goals too
    run          a directory for checkpoints, metrics and goals, which `load`, `read_run` and the command line read; without
                 one nothing is kept but the agent
    record       recorders beside it: "progress", "csv", "tensorboard", "wandb", or any `Recorder`
    fields       any field of the configuration, with __ for a dot: actor__num_envs=16
    """
    task = _task(env) if isinstance(env, str) and proto_goals is None else None
    config = task or _own(env, proto_goals, info, must_last=run is not None or engine != "local")
    given = {"seed": seed} | ({} if steps is None else {"steps": steps})
    config = with_fields(config.with_agent(agent), given | {name.replace("__", "."): value for name, value in fields.items()})
    name = f"{env}-{agent}" if task else "own"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name if run is None else Path(run)
        train_run(path, name, config, engine, record=record)
        return load(path, Trust(repeated=config.env.code()))


def _task(name: str) -> Any:
    """The configuration of a task, by its name or by that of one of its presets; None where there is none of that name."""
    known = PRESETS | announced_presets()
    return next((config for preset, config in known.items() if preset in (name, f"{name}-{config.agent}")), None)


def _own(env: str | Callable[..., Any], proto_goals: str | Callable[..., Any] | None, info: str, must_last: bool) -> Any:
    factory, space = ("" if part is None else part if isinstance(part, str) else reference(part, must_last)
                      for part in (env, proto_goals))
    return own_environment(factory, space, info)


def load(path: str | Path, trust: bool | Trust = False) -> Agent:
    """The agent of a run directory as its last checkpoint has it, or one that `Agent.save` wrote.

    Either may name code, the functions that make the environment: it is imported only where you `trust` its source. A saved
    agent can be asked without it (`predict`, `goals`); only `evaluate` and `watch` play.
    """
    path, granted = Path(path), Trust(everything=trust) if isinstance(trust, bool) else trust
    if path.is_dir():
        return Agent(load_session(path, granted))
    if not path.is_file():
        raise ValueError(f"{path} is not a run: neither its directory nor a saved agent")
    about, state = checkpoint.read_file(path)
    try:
        if about.get("format") != FORMAT:
            raise ValueError(f"{path} is no agent that this version can read")
        config = from_dict(config_class(about["class"]), about["config"])
        return Agent(_saved(path, config, state, granted))
    except (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        words = " ".join(f"{type(error).__name__} {error}".split())
        raise ValueError(f"{path} is no agent that this version can read: {words}") from None


def _saved(path: Path, config: Any, state: Mapping[str, Any], granted: Trust) -> Askable:
    """With its environment, or without it where that is not trusted or not there."""
    try:
        if not config.env.can_be_made_again:
            raise ValueError("it was trained on functions of a script, which are not in its file")
        check(path, config, "local", granted)
    except ValueError as error:
        if "observed" not in state:
            raise
        from protogoal.run.saved import SavedAgent

        return SavedAgent(config, state, str(error))
    session = make_player(config)
    session.load_player(state)
    return session


class Agent:
    """A trained agent. It keeps the recurrent state of the episodes that `predict` is asked about; `reset` begins new ones."""

    def __init__(self, session: Askable):
        self._session = session
        self.config = session.config
        self._states: Any = None

    @property
    def steps(self) -> int:
        """Steps that it was trained for."""
        return self._session.step

    def reset(self) -> None:
        """The next observation given to `predict` is the first of an episode."""
        self._states = None

    def predict(
        self, observation: Any, goal: int | str | None = None, reward: Any = 0.0, first: Any = None
    ) -> int | NDArray[np.int64]:
        """The best action for the task, or for a goal by name or id: of an observation as the environment gives it, or a batch.

        Asked again, it takes the observation as the next of the same episode; `first` says where one begins (a bool, or one
        for each of a batch), `reward` what the step before was paid. A batch has an axis more in front of every array.
        """
        action, self._states = self._session.predict(observation, self.goal_id(goal), self._states, reward, first)
        return action

    def goal_id(self, goal: int | str | None) -> int | None:
        """The id of a goal; a ValueError names the nearest where there is none of that name."""
        if not isinstance(goal, str):
            return goal
        return goal_id(self._session.goal_columns(), goal)

    def goals(self, as_table: bool = True) -> Table:
        """Every goal ever observed: id, name, kind, count, success, verdict, whether it is offered and mastered."""
        columns = self._session.goal_columns()
        return table(columns) if as_table else columns

    def evaluate(self, episodes: int = 100, seed: int = 1, goal: int | str | None = None) -> dict[str, Any]:
        """Fresh episodes for the task, or as pursuits of a goal: success with its exact 95 % interval, and the mean return.

        Success and its interval are None where nothing is called success (`docs/faq.md`).
        """
        result = self._session.evaluate(episodes, seed, self.goal_id(goal))
        won = result.successes
        low, high = (None, None) if won is None else exact_interval(won, episodes)
        return {"success": None if won is None else won / episodes, "low": low, "high": high, "mean_return": result.mean_return,
                "episodes": episodes, "steps": self.steps}

    def watch(self, out: str | Path, goal: int | str | None = None, seed: int = 1) -> str:
        """A GIF of one episode for the task, or of one pursuit of a goal; returns what it shows."""
        return watch(self._session, self.goal_id(goal), Path(out), seed)

    def save(self, path: str | Path) -> None:
        """One small file with weights, configuration and goals; `load` needs nothing else, and it cannot execute code."""
        about = {"format": FORMAT, "class": type(self.config).__name__, "config": to_dict(self.config)}
        checkpoint.write_file(Path(path), about, self._session.player_state())


class Run:
    """What a run recorded, as tables."""

    def __init__(self, path: str | Path):
        self.directory = RunDirectory.open(Path(path))
        self.config = self.directory.config
        with StoreReader(self.directory.path) as store:
            self.metrics = table(store.columns("SELECT name, step, seconds, value FROM metrics ORDER BY name, step"))
            self.evaluations = table(store.columns("SELECT * FROM evaluations ORDER BY step"))
            self.goals = table(store.columns("SELECT * FROM goals ORDER BY id"))
            self.events = table(store.columns("SELECT step, seconds, text FROM events ORDER BY step"))


def read_run(path: str | Path) -> Run:
    """Metrics, evaluations, goals and events of a run directory; also while it trains."""
    return Run(path)


def table(columns: Mapping[str, Any]) -> Table:
    """Columns as a DataFrame where pandas is installed, else as they are."""
    try:
        import pandas  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return dict(columns)
    return pandas.DataFrame(dict(columns))

