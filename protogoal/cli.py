"""The command `protogoal`. Parsing and words only: every command calls one function of the package.

Exit code 0 on success, 2 with one clear line on a user's mistake, 130 after Ctrl-C; `train` and `resume` save at
Ctrl-C, say how to go on, and exit with 0.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import itertools
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from protogoal import __version__
from protogoal.experiments import EXPERIMENTS, experiment, redraw

OWN = "own"  # stands for the preset of an environment of one's own
ENGINE_WORDS = "       [--engine local|ray] [--address auto|HOST:PORT] [--workers N] [--envs-per-worker N]"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name may have half a character in it
    warnings.formatwarning = _warning
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        options = {word.partition("=")[0] for word in words}
        if words[:1] == ["train"] and words[1:2] and words[1].startswith("-") and {"--env", "--space", "--info"} & options:
            words.insert(1, OWN)  # else the value of the first field would be read as the preset
        parsed, rest = make_parser().parse_known_args(words)
        if rest and parsed.command != "train":
            raise ValueError(f"unknown option {rest[0]} (see protogoal {parsed.command} --help)")
        return int(parsed.run_command(parsed, rest) or 0)
    except ValueError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        from protogoal.run.stopping import STOPPED, leave_hung_threads

        print("protogoal: stopped", file=sys.stderr)
        leave_hung_threads()
        return STOPPED
    except BrokenPipeError:  # `protogoal goals DIR | head`
        sys.stderr.close()
        return 0
    except Exception as error:
        line = _trouble(error)
        if line is None:
            raise
        return _refuse(line)


def _refuse(words: str) -> int:
    """Says why not, in one line, with a user's own traceback under it; words out of a run's files never pass for ours."""
    from protogoal.record.terms import printable

    print("protogoal: " + "\n  ".join(printable(line) for line in words.splitlines()), file=sys.stderr)
    return 2


def _warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None,
             python: Any = warnings.formatwarning) -> str:
    """A warning of ours as one line for people; those of other packages as Python writes them."""
    is_ours = filename.startswith(str(Path(__file__).parent))
    return f"protogoal: {message}\n" if is_ours else str(python(message, category, filename, lineno, line))


def _trouble(error: Exception) -> str | None:
    """One line for what disks, memory and files can do to any command; None for a mistake of ours."""
    if isinstance(error, OSError):
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    if type(error).__module__ == "sqlite3":
        return f"a run's record cannot be read or written: {error}"
    words = " ".join(str(error).split())
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate" in words):  # the latter is PyTorch's
        return f"there is not enough memory; smaller settings need less ({words or 'no more is known'})"
    if isinstance(error, OverflowError):
        return f"a number is too large: {words}"
    return "something is nested too deeply to be read" if isinstance(error, RecursionError) else None


def make_parser() -> argparse.ArgumentParser:
    """The command's whole grammar, but for the fields of a preset."""
    parser = _Parser(prog="protogoal", description="Exploration by self-chosen goals.")
    parser.add_argument("--version", action="version", version=f"protogoal {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(name: str, function: Any, words: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".",
                                  add_help=name != "train")
        sub.set_defaults(run_command=function)
        return sub

    envs = command("envs", _envs, "what can be trained, with each proto-goal space and its size")
    envs.add_argument("--json", action="store_true", help="print JSON")

    train = command("train", _train, "train an agent; fields of the preset are options, see protogoal train PRESET --help")
    train.add_argument("preset", nargs="?", help="domain-agent, for example taxi-protogoal; protogoal envs lists them")
    _add_env_options(train, "instead of a preset: ")
    train.add_argument("--run", type=Path, help="directory of the run (default: runs/PRESET-SEED)")
    train.add_argument("--scale", choices=("cpu", "paper"), default="cpu", help="settings for two cores, or the paper's tables")
    train.add_argument("--engine", choices=("local", "ray"), default="local", help="one process, or Ray actors")
    _add_ray_options(train)
    _add_recorders(train)
    train.add_argument("-h", "--help", action="store_true", help="show the preset's fields and leave")

    space = command("space", _space, "the proto-goals of an environment, before anybody trains: kinds, numbers, names")
    _add_env_options(space)
    space.add_argument("--json", action="store_true", help="print JSON")

    resume = command("resume", _resume, "go on with a run from its last checkpoint")
    resume.add_argument("run", type=Path, help="directory of the run")
    resume.add_argument("--steps", type=_positive, help="environment steps to make in all: trains a finished run on")
    resume.add_argument("--engine", choices=("local", "ray"), help="another engine than before")
    _add_ray_options(resume)
    _add_recorders(resume)
    _add_trust_options(resume)

    evaluate = command("eval", _eval, "success rate of a trained agent, with a confidence interval")
    evaluate.add_argument("run", type=Path, help="directory of the run, or a saved agent")
    evaluate.add_argument("--episodes", type=_positive, default=300, help="episodes to play (default 300)")
    evaluate.add_argument("--seed", type=int, default=1, help="seed of the episodes (default 1)")
    evaluate.add_argument("--goal", help="name or id of a goal to be pursued instead of the task")
    evaluate.add_argument("--json", action="store_true", help="print JSON")
    _add_trust_options(evaluate)

    watch = command("watch", _watch, "what the agent does, for the task or for one goal, as a GIF")
    watch.add_argument("run", type=Path, help="directory of the run, or a saved agent")
    watch.add_argument("--goal", help="name or id of a goal, as in protogoal goals (default: the task)")
    watch.add_argument("--out", type=Path, required=True, help="the GIF to write")
    watch.add_argument("--seed", type=int, default=1, help="seed of the episode (default 1)")
    _add_trust_options(watch)

    play = command("play", _play, "play a Baba level in the terminal, with undo and reset")
    play.add_argument("level", help="name of a level (umaze-small, …) or the path of a level file")
    play.add_argument("--moves", help="play these moves instead (u d l r, s waits) and say how it ends")
    play.add_argument("--json", action="store_true", help="with --moves: print JSON")

    goals = command("goals", _goals, "the goal table: count, success, the figures that decided, verdict, reason")
    goals.add_argument("run", type=Path, help="directory of the run")
    goals.add_argument("--why", help="explain one goal, by id or by name")
    goals.add_argument("--json", action="store_true", help="print JSON")
    _add_trust_options(goals)

    inspect = command("inspect", _inspect, "serve the live page about runs, for the browser")
    inspect.add_argument("runs", type=Path, nargs="+", help="directories of the runs")
    inspect.add_argument("--host", default="127.0.0.1", help="address to listen on; beyond this machine a token is asked for")
    inspect.add_argument("--port", type=int, default=8050, help="port to listen on (default 8050; 0 takes a free one)")
    inspect.add_argument("--token", help="the token to ask for (default: one is made where it is needed)")

    report = command("report", _report, "one self-contained HTML file about one or more runs")
    report.add_argument("runs", type=Path, nargs="+", help="directories of the runs")
    report.add_argument("--out", type=Path, required=True, help="the HTML file to write")

    reproduce = command("reproduce", _reproduce, "run an experiment of the paper and draw its figure")
    reproduce.add_argument("experiment", help=f"one of {', '.join(EXPERIMENTS)}; or figures: redraw all from their CSV")
    reproduce.add_argument("--scale", choices=("smoke", "cpu", "paper"), default="cpu", help="how much of it (default cpu)")
    reproduce.add_argument("--seeds", type=_positive, help="number of seeds (default: the experiment's own)")
    reproduce.add_argument("--out", type=Path, help="where to write (default runs/EXPERIMENT)")

    bench = command("bench", _bench, "measure against slow references in the same run")
    bench.add_argument("names", nargs="*", help="files of benchmarks/ without their ending (default: all)")
    bench.add_argument("--quick", action="store_true", help="small sizes")
    bench.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_env_options(command: argparse.ArgumentParser, words: str = "") -> None:
    command.add_argument("--env", metavar="ID", help=f"{words}the id of a Gymnasium environment, package:ID, or module:function")
    command.add_argument("--space", metavar="MODULE:FUNCTION", help="its proto-goals: a function of the environment, instead "
                         "of those that follow from what it observes; +module:function adds to them")
    command.add_argument("--info", metavar="NAMES", help="entries of info whose numbers are proto-goals too: inventory,…")


