"""The largest batch that keeps TPOT within its SLOs: more sequences wait for a place in it instead
of slowing each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceCurves, ServiceTable
from advisor.core.closed_load import saturated
from advisor.core.load import Replicas
from advisor.core.slo import meets_slos
from advisor.core.workload import Speculation, Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_TRIED = 32
"""Parts that a range of batches is cut into, and tried at once."""


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
    limits = {key: limit_ms for key, limit_ms in slo.items() if key.startswith("tpot")}
    if not limits or not workload.gaps or not len(slots):
        return slots
    table, ends = curves.table(int(slots.max())), np.stack([np.ones_like(slots), slots], axis=1)

    def meets(batches: Index) -> NDArray[np.bool_]:
        """Which of the batches (layouts, tried) do, on curves of one sequence and of the batch."""
        count = batches.size
        alone_and_all = np.stack([np.ones(count, dtype=np.int64), batches.ravel()], axis=1) - 1
        layout = np.repeat(np.arange(len(batches)), batches.shape[1])[:, None]
        curve = (getattr(table, field.name)[layout, alone_and_all] for field in fields(table))
        ones, row = np.ones(count), np.arange(count)
        rows = Replicas(row, row * 0 + 2, ones, row * 0 + 1, ones, speculation=speculation)
        served = saturated(ServiceTable(*curve), rows, workload)
        of_rows = {key: np.repeat(limit_ms, batches.shape[1]) for key, limit_ms in limits.items()}
        return meets_slos(served, of_rows, workload.gaps).reshape(batches.shape)

    of_ends, row = meets(ends), np.arange(len(slots))
    while (ends[:, 1] - ends[:, 0] > 1).any():
        tried = ends[:, :1] + np.diff(ends) * np.arange(_TRIED + 1) // _TRIED
        met = meets(tried)
        met[:, 0], met[:, -1] = True, False
        first = np.argmin(met, axis=1)
        ends = np.stack([tried[row, first - 1], tried[row, first]], axis=1)
    return np.asarray(np.where(of_ends[:, 0] & ~of_ends[:, 1], ends[:, 0], slots))
