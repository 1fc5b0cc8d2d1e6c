"""Rows of plans under whichever load is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from advisor.core.batching import ServiceCurves
from advisor.core.closed_load import closed, saturated
from advisor.core.load import Replicas, Served
from advisor.core.open_load import open_load
from advisor.core.workload import Workload


def serve(curves: ServiceCurves, rows: Replicas, columns: int, workload: Workload) -> Served:
    """Evaluate every row, with no more than `columns` sequences in service."""
    if workload.mode == "open":
        return open_load(curves, rows, columns, workload)
    used, local = np.unique(rows.layout, return_inverse=True)
    table, rows = curves.table(columns, used), replace(rows.within(columns), layout=local)
    evaluate = closed if workload.mode == "closed" else saturated
    return evaluate(table, rows, workload)
