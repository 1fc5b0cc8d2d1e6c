"""Crossing loads: against plans asked for on both sides of each, and against a simulation."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from advisor.core.choice import TIE
from tests.core.profiles import answer, device, planned, workload

NEVER = 1e300
"""No way at all: better than one that is no choice."""

OPEN = workload(1000, 250, request_rate_per_s=40.0)
CASES = [
    {"of": "llama-3.1-8b", "load": OPEN, "slo": {"tpot_p95_ms": 12.0}},
    {"of": "llama-3.1-70b", "load": workload(1000, 250, request_rate_per_s=10.0),
     "slo": {"tpot_p95_ms": 40.0, "ttft_p95_ms": 500.0}},
    {"of": "qwen3-30b-a3b", "load": workload(1000, 250, request_rate_per_s=60.0),
     "slo": {"tpot_p95_ms": 20.0}},
    {"of": "llama-3.1-8b", "on": "l40s", "slo": {"tpot_p95_ms": 30.0},
     "load": workload(1000, 250, request_rate_per_s=10.0, arrival_cv=2.0, peak_to_mean=1.5),
     "limits": {"spare_replicas": 1, "max_utilization": 0.9}},
    {"of": "qwen3-32b", "load": workload(1000, 250, concurrency=60), "slo": {"tpot_p95_ms": 20.0}},
    {"of": "llama-3.1-8b", "load": workload(1000, 250, concurrency=300),
     "slo": {"e2e_p95_ms": 2500.0}, "limits": {"spare_replicas": 1}},
]  # fmt: skip


def at_load(ask, way, factor, load):
    """A way by itself under a crossing load times a factor; one client below it at least."""
    limits = dict(ask.get("limits", {})) | {
        "replicas": (way["replicas"],), "tensor_parallel": (way["tensor_parallel"],),
        "expert_parallel": (way["expert_parallel"],),
    }  # fmt: skip
    kind = "concurrency" if load["concurrency"] else "request_rate_per_s"
    there = load[kind] * factor
    if kind == "concurrency":
        there = min(round(there), load[kind] - 1) if factor < 1 else round(there)
    (found,) = answer(**ask | {"load": replace(ask["load"], **{kind: there}), "limits": limits})[
        "candidates"
    ]
    return found


def time(ask, way, factor, load, metric):
    """p95 E2E where a way may be chosen by the metric, else infinity."""
    found = at_load(ask, way, factor, load)
    most = ask.get("limits", {}).get("max_utilization", 0.95)
    open_load = ask["load"].mode == "open"
    if open_load and found["load"]["utilization"] > most:
        return float("inf")
    if metric == "slo" and not found["slo"]["met"]:
        return float("inf")
    return found["latency"]["e2e_ms"]["p95"]


def crossings(ask):
    """The answer's crossing loads, and the ways."""
    found = answer(**ask, explain="full")
    return found["crossing_loads"], found["replicas_vs_tensor_parallel"]


def nearest_step(one, changes):
    """How far to look from a crossing: 2 %, or half the way to another one of its metric."""
    kind = "concurrency" if one["concurrency"] else "request_rate_per_s"
    others = [each[kind] for each in changes if each["metric"] == one["metric"]]
    gaps = [abs(load / one[kind] - 1) / 2 for load in others if load != one[kind]]
    return min([0.02, *gaps])


@pytest.mark.parametrize("ask", CASES)
def test_on_both_sides_of_a_crossing_the_plans_have_the_opposite_order(ask):
    """In a closed load, where clients do not divide evenly, by less than a tie."""
    entries, _ = crossings(ask)
    changes = [one for one in entries if one["reason"] is None]
    tie = TIE if ask["load"].mode == "closed" else 0.0
    assert changes
    for one in changes:
        below, above = one["better_below"], one["better_above"]
        step = nearest_step(one, changes)
        for factor, better, worse in ((1 - step, below, above), (1 + step, above, below)):
            times = [
                NEVER if way is None else time(ask, way, factor, one, one["metric"])
                for way in (better, worse)
            ]
            assert times[0] < times[1] * (1 + tie)


@pytest.mark.parametrize("ask", CASES)
def test_between_two_crossings_no_other_way_is_better_by_more_than_a_tie(ask):
    """At 12 loads, each way by itself."""
    entries, ways = crossings(ask)
    kind = "concurrency" if ask["load"].mode == "closed" else "request_rate_per_s"
    for metric in {one["metric"] for one in entries if one["reason"] is None}:
        changes = [one for one in entries if one["metric"] == metric]
        edges = [one[kind] for one in changes]
        assert edges == sorted(edges)
        for before, after in pairwise(changes):
            assert before["better_above"] == after["better_below"]
        for k in range(1, 13):
            load = edges[-1] * k / 10
            load = max(round(load), 1) if kind == "concurrency" else load
            if min(abs(load / edge - 1) for edge in edges) < 0.003:
                continue
            there = {"concurrency": None} | {kind: load}
            passed = [one for one in changes if one[kind] <= load]
            best = passed[-1]["better_above"] if passed else changes[0]["better_below"]
            times = [NEVER, *(time(ask, way, 1, there, metric) for way in ways)]
            if best is not None and min(times[1:]) == float("inf"):
                assert metric == "e2e_p95_ms"  # more than any way carries
                continue
            chosen = NEVER if best is None else time(ask, best, 1, there, metric)
            assert chosen <= min(times) * (1 + TIE) * 1.001


