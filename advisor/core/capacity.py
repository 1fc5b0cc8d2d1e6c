"""The most that a plan serves within its SLOs: its deployment under an open load that grows.

A plan is made for one load, which may be far below what its replicas could take, and an SLO may be
missed long before they saturate. So the largest rate is sought, by halving, at which every SLO is
met and the utilization is within its limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from advisor.core.deployment import as_answered, open_load, saturation_per_s, under
from advisor.core.evaluation import Evaluator
from advisor.core.slo import meets_slos
from advisor.core.workload import PlanRequest

_HALVINGS = 10


def capacity(request: PlanRequest, candidate: Mapping[str, Any]) -> float:
    """Requests a second, within a thousandth of saturation, that an answered candidate of a request
    serves at most; arrivals are as bursty as there, at a steady rate. 0 where no rate will do.

    InvalidInput where the request no longer gives that candidate.
    """
    found = as_answered(request, candidate, open_load(request.workload, 1.0))
    serving = candidate["replicas"] - request.limits.spare_replicas
    saturation = saturation_per_s(found, candidate["replicas"])
    low, high = 0.0, saturation * request.limits.max_utilization
    if _holds(found, serving, high):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _holds(found, serving, middle) else (low, middle)
    return low


def _holds(found: Evaluator, serving: int, rate: float) -> bool:
    """Whether the replicas that serve meet every SLO at a rate [1/s]."""
    request = found.request
    loaded = under(found, open_load(request.workload, rate))
    served = loaded.serve(np.array([0]), np.array([serving]))
    met = meets_slos(served, request.slo, request.workload.gaps)
    return bool(met[0]) and str(served.verdict[0]) == "stable"
