"""The other side of the choice: the same accelerators as replicas or as tensor parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from advisor.core.answer import costs, money, rounded
from advisor.core.candidates import Candidates
from advisor.core.decision import Decision
from advisor.core.units import MS_PER_S


def in_both_ways(plan: Decision, subject: int) -> list[dict[str, Any]]:
    """Every way to spend the accelerators of one candidate, at this load and at saturation."""
    spent = plan.evaluator.at(same_accelerators(plan, subject))
    return [in_figures(plan, spent, i) for i in range(len(spent))]


def same_accelerators(plan: Decision, subject: int) -> list[tuple[int, int]]:
    """Every way to spend the accelerators of one candidate on its hardware, in its formats, as
    layouts and replicas: from the most replicas to the widest tensor parallelism."""
    evaluator, candidates = plan.evaluator, plan.candidates
    chosen = evaluator.layouts[candidates.layout[subject]]
    total = int(candidates.accelerators[subject])
    spare = plan.request.limits.spare_replicas
    rows = [
        (i, total // layout.split.accelerators)
        for i, layout in enumerate(evaluator.layouts)
        if layout.hardware is chosen.hardware
        and _formats(layout.split) == _formats(chosen.split)
        and total % layout.split.accelerators == 0
        and total // layout.split.accelerators > spare
    ]
    return sorted(rows, key=lambda row: (evaluator.layouts[row[0]].split.tensor_parallel, row[0]))


def _formats(split: Any) -> tuple[str, str]:
    return split.weights, split.kv_cache


def way(plan: Decision, layout: int, replicas: int) -> dict[str, Any]:
    """So many replicas of a layout, by name and degrees."""
    on = plan.evaluator.layouts[layout]
    split = on.split
    return {
        "hardware": on.hardware.name,
        "accelerators": replicas * split.accelerators,
        "replicas": replicas,
        "tensor_parallel": split.tensor_parallel,
        "pipeline_parallel": split.pipeline_parallel,
        "expert_parallel": split.expert_parallel,
        "attention_data_parallel": split.attention_data_parallel,
        "decode_context_parallel": split.decode_context_parallel,
        "precision": {"weights": split.weights, "kv_cache": split.kv_cache},
    }


def cost_difference(first: str | None, second: str | None) -> str | None:
    """One amount less another, exactly."""
    if first is None or second is None:
        return None
    return money(Decimal(first) - Decimal(second))


def in_short(named: Mapping[str, Any]) -> str:
    """What `way` names, in words."""
    degrees = {
        "PP": named["pipeline_parallel"], "EP": named["expert_parallel"],
        "DP": named["attention_data_parallel"], "DCP": named["decode_context_parallel"],
    }  # fmt: skip
    others = "".join(f" {name}{degree}" for name, degree in degrees.items() if degree > 1)
    plural = "s" if named["replicas"] > 1 else ""
    each = f"TP{named['tensor_parallel']}{others} on {named['hardware']}"
    return f"{named['replicas']} replica{plural} x {each}"


def in_figures(plan: Decision, rows: Candidates, i: int) -> dict[str, Any]:
    """An evaluated plan in short."""
    served, layout = rows.served, int(rows.layout[i])
    cost = costs(plan.request, plan.evaluator.layouts[layout], rows, i)
    tokens = plan.request.workload.output_tokens.mean
    return way(plan, layout, int(rows.replicas[i])) | {
        "cost_per_hour": cost["per_hour"],
        "cost_per_million_output_tokens": cost["per_million_output_tokens"],
        "verdict": str(served.verdict[i]),
        "utilization": rounded(served.utilization[i]),
        "ttft_p95_ms": rounded(served.latency["ttft"].at("p95")[i] * MS_PER_S),
        "tpot_p95_ms": rounded(served.latency["tpot"].at("p95")[i] * MS_PER_S),
        "e2e_p95_ms": rounded(served.latency["e2e"].at("p95")[i] * MS_PER_S),
        "saturation_output_tokens_per_s": rounded(served.saturation[i] * tokens),
    }
