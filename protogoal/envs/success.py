"""What counts as success at a task: one rule a run, known before it begins, and said in its record.

    told       what the environment says when an episode ends, info["is_success"], else info["success"]; of NetHack and MiniHack
               whether info["end_status"] is TASK_SUCCESSFUL
    threshold  a return of at least `evaluation.success_return`, else of the `reward_threshold` of its Gymnasium spec
    above 0    a return above 0, where rewards are sparse: no episode of a short random probe met two that were not 0
    none       else: dense rewards say nothing about success, and returns are shown alone

The first that fits. `domains` decides; actors, evaluations and the record use it.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from protogoal.envs.workers import WorkerPool

NAMES = ("is_success", "success")
"""Entries of `info` that say whether an episode succeeded."""
STATUS = "end_status"
SUCCESSFUL = "TASK_SUCCESSFUL"
UNTOLD = -1
PROBE_STEPS = 400
"""Random steps that are looked at before a run."""


@dataclass(frozen=True)
class SuccessRule:
    """Which finished episodes succeeded: 1 yes, 0 no, UNTOLD where nothing is called success."""

    kind: Literal["told", "threshold", "above 0", "none"] = "above 0"
    threshold: float = 0.0
    words: str = "a return above 0"

    def of(self, returns: NDArray[np.floating], told: NDArray[np.int8] | None = None) -> NDArray[np.int8]:
        """Success of episodes with these returns [n], and with what the environment said of them [n]."""
        if self.kind == "threshold":
            success = (returns >= self.threshold).astype(np.int8)
        elif self.kind == "above 0":
            success = (returns > 0).astype(np.int8)
        else:
            success = np.full(len(returns), UNTOLD if self.kind == "none" else 0, np.int8)
        return success if told is None else np.where(told == UNTOLD, success, told)

    def of_pursuit(
        self, is_paid: NDArray[np.bool_], returns: NDArray[np.floating], told: NDArray[np.int8] | None = None,
        terminated: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        """Whether pursuits of the task that last to the end of an episode got anywhere, [n]; the task's share follows it.

        A pursuit may begin in the midst of an episode, so what counts is a reward above 0 met in it (`is_paid`), unless the
        environment says success. That also shows that the task can be learned from where a return is far from its threshold, or
        nothing is called success: where rewards are dense, time spent on goals is taken from the task. Where every step costs
        something, whoever ends the episode (`terminated`) before its time has saved the rest.
        """
        if terminated is not None and self.kind in ("threshold", "none"):
            is_paid = is_paid | (terminated & (returns < 0))
        by_return = {"told": self.of(returns) == 1, "threshold": is_paid | (self.of(returns) == 1)}.get(self.kind, is_paid)
        return by_return if told is None else np.where(told == UNTOLD, by_return, told == 1)


ABOVE_0 = SuccessRule()


def told(info: Any) -> int:
    """What an episode's last `info` says of its success: 1, 0 or UNTOLD."""
    for name in NAMES:
        value = info.get(name) if isinstance(info, Mapping) else None
        if isinstance(value, bool | int | float | np.bool_ | np.number) or (isinstance(value, np.ndarray) and value.size == 1):
            return int(np.asarray(value).item() > 0)
    status = info.get(STATUS) if isinstance(info, Mapping) else None
    if isinstance(status, enum.Enum) and SUCCESSFUL in type(status).__members__:
        return int(status.name == SUCCESSFUL)
    return UNTOLD


def least_return(threshold: float) -> SuccessRule:
    """Returns of at least so much, as a setting says."""
    return SuccessRule("threshold", threshold, f"a return of at least {threshold:g} (evaluation.success_return)")


def find_rule(pool: WorkerPool, success_return: float | None = None) -> SuccessRule:
    """The rule of the environments of a pool: from their spec, and from some random steps, which are always the same ones."""
    is_told, most = _probe(pool)
    if is_told:
        return SuccessRule("told", 0.0, "what the environment says in info")
    if success_return is not None:
        return least_return(success_return)
    threshold = getattr(pool.spec, "reward_threshold", None)
    if isinstance(threshold, int | float):
        return SuccessRule("threshold", float(threshold), f"a return of at least {threshold:g}, the environment's reward_threshold")
    if most <= 1:
        return ABOVE_0
    return SuccessRule("none", 0.0, "not known: rewards are dense, and no threshold is set (evaluation.success_return)")


def _probe(pool: WorkerPool) -> tuple[bool, int]:
    """Plays at random: whether the environment says success, and the most rewards other than 0 that an episode met.

    One that fails is looked at up to there; training will fail too, and say why.
    """
    rng, is_told, most, rewards = np.random.default_rng(0), False, 0, np.zeros(pool.num_envs, np.int64)
    with contextlib.suppress(Exception):
        pool.reset(seed=0)
        for _ in range(PROBE_STEPS // pool.num_envs):
            pool.step(rng.integers(pool.num_actions, size=pool.num_envs))
            is_told |= bool((pool.success != UNTOLD).any())
            rewards += pool.reward != 0
            most = max(most, int(rewards.max()))
            rewards[pool.terminated | pool.truncated] = 0
    return is_told, most
