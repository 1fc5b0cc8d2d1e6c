"""Allocations as JSON, in the units and names of the contract."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from fractions import Fraction
from itertools import groupby
from typing import Any

from advisor import __version__
from advisor.allocation import wording
from advisor.allocation.allocate import Allocation, Progress, allocate, quiet
from advisor.allocation.alternatives import Alternative
from advisor.allocation.amounts import amount, cost, figure, power_kw, totals
from advisor.allocation.checking import Checked
from advisor.allocation.pools import Planned
from advisor.allocation.problem import MEASURES
from advisor.allocation.request import AllocationRequest
from advisor.allocation.usage import needs, taken
from advisor.core import answer as plan_answer
from advisor.core.answer import money, rounded
from advisor.core.enumeration import Rejection

_OF_A_CANDIDATE = ("precision", "latency", "classes", "load", "slo", "serving")
_DEGREES = (
    "hardware", "replicas", "tensor_parallel", "pipeline_parallel", "expert_parallel",
    "attention_data_parallel", "decode_context_parallel",
)  # fmt: skip
_OF_A_PLAN = ("model", "workload", "slo", "precision", "limits", "serving")


def answered(request: AllocationRequest, progress: Progress = quiet) -> dict[str, Any]:
    """Allocate, and write the answer (all but `id`). Raises as `allocate` does."""
    return written(allocate(request, progress))


def written(found: Allocation) -> dict[str, Any]:
    """The answer (all but `id`)."""
    request = found.request
    return {
        "inputs": inputs(found),
        "status": found.solution.status,
        "reason": wording.reason(found),
        "objective": request.objective,
        "measure": MEASURES[request.objective],
        "currency": request.currency,
        "totals": _totals(found) if found.solution.found else None,
        "solver": _solver(found),
        "allocation": _allocation(found),
        "unserved": [_unserved(found, i) for i in unserved(found)],
        "conflict": _conflict(found),
        "inventory": _inventory(found),
        "one_more": [_one_more(found, each) for each in found.one_more],
        "single_hardware": [
            {"hardware": each.name, **_alternative(found, each)} for each in found.single_kind
        ],
        "explanation": wording.explanation(found),
        "assumptions": wording.assumptions(found),
        "warnings": wording.warnings(found),
        "planner_version": __version__,
    }


def unserved(found: Allocation) -> list[int]:
    """Places of the demands that are not served."""
    return [i for i in range(len(found.plans)) if i not in found.solution.served]


def inputs(found: Allocation) -> dict[str, Any]:
    """The request with every default filled in."""
    request = found.request
    names = [entry.name for entry in request.inventory]
    return {
        "demands": [_asked(planned, names) for planned in found.plans],
        "inventory": [
            {
                "name": entry.name,
                "hardware": entry.hardware.name,
                "accelerators": entry.accelerators,
                "tenure": entry.tenure,
                "price_per_hour": money(entry.price_per_hour),
                "priced_by": entry.priced_by,
                "whole_nodes": entry.whole_nodes,
            }
            for entry in request.inventory
        ],
        "objective": request.objective,
        "currency": request.currency,
        "max_gap": request.max_gap,
        "time_limit_s": request.time_limit_s,
        "alternatives": request.alternatives,
    }


def _asked(planned: Planned, names: list[str]) -> dict[str, Any]:
    wanted = planned.wanted
    asked = plan_answer.inputs(wanted.request)
    limits = {
        name: value for name, value in asked["limits"].items()
        if name not in ("replicas", "max_cost_per_hour")
    }  # fmt: skip
    return {
        "name": wanted.name,
        "must_have": wanted.weight is None,
        "weight": wanted.weight,
        "inventory": [names[i] for i in wanted.entries],
        **{name: asked[name] for name in _OF_A_PLAN},
        "limits": limits,
    }


def _totals(found: Allocation) -> dict[str, Any]:
    return {
        **totals(found.request.inventory, taken(found)),
        "demands_served": len(found.solution.served),
        "served_weight": rounded(found.solution.served_weight),
    }


def _solver(found: Allocation) -> dict[str, Any]:
    solution = found.solution
    return {
        "objective_value": figure(solution.value),
        "objective_bound": figure(solution.bound),
        "gap": figure(solution.gap),
        "served_weight_bound": figure(solution.weight_bound),
        "planning_time_s": rounded(found.planning_s),
        "solving_time_s": rounded(found.solving_s),
    }


def _allocation(found: Allocation) -> list[dict[str, Any]]:
    by_demand = groupby(found.chosen.checked, key=lambda each: each.pool.demand)
    answers = []
    for demand, group in by_demand:
        pools = [_pool(found, each) for each in group]
        wanted = found.plans[demand].wanted
        each_hour = sum((Fraction(pool["cost_per_hour"]) for pool in pools), Fraction(0))
        answers.append(
            {
                "demand": wanted.name,
                "request_rate_per_s": wanted.request.workload.request_rate_per_s,
                "accelerators": sum(pool["accelerators"] for pool in pools),
                "cost_per_hour": amount(each_hour),
                "slo_met": all(pool["slo"]["met"] for pool in pools),
                "pools": pools,
            }
        )
    return answers


def _pool(found: Allocation, each: Checked) -> dict[str, Any]:
    pool, planned = each.pool, found.plans[each.pool.demand]
    offer, rate = planned.offers[pool.option], planned.wanted.request.workload.request_rate_per_s
    assert rate is not None
    entry = found.request.inventory[offer.entry]
    device = entry.device
    units = offer.option.units(device, pool.replicas)
    accelerators = units * device.accelerators_per_unit
    capacity = found.chosen.problem.demands[pool.demand].options[pool.option].capacity
    return {
        "inventory": entry.name,
        **{name: each.candidate[name] for name in _DEGREES},
        "accelerators": accelerators,
        "nodes": units if entry.whole_nodes else None,
        "share_of_rate": rounded(each.share),
        "request_rate_per_s": rounded(each.share * rate),
        "capacity_requests_per_s": rounded(capacity.share(pool.replicas) * rate),
        "cost_per_hour": amount(cost(entry, accelerators)),
        "power_kw": power_kw(entry, accelerators),
        **{name: each.candidate[name] for name in _OF_A_CANDIDATE},
    }


def _unserved(found: Allocation, index: int) -> dict[str, Any]:
    planned = found.plans[index]
    code, detail = wording.why_unserved(found, index)
    return {
        "demand": planned.wanted.name,
        "must_have": planned.wanted.weight is None,
        "code": code,
        "detail": detail,
        "needs": [asdict(each) for each in needs(found, index)],
        "rejected": _rejected(planned.rejected),
    }


def _rejected(rejections: Iterable[Rejection]) -> list[dict[str, Any]]:
    """Rejections put together by hardware and code, with the words of the first."""
    groups: dict[tuple[str, str], list[Rejection]] = {}
    for each in rejections:
        groups.setdefault((each.hardware, each.code), []).append(each)
    return [
        {
            "hardware": hardware,
            "code": code,
            "layouts": len(group),
            "detail": group[0].detail,
            "remedy": group[0].remedy,
        }
        for (hardware, code), group in groups.items()
    ]


def _conflict(found: Allocation) -> dict[str, Any] | None:
    if found.conflict is None:
        return None
    names = [found.plans[i].wanted.name for i in found.conflict.demands]
    return {"demands": names, "minimal": found.conflict.minimal}


def _inventory(found: Allocation) -> list[dict[str, Any]]:
    answers = []
    for entry, used in zip(found.request.inventory, taken(found), strict=True):
        free = entry.accelerators - used
        idle = cost(entry, free) if entry.tenure == "owned" else Fraction(0)
        answers.append(
            {
                "name": entry.name,
                "hardware": entry.hardware.name,
                "tenure": entry.tenure,
                "accelerators": entry.accelerators,
                "accelerators_used": used,
                "accelerators_free": free,
                "cost_per_hour": amount(cost(entry, used)),
                "idle_cost_per_hour": amount(idle),
            }
        )
    return answers


def _one_more(found: Allocation, each: Alternative) -> dict[str, Any]:
    (entry,) = [e for e in found.request.inventory if e.name == each.name]
    before, after = found.solution, each.solution
    return {
        "inventory": each.name,
        "unit": "node" if entry.whole_nodes else "accelerator",
        "accelerators": entry.device.accelerators_per_unit,
        **_alternative(found, each),
        "newly_served": [found.plans[i].wanted.name for i in sorted(after.served - before.served)],
    }


def _alternative(found: Allocation, each: Alternative) -> dict[str, Any]:
    solution = each.solution
    return {
        "status": solution.status,
        "objective_value": figure(solution.value),
        "served_weight": rounded(solution.served_weight) if solution.found else None,
        "unserved": [
            planned.wanted.name for i, planned in enumerate(found.plans) if i not in solution.served
        ],
        "difference": figure(each.difference),
        "difference_at_least": figure(each.low),
        "difference_at_most": figure(each.high),
    }
