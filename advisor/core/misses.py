"""Limits that a plan misses, and by how much."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from advisor.core.candidates import Candidates
from advisor.core.decision import Decision, Verdicts, most_utilized
from advisor.core.evaluation import hourly_cost
from advisor.core.load import NEAR_SATURATION
from advisor.core.units import plain, rounded_plain


def missed(verdicts: Verdicts, row: int) -> dict[str, float]:
    """What a plan has over what each limit that it misses allows, the worst first, but that SLOs
    are not surely met after those not met at all. Above saturation no latency has a value, and only
    the load itself is named."""
    over = {limit: float(each[row]) for limit, each in verdicts.excess.items() if each[row] > 1}
    if "max_utilization" in over:
        over = {limit: times for limit, times in over.items() if times < math.inf}
    late = bool(over.keys() & verdicts.ratios.keys())

    def place(limit: str) -> tuple[bool, float]:
        return late and limit == "min_met_probability", -over[limit]

    return {limit: over[limit] for limit in sorted(over, key=place)}


def missed_limits(plan: Decision) -> list[dict[str, Any]]:
    """What the nearest plan misses, for the answer; nothing where a plan is recommended."""
    if plan.nearest is None:
        return []
    return [
        {"limit": limit, "times": None if math.isinf(times) else float(f"{times:.6g}")}
        for limit, times in missed(plan.verdicts, plan.nearest).items()
    ]


def misses(plan: Decision, rows: Candidates, verdicts: Verdicts, row: int) -> str:
    """Every limit that a plan misses, in words."""
    replicas = int(rows.replicas[row])
    words = []
    for limit, times in missed(verdicts, row).items():
        if limit == "max_utilization":
            words.append(overload(plan, float(rows.served.utilization[row]), replicas))
        elif limit == "min_met_probability":
            least = plain(plan.request.limits.min_met_probability or 0)
            probability = float(verdicts.met_probability(np.array([row]))[0])
            words.append(f"its met_probability is {rounded_plain(probability)}, {limit} is {least}")
        elif limit in plan.request.slo:
            words.append(_late(plan, limit, times))
        else:
            words.append(_too_much(plan, limit, int(rows.layout[row]), replicas))
    return ", ".join(words)


def overload(plan: Decision, utilization: float, replicas: int) -> str:
    """The load on so many replicas over what the limit allows, in words."""
    limits = plan.request.limits
    serving = replicas - limits.spare_replicas
    hold = math.ceil(utilization / most_utilized(limits) * serving) + limits.spare_replicas
    return (
        f"the load is {rounded_plain(utilization)} times what it saturates at, the limit is "
        f"{plain(min(limits.max_utilization, NEAR_SATURATION))}: {hold} replicas would hold"
    )


def _late(plan: Decision, slo: str, times: float) -> str:
    if math.isinf(times):
        return f"{slo} has no finite value under this load"
    return f"{slo} is {times:.2f} times its limit of {plain(plan.request.slo[slo])} ms"


def _too_much(plan: Decision, limit: str, layout: int, replicas: int) -> str:
    accelerators, limits = replicas * int(plan.evaluator.accelerators[layout]), plan.request.limits
    if limit == "max_accelerators":
        return f"it takes {accelerators} accelerators, {limit} is {limits.max_accelerators}"
    cost = hourly_cost(plan.evaluator.layouts[layout], accelerators)
    has = "has no price" if cost is None else f"costs {cost:f} an hour"
    return f"it {has}, {limit} is {limits.max_cost_per_hour:f}"
