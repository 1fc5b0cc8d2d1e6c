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
    used, local = np.unique(rows.layout, return_inverse=True)
    table = curves.table(columns, used)
    if workload.mode == "open":
        return open_load(curves, table, rows, local, workload)
    evaluate = closed if workload.mode == "closed" else saturated
    return evaluate(table, replace(rows, layout=local), workload)