def _add_ray_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--address", help="ray engine: auto or HOST:PORT of a cluster (default: one is started here)")
    command.add_argument("--workers", type=_positive, help="ray engine: processes that act")
    command.add_argument("--envs-per-worker", type=_positive, help="ray engine: environments of each")


def _add_recorders(command: argparse.ArgumentParser) -> None:
    command.add_argument("--record", choices=("csv", "tensorboard", "wandb"), action="append", default=["progress"],
                         help="write the metrics to metrics.csv, for TensorBoard, or to Weights & Biases too; may be repeated")


def _ray_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """Those of the ray engine's options that were given."""
    given = {name: getattr(parsed, name) for name in ("address", "workers", "envs_per_worker")}
    return {name: value for name, value in given.items() if value is not None}


def _add_trust_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--trust", action="store_true", help="import the code that the run names, connect to its address")
    command.add_argument("--env", metavar="ID", help="instead of --trust: the run's environment, named again")
    command.add_argument("--space", metavar="MODULE:FUNCTION", help="instead of --trust: its proto-goals, named again")


def _trust(parsed: argparse.Namespace) -> Any:
    """What the user grants to the code and addresses that a run names."""
    from protogoal.run.trust import Trust

    given = {f"--{name}": getattr(parsed, name, None) for name in ("env", "space", "address")}
    return Trust(parsed.trust, {option: value for option, value in given.items() if value is not None})


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text}")
    return int(text)


