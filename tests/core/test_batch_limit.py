"""The batch that a TPOT SLO allows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.profiles import answer, planned, workload

SATURATING = workload(1000, 250, saturate=True)
ONE = {"tensor_parallel": (1,), "replicas": (1,)}


def tried(batch, load, slo):
    """TPOT at p95 [ms] of a replica that runs so many at once."""
    found = planned(load=load, limits=ONE, serving={"max_num_seqs": batch}, slo=slo)
    return found.candidates.served.latency["tpot"].at("p95")[0] * 1e3


@pytest.mark.parametrize("limit", [12.0, 20.0, 35.0])
@pytest.mark.parametrize(
    "load", [workload(1000, 250, saturate=True), workload(200, 800, saturate=True)]
)
def test_it_is_the_largest_of_all_tried_one_by_one(load, limit):
    slo = {"tpot_p95_ms": limit}
    found = planned(load=load, limits=ONE, slo=slo)
    batch = found.evaluator.settings[0].max_num_seqs
    assert found.evaluator.slots[0] == batch
    assert found.candidates.served.latency["tpot"].at("p95")[0] * 1e3 <= limit
    assert tried(batch, load, slo) <= limit < tried(batch + 1, load, slo)


def test_at_saturation_a_plan_within_its_slo_is_found_and_says_its_batch():
    load, slo = workload(1000, 250, saturate=True), {"tpot_p95_ms": 20.0}
    found = answer(load=load, limits=ONE, slo=slo, objective="throughput")
    chosen = found["recommended"]
    assert chosen["slo"]["met"]
    assert 1 < chosen["serving"]["max_num_seqs"] < 256
    assert any("largest batch" in line for line in found["explanation"])
    wide = answer(
        load=load, limits=ONE, slo=slo, objective="throughput", serving={"max_num_seqs": 256}
    )
    assert wide["recommended"] is None


def test_what_waits_for_a_place_waits_longer_for_its_first_token():
    """At more clients than the SLO lets run, TPOT stays within it and TTFT has the wait."""
    load = workload(1000, 250, concurrency=200)
    free, kept = (planned(load=load, limits=ONE, slo=slo) for slo in ({}, {"tpot_mean_ms": 15.0}))
    before, after = (each.candidates.served.latency for each in (free, kept))
    assert after["tpot"].mean[0] <= 0.015 < before["tpot"].mean[0]
    assert after["ttft"].mean[0] > before["ttft"].mean[0]


@pytest.mark.parametrize(
    ("slo", "serving"),
    [({}, {}), ({"ttft_p95_ms": 500.0}, {}), ({"tpot_p95_ms": 1000.0}, {}),
     ({"tpot_p95_ms": 0.1}, {}), ({"tpot_p95_ms": 12.0}, {"max_num_seqs": 64})],
)  # fmt: skip
@pytest.mark.parametrize("load", [workload(1000, 250, concurrency=300), SATURATING])
def test_nothing_changes_where_no_batch_is_to_be_chosen(load, slo, serving):
    """No SLO on TPOT, one that any batch meets or none, a batch that was asked for."""
    free = planned(load=load, limits=ONE, serving=serving)
    kept = planned(load=load, limits=ONE, serving=serving, slo=slo)
    assert np.array_equal(free.evaluator.slots, kept.evaluator.slots)
    assert not kept.evaluator.settings[0].max_num_seqs_by_slo


def test_an_open_load_keeps_the_plans_that_meet_its_slo_without_a_limit():
    """What a full replica would take longer for is no reason to refuse one that is never full."""
    load = workload(1000, 250, request_rate_per_s=12.0)
    free = planned(load=load, limits=ONE)
    reached = free.candidates.served.latency["tpot"].at("p95")[0] * 1e3
    kept = planned(load=load, limits=ONE, slo={"tpot_p95_ms": reached * 1.01})
    assert kept.recommended is not None
    assert np.array_equal(free.evaluator.slots, kept.evaluator.slots)
