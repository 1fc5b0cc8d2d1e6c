"""From which acceptance rate on drafting pays."""

from __future__ import annotations

import math
from dataclasses import replace

from advisor.core.errors import InvalidInput
from advisor.core.plans import plan
from advisor.core.techniques.subject import Subject, chosen
from advisor.core.workload import PlanRequest, Speculation

_HALVINGS = 8


def pays_from(subject: Subject, drafts: Speculation) -> float | None:
    """The least acceptance rate, within a hundredth, at which drafting so many tokens at this cost
    makes answers no slower on average, on the accelerators as they are; None where none does."""
    request = subject.pinned
    if request is None:
        return None
    now = _seconds(request)

    def pays(rate: float) -> bool:
        speculative = replace(drafts, acceptance_rate=rate)
        serving = replace(request.serving, speculative=speculative)
        return _seconds(replace(request, serving=serving)) <= now

    if not pays(1.0):
        return None
    if pays(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return round(high, 2)


def _seconds(request: PlanRequest) -> float:
    """Mean time from arrival to last token, at saturation from the first step on [s]; infinite
    where there is no such plan, or the load exceeds it."""
    try:
        found = plan(request)
    except InvalidInput:
        return math.inf
    row = chosen(found)
    if row is None:
        return math.inf
    if request.workload.saturate:
        return float(found.verdicts.slowness[row])
    mean = float(found.candidates.served.latency["e2e"].mean[row])
    return math.inf if math.isnan(mean) else mean
