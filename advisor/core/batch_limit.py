"""The largest batch that keeps TPOT within its SLOs: more sequences wait for a place in it instead
of slowing each other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceCurves
from advisor.core.closed_load import saturated
from advisor.core.load import Replicas
from advisor.core.units import MS_PER_S
from advisor.core.workload import Speculation, Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def largest_batch(
    curves: ServiceCurves,
    slots: Index,
    workload: Workload,
    slo: Mapping[str, Array],
    speculation: Speculation,
) -> Index:
    """Of each layout the most sequences, up to its `slots`, of a full replica whose TPOT meets
    every SLO on it, (layouts,); `slots` where none is on it, or where one sequence alone misses
    it. `slo` has the limit of each layout [ms]."""
    limits = {key.split("_")[1]: ms / MS_PER_S for key, ms in slo.items() if key.startswith("tpot")}
    if not limits or not workload.gaps or not len(slots):
        return slots
    table = curves.table(int(slots.max()))
    layout, ones = np.arange(len(slots)), np.ones(len(slots))

    def meets(batch: Index) -> NDArray[np.bool_]:
        rows = Replicas(layout, batch, ones, np.ones_like(batch), ones, speculation=speculation)
        tpot = saturated(table, rows, workload).latency["tpot"]
        met = [tpot.at(statistic) <= limit for statistic, limit in limits.items()]
        return np.asarray(np.all(met, axis=0))

    low, high = np.ones_like(slots), slots.copy()
    unbound = meets(slots) | ~meets(low)
    while (high - low > 1).any():
        middle = (low + high) // 2
        met = meets(middle)
        low, high = np.where(met, middle, low), np.where(met, high, middle)
    return np.asarray(np.where(unbound, slots, low))
