"""The other side of the batch: the same plan with batches that begin and end together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from advisor.core.answer import rounded
from advisor.core.candidates import Candidates
from advisor.core.decision import Decision
from advisor.core.load import open_verdict
from advisor.core.open_load import split_cv2
from advisor.core.requests import Requests, sample_requests
from advisor.core.static_batching import StaticReplica, simulate_static
from advisor.core.units import MS_PER_S

STATIC_MEASURED, _STATIC_WARM_UP = 2000, 500
"""Requests of a simulation of static batches that are measured, and that come before them."""

_MOST_TOKENS, _MOST_REQUESTS = 30_000_000, 20_000
"""Answers that a simulation of static batches writes at most: some tenths of a second."""

_SEED = 20_240_602


def continuous_vs_static(plan: Decision, subject: int) -> list[dict[str, Any]]:
    """One candidate's plan under continuous and under static batching, at this load (the latter
    where `verify` asks for simulations) and at saturation. Speculation is not known of batches."""
    if plan.request.serving.speculative.draft_tokens:
        return []
    row = plan.candidates.take(np.array([subject]))
    served, tokens = row.served, plan.request.workload.output_tokens.mean
    continuous = {
        "batching": "continuous",
        "slots": int(plan.evaluator.slots[row.layout[0]]),
        "verdict": str(served.verdict[0]),
        "utilization": rounded(served.utilization[0]),
        **{
            f"{metric}_p95_ms": rounded(served.latency[metric].at("p95")[0] * MS_PER_S)
            for metric in ("ttft", "tpot", "e2e")
        },
        "saturation_output_tokens_per_s": rounded(served.saturation[0] * tokens),
    }
    return [continuous, _static(plan, row)]


def _static(plan: Decision, row: Candidates) -> dict[str, Any]:
    request, evaluator, layout = plan.request, plan.evaluator, int(row.layout[0])
    workload, serving = request.workload, int(row.replicas[0]) - request.limits.spare_replicas
    room = evaluator.memory.capacity_tokens[layout] / workload.longest
    engine = evaluator.settings[layout].max_num_seqs
    groups = evaluator.layouts[layout].split.attention_data_parallel
    replica = StaticReplica(
        evaluator.steps.step_function(layout),
        max(min(engine * groups, int(room)), 1),
        float(evaluator.batched_tokens[layout, 0]),
        float(evaluator.front_end[layout]),
    )
    reached = serving * request.serving.router_efficiency
    saturation = reached * replica.saturation(workload)
    verdict, utilization = str(row.served.verdict[0]), None
    if workload.request_rate_per_s is not None:
        utilization = workload.request_rate_per_s * workload.peak_to_mean / saturation
        verdict = str(open_verdict(np.array(utilization)))
    p95 = (np.nan,) * 3
    requests = _of_one_replica(plan, serving, replica.slots) if request.verify else None
    if requests is not None and verdict != "unstable":
        ttft, tpot, e2e = simulate_static(replica, requests).p95(len(requests) - STATIC_MEASURED)
        p95 = (np.nan, tpot, np.nan) if workload.saturate else (ttft, tpot, e2e)
    return {
        "batching": "static",
        "slots": replica.slots,
        "verdict": verdict,
        "utilization": None if utilization is None else rounded(utilization),
        **{
            f"{metric}_p95_ms": rounded(value * MS_PER_S)
            for metric, value in zip(("ttft", "tpot", "e2e"), p95, strict=True)
        },
        "saturation_output_tokens_per_s": rounded(saturation * workload.output_tokens.mean),
    }


def _of_one_replica(plan: Decision, serving: int, slots: int) -> Requests | None:
    """What one of the replicas is sent: its part of an open load at random, or of the clients (of
    the replicas with most), or enough for two full batches. None of a burst, which has no steady
    part, and where that is too much."""
    workload, count = plan.request.workload, STATIC_MEASURED
    if workload.start == "burst":
        return None
    if workload.request_rate_per_s is not None:
        rate = workload.request_rate_per_s / serving / plan.request.serving.router_efficiency
        cv = float(np.sqrt(split_cv2(workload.arrival_cv, np.array(serving))))
        load, before = replace(workload, request_rate_per_s=rate, arrival_cv=cv), _STATIC_WARM_UP
    else:
        clients = 2 * slots if workload.saturate else -(-(workload.concurrency or 1) // serving)
        load = replace(workload, concurrency=clients, saturate=False)
        before = max(_STATIC_WARM_UP, 2 * clients)
    count += before
    if count > _MOST_REQUESTS or count * workload.output_tokens.mean > _MOST_TOKENS:
        return None
    return sample_requests(load, count, np.random.default_rng(_SEED))
