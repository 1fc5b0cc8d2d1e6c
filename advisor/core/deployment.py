"""An answered plan as a question of its own: its deployment fixed, under another load."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from math import isclose
from typing import Any

from advisor.core.enumeration import enumerate_layouts
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.evaluation import Evaluator
from advisor.core.fitting import evaluator
from advisor.core.workload import PlanRequest, Workload

_SAME = 1e-2
"""Between the saturation that was answered and that of the deployment alone, whose curves are
interpolated between other numbers of sequences."""
_DEGREES = (
    "tensor_parallel", "pipeline_parallel", "expert_parallel", "attention_data_parallel",
    "decode_context_parallel",
)  # fmt: skip


def open_load(workload: Workload, rate: float) -> Workload:
    """The same requests, arriving at a steady rate [1/s]."""
    return replace(
        workload, request_rate_per_s=rate, peak_to_mean=1.0, concurrency=None, saturate=False,
        start="steady", num_requests=None, trace=None,
    )  # fmt: skip


def deployed(
    request: PlanRequest, candidate: Mapping[str, Any], workload: Workload
) -> Evaluator | None:
    """The one layout of an answered candidate under `workload`, all that was left to the planner
    as the candidate has it; None where the request no longer gives that layout.

    A candidate in short, without its engine's settings, has those of the request.
    """
    degrees: dict[str, Any] = {name: (candidate[name],) for name in _DEGREES}
    serving, engine = request.serving, candidate.get("serving")
    if engine is not None:
        names = ("engine_version", "max_num_seqs", "max_num_batched_tokens")
        serving = replace(serving, **{name: engine[name] for name in names})
    alone = replace(
        request,
        hardware=tuple(each for each in request.hardware if each.name == candidate["hardware"]),
        workload=workload,
        objective="latency",
        weights=(candidate["precision"]["weights"],),
        kv_cache=(candidate["precision"]["kv_cache"],),
        limits=replace(request.limits, **degrees),
        serving=serving,
    )
    found, _ = evaluator(alone, enumerate_layouts(alone)[0])
    return found if len(found.layouts) == 1 else None


def as_answered(
    request: PlanRequest, candidate: Mapping[str, Any], workload: Workload
) -> Evaluator:
    """`deployed`, where it still saturates where the candidate was answered to. InvalidInput
    where it does not."""
    found = deployed(request, candidate, workload)
    saturation = 0.0 if found is None else saturation_per_s(found, candidate["replicas"])
    answered = candidate["throughput"]["saturation_requests_per_s"]
    if found is None or not isclose(saturation, answered, rel_tol=_SAME):
        detail = "What it was made from has changed since: its profiles, or how plans are computed."
        raise InvalidInput(FieldError("", detail))
    return found


def saturation_per_s(found: Evaluator, replicas: int) -> float:
    """Requests a second at which so many replicas of the layout saturate, spares not serving."""
    serving = replicas - found.request.limits.spare_replicas
    return serving * found.request.serving.router_efficiency * float(found.saturation[0])


def under(found: Evaluator, workload: Workload) -> Evaluator:
    """The same deployment under another load of the same kind."""
    other = copy(found)
    other.request = replace(found.request, workload=workload)
    return other