def _envs(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.domains.installed import packages
    from protogoal.presets import catalog

    if parsed.json:
        print(json.dumps(catalog(), indent=1))
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    for row in catalog():
        lacks = f"   [yellow]✕ pip install \"protogoal\\[{row['missing']}]\"[/]" if row["missing"] else "   [green]✓ installed[/]"
        console.print(f"[bold]{row['name']}[/]   {row['actions']} actions, {row['size']:,} proto-goals{lacks}")
        console.print(f"    [dim]environment[/]  {row['env']}")
        console.print(f"    [dim]proto-goals[/]  {row['proto_goals']}")
        console.print(f"    [dim]presets[/]      {'  '.join(row['presets']) or '–'}\n")
    console.print("Other people's environments, and what draws them:")
    for row in packages():
        state = "[green]✓ installed[/]" if row["installed"] else f"[yellow]✕ {escape(str(row['install']))}[/]"
        console.print(f"    {row['package']:17} {state}   [dim]{row['words']}[/]")


def _train(parsed: argparse.Namespace, rest: list[str]) -> int:
    from protogoal.domains.user_env import own_environment
    from protogoal.presets import at_paper_scale
    from protogoal.registry import AGENTS

    if any(option is not None for option in (parsed.env, parsed.space, parsed.info)):
        if parsed.preset != OWN:
            raise ValueError("give a preset, or --env, not both")
        preset, default = OWN, own_environment(parsed.env or "", parsed.space or "", parsed.info or "")
    elif parsed.preset is None:
        if not parsed.help:
            raise ValueError("which preset? protogoal envs lists them; or --env ID for any Gymnasium environment")
        print("usage: protogoal train PRESET [--run DIR] [--seed N] [--steps N] [--scale cpu|paper] [--section.field value …]\n"
              "       protogoal train --env ID [--space MODULE:FUNCTION] [--info NAMES] [--agent " + '|'.join(AGENTS) + "] …\n"
              f"{ENGINE_WORDS}\n\npresets:")
        print("\n".join(f"  {name}" for name in sorted(_presets())))
        return 0
    else:
        preset, default = parsed.preset, _presets(parsed.preset)[parsed.preset]
    agent = _value_of("--agent", rest)
    default = default.with_agent(agent) if agent else default  # its own settings are other options
    default = at_paper_scale(default) if parsed.scale == "paper" else default
    config = _fields(preset, default, ["--help"] if parsed.help else rest)
    if config is None:
        return 0
    from protogoal.run.training import train

    name = _file_name(parsed.env) if preset == OWN else preset
    path, here = parsed.run or Path("runs") / f"{name}-{config.seed}", os.getcwd()
    if train(path, preset, config, parsed.engine, _ray_options(parsed), parsed.record):
        os.chdir(here)  # an environment may have left it
        _write_report(path)
    return 0


def _file_name(env: str) -> str:
    """The name of an environment as that of a directory."""
    return re.sub(r"[^\w.+-]+", "-", env).strip("-.") or OWN


def _space(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.envs.describe import describe, in_words

    if not parsed.env:
        raise ValueError("which environment? --env ID, package:ID or module:function")
    told = describe(parsed.env, parsed.space or "", parsed.info or "")
    print(json.dumps(told, indent=1) if parsed.json else in_words(told))


def _value_of(option: str, words: list[str]) -> str | None:
    """What an option was given, as `--option value` or `--option=value`; None where it is not there."""
    for word, following in itertools.pairwise([*words, ""]):
        if word == option or word.startswith(f"{option}="):
            return word.partition("=")[2] or following
    return None


def _write_report(run: Path) -> None:
    """report.html of a run that has ended."""
    from protogoal.record.report import report

    with _sound([run]):
        report([run], run / "report.html", beside=False)
    print(f"report: {run / 'report.html'}")


def _presets(wanted: str | None = None) -> dict[str, Any]:
    """Our presets, and those of other packages unless `wanted` is among ours; a ValueError where it is nowhere."""
    from protogoal.presets import PRESETS, announced_presets

    if wanted in PRESETS:
        return PRESETS
    known = PRESETS | announced_presets()
    if wanted is not None and wanted not in known:
        raise ValueError(f"unknown preset {wanted!r}{_hint(wanted, known)} (protogoal envs lists them all)")
    return known


def _hint(wanted: str, known: Any) -> str:
    """What may have been meant by a word that is no preset: an environment of that name, or a preset of a like one."""
    return f"; for an environment: --env {wanted}" if _is_environment(wanted) else _nearest(wanted, known)


def _is_environment(name: str) -> bool:
    """Whether a name is that of an environment, for all that is known without making it."""
    import gymnasium

    from protogoal.envs.door import PACKAGES

    plain = name.partition("?")[0]
    return ":" in plain or plain in gymnasium.registry or plain.startswith(tuple(PACKAGES))


def _fields(preset: str, default: Any, arguments: list[str]) -> Any:
    """The preset with fields replaced from the command line; None after --help."""
    import tyro

    command = "protogoal train --env …" if preset == OWN else f"protogoal train {preset}"
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            return tyro.cli(tyro.conf.AvoidSubcommands[type(default)], default=default,  # type: ignore[misc]
                            args=arguments,
                            prog=command, use_underscores=True)
    except SystemExit as leaving:
        if not leaving.code:
            print(f"also: --run DIR, the directory of the run; --scale cpu|paper\n{ENGINE_WORDS}\n{output.getvalue()}")
            return None
        said = [line.strip(" │╭╮╰╯─-") for line in output.getvalue().splitlines()]
        first = next((i for i, text in enumerate(said) if text.startswith(("Error parsing", "Unrecognized options:"))), 0)
        line = " ".join(itertools.takewhile(bool, itertools.dropwhile(lambda text: not text, said[first:])))
        raise ValueError(f"{line} ({command} --help lists all fields)") from None


def _nearest(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), 1, 0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _resume(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.run.training import resume

    here = os.getcwd()
    if resume(parsed.run, parsed.engine, _ray_options(parsed), parsed.steps, _trust(parsed), parsed.record):
        os.chdir(here)
        _write_report(parsed.run)


def _eval(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.api import load

    result = load(parsed.run, _trust(parsed)).evaluate(parsed.episodes, parsed.seed, _goal(parsed))
    if parsed.json:
        print(json.dumps(result))
        return
    mean = f"mean return {result['mean_return']:.6g}"
    played = f"{result['episodes']} episodes, trained for {result['steps']:,} steps"
    if result["success"] is None:
        print(f"{mean}  ({played}; nothing is called success here, see evaluation.success_return)")
    else:
        print(f"success {result['success']:.3f}  (95 % interval {result['low']:.3f}–{result['high']:.3f}, {played})  {mean}")


def _goal(parsed: argparse.Namespace) -> int | str | None:
    """What --goal names: an id, or a name."""
    goal: str | None = parsed.goal
    return int(goal) if goal is not None and goal.isdecimal() else goal


def _watch(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.api import load

    print(load(parsed.run, _trust(parsed)).watch(parsed.out, _goal(parsed), parsed.seed))


def _play(parsed: argparse.Namespace, _: list[str]) -> int:
    from protogoal.envs.baba.play import play

    return play(parsed.level, parsed.moves, parsed.json)


def _goals(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.record.goals_table import goals_table
    from protogoal.run.directory import RunDirectory

    def space() -> Any:
        from protogoal.run.playing import declared_space

        return declared_space(parsed.run, _trust(parsed))

    RunDirectory.open(parsed.run)
    with _sound([parsed.run]):
        text = goals_table(parsed.run, parsed.why, parsed.json, space)
    if text:
        print(text)


def _inspect(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.record.inspector import inspect

    inspect(parsed.runs, parsed.host, parsed.port, parsed.token)


def _report(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.record.report import report
    from protogoal.run.directory import RunDirectory

    for run in parsed.runs:
        RunDirectory.open(run)
    with _sound(parsed.runs):
        report(parsed.runs, parsed.out)
    print(f"wrote {parsed.out}")


@contextlib.contextmanager
def _sound(runs: list[Path]) -> Iterator[None]:
    """What cannot be shown because a record holds what no run writes is one line; all else is a mistake of ours."""
    try:
        yield
    except (TypeError, LookupError, AttributeError, ArithmeticError):
        from protogoal.record.verify import check_record

        for run in runs:
            check_record(run)
        raise


def _reproduce(parsed: argparse.Namespace, _: list[str]) -> None:
    if parsed.experiment == "figures":
        print("redrawn: " + ", ".join(redraw(parsed.out or Path("results"))))
        return
    if parsed.experiment not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {parsed.experiment!r}{_nearest(parsed.experiment, EXPERIMENTS)}; "
                         f"allowed are {', '.join(EXPERIMENTS)} and figures")
    experiment(parsed.experiment).run(parsed.scale, parsed.seeds, parsed.out or Path("runs") / parsed.experiment)


def _bench(parsed: argparse.Namespace, _: list[str]) -> None:
    from protogoal.benchmarking import benchmarks, run_benchmarks

    unknown = sorted(set(parsed.names) - set(benchmarks()))
    if unknown:
        raise ValueError(f"unknown benchmark {unknown[0]!r}; allowed are {', '.join(benchmarks())}")
    run_benchmarks(parsed.names or benchmarks(), parsed.quick, parsed.json)


if __name__ == "__main__":
    sys.exit(main())
