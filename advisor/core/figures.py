"""Figures behind the charts of an answered plan that the answer itself does not carry."""

from __future__ import annotations

from collections.abc import Mapping
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


def plan_figures(request: PlanRequest, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Of the plan recommended, or else the nearest: its latencies by load (`load_curve`) and its
    `roofline`; of each way to spend its accelerators the same curve (`ways`), and the loads at
    which the best of them changes (`crossing_loads`). All empty where there is neither plan.

    InvalidInput where the request no longer gives the plan that was answered.
    """
    subject = answer["recommended"] or answer["nearest"]
    if subject is None:
        return {"load_curve": None, "roofline": None, "ways": [], "crossing_loads": []}
    varied = growing(request.workload)
    found = as_answered(request, subject, varied)
    ways = []
    for way in answer["replicas_vs_tensor_parallel"]:
        alone = deployed(request, way, varied)
        if alone is not None:
            named = {name: way[name] for name in _OF_A_WAY}
            ways.append(named | load_curve(request, alone, way["replicas"]))
    crossing = answer["crossing_loads"]
    if crossing is None:
        crossing = plan(replace(request, explain="full", verify=False)).crossings
    return {
        "load_curve": load_curve(request, found, subject["replicas"]),
        "roofline": roofline(found, subject),
        "ways": ways,
        "crossing_loads": crossing,
    }
