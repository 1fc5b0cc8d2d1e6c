"""Choosing among evaluated plans: the best by a score, the Pareto front and its knee."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FREE = 1e-9
"""A cost that stands for 0 on a log axis."""

TIE = 0.005
"""Plans within 0.5 % of the best are equal: fewer accelerators win, then the surer one, then the
smaller TP."""

MATERIAL = 0.05
"""Plans are equally sure whose probabilities of meeting the SLOs differ by no more."""


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
    score: Array,
    eligible: Mask,
    accelerators: Index,
    probability: Callable[[Index], Array],
    tensor_parallel: Index,
) -> int | None:
    """The eligible row with the smallest score (all positive); ties as `TIE` and `MATERIAL` say.
    `probability` tells how likely rows are to meet their SLOs."""
    usable = eligible & np.isfinite(score)
    if not usable.any():
        return None
    rows = np.flatnonzero(usable & (score <= np.min(score[usable]) * (1 + TIE)))
    rows = rows[accelerators[rows] == accelerators[rows].min()]
    if len(rows) > 1:
        likely = probability(rows)
        rows = rows[likely >= likely.max() - MATERIAL]
    order = np.lexsort((score[rows], tensor_parallel[rows]))
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
