"""Recorders beside the run's own store: a CSV file, TensorBoard, Weights & Biases, a progress bar.

`protogoal.train(..., record=[...])` and `protogoal train --record csv` take them; anything with a method of
`events.Recorder` is one.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protogoal.record.events import Recorder


class Curves(Recorder):
    """Evaluations and metrics as points (step, name, value) for `write`."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.write(step, name, float(value))

    def evaluation(self, step: int, episodes: int, successes: int | None, mean_return: float) -> None:
        if successes is not None:
            self.write(step, "evaluation/success", successes / episodes)
        self.write(step, "evaluation/return", mean_return)

    def write(self, step: int, name: str, value: float) -> None:
        raise NotImplementedError


class CSV(Curves):
    """A file with the columns step, metric, value; a line is there as soon as it is known."""

    def __init__(self, path: str | Path):
        try:
            self._file = Path(path).open("a", newline="", buffering=1)  # noqa: SIM115 (closed with the run)
        except OSError as error:
            raise ValueError(f"cannot write {path}: {error.strerror}") from None
        self._rows = csv.writer(self._file)
        if not self._file.tell():
            self._rows.writerow(["step", "metric", "value"])

    def write(self, step: int, name: str, value: float) -> None:
        self._rows.writerow([step, name, f"{value:.6g}"])

    def close(self, status: str) -> None:
        self._file.close()


class TensorBoard(Curves):
    """Event files for TensorBoard, in a folder."""

    def __init__(self, folder: str | Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ValueError("TensorBoard's files are written by the package tensorboard: pip install tensorboard") from None
        self._writer: Any = SummaryWriter(str(folder))

    def write(self, step: int, name: str, value: float) -> None:
        self._writer.add_scalar(name, value, step)

    def event(self, step: int, text: str) -> None:
        self._writer.add_text("events", text, step)

    def close(self, status: str) -> None:
        self._writer.close()


class WeightsAndBiases(Curves):
    """A run of Weights & Biases; `options` go to wandb.init."""

    def __init__(self, **options: Any):
        try:
            import wandb  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise ValueError("Weights & Biases is the package wandb: pip install wandb") from None
        self._run = wandb.init(**options)

    def write(self, step: int, name: str, value: float) -> None:
        self._run.log({name: value, "step": step})

    def close(self, status: str) -> None:
        self._run.finish(0 if status == "finished" else 1)


def named(name: str, run: Path) -> Recorder:
    """The recorder of a name, writing beside a run."""
    made: dict[str, Any] = {"csv": lambda: CSV(run / "metrics.csv"), "tensorboard": lambda: TensorBoard(run / "tensorboard"),
                            "wandb": lambda: WeightsAndBiases(name=run.name, dir=str(run))}
    if name not in made:
        raise ValueError(f"unknown recorder {name!r}; allowed are {', '.join(made)}")
    recorder: Recorder = made[name]()
    return recorder
