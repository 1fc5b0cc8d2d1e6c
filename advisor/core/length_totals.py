"""How long several requests are together, of lengths that are a mixture: neither normal nor
log-normal while they are few, since there is a long one among them or there is not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.lengths import Length

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_COUNTED = 64
"""Totals of up to so many requests are tabulated; of more, deviations shrink as a mean's do."""

FINE = (*(i / 20 for i in range(20)), 0.97, 0.985, 1.0)
COARSE = (0.0, 0.5, 0.9, 1.0)
"""Shares of the requests, from short to long, that a node stands for."""

_SPREAD = np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0])
_OF_NORMAL = np.array([1 / 6, 2 / 3, 1 / 6])
"""Gauss-Hermite: a normal variable by three nodes, exact in its first five moments."""


@dataclass(frozen=True)
class Totals:
    """The total of k lengths over that of k mean ones: `factors` (k from 0, nodes), none falling
    from node to node, and the chance of each node."""

    factors: Array
    chances: Array

    def of(self, together: Index) -> Array:
        """Factors of so many requests, an array of any shape, in a new first axis of nodes."""
        counted = np.minimum(together, _COUNTED)
        fewer = np.sqrt(np.maximum(counted, 1) / np.maximum(together, 1))
        return np.asarray(np.moveaxis(1 + (self.factors[counted] - 1) * fewer[..., None], -1, 0))


@lru_cache(maxsize=256)
def totals(length: Length, cuts: tuple[float, ...]) -> Totals:
    """Totals by nodes between these shares. The mean is kept, and so is the variance as far as no
    length falls below 0. Requests are added one by one, and cut to the nodes again each time."""
    values, chances = _cut(*_one(length), cuts)
    found, total = [np.ones_like(values), values], values
    for count in range(2, _COUNTED + 1):
        both = np.add.outer(total, values).ravel()
        total, _ = _cut(both, np.multiply.outer(chances, chances).ravel(), cuts)
        found.append(total / count)
    deviations, counts = np.array(found) - 1, np.arange(_COUNTED + 1)
    # Means of a share of the requests lie closer together than they: moved apart, none below 0.
    kept = np.sqrt(np.maximum(deviations**2 @ chances, 1e-300))
    wider = np.sqrt(length.squared_cv / np.maximum(counts, 1)) / kept
    wider = np.minimum(wider, 1 / np.maximum(-deviations[:, 0], 1e-300))
    return Totals(1 + deviations * wider[:, None], chances)


def _one(length: Length) -> tuple[Array, Array]:
    """One length over the mean, and chances: each component by three nodes if it is log-normal."""
    values, chances = [], []
    for one in length.components:
        nodes, weights = (_SPREAD, _OF_NORMAL) if one.sigma else (np.zeros(1), np.ones(1))
        each = np.exp(nodes * one.sigma)
        values.append(one.mean / length.mean * each / (weights @ each))
        chances.append(one.share * weights)
    return np.concatenate(values), np.concatenate(chances)


def _cut(values: Array, chances: Array, cuts: tuple[float, ...]) -> tuple[Array, Array]:
    """Means between the shares at which the distribution is cut, and these shares' widths."""
    order = np.argsort(values)
    ends = np.cumsum(chances[order]) / chances.sum()
    upto = np.concatenate([[0.0], np.cumsum(values[order] * np.diff(ends, prepend=0.0))])
    widths = np.diff(cuts)
    return np.diff(np.interp(cuts, np.concatenate([[0.0], ends]), upto)) / widths, widths
