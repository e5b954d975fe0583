"""SparseTaxi (paper §6.1, appendix A): Gymnasium's Taxi without its shaping, and its factored proto-goal space.

A taxi on a 5×5 grid fetches a passenger at one of four depots and takes them to another. The only reward is 1 when the
passenger is put down at the destination. Putting the passenger down at a wrong depot ends the episode with nothing,
which is what makes the task hard: most of what ε-greedy exploration does once it holds the passenger ends the episode.

Drawing, action masks and the map are Gymnasium's own. `TransitionTables.from_gymnasium` turns the environment into
arrays for the tabular kernels; `TaxiSpace` turns its states into bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.envs.toy_text.taxi import TaxiEnv

from protogoal.goals.spaces import Factor, OneHotFactors

DEPOTS: tuple[tuple[str, tuple[int, int]], ...] = (("R", (0, 0)), ("G", (0, 4)), ("Y", (4, 0)), ("B", (4, 3)))
IN_TAXI = 4  # the passenger's fifth place
PICK_UP, PUT_DOWN = 4, 5  # actions; 0–3 move south, north, east, west


class SparseTaxi(TaxiEnv):
    """Gymnasium's Taxi with reward 1 for the right put-down and 0 for everything else.

    A put-down is legal at a depot, with the passenger in the taxi. `wrong_put_down_ends` = True ends the episode at any
    legal put-down, False only at the right one. The 200-step limit is Gymnasium's `TimeLimit`, added by `gymnasium.make`.
    """

    def __init__(self, render_mode: str | None = None, wrong_put_down_ends: bool = True):
        super().__init__(render_mode=render_mode)
        self.wrong_put_down_ends = bool(wrong_put_down_ends)
        for state, actions in self.P.items():
            for action, outcomes in actions.items():
                actions[action] = [self._sparse(state, action, *outcome) for outcome in outcomes]

    def _sparse(self, state: int, action: int, probability: float, next_state: int, _reward: float,
                delivered: bool) -> tuple[float, int, float, bool]:
        """One outcome of Gymnasium's table with our reward and ending; Gymnasium terminates on delivery only."""
        put_down = action == PUT_DOWN and passenger_place(state) == IN_TAXI and passenger_place(next_state) != IN_TAXI
        terminated = bool(delivered or (put_down and self.wrong_put_down_ends))
        return probability, int(next_state), float(delivered), terminated

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return super().step(int(action))  # type: ignore[no-any-return]  # the table is keyed by plain ints


def passenger_place(state: int) -> int:
    """0–3 for a depot, 4 inside the taxi, from a state number ((row·5 + column)·5 + passenger)·4 + destination."""
    return state // 4 % 5


def decode(states: Any) -> np.ndarray:
    """State numbers [N] → factors [N, 3]: taxi cell 0–24, passenger's place 0–4, destination 0–3."""
    states = np.asarray(states, np.int64)
    if states.ndim != 1 or ((states < 0) | (states >= 500)).any():
        raise ValueError(f"Taxi states are one number each, 0…499, [N]; got shape {states.shape}")
    return np.stack([states // 20, states // 4 % 5, states % 4], axis=1)


class TaxiSpace(OneHotFactors):
    """34 bits: 25 taxi cells, 5 passenger places (4 depots, in the taxi), 4 destinations; observation int [N]."""

    def __init__(self, key: str | None = None):
        depot_names, depot_cells = zip(*DEPOTS, strict=True)
        super().__init__(
            [
                Factor.positions("taxi", 5, 5),
                Factor("passenger", (*(f"passenger at {name}" for name in depot_names), "passenger in taxi"),
                       (*depot_cells, None)),
                Factor("destination", tuple(f"destination {name}" for name in depot_names), depot_cells),
            ],
            grid=(5, 5),
            key=key,
        )

    def _active(self, s: Any, a: Any, s_next: Sequence[int] | np.ndarray) -> Any:
        return super()._active(None, None, decode(s_next))
