"""The number of sequences in service, and what follows from it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceTable
from advisor.core.latency import LEVELS

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class PickedCurves:
    """The curves of each row's layout."""

    def __init__(self, curves: ServiceTable, layout: Index) -> None:
        self.own_prefill = curves.own_prefill[layout]
        self.decode_step = curves.decode_step[layout]
        self.mixed_step = curves.mixed_step[layout]
        self.tpot = curves.tpot[layout]
        self.mixed_share = curves.mixed_share[layout]
        self.prompt_time = curves.prompt_time[layout]
        self.prompt_load = curves.prompt_load[layout]
        self.room = curves.room[layout]

    @cached_property
    def decode_rest(self) -> Array:
        """Mean rest of the decode step under way when a request arrives, half of it; 0 when the
        replica is empty (n = 1 counts the arrival itself)."""
        rest = self.decode_step / 2
        rest[:, 0] = 0.0
        return np.asarray(rest)


class States:
    """The distribution of the number in service that requests are served in, (rows, columns)."""

    def __init__(self, found: Array) -> None:
        self.found = found
        rows, columns = found.shape
        self._row = np.arange(rows)[:, None]
        reached = np.minimum(np.cumsum(found, axis=1), 1.0) + 2.0 * self._row
        self._reached, self._columns = reached.ravel(), columns

    def mean(self, curve: Array) -> Array:
        """Mean of a function of the number in service, (rows,)."""
        return np.asarray(np.vecdot(self.found, curve))

    def quantiles(self, curve: Array, level: Array | None = None) -> Array:
        """Values of a rising function at the states of each level, (levels,) or (rows, levels), of
        `LEVELS` if None."""
        index = self._at_levels if level is None else self._index(level)
        return np.asarray(curve[self._row, index])

    @cached_property
    def _at_levels(self) -> Index:
        return self._index(LEVELS)

    def _index(self, level: Array) -> Index:
        index = np.searchsorted(self._reached, level + 2.0 * self._row)
        found = np.maximum(index - self._row * self._columns, 0)
        return np.asarray(np.minimum(found, self._columns - 1))


def standing_at(in_service: Array, columns: int) -> States:
    """The distribution that stands at one, possibly fractional, number in service."""
    n = np.maximum(in_service, 1.0)
    low = np.floor(n).astype(int)
    part = n - low
    row = np.arange(len(n))
    found = np.zeros((len(n), columns))
    found[row, low - 1] = 1 - part
    found[row, np.minimum(low, columns - 1)] += part
    return States(found)
