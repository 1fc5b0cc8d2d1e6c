"""What is kept of each answer: one flat row of figures, the plan that is recommended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.core.answer import CandidateWriter, rounded
from advisor.core.explanation import refusal
from advisor.core.plans import Plan

COLUMNS: Mapping[str, type] = {
    "item": int,
    "status": str,
    "model": str,
    "hardware": str,
    "objective": str,
    "request_rate_per_s": float,
    "concurrency": int,
    "input_tokens": float,
    "output_tokens": float,
    "recommended_hardware": str,
    "replicas": int,
    "tensor_parallel": int,
    "pipeline_parallel": int,
    "expert_parallel": int,
    "accelerators": int,
    "weights": str,
    "kv_cache": str,
    "cost_per_hour": str,
    "cost_per_million_output_tokens": str,
    "currency": str,
    "ttft_p95_ms": float,
    "tpot_p95_ms": float,
    "e2e_p95_ms": float,
    "output_tokens_per_s": float,
    "utilization": float,
    "slo_met": bool,
    "slo_met_probability": float,
    "fit": str,
    "pointer": str,
    "detail": str,
}
"""Names and types of the columns, in their order; each but the first five may be null.

`status` is `planned`, `no_plan` (`detail` says why) or `refused` (what is at `pointer` is at
fault, as `detail` says). Lengths are means, several devices to choose from are joined by `+`, and
money is decimal text.
"""

STATUSES = ("planned", "no_plan", "refused")

Row = dict[str, Any]


def answered(item: int, plan: Plan) -> Row:
    """The row of a plan."""
    request, workload = plan.request, plan.request.workload
    row = dict.fromkeys(COLUMNS) | {
        "item": item,
        "model": request.model.name,
        "hardware": "+".join(each.name for each in request.hardware),
        "objective": request.objective,
        "request_rate_per_s": workload.request_rate_per_s,
        "concurrency": workload.concurrency,
        "input_tokens": rounded(workload.input_tokens.mean),
        "output_tokens": rounded(workload.output_tokens.mean),
    }
    if plan.recommended is None:
        return row | {"status": "no_plan", "detail": refusal(plan)}
    # What a simulation says beside the plan is in no column.
    write = CandidateWriter(request, plan.evaluator, plan.candidates, plan.verdicts, {})
    return row | {"status": "planned", **_figures(write.one(plan.recommended))}


def refused(item: int, ask: Mapping[str, Any], pointer: str, detail: str) -> Row:
    """The row of a question that has no answer, for what is wrong at `pointer`."""
    return dict.fromkeys(COLUMNS) | {
        "item": item,
        "status": "refused",
        "model": _name(ask["model"]),
        "hardware": "+".join(_name(each) for each in ask["hardware"]),
        "objective": ask["objective"],
        "pointer": pointer,
        "detail": detail,
    }


def _name(entry: str | Mapping[str, Any]) -> str:
    return entry if isinstance(entry, str) else str(entry["name"])


def _figures(candidate: Mapping[str, Any]) -> Row:
    latency, cost, slo = candidate["latency"], candidate["cost"], candidate["slo"]
    same = ("replicas", "tensor_parallel", "pipeline_parallel", "expert_parallel", "accelerators")
    return {
        "recommended_hardware": candidate["hardware"],
        **{name: candidate[name] for name in same},
        "weights": candidate["precision"]["weights"],
        "kv_cache": candidate["precision"]["kv_cache"],
        "cost_per_hour": cost["per_hour"],
        "cost_per_million_output_tokens": cost["per_million_output_tokens"],
        "currency": cost["currency"],
        **{f"{name}_p95_ms": latency[f"{name}_ms"]["p95"] for name in ("ttft", "tpot", "e2e")},
        "output_tokens_per_s": candidate["throughput"]["output_tokens_per_s"],
        "utilization": candidate["load"]["utilization"],
        "slo_met": slo["met"],
        "slo_met_probability": slo["met_probability"],
        "fit": candidate["memory"]["fit"],
    }
