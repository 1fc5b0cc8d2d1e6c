"""What a plan serves at most, against plans made for loads around that."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from advisor.core.capacity import capacity
from advisor.core.errors import InvalidInput
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest
from tests.core.profiles import device, request, workload

TIGHT = {"ttft_p95_ms": 300, "tpot_p95_ms": 15}


def recommended(asked: PlanRequest) -> dict[str, Any]:
    """The candidate that is answered, as it travels."""
    found: dict[str, Any] = json.loads(json.dumps(plan(asked).as_dict()["recommended"]))
    assert found is not None
    return found


def holds(asked: PlanRequest, candidate: dict[str, Any], rate: float) -> bool:
    """Whether the planner recommends these very replicas for a rate."""
    fixed: dict[str, Any] = {
        name: (candidate[name],) for name in ("tensor_parallel", "expert_parallel", "replicas")
    }
    engine = {"max_num_seqs": candidate["serving"]["max_num_seqs"]}
    load = workload(1000, 250, request_rate_per_s=rate)
    limits, serving = replace(asked.limits, **fixed), replace(asked.serving, **engine)
    return (
        plan(replace(asked, workload=load, limits=limits, serving=serving)).recommended is not None
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"slo": TIGHT},
        {"slo": {"ttft_p95_ms": 200}, "limits": {"spare_replicas": 1}},
        {"slo": {"tpot_p95_ms": 20}, "load": workload(1000, 250, request_rate_per_s=90.0)},
        {"slo": {"tpot_p95_ms": 12}, "load": workload(1000, 250, concurrency=32)},
        {"slo": {"tpot_p95_ms": 50}, "load": workload(1000, 250, concurrency=16)},
        {"slo": {"tpot_p95_ms": 30}, "load": workload(1000, 250, saturate=True)},
        {"slo": {"e2e_p95_ms": 9000}, "of": "llama-3.1-70b", "limits": {"max_utilization": 0.8}},
    ],
    ids=["ttft", "spares", "many", "closed", "wide", "saturated", "70b"],
)
def test_at_its_capacity_a_plan_holds_and_a_little_above_it_does_not(fields: dict[str, Any]):
    asked = request(**fields)
    found = recommended(asked)
    most, step = capacity(asked, found), found["throughput"]["saturation_requests_per_s"] / 500
    assert most > 0
    assert holds(asked, found, most)
    assert not holds(asked, found, most + step)


def test_without_an_slo_the_limit_of_utilization_decides():
    asked = request(limits={"max_utilization": 0.6})
    found = recommended(asked)
    saturation = found["throughput"]["saturation_requests_per_s"]
    assert capacity(asked, found) == pytest.approx(0.6 * saturation, rel=1e-5)


def test_an_slo_may_be_missed_long_before_replicas_saturate():
    asked = request(slo=TIGHT)
    found = recommended(asked)
    saturation = found["throughput"]["saturation_requests_per_s"]
    assert found["throughput"]["requests_per_s"] < capacity(asked, found) < 0.6 * saturation


def test_a_plan_of_a_profile_that_is_another_one_now_is_refused():
    asked = request()
    found = recommended(asked)
    slower = replace(device("h100"), memory_bandwidth_gb_s=2000.0)
    for changed in (replace(asked, hardware=(slower,)), replace(asked, hardware=(device("a100"),))):
        with pytest.raises(InvalidInput, match="changed since"):
            capacity(changed, found)


def test_a_simulation_misses_the_slo_a_little_above_the_capacity_and_not_below():
    asked = request(slo=TIGHT)
    most = capacity(asked, recommended(asked))
    fixed: dict[str, Any] = {"replicas": (1,), "tensor_parallel": (1,)}
    for share, meets in ((0.95, True), (1.05, False)):
        load = workload(1000, 250, request_rate_per_s=share * most)
        found = plan(request(slo=TIGHT, load=load, limits=fixed, verify=True)).as_dict()
        simulated = (found["recommended"] or found["nearest"])["verification"]
        assert simulated["slo_met"] is meets
