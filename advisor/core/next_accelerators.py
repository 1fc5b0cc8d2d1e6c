"""What the next accelerators buy: the plans one step larger than the one recommended."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.core.answer import rounded
from advisor.core.binding import room
from advisor.core.comparison import cost_difference, in_figures, in_short
from advisor.core.decision import Decision
from advisor.core.units import rounded_plain

KINDS = ("another_replica", "more_accelerators")

_DIFFERENCES = (
    "ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms", "saturation_output_tokens_per_s",
)  # fmt: skip

Plans = list[tuple[int, int]]
"""Layouts and their replicas, spares included."""


def next_accelerators(plan: Decision) -> list[dict[str, Any]]:
    """The next larger plans on the hardware recommended: one more replica, and the best of the next
    higher number of accelerators. Empty where nothing is recommended."""
    if plan.recommended is None:
        return []
    if plan.request.workload.start == "burst":
        reason = "Each plan of a burst is simulated: ask for a larger one by its replicas."
        return [_none(kind, reason) for kind in KINDS]
    layout = int(plan.candidates.layout[plan.recommended])
    count = _next_count(plan, layout, int(plan.candidates.replicas[plan.recommended]) + 1)
    another: Plans = [] if count is None else [(layout, count)]
    larger = _next_larger(plan)
    plan.evaluator.at([*another, *larger])  # both at once
    most, limit = room(plan, layout)
    no_room = f"{limit} leaves no more than {most} replicas."
    return [_best(plan, KINDS[0], another, no_room), _best(plan, KINDS[1], larger, no_room)]


def _next_count(plan: Decision, layout: int, least: int) -> int | None:
    """The fewest replicas of a layout, from `least` on, that the request leaves to choose."""
    asked, most = plan.request.limits.replicas, room(plan, layout)[0]
    if asked is not None:
        return min((n for n in asked if least <= n <= most), default=None)
    return least if least <= most else None


def _next_larger(plan: Decision) -> Plans:
    """Of the layouts on the same hardware that can keep every limit, those with the next higher
    number of accelerators."""
    evaluator, rows, chosen = plan.evaluator, plan.candidates, plan.recommended
    device = evaluator.layouts[rows.layout[chosen]].hardware
    kept = rows.take(np.flatnonzero(plan.verdicts.eligible))
    sizes: dict[int, Plans] = {}
    for i in np.unique(kept.layout).tolist():
        if evaluator.layouts[i].hardware is device:
            each = int(evaluator.accelerators[i])
            enough = int(kept.replicas[kept.layout == i].min())
            more = int(rows.accelerators[chosen]) // each + 1
            count = _next_count(plan, i, max(enough, more))
            if count is not None:
                sizes.setdefault(count * each, []).append((i, count))
    return sizes[min(sizes)] if sizes else []


def _best(plan: Decision, kind: str, plans: Plans, no_room: str) -> dict[str, Any]:
    """The best of some plans that keep every limit; where they cost the same, the fastest."""
    rows = plan.evaluator.at(plans)
    verdicts = plan.judged(rows)
    throughput = plan.request.objective == "throughput"
    worth = 1 / verdicts.per_accelerator if throughput else verdicts.slowness
    eligible = np.flatnonzero(verdicts.eligible)
    if not len(eligible):
        return _none(kind, "The next larger plan misses a limit." if plans else no_room)
    row = int(eligible[np.argmin(worth[eligible])])
    assert plan.recommended is not None
    now, then = in_figures(plan, plan.candidates, plan.recommended), in_figures(plan, rows, row)
    change = {
        "accelerators": then["accelerators"] - now["accelerators"],
        "cost_per_hour": cost_difference(then["cost_per_hour"], now["cost_per_hour"]),
        **{key: _difference(then[key], now[key]) for key in _DIFFERENCES},
    }
    return {"kind": kind, "plan": then, "change": change, "reason": None}


def _none(kind: str, reason: str) -> dict[str, Any]:
    return {"kind": kind, "plan": None, "change": None, "reason": reason}


def _difference(then: float | None, now: float | None) -> float | None:
    return None if then is None or now is None else rounded(then - now)


def in_words(larger: list[dict[str, Any]]) -> list[str]:
    """A sentence on the best of the next higher number of accelerators; on another replica where
    that is better than now and the former is not."""
    if not larger:
        return []
    found = [one for one in reversed(larger) if one["plan"] is not None]
    if not found:
        return [f"No larger plan: {larger[-1]['reason']}"]
    one = next((one for one in found if _gains(one)), found[0])
    plan, (key, name, unit) = one["plan"], _measure(one)
    before, after = rounded_plain(plan[key] - one["change"][key]), rounded_plain(plan[key])
    added = one["change"]["cost_per_hour"]
    price = "" if added is None else f" for {added} an hour more"
    return [
        f"The next accelerators: {in_short(plan)} would take {name} from {before} to {after} "
        f"{unit}{price}."
    ]


def _measure(one: dict[str, Any]) -> tuple[str, str, str]:
    """The figure that tells most, its name and unit."""
    if one["change"]["e2e_p95_ms"] is None:
        return "saturation_output_tokens_per_s", "what is served", "output tokens/s"
    return "e2e_p95_ms", "p95 end-to-end latency", "ms"


def _gains(one: dict[str, Any]) -> bool:
    change = one["change"][_measure(one)[0]]
    return bool(change < 0 if _measure(one)[0] == "e2e_p95_ms" else change > 0)
