"""How many replicas: a ladder of counts for each layout, and the smallest count that holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]

RUNGS = 32
"""Counts evaluated at once for a layout: every one up to this span, evenly by ratio above it."""


def ladder(low: int, high: int) -> list[int]:
    """Counts from low to high, both in: all of them, or `RUNGS` spaced by ratio. Empty if none."""
    if high < low:
        return []
    if high - low < RUNGS:
        return list(range(low, high + 1))
    return sorted({round(low * (high / low) ** (k / (RUNGS - 1))) for k in range(RUNGS)})


def smallest_holding(holds: Callable[[list[int]], NDArray[np.bool_]], low: int, high: int) -> int:
    """The smallest count in low ... high that holds, given that `high` does and that a count above
    one that holds holds too. `holds` evaluates many counts at once."""
    while low < high:
        rungs = ladder(low, high)
        first = int(np.argmax(holds(rungs)))
        low, high = (rungs[first - 1] + 1 if first else low), rungs[first]
    return high


def last_worthwhile(counts: list[int], times: NDArray[np.float64], gain: float) -> int:
    """Index of the first count after which another replica shortens `times` by less than `gain`
    (a factor above 1; over a wider step, that factor for each replica of it)."""
    for i in range(len(counts) - 1):
        if times[i] <= times[i + 1] * gain ** (counts[i + 1] - counts[i]):
            return i
    return len(counts) - 1


def spread(first: int, last: int, extra: int) -> set[int]:
    """Positions first ... last, both in, with up to `extra` between them, evenly by ratio."""
    ratio = (last + 1) / (first + 1)
    inner = (round((first + 1) * ratio ** (k / (extra + 1))) - 1 for k in range(1, extra + 1))
    return {first, last, *inner}
