"""Predicted against measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.charts.chart import Axis, Chart, Column, Series, Table

_KINDS = {"dense": "dense models", "moe": "mixture of experts"}
_COLUMNS = (
    Column("id", "Benchmark"), Column("kind", "Model is"), Column("engine", "Engine"),
    Column("device", "Accelerator"), Column("model", "Model"), Column("measured", "Measured", "ms"),
    Column("predicted", "Predicted", "ms"), Column("low", "Interval from", "ms"),
    Column("high", "Interval to", "ms"),
)  # fmt: skip


def accuracy(answer: Mapping[str, Any]) -> Chart | None:
    """Mean TPOT of public benchmarks, each predicted by a fit that has not seen it, with the
    interval that answers carry. None of anything but `predictions`."""
    rows = answer.get("predictions")
    if not rows:
        return None
    held = sum(row["low"] <= row["measured"] <= row["high"] for row in rows)
    errors = sorted(abs(row["predicted"] / row["measured"] - 1) for row in rows)
    ends = min(row["measured"] for row in rows), max(row["measured"] for row in rows)
    return Chart(
        name="accuracy",
        title="Mean TPOT: predicted against measured",
        summary=(
            f"{len(rows)} public benchmarks at fixed concurrency, each predicted by coefficients "
            f"fitted without it: half are off by less than {100 * errors[len(rows) // 2]:.0f} %, "
            f"and {100 * held / len(rows):.0f} % lie within their interval."
        ),
        x=Axis("Measured", "ms", "log"),
        y=Axis("Predicted", "ms", "log"),
        series=(
            Series("predicted = measured", "line", ends, ends),
            *(_of_kind(words, [row for row in rows if row["kind"] == kind])
              for kind, words in _KINDS.items()),
        ),
        notes=("The bars are intervals that held for four of five such rows.",),
        table=Table(_COLUMNS, tuple(tuple(row[c.name] for c in _COLUMNS) for row in rows)),
    )  # fmt: skip


def _of_kind(words: str, rows: list[Mapping[str, Any]]) -> Series:
    measured, predicted, low, high = (
        tuple(row[name] for row in rows) for name in ("measured", "predicted", "low", "high")
    )
    labels = tuple(f"{row['model']} on {row['device']}, {row['engine']}" for row in rows)
    return Series(words, "points", measured, predicted, low, high, labels)