def test_a_simulation_has_the_opposite_order_on_both_sides_too():
    ask = {"of": "llama-3.1-8b", "on": "l40s", "load": workload(1000, 250, request_rate_per_s=20.0),
           "slo": {"tpot_p95_ms": 30.0}}  # fmt: skip
    entries, _ = crossings(ask)
    (one,) = [each for each in entries if each["metric"] == "e2e_p95_ms"]
    assert one["better_below"]["tensor_parallel"] > one["better_above"]["tensor_parallel"]
    for factor, sides in ((0.9, ("below", "above")), (1.1, ("above", "below"))):
        better, worse = (
            at_load(ask | {"verify": True}, one[f"better_{side}"], factor, one)["verification"]
            for side in sides
        )
        assert better["latency"]["e2e_ms"]["p95"] < worse["latency"]["e2e_ms"]["p95"]


def test_one_way_alone_has_no_crossing():
    entries, ways = crossings({"of": "llama-3.1-8b", "limits": {"tensor_parallel": (1,)}})
    assert len(ways) == 1
    assert entries == []


def test_where_one_way_is_better_at_every_load_it_is_named_with_the_reason():
    """Where two of TP1 do not hold a model well, TP2 is better up to the end."""
    ask = {"of": "qwen3-32b", "load": workload(8000, 100, request_rate_per_s=0.5),
           "limits": {"max_utilization": 0.3}}  # fmt: skip
    entries, ways = crossings(ask)
    assert len(ways) > 1
    (one,) = entries
    assert one["reason"] == "One way is better at every load that these accelerators carry."
    assert one["better_below"] == one["better_above"]
    for rate in (0.1, 0.3, 0.6):
        load = {"concurrency": None, "request_rate_per_s": rate}
        times = [time(ask, way, 1, load, "e2e_p95_ms") for way in ways]
        assert time(ask, one["better_below"], 1, load, "e2e_p95_ms") == min(times)


def test_an_slo_that_no_way_meets_at_any_load_says_so():
    entries, _ = crossings({"of": "llama-3.1-8b", "slo": {"tpot_p95_ms": 0.5}})
    (one,) = [each for each in entries if each["metric"] == "slo"]
    assert one["better_below"] is one["better_above"] is one["request_rate_per_s"] is None
    assert one["reason"] == "No way meets every SLO, at any load."


def test_loads_that_cannot_change_or_are_simulated_have_a_reason():
    fixed = {"replicas": (4,), "tensor_parallel": (1, 2, 4)}
    for load, word in (
        (workload(1000, 250, saturate=True), "saturating"),
        (workload(100, 10, concurrency=8, start="burst", num_requests=16), "simulated"),
    ):
        entries, _ = crossings({"of": "llama-3.1-8b", "load": load, "limits": fixed})
        (one,) = entries
        assert word in one["reason"]
        assert one["request_rate_per_s"] is one["concurrency"] is None


def test_crossing_loads_are_computed_only_where_they_are_asked_for():
    assert answer()["crossing_loads"] is None
    assert planned().request.explain == "brief"


def test_a_row_of_another_load_is_what_asking_for_that_load_gives():
    """Rows of several loads at once, against each by itself."""
    found = planned(load=OPEN)
    layout, serving = found.candidates.layout, found.candidates.replicas
    rates = np.array([20.0, 40.0, 60.0])[layout % 3]
    together = found.evaluator.serve(layout, serving, rates).latency["e2e"].at("p95")
    for rate in sorted(set(rates.tolist())):
        alone = planned(load=replace(OPEN, request_rate_per_s=rate)).evaluator
        rows = rates == rate
        single = alone.serve(layout[rows], serving[rows]).latency["e2e"].at("p95")
        assert single == pytest.approx(together[rows], rel=1e-6, nan_ok=True)


def test_a_search_on_the_edge_of_saturation_ends():
    """There a row differs by a per cent with those evaluated beside it."""
    entries, _ = crossings({
        "of": "qwen3-30b-a3b", "on": tuple(map(device, ("l40s", "h200", "a100"))),
        "load": workload(1000, 1, request_rate_per_s=91.004, peak_to_mean=1.5),
        "slo": {"ttft_p95_ms": 1398.05, "e2e_p95_ms": 14355.06},
        "limits": {"max_utilization": 1.0}, "objective": "balanced",
    })  # fmt: skip
    assert {one["metric"] for one in entries} == {"e2e_p95_ms", "slo"}
    assert len(entries) < 10
