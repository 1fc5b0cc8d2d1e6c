"""Choosing among evaluated plans: the best by a score, the Pareto front and its knee."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FREE = 1e-9
"""A cost that stands for 0 on a log axis."""

TIE = 0.005
"""Plans within 0.5 % of the best are equal: fewer accelerators win, then the smaller TP."""


def pareto_front(latency: Array, cost: Array) -> NDArray[np.int64]:
    """Rows that no other row beats in one without losing in the other, by rising cost.

    Rows with a NaN are not on the front.
    """
    rows = np.flatnonzero(np.isfinite(latency) & np.isfinite(cost))
    order = rows[np.lexsort((latency[rows], cost[rows]))]
    best = np.minimum.accumulate(latency[order])
    earlier = np.concatenate([[np.inf], best[:-1]])
    return order[latency[order] < earlier]


def best_of(
    score: Array, eligible: Mask, accelerators: Index, tensor_parallel: Index
) -> int | None:
    """The eligible row with the smallest score (all positive); ties as `TIE` says."""
    usable = eligible & np.isfinite(score)
    if not usable.any():
        return None
    rows = np.flatnonzero(usable & (score <= np.min(score[usable]) * (1 + TIE)))
    order = np.lexsort((score[rows], tensor_parallel[rows], accelerators[rows]))
    return int(rows[order[0]])


def knee(latency: Array, cost: Array, eligible: Mask) -> int | None:
    """The row of the eligible front furthest from the chord between its ends, on log axes."""
    front = pareto_front(np.where(eligible, latency, np.nan), np.where(eligible, cost, np.nan))
    if not len(front):
        return None
    x, y = np.log(np.maximum(cost[front], _FREE)), np.log(latency[front])
    width, height = x[-1] - x[0], y[-1] - y[0]
    if width == 0 or height == 0:
        return int(front[0])
    below = (x - x[0]) / width - (y - y[0]) / height
    return int(front[np.argmax(np.abs(below))])
