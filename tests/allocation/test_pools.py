"""What pools carry, against the planner's own plans."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from advisor.allocation.allocate import Allocation, allocate
from advisor.allocation.answer import written
from advisor.allocation.capacity import Capacity
from advisor.allocation.checking import Chosen, chosen
from advisor.allocation.pools import Planned, planned
from advisor.allocation.pools import asked as layouts_of
from advisor.allocation.problem import Problem, Solution
from advisor.allocation.solve import Clock, solve
from advisor.catalog.loader import hardware_profile
from advisor.core.plans import plan
from advisor.core.workload import Limits, PlanRequest
from tests.allocation.asked import CHAT, H100, LOAD, answer, request

BIG: dict[str, Any] = CHAT | {
    "name": "big",
    "model": "meta-llama-3.1-70b",
    "precision": {"weights": ["fp8"], "kv_cache": ["fp8"]},
}


@pytest.mark.parametrize("rate", [3, 20, 61])
@pytest.mark.parametrize(
    ("demand", "device"),
    [(CHAT, "h100-sxm-80gb"), (CHAT, "l40s"), (BIG, "h100-sxm-80gb"), (BIG, "h200-sxm-141gb")],
)
def test_one_demand_on_one_device_gets_what_the_planner_recommends_or_a_cheaper_mixture(
    demand: dict[str, Any], device: str, rate: float
):
    demand = demand | {"workload": LOAD | {"request_rate_per_s": rate}}
    inventory = [{"hardware": device, "accelerators": 256}]
    ours = request([demand], inventory).demands[0].request
    limits, priced = Limits(max_accelerators=256), (hardware_profile(device),)
    asked = replace(ours, objective="cost", hardware=priced, limits=limits)
    expected = plan(asked).as_dict()["recommended"]["cost"]["per_hour"]
    found = answer([demand], inventory, max_gap=0)
    (served,) = found["allocation"]
    assert served["slo_met"]
    assert found["warnings"] == []
    if len(served["pools"]) == 1:
        assert found["totals"]["cost_per_hour"] == expected
    else:
        assert Decimal(found["totals"]["cost_per_hour"]) < Decimal(expected)


def _meets(asked: PlanRequest, device: Any, split: Any, replicas: int, rate: float) -> bool:
    """Whether the planner would recommend just that plan at that rate."""
    fixed = Limits(
        max_accelerators=4096, tensor_parallel=(split.tensor_parallel,), replicas=(replicas,),
        spare_replicas=asked.limits.spare_replicas,
    )  # fmt: skip
    workload = replace(asked.workload, request_rate_per_s=rate)
    one = replace(asked, hardware=(device,), limits=fixed, workload=workload)
    return plan(one).recommended is not None


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, (1, 3, 7)),
        ({"limits": {"spare_replicas": 1}}, (2, 5)),
        ({"serving": {"routing": "least_loaded"}}, (1, 2, 3, 4, 11)),
        ({"workload": LOAD | {"request_rate_per_s": 200, "arrival_cv": 2}}, (1, 2, 4, 6)),
    ],
)
def test_a_pool_meets_the_slos_at_what_it_is_said_to_carry_and_not_far_above(
    changes: dict[str, Any], counts: tuple[int, ...]
):
    demand = CHAT | {"workload": LOAD | {"request_rate_per_s": 200}} | changes
    asked = request([demand], [{"hardware": "l40s", "accelerators": 256}])
    found = planned(layouts_of(asked.demands[0]), asked.inventory)
    computed = {1, 2, 4, 8, 16} if changes.keys() & {"serving", "workload"} else set(range(99))
    for offer in found.offers:
        layout, capacity = offer.layout, offer.option.capacity
        for count in counts:
            rate, question = 200 * capacity.share(count), found.wanted.request
            at = (question, layout.hardware, layout.split, count)
            assert _meets(*at, rate), (layout.split.tensor_parallel, count)
            serving = count - question.limits.spare_replicas
            if serving in computed and rate < 200:
                assert not _meets(*at, rate * 1.002 + 1e-3)


def test_what_cannot_meet_the_slos_even_idle_says_by_how_much():
    slow = CHAT | {"slo": {"tpot_p95_ms": 5}}
    found = answer([slow | {"weight": 1}], [{"hardware": "l40s", "accelerators": 8}])
    (unserved,) = found["unserved"]
    assert unserved["code"] == "no_feasible_layout"
    (rejected,) = [r for r in unserved["rejected"] if r["code"] == "slo_missed"]
    assert "tpot_p95_ms" in rejected["detail"]
    assert found["allocation"] == []
    assert found["totals"]["accelerators"] == 0


def test_pools_of_several_devices_share_a_rate_that_none_could_carry_alone():
    inventory = [H100 | {"accelerators": 1}, {"hardware": "l40s", "accelerators": 8}]
    found = answer([CHAT], inventory, max_gap=0)
    (served,) = found["allocation"]
    assert {pool["inventory"] for pool in served["pools"]} == {"h100-sxm-80gb", "l40s"}
    assert sum(pool["share_of_rate"] for pool in served["pools"]) == pytest.approx(1)
    assert sum(pool["request_rate_per_s"] for pool in served["pools"]) == pytest.approx(20)
    for pool in served["pools"]:
        assert pool["slo"]["met"]
        assert pool["request_rate_per_s"] <= pool["capacity_requests_per_s"]
        assert pool["latency"]["ttft_ms"]["p95"] <= 1000
    assert served["slo_met"]


@pytest.fixture(scope="module")
def allocated() -> Allocation:
    return allocate(request([CHAT], [H100], alternatives=False))


def lying(allocated: Allocation, capacity: float, rate: float) -> tuple[Problem, list[Planned]]:
    """One TP1 replica said to carry a share of a rate."""
    (demand,), (one,) = allocated.chosen.problem.demands, allocated.plans
    workload = replace(one.wanted.request.workload, request_rate_per_s=rate)
    wanted = replace(one.wanted, request=replace(one.wanted.request, workload=workload))
    option = replace(demand.options[0], capacity=Capacity.linear(capacity))
    problem = replace(allocated.chosen.problem, demands=(replace(demand, options=(option,)),))
    return problem, [replace(one, wanted=wanted, offers=one.offers[:1])]


def exact(problem: Problem) -> Solution:
    return solve(problem, Clock(10), 0.0)


def test_a_pool_that_the_planner_refuses_is_made_larger_and_said(allocated: Allocation):
    (offer, *_), rate = allocated.plans[0].offers, 20
    true = offer.option.capacity.share(1) * rate
    # Two replicas carry just less than is asked for, and are said to carry just enough.
    found = chosen(*lying(allocated, 0.5, 2 * true * 1.01), exact)
    assert [each.pool.replicas for each in found.checked] == [3]
    assert found.checked[0].met
    assert found.corrected == ("chat on h100-sxm-80gb, TP1",)
    untouched = chosen(*lying(allocated, 0.5, 2 * true * 0.99), exact)
    assert [each.pool.replicas for each in untouched.checked] == [2]
    assert untouched.corrected == ()


def test_a_pool_that_stays_too_small_is_answered_as_missing_its_limit(allocated: Allocation):
    found = chosen(*lying(allocated, 5.0, 500), exact)
    assert [each.met for each in found.checked] == [False]
    assert found.corrected
    answered = written(replace(allocated, chosen=found))
    codes = [warning["code"] for warning in answered["warnings"]]
    assert {"capacity_corrected", "pool_misses_limit"} <= set(codes)
    assert not answered["allocation"][0]["slo_met"]


def test_what_was_found_stays_where_no_time_is_left_to_correct_it(allocated: Allocation):
    problem, plans = lying(allocated, 5.0, 500)
    answers = iter([exact(problem), Solution("not_solved")])
    found = chosen(problem, plans, lambda _: next(answers))
    assert found.solution.found
    assert [each.met for each in found.checked] == [False]
    assert found.corrected == ()


@pytest.mark.parametrize(
    ("solution", "code", "words"),
    [
        (Solution("not_solved"), "undecided", "no allocation in its time"),
        (Solution("time_limit", (), frozenset(), 0.0, 3.0, 0.0, 0.0), "undecided", "ran out"),
        (Solution("time_limit", (), frozenset(), 0.0, 0.0, 0.0, 0.0), "inventory", "suffice"),
    ],
)
def test_what_the_solver_left_open_is_not_blamed_on_the_inventory(
    allocated: Allocation, solution: Solution, code: str, words: str
):
    (unserved,) = written(
        replace(allocated, chosen=Chosen(allocated.chosen.problem, solution, (), ()))
    )["unserved"]
    assert unserved["code"] == code
    assert words in unserved["detail"]
