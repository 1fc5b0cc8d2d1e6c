"""Predictions beside measurements: log ratios by row, medians by regime."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.accuracy.closed_form import Refused
from advisor.accuracy.rows import METRICS, Row

Predictor = Callable[[Row], Mapping[str, float]]
"""Metrics of a row by name; those it leaves out are not compared. Refused: none can be told."""


@dataclass(frozen=True)
class Residual:
    """One metric of one row."""

    row: Row
    metric: str
    predicted: float
    measured: float

    @property
    def log_ratio(self) -> float:
        """ln(predicted / measured): 0 is right, above it the prediction is too large."""
        return math.log(self.predicted / self.measured)

    @property
    def relative_error(self) -> float:
        """|predicted / measured - 1|."""
        return abs(self.predicted / self.measured - 1)

    @property
    def regime(self) -> tuple[str, str, str]:
        """Metric, kind of load, and dense or MoE."""
        return self.metric, self.row.load, self.row.kind


@dataclass(frozen=True)
class Comparison:
    """The residuals of some rows, and those the predictor refused, with its code."""

    residuals: tuple[Residual, ...]
    refused: tuple[tuple[Row, str], ...]


@dataclass(frozen=True)
class Score:
    """How a group of residuals lies: how many, the median ratio of predicted to measured, median
    and 90th percentile of the absolute relative error."""

    name: tuple[str, ...]
    count: int
    ratio: float
    median: float
    p90: float


def compare(rows: Iterable[Row], predict: Predictor) -> Comparison:
    """Every metric that was measured and is predicted."""
    residuals: list[Residual] = []
    refused: list[tuple[Row, str]] = []
    for row in rows:
        try:
            found = predict(row)
        except Refused as refusal:
            refused.append((row, refusal.code))
            continue
        residuals += [
            Residual(row, metric, found[metric], row.measured[metric])
            for metric in METRICS
            if metric in row.measured and metric in found
        ]
    return Comparison(tuple(residuals), tuple(refused))


def scores(
    residuals: Iterable[Residual], by: Callable[[Residual], tuple[str, ...]] | None = None
) -> list[Score]:
    """The score of each regime, or of each group that `by` names, sorted by name."""
    groups: dict[tuple[str, ...], list[Residual]] = defaultdict(list)
    for each in residuals:
        groups[by(each) if by else each.regime].append(each)
    return [_score(name, group) for name, group in sorted(groups.items())]


def worst(residuals: Iterable[Residual], count: int) -> list[Residual]:
    """The `count` residuals furthest from 0 in log ratio, the furthest first."""
    return sorted(residuals, key=lambda each: -abs(each.log_ratio))[:count]


def markdown(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    table = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in table)


def score_table(found: Iterable[Score], names: Sequence[str]) -> str:
    """Scores as a Markdown table, errors in percent; `names` head the columns of their names."""
    header = [*names, "rows", "predicted / measured", "median error", "p90"]
    return markdown(
        header,
        (
            [*s.name, s.count, f"{s.ratio:.2f}", f"{s.median:.1%}", f"{s.p90:.0%}"]
            for s in found
        ),
    )  # fmt: skip


def _score(name: tuple[str, ...], group: Sequence[Residual]) -> Score:
    errors = [each.relative_error for each in group]
    ratio = float(np.exp(np.median([each.log_ratio for each in group])))
    return Score(name, len(group), ratio, float(np.median(errors)), float(np.quantile(errors, 0.9)))
