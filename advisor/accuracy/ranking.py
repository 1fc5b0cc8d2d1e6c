"""Whether the predictions choose the tensor parallelism that was measured as best, and how well
they tell what more of it brings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from advisor.accuracy.closed_form import Refused
from advisor.accuracy.compare import Predictor
from advisor.accuracy.rows import Row


@dataclass(frozen=True)
class Choice:
    """One set of conditions measured at two tensor parallel degrees or more: the row of the degree
    that the predictor takes, and of the one that served most output tokens per accelerator."""

    chosen: Row
    best: Row

    @property
    def share_lost(self) -> float:
        """Share of the best measured throughput per accelerator that the choice gives away."""
        return 1 - _per_accelerator(self.chosen) / _per_accelerator(self.best)


@dataclass(frozen=True)
class Scaling:
    """What the largest tensor parallel degree serves as a multiple of the smallest, under the same
    conditions: predicted and measured."""

    small: Row
    large: Row
    predicted: float
    measured: float


def choices(rows: Iterable[Row], predict: Predictor) -> list[Choice]:
    """The choice under every set of conditions. A layout that is refused is not chosen."""
    return [
        Choice(
            max(group, key=lambda row: _predicted(row, predict) / row.accelerators),
            max(group, key=_per_accelerator),
        )
        for group in _groups(rows)
    ]


def scalings(rows: Iterable[Row], predict: Predictor) -> list[Scaling]:
    """The gain of the largest degree under every set of conditions whose rows are not refused."""
    found = []
    for group in _groups(rows):
        small, *_, large = sorted(group, key=lambda row: row.tensor_parallel)
        predicted = [_predicted(row, predict) for row in (small, large)]
        if all(predicted):
            gain = _measured(large) / _measured(small)
            found.append(Scaling(small, large, predicted[1] / predicted[0], gain))
    return found


def _groups(rows: Iterable[Row]) -> list[list[Row]]:
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.throughput is not None:
            groups[_conditions(row)].append(row)
    return [each for each in groups.values() if len({row.tensor_parallel for row in each}) > 1]


def _conditions(row: Row) -> tuple[object, ...]:
    """What two rows share if only the layout differs."""
    return (
        row.source, row.engine, row.engine_version, row.model, row.device, row.weights,
        row.kv_cache, row.pipeline_parallel, row.input_tokens, row.output_tokens, row.lengths,
        row.load, row.concurrency, row.request_rate_per_s, row.requests,
    )  # fmt: skip


def _predicted(row: Row, predict: Predictor) -> float:
    try:
        return predict(row)["output_tokens_per_s"]
    except Refused:
        return 0.0


def _per_accelerator(row: Row) -> float:
    return _measured(row) / row.accelerators


def _measured(row: Row) -> float:
    assert row.throughput is not None
    return row.throughput
