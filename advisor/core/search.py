"""How many replicas: a ladder of counts for each layout, and the smallest count that holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    return sorted(set(_by_ratio(low, high, RUNGS)))


def smallest_holding(
    holds: Callable[[list[list[int]]], Sequence[NDArray[np.bool_]]],
    ends: Sequence[tuple[int, int]],
) -> list[int]:
    """Of each pair of ends, low and high, the smallest count between them that holds, given that
    the high one does and that a count above one that holds holds too. `holds` evaluates many counts
    of each at once."""
    ends = list(ends)
    while any(low < high for low, high in ends):
        rungs = [ladder(low, high) if low < high else [] for low, high in ends]
        for i, (counts, held) in enumerate(zip(rungs, holds(rungs), strict=True)):
            if counts:
                first = int(np.argmax(held))
                ends[i] = counts[first - 1] + 1 if first else counts[0], counts[first]
    return [high for _, high in ends]


def last_worthwhile(counts: list[int], times: NDArray[np.float64], gain: float) -> int:
    """Index of the first count after which another replica shortens `times` by less than `gain`
    (a factor above 1; over a wider step, that factor for each replica of it)."""
    for i in range(len(counts) - 1):
        if times[i] <= times[i + 1] * gain ** (counts[i + 1] - counts[i]):
            return i
    return len(counts) - 1


def spread(first: int, last: int, extra: int) -> set[int]:
    """Positions first ... last, both in, with up to `extra` between them, evenly by ratio."""
    return {first, last, *(place - 1 for place in _by_ratio(first + 1, last + 1, extra + 2))}


def _by_ratio(low: int, high: int, count: int) -> list[int]:
    """So many counts from low to high, both in, evenly by ratio and rounded."""
    return [round(low * (high / low) ** (i / (count - 1))) for i in range(count)]
