"""How sure a success rate is: the Wilson score interval of a binomial proportion.

Unlike p ± z·√(p(1−p)/n) it stays inside [0, 1] and says something at 0 of n and n of n, where an evaluator
spends most of a sparse-reward run. Called by record/store.py for each evaluation, and by everything that prints a
success rate.
"""

from __future__ import annotations

import math

Z95 = 1.959963984540054  # the 97.5 % quantile of the standard normal: a two-sided 95 % interval


def wilson_interval(successes: int, episodes: int, z: float = Z95) -> tuple[float, float]:
    """(low, high) of the success probability after `successes` in `episodes` trials.

        p = k/n,  centre = (p + z²/2n) / (1 + z²/n),  half = z·√(p(1−p)/n + z²/4n²) / (1 + z²/n)

    No trial at all gives (0, 1): nothing is known.
    """
    if not 0 <= successes <= episodes:
        raise ValueError(f"successes must be between 0 and episodes, got {successes} of {episodes}")
    if episodes == 0:
        return 0.0, 1.0
    n = float(episodes)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends centre ∓ half is 0 or 1 in exact arithmetic, and a rounding error beside it in floating point.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == episodes else min(1.0, centre + half)
    return low, high
