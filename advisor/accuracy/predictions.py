"""Predictions beside measurements, row by row: `predictions.csv`, written by `make accuracy`.

Mean TPOT at fixed concurrency, each row predicted by coefficients fitted without it, and the
interval that held for four of five such rows [ms].
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

from advisor.accuracy.compare import Residual
from advisor.accuracy.intervals import Width
from advisor.core.answer import rounded

METRIC, LOAD, BASIS = "tpot_mean_ms", "fixed_concurrency", "interpolated"
COLUMNS = ("id", "kind", "engine", "device", "model", "measured", "predicted", "low", "high")
_WORDS = COLUMNS[:5]


def as_csv(residuals: Iterable[Residual], widths: Sequence[Width]) -> str:
    """The file, from residuals of rows that no fit has seen, and the widths of intervals."""
    ends = {w.kind: w for w in widths if (w.metric, w.basis) == ("tpot", BASIS)}
    target = io.StringIO(newline="")
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in sorted(residuals, key=lambda one: one.row.id):
        if (each.metric, each.row.load) == (METRIC, LOAD):
            row, width = each.row, ends[each.row.kind]
            interval = (each.predicted * math.exp(end) for end in (width.low, width.high))
            words = (row.id, row.kind, row.engine, row.device, row.model)
            figures = (each.measured, each.predicted, *interval)
            writer.writerow((*words, *(rounded(figure) for figure in figures)))
    return target.getvalue()


def predictions() -> dict[str, Any]:
    """What the file holds, as the chart `accuracy` takes it."""
    text = resources.files("advisor.accuracy").joinpath("predictions.csv").read_text("utf-8")
    rows = [
        {name: value if name in _WORDS else float(value) for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]
    return {"predictions": rows}
