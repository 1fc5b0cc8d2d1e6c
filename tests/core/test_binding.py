"""The limit that an explanation names: followed, it is what stands in the way."""

from __future__ import annotations

import re
from decimal import Decimal
from math import inf

import numpy as np
import pytest

from advisor.core.requests import sample_requests
from advisor.core.simulator import simulate
from advisor.core.verification import _replica
from tests.core.profiles import answer, device, planned, priced, workload

OPEN = workload(1000, 250, request_rate_per_s=40.0)
NAMED = re.compile(
    r"What binds is (\w+): (\d+) replicas? x TP(\d+).* on (\S+) would (.*), but (.*)\.$"
)


def sentence(found):
    """The sentence on the binding limit, taken apart."""
    (match,) = [m for m in map(NAMED.match, found["explanation"]) if m]
    limit, replicas, ranks, name, gain, why = match.groups()
    return limit, int(replicas), int(ranks), name, gain, why


def alone(found_in, name, ranks, replicas, **ask):
    (one,) = answer(
        on=device(name), limits={"tensor_parallel": (ranks,), "replicas": (replicas,)}, **ask
    )["candidates"]  # fmt: skip
    return one


@pytest.mark.parametrize(
    ("load", "slo", "limit"),
    [
        (OPEN, {"tpot_p95_ms": 13.0}, "tpot_p95_ms"),
        (workload(4000, 500, request_rate_per_s=12.0), {"ttft_p95_ms": 150.0}, "ttft_p95_ms"),
        (OPEN, {"tpot_p95_ms": 1000.0}, "max_utilization"),
        (OPEN, {}, "max_utilization"),
        (workload(1000, 250, concurrency=300), {"e2e_p95_ms": 4000.0}, "e2e_p95_ms"),
    ],
)
def test_the_plan_that_would_cost_less_misses_the_limit_that_is_named_by_what_is_said(
    load, slo, limit
):
    found = answer(load=load, slo=slo)
    named, replicas, ranks, name, gain, why = sentence(found)
    assert (named, gain) == (limit, "cost less")
    cheaper = alone(found, name, ranks, replicas, load=load, slo=slo)
    chosen = found["recommended"]
    assert Decimal(cheaper["cost"]["per_hour"]) < Decimal(chosen["cost"]["per_hour"])
    if limit == "max_utilization":
        utilization = cheaper["load"]["utilization"]
        assert utilization > 0.95
        assert f"the load is {utilization:.4g} times" in why
        return
    metric, _, _ = limit.split("_")
    times = cheaper["latency"][f"{metric}_ms"]["p95"] / slo[limit]
    assert times > 1
    assert f"{limit} is {times:.2f} times its limit" in why


def test_a_cheaper_plan_that_is_overloaded_and_late_is_named_for_both():
    """Three of TP1 are over the limit on load, and four of them, which are not, are too late."""
    three = {"tensor_parallel": (1,), "replicas": (3,)}
    (one,) = answer(load=workload(4000, 500, request_rate_per_s=9.0), limits=three)["candidates"]
    rate = 0.975 * one["throughput"]["saturation_requests_per_s"]
    load = workload(4000, 500, request_rate_per_s=rate)
    (four,) = answer(load=load, limits=three | {"replicas": (4,)})["candidates"]
    slo = {"ttft_p95_ms": four["latency"]["ttft_ms"]["p95"] / 1.2}
    found = answer(load=load, slo=slo, limits={"tensor_parallel": (1, 4)})
    limit, replicas, ranks, _, _, why = sentence(found)
    assert (limit, replicas, ranks) == ("ttft_p95_ms", 3, 1)
    assert "the load is 0.975 times what it saturates at" in why
    assert "ttft_p95_ms is more than 1.20 times its limit" in why


