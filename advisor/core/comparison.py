"""The other side of the choice: the same accelerators as replicas or as tensor parallelism."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.core.decision import Decision
from advisor.core.evaluation import Candidates
from advisor.core.units import MS_PER_S


def same_accelerators(plan: Decision, subject: int) -> list[dict[str, Any]]:
    """Every way to spend the accelerators of one candidate on its hardware, in its formats.

    Each at this load and at saturation, from the most replicas to the widest tensor parallelism.
    """
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
    rows.sort(key=lambda row: (evaluator.layouts[row[0]].split.tensor_parallel, row[0]))
    spent = evaluator.at(rows)
    return [_entry(plan, spent, i) for i in range(len(spent))]


def _formats(split: Any) -> tuple[str, str]:
    return split.weights, split.kv_cache


def _entry(plan: Decision, spent: Candidates, i: int) -> dict[str, Any]:
    split = plan.evaluator.layouts[spent.layout[i]].split
    served = spent.served
    tokens = plan.request.workload.output_tokens.mean
    return {
        "hardware": plan.evaluator.layouts[spent.layout[i]].hardware.name,
        "accelerators": int(spent.accelerators[i]),
        "replicas": int(spent.replicas[i]),
        "tensor_parallel": split.tensor_parallel,
        "pipeline_parallel": split.pipeline_parallel,
        "expert_parallel": split.expert_parallel,
        "attention_data_parallel": split.attention_data_parallel,
        "decode_context_parallel": split.decode_context_parallel,
        "verdict": str(served.verdict[i]),
        "utilization": _number(served.utilization[i]),
        "ttft_p95_ms": _milliseconds(served.latency["ttft"].at("p95")[i]),
        "tpot_p95_ms": _milliseconds(served.latency["tpot"].at("p95")[i]),
        "e2e_p95_ms": _milliseconds(served.latency["e2e"].at("p95")[i]),
        "saturation_output_tokens_per_s": _number(served.saturation[i] * tokens),
    }


def _milliseconds(seconds: float) -> float | None:
    return _number(seconds * MS_PER_S)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.6g}")
