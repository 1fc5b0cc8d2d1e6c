"""The number of replicas: against an evaluation of every count, one by one."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from advisor.core.choice import TIE
from tests.core.profiles import device, planned, workload

SMALL = {"tensor_parallel": (1,)}


def cheapest(found):
    """The recommended plan as (accelerators, replicas, split), or None."""
    if found.recommended is None:
        return None
    rows = found.candidates
    layout = found.evaluator.layouts[rows.layout[found.recommended]]
    return (
        int(rows.accelerators[found.recommended]), int(rows.replicas[found.recommended]),
        layout.hardware.name, layout.split,
    )  # fmt: skip


def hourly(plan):
    accelerators, _, name, _ = plan
    price = device(name).price
    assert price is not None
    return accelerators * price.amount_per_hour


def one_by_one(most, **ask):
    """The cheapest of all plans with 1, 2, ... replicas, each evaluated on its own."""
    limits = ask.pop("limits", {})
    best = None
    for count in range(1, most + 1):
        plan = cheapest(planned(limits=limits | {"replicas": (count,)}, **ask))
        if plan and (best is None or hourly(plan) < hourly(best)):
            best = plan
    return best


ASKS = [
    {"load": workload(1000, 250, request_rate_per_s=4.0)},
    {"load": workload(1000, 250, request_rate_per_s=150.0)},
    {"load": workload(1000, 250, request_rate_per_s=150.0), "slo": {"tpot_p95_ms": 12.0}},
    {"load": workload(4000, 500, request_rate_per_s=25.0), "slo": {"ttft_p95_ms": 300.0}},
    {"load": workload(1000, 250, request_rate_per_s=40.0), "slo": {"e2e_p99_ms": 2500.0},
     "on": (device("h100"), device("h200"), device("l40s"))},
    {"load": workload(1000, 250, concurrency=300), "slo": {"e2e_p95_ms": 4000.0}},
    {"load": workload(1000, 250, request_rate_per_s=400.0), "slo": {"tpot_p95_ms": 7.0}},
]  # fmt: skip


@pytest.mark.parametrize("ask", ASKS)
def test_the_cheapest_plan_is_that_of_an_exhaustive_search(ask):
    found = cheapest(planned(**ask))
    exhaustive = one_by_one(64, **ask)
    if exhaustive is None:
        assert found is None
        return
    assert found is not None
    assert hourly(found) <= hourly(exhaustive) * (1 + Decimal(str(TIE)))
    assert hourly(found) >= hourly(exhaustive)


@pytest.mark.parametrize(
    ("rate", "slo"),
    [
        (1500.0, {}),
        (1500.0, {"tpot_p95_ms": 13.0}),
        (900.0, {"e2e_p95_ms": 2800.0}),
        (2100.0, {"ttft_p99_ms": 140.0}),
    ],
)
def test_no_count_is_jumped_over_where_the_ladder_has_gaps(rate, slo):
    """300 replicas and more are searched by ratio; the fewest that hold are found all the same."""
    load = workload(1000, 250, request_rate_per_s=rate)
    limits = SMALL | {"max_accelerators": 300}
    found = planned(load=load, limits=limits, slo=slo)
    assert found.recommended is not None
    count = int(found.candidates.replicas[found.recommended])
    every = planned(load=load, limits=limits | {"replicas": tuple(range(1, 301))}, slo=slo)
    holding = every.candidates.replicas[every.verdicts.eligible]
    assert count == holding.min()


def test_the_fewest_replicas_stay_below_the_utilization_limit():
    for share in (0.3, 0.6, 0.95):
        limits = SMALL | {"max_utilization": share}
        found = planned(load=workload(1000, 250, request_rate_per_s=100.0), limits=limits)
        assert found.recommended is not None
        served, row = found.candidates.served, found.recommended
        assert served.utilization[row] <= share
        fewer = int(found.candidates.replicas[row]) - 1
        assert served.utilization[row] * (fewer + 1) / fewer > share


def test_the_fastest_plan_stops_where_another_replica_gains_less_than_one_per_cent():
    load = workload(1000, 250, request_rate_per_s=60.0)
    found = planned(load=load, limits=SMALL, objective="latency")
    every = planned(load=load, limits=SMALL | {"replicas": tuple(range(4, 65))})
    times = every.candidates.served.latency["e2e"].at("p95")
    row = found.recommended
    assert row is not None
    chosen = found.candidates.served.latency["e2e"].at("p95")[row]
    assert chosen <= times.min() * 1.25
    place = int(found.candidates.replicas[row]) - 4  # the ladder's next count is two further
    assert times[place] / times[place + 2] < 1.011**2


def test_no_plan_gives_more_tokens_for_each_accelerator_at_saturation():
    load = workload(1000, 250, saturate=True)
    devices = (device("h100"), device("h200"), device("l40s"))
    found = planned(load=load, on=devices, objective="throughput")
    assert found.recommended is not None
    rates = found.verdicts.per_accelerator
    assert rates[found.recommended] >= np.max(rates) * (1 - TIE)


@pytest.mark.parametrize("spare", [0, 2])
def test_limits_of_accelerators_and_cost_are_kept(spare):
    limits = {"max_accelerators": 13, "max_cost_per_hour": Decimal("60"), "spare_replicas": spare}
    for objective in ("cost", "latency", "throughput", "balanced"):
        load = workload(1000, 250, request_rate_per_s=30.0)
        found = planned(load=load, limits=limits, objective=objective)
        assert (found.candidates.accelerators <= 13).all()
        assert (found.verdicts.cost <= 60).all()
        assert (found.candidates.replicas > spare).all()