def test_of_all_cheaper_plans_the_one_nearest_to_its_limits_is_named():
    """Every plan that costs less, evaluated by itself, misses something by more."""
    slo, devices = {"tpot_p95_ms": 30.0}, (device("h100"), device("l40s"))
    found = answer("qwen3-32b", devices, workload(1000, 250, request_rate_per_s=6.0), slo=slo)
    _, replicas, ranks, name, _, _ = sentence(found)
    every = answer(
        "qwen3-32b", devices, workload(1000, 250, request_rate_per_s=6.0), slo=slo,
        limits={"replicas": tuple(range(1, 65))}, max_candidates=1000,
    )["candidates"]  # fmt: skip
    bill = Decimal(found["recommended"]["cost"]["per_hour"])
    misses = {
        (one["hardware"], one["tensor_parallel"], one["replicas"]): max(
            one["load"]["utilization"] / 0.95, (one["latency"]["tpot_ms"]["p95"] or inf) / 30
        )
        for one in every
        if Decimal(one["cost"]["per_hour"]) < bill
    }
    assert misses[name, ranks, replicas] == min(misses.values()) > 1


def test_memory_that_keeps_a_smaller_replica_out_is_called_capacity():
    found = answer("llama-3.1-70b", load=workload(1000, 250, request_rate_per_s=1.0))
    assert found["recommended"]["tensor_parallel"] == 2
    assert (
        "A replica of 1 x h100 is capacity-bound: it does not hold the model."
        in found["explanation"]
    )


def test_one_accelerator_that_suffices_is_bound_by_nothing():
    found = answer(load=workload(1000, 250, request_rate_per_s=1.0))
    assert "No limit binds: no plan that the request allows costs less." in found["explanation"]


@pytest.mark.parametrize(
    ("limits", "limit"),
    [({"max_accelerators": 2}, "max_accelerators"),
     ({"max_cost_per_hour": Decimal("20")}, "max_cost_per_hour")],
)  # fmt: skip
def test_the_fastest_plan_names_the_limit_on_its_replicas(limits, limit):
    one = {"tensor_parallel": (1,)}
    load = workload(1000, 250, request_rate_per_s=20.0)
    found = answer(load=load, objective="latency", limits=limits | one)
    (words,) = [line for line in found["explanation"] if line.startswith("What binds")]
    count = found["recommended"]["replicas"]
    assert words == f"What binds is {limit}: it leaves no more replicas than {count}."
    more = answer(load=load, objective="latency", limits=one)["recommended"]
    assert more["replicas"] > count
    assert more["latency"]["e2e_ms"]["p95"] < found["recommended"]["latency"]["e2e_ms"]["p95"]


def test_as_many_replicas_as_clients_are_all_that_can_be_used():
    found = answer(load=workload(1000, 250, concurrency=2), objective="latency",
                   limits={"tensor_parallel": (1,)})  # fmt: skip
    assert "What binds is concurrency: it leaves no more replicas than 2." in found["explanation"]


@pytest.mark.parametrize("most", [64, 300])
def test_the_fastest_plan_on_the_plateau_says_what_another_replica_would_gain(most):
    limits = {"tensor_parallel": (1,), "max_accelerators": most}
    load = workload(1000, 250, request_rate_per_s=60.0)
    found = answer(load=load, objective="latency", limits=limits)
    (words,) = [line for line in found["explanation"] if "plateau" in line]
    count = found["recommended"]["replicas"]
    times = [
        alone(found, "h100", 1, count + more, load=load)["latency"]["e2e_ms"]["p95"]
        for more in (-1, 0, 1)
    ]
    assert times[1] / times[2] <= 1.01 < times[0] / times[1]
    assert f"by {1 - times[2] / times[1]:.2%}" in words


def test_the_limit_that_keeps_a_more_productive_layout_out_is_named_under_throughput():
    load, slo = workload(1000, 250, request_rate_per_s=8.0), {"tpot_p95_ms": 12.0}
    found = answer("qwen3-32b", load=load, slo=slo, objective="throughput")
    limit, replicas, ranks, _, gain, why = sentence(found)
    assert (limit, gain) == ("tpot_p95_ms", "give more tokens for each accelerator")
    (better,) = answer(
        "qwen3-32b", load=load, slo=slo,
        limits={"tensor_parallel": (ranks,), "replicas": (replicas,)},
    )["candidates"]  # fmt: skip
    each = [
        one["throughput"]["saturation_output_tokens_per_s"] / one["accelerators"]
        for one in (better, found["recommended"])
    ]
    assert each[0] > each[1]
    times = better["latency"]["tpot_ms"]["p95"] / 12
    assert f"{times:.2f} times its limit" in why


