"""What the proto-goal evaluator is told of a window of acting: what came on, what was paid, trials, pursuits that ended.

`ProtoR2D2` counts its own windows; in `run.ray` the workers send these arrays to the evaluator's process. They are all that
its verdicts rest on, so both engines judge alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from protogoal.goals.active import as_wide
from protogoal.goals.evaluator import ProtoGoalEvaluator
from protogoal.goals.scale import UNKNOWN
from protogoal.goals.trials import TrialEvents

if TYPE_CHECKING:
    from protogoal.deep.act import Experience


@dataclass(frozen=True)
class Counted:
    """Arrays of one window: n transitions with L bits, the trials among them, pursuits that ended, values of goals on offer."""

    active: NDArray[np.integer]  # [n, L], padded with -1
    turned_on: NDArray[np.bool_]  # [n, L]
    reward: NDArray[np.float32]  # [n]
    trials: TrialEvents
    goal: NDArray[np.int64]  # [pursuits that ended]
    success: NDArray[np.bool_]
    length: NDArray[np.int64]
    offered: NDArray[np.int64]  # [k]
    value: NDArray[np.float64]  # [k]
    best: float  # return of the task so far, see `goals.scale`

    @staticmethod
    def of(experience: Experience, trace_length: int) -> Counted:
        """The steps of a window that are new: a burn-in was counted with the window before."""
        new, ended = experience.segments.last(trace_length), experience.pursuits
        width = new.active.shape[-1]
        return Counted(new.active.reshape(-1, width), new.turned_on.reshape(-1, width), new.reward.ravel(), experience.trials,
                       ended.goal, ended.success, ended.length, experience.offered, experience.value,
                       float(new.best.max(initial=UNKNOWN)))

    @staticmethod
    def join(windows: Sequence[Counted]) -> Counted:
        """Windows one after another; the last one's values count."""
        names = ("active", "turned_on", "reward", "goal", "success", "length")
        columns = {name: [getattr(w, name) for w in windows] for name in names}
        parts = {name: np.concatenate(as_wide(some) if some[0].ndim == 2 else some) for name, some in columns.items()}
        return Counted(trials=TrialEvents.join([w.trials for w in windows]), offered=windows[-1].offered,
                       value=windows[-1].value, best=max(w.best for w in windows), **parts)

    @property
    def transitions(self) -> int:
        return len(self.reward)


def count(evaluator: ProtoGoalEvaluator, window: Counted) -> None:
    """Tells the evaluator."""
    evaluator.table.scale.see(window.reward, window.best)
    evaluator.count(window.active, window.turned_on, window.reward, window.trials)
    evaluator.record_pursuit(window.goal, window.success, window.length)
    evaluator.record_values(window.offered, window.value)
