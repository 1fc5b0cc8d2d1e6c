"""Batching compared: one request at a time, static batches, and continuous batching, on the same
accelerators under the same load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from advisor.core.batching_comparison import continuous_vs_static
from advisor.core.errors import InvalidInput
from advisor.core.plans import plan
from advisor.core.techniques.subject import Subject, chosen
from advisor.core.workload import PlanRequest


def batchings(subject: Subject) -> list[dict[str, Any]]:
    """The deployment with each kind of batching, the latencies of static batches simulated; empty
    where no layout fits, and with speculative decoding, which is not known of batches."""
    if subject.pinned is None:
        return []
    as_it_is = _kinds(replace(subject.pinned, verify=True))
    if not as_it_is:
        return []
    serving = replace(subject.pinned.serving, max_num_seqs=1)
    alone = _kinds(replace(subject.pinned, serving=serving))
    return [*({**each, "batching": "none"} for each in alone[:1]), *reversed(as_it_is)]


def _kinds(request: PlanRequest) -> list[dict[str, Any]]:
    try:
        found = plan(request)
    except InvalidInput:
        return []
    row = chosen(found)
    return [] if row is None else continuous_vs_static(found, row)
