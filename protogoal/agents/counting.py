"""What the proto-goal evaluator is told of a window of acting: which bits came on, what was paid, which pursuits ended.

`ProtoR2D2` counts its own windows; in `run.ray` the workers send these arrays to the evaluator's process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from protogoal.envs.vector import dense_bits
from protogoal.goals.evaluator import ProtoGoalEvaluator

if TYPE_CHECKING:
    from protogoal.deep.act import Experience


@dataclass(frozen=True)
class Counted:
    """Arrays of one window: active [T, N, L] padded with -1, reward [T, N]; goal, success [pursuits ended]."""

    active: NDArray[np.integer]
    reward: NDArray[np.float32]
    goal: NDArray[np.int64]
    success: NDArray[np.bool_]

    @staticmethod
    def of(experience: Experience, trace_length: int) -> Counted:
        """The steps of a window that are new: a burn-in was counted with the window before."""
        new = experience.segments.last(trace_length)
        return Counted(new.active, new.reward, experience.pursuits.goal, experience.pursuits.success)

    @staticmethod
    def join(windows: Sequence[Counted]) -> Counted:
        """Windows one after another."""
        parts = zip(*((w.active, w.reward, w.goal, w.success) for w in windows), strict=True)
        return Counted(*(np.concatenate(part) for part in parts))

    @property
    def transitions(self) -> int:
        return self.reward.size


def count(evaluator: ProtoGoalEvaluator, window: Counted) -> None:
    """Tells the evaluator."""
    bits = dense_bits(window.active, evaluator.num_bits).reshape(-1, evaluator.num_bits)
    evaluator.observe(bits, window.reward.ravel())
    evaluator.record_pursuit(window.goal, window.success)
