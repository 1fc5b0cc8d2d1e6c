"""How far measured values lie from predictions, by what a fit knew of the case: the widths of the
intervals that answers carry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.accuracy.compare import Residual
from advisor.accuracy.rows import Row, device_of

METRIC_OF = {
    "tpot_mean_ms": "tpot", "itl_mean_ms": "tpot", "ttft_mean_ms": "ttft",
    "output_tokens_per_s": "throughput",
}  # fmt: skip
LEVEL = 0.8
"""Share of the cases that an interval is to hold."""

_FEWEST = 12
"""Fewer residuals than these say too little of their tails: the next wider basis is taken."""


@dataclass(frozen=True)
class Width:
    """Logarithms of measured over predicted at both ends of the interval."""

    metric: str
    kind: str
    basis: str
    rows: int
    low: float
    high: float


def counts(residual: Residual) -> bool:
    """Whether a residual tells of an interval: what is served of an open load is what comes."""
    served = residual.metric == "output_tokens_per_s"
    return residual.metric in METRIC_OF and not (served and residual.row.load == "open")


def widths(by_basis: Mapping[str, Iterable[Residual]]) -> list[Width]:
    """The width for each metric, kind of model and basis, from residuals of predictions that knew
    as much as the basis says: conformal, from the ranks of the residuals themselves."""
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for basis, residuals in by_basis.items():
        for each in residuals:
            if counts(each):
                key = METRIC_OF[each.metric], each.row.kind, basis
                groups[key].append(-each.log_ratio)
    found = []
    for metric in ("tpot", "ttft", "throughput"):
        for kind in ("dense", "moe"):
            least = (0.0, 0.0)
            for basis in ("measured", "interpolated", "physics"):
                logs = groups.get((metric, kind, basis), [])
                if len(logs) >= _FEWEST:
                    low, high = _ends(logs)
                    least = min(least[0], low), max(least[1], high)
                found.append(Width(metric, kind, basis, len(logs), *least))
    return found


def _ends(logs: Sequence[float]) -> tuple[float, float]:
    """The ranks that leave out a tenth on each side, a little further out as there are few."""
    tail = (1 - LEVEL) / 2
    ordered, count = np.sort(logs), len(logs)
    low = int(np.floor(tail * (count + 1))) - 1
    return float(ordered[max(low, 0)]), float(ordered[min(count - 1 - low, count - 1)])


def measured_cases(rows: Iterable[Row]) -> list[str]:
    """Engine, device and model of every row, and engine, generation and kind of model."""
    cases = set()
    for row in rows:
        cases.add(f"{row.engine}/{row.device}/{row.model}")
        cases.add(f"{row.engine}/{device_of(row).generation}/{row.kind}")
    return sorted(cases)


def as_toml(found: Iterable[Width], cases: Sequence[str]) -> str:
    """`residuals.toml`."""
    lines = [
        "# How far measured values lay from predictions, as logarithms of measured over predicted",
        "# at both ends of an interval that held four of five. Written by `make accuracy`.",
        "# `basis`: what the fit had seen: `measured` (this engine, device and model),",
        "# `interpolated` (other models or devices), `physics` (nothing of this generation).",
        "",
        "measured = [",
        *(f'    "{case}",' for case in cases),
        "]",
    ]
    for each in found:
        lines += [
            "",
            "[[width]]",
            f'metric = "{each.metric}"',
            f'kind = "{each.kind}"',
            f'basis = "{each.basis}"',
            f"rows = {each.rows}",
            f"low = {each.low:.3f}",
            f"high = {each.high:.3f}",
        ]
    return "\n".join(lines) + "\n"
