"""Figures behind the charts of an answered plan that the answer itself does not carry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from advisor.core.deployment import as_answered, deployed
from advisor.core.load_curve import growing, load_curve
from advisor.core.operating_point import roofline
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest

_OF_A_WAY = (
    "hardware", "accelerators", "replicas", "tensor_parallel", "pipeline_parallel",
    "expert_parallel", "attention_data_parallel", "decode_context_parallel", "precision",
)  # fmt: skip


PARTS: Mapping[str, Any] = {"load_curve": None, "roofline": None, "ways": (), "crossing_loads": ()}
"""The figures there are, and each where there is no plan to show."""


def plan_figures(
    request: PlanRequest, answer: Mapping[str, Any], wanted: Collection[str] = tuple(PARTS)
) -> dict[str, Any]:
    """Of the plan recommended, or else the nearest: its latencies by load (`load_curve`) and its
    `roofline`; of each way to spend its accelerators the same curve (`ways`), and the loads at
    which the best of them changes (`crossing_loads`). All empty where there is neither plan; only
    what is `wanted` is computed.

    InvalidInput where the request no longer gives the plan that was answered.
    """
    subject = answer["recommended"] or answer["nearest"]
    if subject is None:
        return {name: PARTS[name] for name in wanted}
    found = as_answered(request, subject, growing(request.workload))
    makers: dict[str, Callable[[], Any]] = {
        "load_curve": lambda: load_curve(request, found, subject["replicas"]),
        "roofline": lambda: roofline(found, subject),
        "ways": lambda: _ways(request, answer),
        "crossing_loads": lambda: _crossings(request, answer),
    }
    return {name: makers[name]() for name in wanted}


def _ways(request: PlanRequest, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each way to spend the plan's accelerators that the request still gives, and its curve."""
    varied = growing(request.workload)
    ways = []
    for way in answer["replicas_vs_tensor_parallel"]:
        alone = deployed(request, way, varied)
        if alone is not None:
            named = {name: way[name] for name in _OF_A_WAY}
            ways.append(named | load_curve(request, alone, way["replicas"]))
    return ways


def _crossings(request: PlanRequest, answer: Mapping[str, Any]) -> Any:
    """The crossing loads, computed where the answer was asked for without them."""
    if answer["crossing_loads"] is not None:
        return answer["crossing_loads"]
    return plan(replace(request, explain="full", verify=False)).crossings
