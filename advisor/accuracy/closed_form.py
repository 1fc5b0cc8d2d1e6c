"""The planner's closed form as a predictor of measured rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.accuracy.rows import LATENCIES, Row, plan_request
from advisor.core import fitting
from advisor.core.enumeration import enumerate_layouts
from advisor.core.evaluation import Evaluator
from advisor.core.units import MS_PER_S

_UNLIKE_A_LOOP = ("ttft", "e2e")
"""In a burst these are the wait of everyone for everyone, which a closed loop does not have."""


class Refused(Exception):
    """The planner rejects the layout that was measured: its code, and its sentence."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


def closed_form(row: Row) -> Mapping[str, float]:
    """The row's metrics, by name. Refused when the planner rejects its layout."""
    evaluator = evaluator_of(row)
    if row.load == "static_batch":
        return _static_batch(row, evaluator)
    served = evaluator.at([(0, row.replicas)]).served
    found = {
        "output_tokens_per_s": float(served.requests_per_s[0]) * row.output_tokens,
        "requests_per_s": float(served.requests_per_s[0]),
    }
    for name in LATENCIES:
        metric, statistic, _ = name.replace("unstated", "mean").split("_")
        value = float(served.latency[metric].at(statistic)[0]) * MS_PER_S
        if np.isfinite(value) and not (row.load == "burst" and metric in _UNLIKE_A_LOOP):
            found[name] = value
    return found


def evaluator_of(row: Row) -> Evaluator:
    """The row's layout, ready to be evaluated. Refused when the planner rejects it."""
    request = plan_request(row)
    layouts, rejected = enumerate_layouts(request)
    evaluator, unfit = fitting.evaluator(request, layouts)
    for each in (*rejected, *unfit):
        raise Refused(each.code, each.detail)
    return evaluator


def _static_batch(row: Row, evaluator: Evaluator) -> Mapping[str, float]:
    """All prompts, in as many steps as the token budget asks for, then every output token at the
    mean context: no arrivals, no front end."""
    batch, prompt = float(row.concurrency or 1), row.input_tokens
    if evaluator.slots[0] < batch:
        raise Refused("batch_exceeds_slots", f"{evaluator.slots[0]} sequences fit, not {batch:g}.")
    chunks = np.ceil(batch * prompt / evaluator.batched_tokens[0, 0])
    column, none = np.ones((1, 1)), np.zeros((1, 1))
    share = column * batch / chunks
    before = np.maximum(prompt - prompt / share, 0.0) / 2  # of a prompt that takes several steps
    prefill = (
        chunks
        * evaluator.steps.times(
            none, column, share * prompt, share * prompt * (prompt + 1) / 2, before, share
        ).total.item()
    )
    gaps = row.output_tokens - 1
    context = column * (prompt + row.output_tokens / 2)
    step = evaluator.steps.times(column * batch, context, none, none, none, none).total.item()
    total = prefill + gaps * step
    found = {
        "ttft_mean_ms": prefill * MS_PER_S,
        "e2e_mean_ms": total * MS_PER_S,
        "output_tokens_per_s": batch * row.output_tokens / total,
        "requests_per_s": batch / total,
    }
    return found | ({"tpot_mean_ms": step * MS_PER_S} if gaps else {})
