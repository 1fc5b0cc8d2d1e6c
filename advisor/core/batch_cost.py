"""What a batch that is kept small for TPOT costs: throughput, and waiting for a place in it."""

from __future__ import annotations

from typing import Any

from advisor.core.answer import rounded
from advisor.core.decision import Decision
from advisor.core.evaluation import Evaluator
from advisor.core.units import MS_PER_S, rounded_plain


def batch_limit(plan: Decision, subject: int) -> dict[str, Any] | None:
    """A candidate as it is and without the SLOs on TPOT that keep its batch small; None where none
    does, or where each would have to be simulated."""
    evaluator, rows = plan.evaluator, plan.candidates
    layout, replicas = int(rows.layout[subject]), int(rows.replicas[subject])
    by_slo = evaluator.settings[layout].max_num_seqs_by_slo
    if not by_slo or plan.request.workload.start == "burst":
        return None
    others = {slo: ms for slo, ms in plan.request.slo.items() if not slo.startswith("tpot")}
    return {
        "kept": _batch(evaluator, layout, replicas),
        "unlimited": _batch(evaluator.with_slo(others), layout, replicas),
    }


def _batch(evaluator: Evaluator, layout: int, replicas: int) -> dict[str, Any]:
    served = evaluator.at([(layout, replicas)]).served
    tokens = evaluator.request.workload.output_tokens.mean
    return {
        "max_num_seqs": evaluator.settings[layout].max_num_seqs,
        "output_tokens_per_s": rounded(served.requests_per_s[0] * tokens),
        "slot_wait_mean_ms": rounded(served.slot_wait[0] * MS_PER_S),
        **{
            f"{metric}_p95_ms": rounded(served.latency[metric].at("p95")[0] * MS_PER_S)
            for metric in ("ttft", "tpot", "e2e")
        },
    }


def in_words(limit: dict[str, Any] | None) -> list[str]:
    """What the limit costs, in a sentence."""
    if limit is None:
        return []
    kept, unlimited = limit["kept"], limit["unlimited"]
    if kept["slot_wait_mean_ms"] == 0:
        return ["At this load no request waits for a place in that batch."]
    rates = [rounded_plain(each["output_tokens_per_s"]) for each in (kept, unlimited)]
    wait = ""
    if kept["slot_wait_mean_ms"] is not None:
        waits = [rounded_plain(each["slot_wait_mean_ms"]) for each in (kept, unlimited)]
        wait = f", and a place is waited for {waits[0]} ms on average, not {waits[1]}"
    return [
        f"That batch serves {rates[0]} output tokens/s, not {rates[1]} as without SLOs on "
        f"TPOT{wait}."
    ]
