"""The most that a plan serves within its SLOs: its deployment under an open load that grows.

A plan is made for one load, which may be far below what its replicas could take, and an SLO may be
missed long before they saturate. So the largest rate is sought, by halving, at which every SLO is
met and the utilization is within its limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from math import isclose
from typing import Any

import numpy as np

from advisor.core.enumeration import enumerate_layouts
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.evaluation import Evaluator
from advisor.core.fitting import evaluator
from advisor.core.slo import meets_slos
from advisor.core.workload import PlanRequest, Workload

_HALVINGS = 10
_SAME = 1e-2
"""Between the saturation that was answered and that of the deployment alone, whose curves are
interpolated between other numbers of sequences."""
_DEGREES = (
    "tensor_parallel", "pipeline_parallel", "expert_parallel", "attention_data_parallel",
    "decode_context_parallel",
)  # fmt: skip


def capacity(request: PlanRequest, candidate: Mapping[str, Any]) -> float:
    """Requests a second, within a thousandth of saturation, that an answered candidate of a request
    serves at most; arrivals are as bursty as there, at a steady rate. 0 where no rate will do.

    InvalidInput where the request no longer gives that candidate.
    """
    deployed = _deployed(request, candidate)
    found, _ = evaluator(deployed, enumerate_layouts(deployed)[0])
    serving = candidate["replicas"] - request.limits.spare_replicas
    each = serving * request.serving.router_efficiency
    saturation = each * float(found.saturation[0]) if len(found.layouts) == 1 else 0.0
    if not isclose(saturation, candidate["throughput"]["saturation_requests_per_s"],
                   rel_tol=_SAME):  # fmt: skip
        detail = "What it was made from has changed since: its profiles, or how plans are computed."
        raise InvalidInput(FieldError("", detail))
    low, high = 0.0, saturation * request.limits.max_utilization
    if _holds(found, serving, high):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _holds(found, serving, middle) else (low, middle)
    return low


def _deployed(request: PlanRequest, candidate: Mapping[str, Any]) -> PlanRequest:
    """The request with all that was left to the planner as the candidate has it, its load open."""
    degrees: dict[str, Any] = {name: (candidate[name],) for name in _DEGREES}
    engine = candidate["serving"]
    return replace(
        request,
        hardware=tuple(each for each in request.hardware if each.name == candidate["hardware"]),
        workload=_open(request.workload, 1.0),
        objective="latency",
        weights=(candidate["precision"]["weights"],),
        kv_cache=(candidate["precision"]["kv_cache"],),
        limits=replace(request.limits, **degrees),
        serving=replace(
            request.serving, engine_version=engine["engine_version"],
            max_num_seqs=engine["max_num_seqs"],
            max_num_batched_tokens=engine["max_num_batched_tokens"],
        ),
    )  # fmt: skip


def _open(workload: Workload, rate: float) -> Workload:
    """The same requests, arriving at a rate [1/s]."""
    return replace(
        workload, request_rate_per_s=rate, peak_to_mean=1.0, concurrency=None, saturate=False,
        start="steady", num_requests=None, trace=None,
    )  # fmt: skip


def _holds(found: Evaluator, serving: int, rate: float) -> bool:
    """Whether the replicas that serve meet every SLO at a rate [1/s]."""
    loaded, request = copy(found), found.request
    loaded.request = replace(request, workload=_open(request.workload, rate))
    served = loaded.serve(np.array([0]), np.array([serving]))
    met = meets_slos(served, request.slo, request.workload.gaps)
    return bool(met[0]) and str(served.verdict[0]) == "stable"