def test_the_knee_is_told_from_its_neighbours_on_the_front():
    found = answer(load=workload(2000, 300, request_rate_per_s=12.0), objective="balanced")
    (words,) = [line for line in found["explanation"] if line.startswith("No limit binds")]
    place = found["pareto"].index(found["recommended"])
    faster, here = found["pareto"][place + 1], found["recommended"]
    cost = Decimal(faster["cost"]["per_hour"]) / Decimal(here["cost"]["per_hour"])
    time = faster["latency"]["e2e_ms"]["p95"] / here["latency"]["e2e_ms"]["p95"]
    assert f"the next faster has {cost:.2f} times its cost and {time:.2f} its p95" in words


@pytest.mark.parametrize("objective", ["cost", "latency", "throughput", "balanced"])
@pytest.mark.parametrize(
    "load",
    [OPEN, workload(1000, 250, concurrency=50), workload(1000, 250, saturate=True),
     workload(100, 10, concurrency=8, start="burst", num_requests=16)],
)  # fmt: skip
def test_every_objective_is_explained_under_every_load(objective, load):
    for price in ("0", "6.88"):
        found = answer(
            on=priced("h100", price), load=load, objective=objective, slo={"tpot_p95_ms": 30.0},
            explain="full",
        )  # fmt: skip
        assert found["recommended"]["slo"]["met"]
        assert len(found["explanation"]) > 5


# The wait for a slot


@pytest.mark.parametrize(("clients", "batch"), [(60, 16), (200, 32), (40, 64)])
def test_the_wait_for_a_slot_is_what_a_simulation_has(clients, batch):
    """Of the simulated clients those wait who are not in a step; a request as long as they take to
    be served [Little 1961]."""
    load = workload(1000, 250, concurrency=clients)
    found = planned(load=load, limits={"tensor_parallel": (1,), "replicas": (1,)},
                    serving={"max_num_seqs": batch})  # fmt: skip
    computed = float(found.candidates.served.slot_wait[0])
    run = simulate(
        _replica(found.evaluator, 0), sample_requests(load, 20 * clients, np.random.default_rng(7))
    )
    rows, seconds = run.iterations, run.iterations.seconds
    middle = (rows.start_s > run.duration * 0.2) & (rows.start_s < run.duration * 0.8)
    busy = ((rows.decode + rows.prompts) * seconds)[middle].sum() / seconds[middle].sum()
    done = np.sort(run.done_s)
    inside = (done > run.duration * 0.2) & (done < run.duration * 0.8)
    rate = inside.sum() / (run.duration * 0.6)
    simulated = (clients - busy) / rate - float(found.evaluator.front_end[0])
    if batch > clients:
        assert computed == 0
        return
    assert computed == pytest.approx(simulated, rel=0.05)


def test_a_slot_is_waited_for_where_an_open_load_fills_the_batch_and_not_where_it_does_not():
    one = {"tensor_parallel": (1,), "replicas": (1,)}
    (full,) = answer(load=workload(1000, 250, request_rate_per_s=8.0), limits=one,
                     serving={"max_num_seqs": 28})["candidates"]  # fmt: skip
    (free,) = answer(load=workload(1000, 250, request_rate_per_s=8.0), limits=one)["candidates"]
    assert full["load"]["slot_wait_mean_ms"] > 10
    assert free["load"]["slot_wait_mean_ms"] < 1e-3
    (unstable,) = answer(load=workload(1000, 250, request_rate_per_s=100.0), limits=one)[
        "candidates"
    ]
    assert unstable["load"]["slot_wait_mean_ms"] is None
