"""Requests that lose their place in a full KV cache: when that is said, and what avoids it."""

from __future__ import annotations

import re

import pytest

from advisor.core.verification import Work, simulate_steady
from advisor.core.workload import Length
from tests.core.profiles import answer, planned, workload

ONE = {"tensor_parallel": (1,), "replicas": (1,)}
TIGHT = {"memory_utilization": 0.35}
LENGTHS = [(181, 883), (983, 212), (321, Length(663, 1600)), (2139, Length(305, 630))]


def simulated(load, serving):
    """The plan's own rate and a simulation's [requests/s], and preemptions of a request."""
    plan = planned(load=load, limits=ONE, serving=serving)
    closed = plan.candidates.served
    found = simulate_steady(plan.evaluator, 0, 1, closed, Work(1e7))
    assert found.served is not None
    return closed.requests_per_s[0], found.served.requests_per_s[0], found.preemptions


def warned(load, serving):
    """The warning of preemption, and the max_num_seqs that it names; or None."""
    for each in answer(load=load, limits=ONE, serving=serving)["warnings"]:
        if each["code"] == "preemption_likely":
            named = re.search("max_num_seqs ([0-9]+)", each["detail"])
            assert named
            return each["detail"], int(named[1])
    return None


@pytest.mark.parametrize(("inputs", "outputs"), LENGTHS)
def test_a_full_cache_preempts_and_the_named_batch_hardly_does(inputs, outputs):
    load = workload(inputs, outputs, saturate=True)
    said, served, preemptions = simulated(load, TIGHT)
    warning = warned(load, TIGHT)
    assert warning
    assert 0.05 < preemptions <= load.output_tokens.mean / inputs
    assert 1.02 < said / served < 1.21
    roomy = TIGHT | {"max_num_seqs": warning[1]}
    said, kept, preemptions = simulated(load, roomy)
    assert preemptions < 0.05
    assert said == pytest.approx(kept, rel=0.02)
    assert kept > served
    assert warned(load, roomy) is None


@pytest.mark.parametrize(("inputs", "outputs"), LENGTHS)
@pytest.mark.parametrize("part", [0.3, 0.7, 0.97])
def test_open_loads_are_warned_of_where_requests_are_preempted(inputs, outputs, part):
    most = planned(load=workload(inputs, outputs, saturate=True), limits=ONE, serving=TIGHT)
    rate = part * float(most.evaluator.saturation[0])
    load = workload(inputs, outputs, request_rate_per_s=rate)
    preemptions = simulated(load, TIGHT)[2]
    if preemptions > 0.02:
        assert warned(load, TIGHT)
    if part == 0.3:
        assert preemptions == 0
        assert warned(load, TIGHT) is None


def test_clients_fewer_than_fit_are_not_warned_of():
    held = planned(load=workload(983, 212, saturate=True), limits=ONE, serving=TIGHT)
    slots = int(held.evaluator.slots[0])
    assert warned(workload(983, 212, concurrency=slots // 2), TIGHT) is None
    assert warned(workload(983, 212, concurrency=slots + 20), TIGHT)


def test_a_verified_plan_says_how_often_a_request_is_preempted():
    load = workload(983, 212, concurrency=120)
    for serving, least, most in ((TIGHT, 0.05, 0.3), ({}, 0, 0)):
        found = answer(load=load, limits=ONE, serving=serving, verify=True)
        count = found["recommended"]["verification"]["preemptions_per_request"]
        assert least <= count <= most
