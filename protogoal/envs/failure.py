"""What people are told when their own environment fails: one line of ours, and under it their traceback with file and line.

The message holds both, so that it survives a worker's pipe and Ray; `first_line` is what goes into a run's events.
"""

from __future__ import annotations

import contextlib
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OURS = str(Path(__file__).parents[1])
PASSED_ON = re.compile(r"[/\\]gymnasium[/\\](core\.py|(wrappers|utils|envs[/\\]registration)\b)")
"""Files of Gymnasium that hand calls on to an environment, and say nothing about its error."""
INSTALLED = (*{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}, "<frozen")
"""Where files lie that no user has written."""
MOST_CHARACTERS = 2_000  # of what an error says
UNPACKED = re.compile(r"values to unpack \(expected \d(?:, got (?P<many>\d+))?|cannot unpack non-iterable (?P<kind>\w+)")
"""What Python says of a `reset` or `step` that gives too little, too much or no tuple."""


class EnvironmentFailure(ValueError):
    """Raised for errors in a user's code, and for what it gives against its own word."""


def failure(error: BaseException, who: str) -> BaseException:
    """`who` (an environment, with its seed and step) raised an error; its traceback is told without lines of our own.

    An error in an installed package that no file of the user's is concerned in is one line: there is nothing for them to mend.
    Of any kind: a library in Rust that panics raises what is no Exception. Ctrl-C stays what it is.
    """
    if isinstance(error, EnvironmentFailure | KeyboardInterrupt):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    words = "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")[:MOST_CHARACTERS]
    told = [frame for frame in frames if not frame.filename.startswith(OURS) and not PASSED_ON.search(frame.filename)]
    if not told and (wrong := UNPACKED.search(words)):  # no line of theirs: it is what they gave, taken apart by us or Gymnasium
        gave = f"{wrong['many']} values" if wrong["many"] else f"a {wrong['kind']}" if wrong["kind"] else "too many values"
        return EnvironmentFailure(f"{who} gave {gave}; reset must give (observation, info), "
                                  "step (observation, reward, terminated, truncated, info)")
    if told and all(frame.filename.startswith(INSTALLED) for frame in told):
        return EnvironmentFailure(f"{who} raised {words} ({Path(told[-1].filename).name}, line {told[-1].lineno})")
    lines = "".join(traceback.format_list(told)).rstrip()
    return EnvironmentFailure(f"{who} raised {words}" + (f"\n{lines}" if lines else ""))


def close(env: Any) -> None:
    """Closes an environment; an error in that loses nothing, and others are to be closed too."""
    try:
        with _pygame_for_others():
            env.close()
    except Exception as error:
        warnings.warn(f"an environment raised {type(error).__name__} when it was closed: {error}", stacklevel=2)


@contextlib.contextmanager
def _pygame_for_others() -> Iterator[None]:
    """pygame is one for a whole process: what closes itself with it would take the screens of all other environments along."""
    modules = [sys.modules[name] for name in ("pygame", "pygame.display", "pygame.font") if name in sys.modules]
    ends = [(module, module.quit) for module in modules]
    for module, _ in ends:
        module.quit = lambda: None  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, end in ends:
            module.quit = end  # type: ignore[attr-defined]


def first_line(words: str) -> str:
    return words.partition("\n")[0]
