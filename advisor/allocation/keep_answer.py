"""What runs already beside a new allocation, in its API form."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from advisor.allocation.allocate import Allocation
from advisor.allocation.amounts import amount, cost, figure, totals
from advisor.allocation.checking import candidate
from advisor.allocation.keeping import Compared, Kept, KeptPool, compared, kept, running
from advisor.allocation.problem import MEASURES
from advisor.core.answer import rounded
from advisor.core.misses import missed_limits, misses
from advisor.core.units import rounded_plain

_OF_A_CANDIDATE = ("latency", "load", "slo")
_ALIKE = 1e-6
"""Answers have six digits: an objective that is less by a smaller share is no other one."""


def keep(found: Allocation, then: Mapping[str, Any]) -> dict[str, Any] | None:
    """An earlier allocation, as it was answered, kept as it is beside a new one of the same
    request; None where nothing was allocated then."""
    if then["totals"] is None:
        return None
    runs = kept(found, running(then))
    beside = compared(runs, found.solution, found.request.max_gap)
    return {
        "verdict": beside.verdict,
        "detail": _detail(found, runs, beside),
        "feasible": runs.feasible,
        "objective_value": figure(runs.value),
        "totals": {
            **totals(found.request.inventory, runs.taken),
            "demands_served": len(runs.served),
            "served_weight": rounded(runs.served_weight),
        },
        "saving": figure(beside.saving),
        "saving_at_most": figure(beside.at_most),
        "demands": [_demand(found, runs, i) for i in runs.ran],
        "overbooked": [_overbooked(runs, i) for i in runs.overbooked],
    }


def _demand(found: Allocation, runs: Kept, demand: int) -> dict[str, Any]:
    pools = [_pool(found, runs, each) for each in runs.of(demand)]
    each_hour = sum((Fraction(pool["cost_per_hour"]) for pool in pools), Fraction(0))
    return {
        "demand": found.plans[demand].wanted.name,
        "met": demand in runs.served,
        "accelerators": sum(pool["accelerators"] for pool in pools),
        "cost_per_hour": amount(each_hour),
        "pools": pools,
    }


def _pool(found: Allocation, runs: Kept, each: KeptPool) -> dict[str, Any]:
    pool, split = each.running, each.running.split
    entry = found.request.inventory[pool.entry]
    rate = found.plans[pool.demand].wanted.request.workload.request_rate_per_s
    assert rate is not None
    accelerators = runs.accelerators(each)
    row = each.plan.recommended if each.met else each.plan.nearest
    written = {} if row is None else candidate(each.plan, row)
    return {
        "inventory": entry.name,
        "hardware": entry.hardware.name,
        "replicas": pool.replicas,
        "tensor_parallel": split.tensor_parallel,
        "pipeline_parallel": split.pipeline_parallel,
        "expert_parallel": split.expert_parallel,
        "attention_data_parallel": split.attention_data_parallel,
        "decode_context_parallel": split.decode_context_parallel,
        "precision": {"weights": split.weights, "kv_cache": split.kv_cache},
        "accelerators": accelerators,
        "cost_per_hour": amount(cost(entry, accelerators)),
        "share_of_rate": rounded(each.share),
        "request_rate_per_s": rounded(each.share * rate),
        "capacity_requests_per_s": figure(
            None if each.capacity is None else each.capacity * rate
        ),
        "met": each.met,
        "missed_limits": missed_limits(each.plan),
        "detail": _why(each),
        **{name: written.get(name) for name in _OF_A_CANDIDATE},
    }  # fmt: skip


def _why(each: KeptPool) -> str | None:
    """Why a pool does not do any more what was asked; None where it does."""
    decided = each.plan
    if each.met:
        return None
    if decided.nearest is not None:
        found = misses(decided, decided.candidates, decided.verdicts, decided.nearest)
        return f"{found}."
    return decided.rejected[0].detail


def _overbooked(runs: Kept, place: int) -> dict[str, Any]:
    device = runs.problem.devices[place]
    return {
        "inventory": device.name,
        "accelerators_used": runs.taken[place],
        "accelerators": device.accelerators,
    }


def _detail(found: Allocation, runs: Kept, beside: Compared) -> str:
    """The verdict in a sentence or two."""
    measure = MEASURES[found.request.objective]
    costs = f"What runs has {measure} {rounded_plain(runs.value)} now"
    if beside.verdict == "fails":
        return f"What runs does not do any more what was asked. {' '.join(_failures(runs))}"
    if not found.solution.found:
        return f"{costs} and does what was asked; no new allocation was found."
    if beside.verdict == "serve_more":
        more = rounded_plain(found.solution.served_weight - runs.served_weight)
        return f"{costs} and does what was asked; the new allocation serves {more} more of weight."
    if beside.saving is None:
        return f"{costs} and serves more weight than the new allocation that was found."
    if beside.verdict == "move":
        saving, least = rounded_plain(beside.saving), rounded_plain(found.solution.value or 0.0)
        return (
            f"{costs} and does what was asked; the new allocation has {least}: moving saves "
            f"{saving}, what moving itself costs not counted."
        )
    return f"{costs} and does what was asked; {_sure(found, runs, beside)}: nothing need be moved."


def _sure(found: Allocation, runs: Kept, beside: Compared) -> str:
    """How good what is to be kept is known to be."""
    if beside.at_most is None:
        return "nothing better was found, and how much less would do is not known"
    if beside.at_most <= _ALIKE * runs.value:
        return "none that serves as much has less"
    if beside.near:
        return f"it lies within max_gap, {found.request.max_gap:.2%}, of the best"
    return f"nothing better was found, and none has more than {rounded_plain(beside.at_most)} less"


def _failures(runs: Kept) -> list[str]:
    said = []
    devices, demands = runs.problem.devices, runs.problem.demands
    for each in runs.pools:
        why, at = _why(each), each.running
        if why is not None:
            said.append(f"{demands[at.demand].name} on {devices[at.entry].name}: {why}")
    for demand in filter(runs.too_many, runs.ran):
        taken = sum(map(runs.accelerators, runs.of(demand)))
        most = demands[demand].most_accelerators
        said.append(f"{demands[demand].name} takes {taken} accelerators and may take {most}.")
    for place in runs.overbooked:
        device = devices[place]
        said.append(f"{device.name} has {device.accelerators} accelerators of {runs.taken[place]}.")
    return said
