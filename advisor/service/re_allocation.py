"""Allocations made again, once prices, profiles or coefficients have changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from advisor.allocation.keep_answer import keep
from advisor.service import allocations
from advisor.service.database import Database
from advisor.service.re_evaluation import beside, differences

Loader = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_LAYOUT = (
    "hardware", "tensor_parallel", "pipeline_parallel", "expert_parallel",
    "attention_data_parallel", "decode_context_parallel",
)  # fmt: skip
_FORMATS = ("weights", "kv_cache")


def re_evaluate(database: Database, allocation_id: str, load: Loader) -> dict[str, Any]:
    """Make an allocation again from its request, keep it, and say what is different, what would
    start and stop, and what keeping what runs does.

    `load` reads a request as it was sent. Raises `NotFound`, InvalidInput with pointers into that
    request where it cannot be answered any more, and `SolverMissing`.
    """
    stored = allocations.read(database, allocation_id)
    then = json.loads(stored.answer)
    found, answer = allocations.evaluate(database, load(stored.request))
    kept = keep(found, then)
    now = json.loads(allocations.keep(database, found, stored.request, answer).answer)
    moves = list(_moves(then, now))
    said = beside(then, now, list(differences(_figures(then), _figures(now), "")))
    return said | {
        "same": said["same"] and not moves,
        "objective": now["objective"],
        "measure": now["measure"],
        "currency": now["currency"],
        "moves": moves,
        "keep": kept,
    }


def _figures(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody would act on, by names: neither how the solver did nor latencies."""
    served = {each["demand"]: each for each in answer["allocation"]}
    inputs = zip(answer["inventory"], answer["inputs"]["inventory"], strict=True)
    return {
        "reason": answer["reason"],
        "objective_value": answer["solver"]["objective_value"],
        "totals": answer["totals"],
        "demands": {
            each["name"]: _served(served.get(each["name"])) for each in answer["inputs"]["demands"]
        },
        "inventory": {
            used["name"]: {
                "price_per_hour": entry["price_per_hour"],
                **{name: used[name] for name in ("accelerators", "accelerators_used",
                                                 "cost_per_hour")},
            }
            for used, entry in inputs
        },
    }  # fmt: skip


def _served(demand: Mapping[str, Any] | None) -> dict[str, Any]:
    if demand is None:
        return {"served": False}
    names = ("accelerators", "cost_per_hour", "slo_met")
    return {"served": True, **{name: demand[name] for name in names}}


def _moves(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Pools that have another number of replicas, demand by demand."""
    before, after = _replicas(then), _replicas(now)
    for key in before | after:
        if before.get(key) != after.get(key):
            demand, inventory, *layout = key
            degrees = dict(zip(_LAYOUT, layout, strict=False))
            yield {
                "demand": demand,
                "inventory": inventory,
                **degrees,
                "precision": dict(zip(_FORMATS, layout[len(_LAYOUT) :], strict=True)),
                "replicas_then": before.get(key, 0),
                "replicas_now": after.get(key, 0),
            }


def _replicas(answer: Mapping[str, Any]) -> dict[tuple[Any, ...], int]:
    """Replicas of each pool, by its demand, entry, layout and formats."""
    return {
        (
            served["demand"],
            pool["inventory"],
            *(pool[name] for name in _LAYOUT),
            *(pool["precision"][name] for name in _FORMATS),
        ): pool["replicas"]
        for served in answer["allocation"]
        for pool in served["pools"]
    }
