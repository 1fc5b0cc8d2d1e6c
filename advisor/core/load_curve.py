"""What an answered plan does as its load grows: latencies from an idle deployment to a full one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.answer import rounded
from advisor.core.deployment import open_load, saturation_per_s
from advisor.core.evaluation import Evaluator
from advisor.core.load import Served
from advisor.core.units import MS_PER_S
from advisor.core.workload import PlanRequest, Workload

Array = NDArray[np.float64]

SHARES = (
    0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8,
    0.84, 0.88, 0.91, 0.94, 0.96, 0.98, 0.99,
)  # fmt: skip
"""Of saturation, at which an open load is looked at."""

_FULL = 2
"""Clients looked at, in multiples of what runs at once."""
_CLIENTS = 24
_METRICS = ("ttft", "itl", "e2e")
_STATISTICS = ("p50", "p95", "p99")


def growing(workload: Workload) -> Workload:
    """The load whose size a curve varies: of a saturating one and of a trace an open one, of a
    burst its closed loop, else itself."""
    if workload.mode == "closed":
        return replace(workload, start="steady", num_requests=None)
    if workload.request_rate_per_s is None or workload.trace is not None:
        return open_load(workload, 1.0)
    return workload


def load_curve(request: PlanRequest, found: Evaluator, replicas: int) -> dict[str, Any]:
    """Latencies [ms] of so many replicas of a deployment by its load: `request_rate_per_s`, up to
    `saturation` [requests/s on average], or `concurrency`, which has none. `p95_range` is where
    four of five measurements like it lay. Latencies are null where they are not defined."""
    workload, serving = found.request.workload, replicas - request.limits.spare_replicas
    closed = workload.mode == "closed"
    saturation = saturation_per_s(found, replicas) / workload.peak_to_mean
    loads = _clients(found, serving) if closed else _rates(saturation)
    rows = np.zeros(len(loads), dtype=np.int64)
    served = found.serve(rows, np.full(len(loads), serving), loads)
    return {
        "load": "concurrency" if closed else "request_rate_per_s",
        "saturation": None if closed else rounded(saturation),
        "points": [_point(found, served, i, float(load)) for i, load in enumerate(loads)],
    }


def _rates(saturation: float) -> Array:
    """Requests a second, as they are answered."""
    return np.array([rounded(share * saturation) for share in SHARES], dtype=np.float64)


def _clients(found: Evaluator, serving: int) -> Array:
    most = _FULL * int(found.slots[0]) * serving
    return np.unique(np.geomspace(1, most, _CLIENTS).round())


def _point(found: Evaluator, served: Served, row: int, load: float) -> dict[str, Any]:
    point: dict[str, Any] = {"load": load}
    for metric in _METRICS:
        latency = served.latency[metric]
        values = {name: float(latency.at(name)[row]) * MS_PER_S for name in _STATISTICS}
        ends = found.regimes[0].width(metric).around(values["p95"])
        point[f"{metric}_ms"] = {
            **{name: rounded(value) for name, value in values.items()},
            "p95_range": [rounded(end) for end in ends],
        }
    return point
