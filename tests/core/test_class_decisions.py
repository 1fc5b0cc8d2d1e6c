"""Decisions on classes of requests: their SLOs count, and are explained, as any other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.errors import InvalidInput
from advisor.core.lengths import Length, RequestClass
from advisor.core.workload import Workload
from tests.core.profiles import answer, planned, request

CHAT = RequestClass(
    Length(600, 1500), Length(300, 800), 3.0, name="chat", slo={"tpot_p95_ms": 20.0}
)
SEARCH = RequestClass(Length(5000), Length(50), 1.0, name="search", slo={"ttft_p95_ms": 600.0})


def classes(*several, **load):
    return Workload.of_classes(several or (CHAT, SEARCH), **load)


OPEN = classes(request_rate_per_s=6.0)
CLOSED = classes(concurrency=120)


def with_limit(load, name, key, limit_ms):
    """The same load with another limit, or none, for one class."""
    several = [
        replace(one, slo={k: ms for k, ms in {**one.slo, key: limit_ms}.items() if ms is not None})
        if one.name == name else one
        for one in load.classes
    ]  # fmt: skip
    return replace(load, classes=tuple(several))


def test_a_plan_is_recommended_only_where_every_class_meets_its_slos():
    found = answer(load=OPEN, on="h200")["recommended"]
    limits = {"chat": ("tpot_ms", 20.0), "search": ("ttft_ms", 600.0)}
    for one in found["classes"]:
        metric, limit_ms = limits[one["name"]]
        assert one[metric]["p95"] <= limit_ms
    assert found["slo"]["binding"] in ("tpot_p95_ms@chat", "ttft_p95_ms@search")
    hopeless = with_limit(OPEN, "search", "ttft_p95_ms", 5.0)
    none = answer(load=hopeless, on="h200")
    assert none["recommended"] is None
    assert none["missed_limits"][0]["limit"] == "ttft_p95_ms@search"
    assert "ttft_p95_ms@search is" in none["reason"]


@pytest.mark.parametrize("load", [OPEN, CLOSED], ids=["open", "closed"])
def test_a_looser_slo_of_a_class_brings_what_asking_for_it_does(load):
    found = answer(load=load, slo={"e2e_p99_ms": 60_000.0}, explain="full")
    looser = {
        one["slo"]: one for one in found["slo_sensitivity"] if one["instead_ms"] > one["limit_ms"]
    }
    assert list(looser) == ["e2e_p99_ms", "tpot_p95_ms@chat", "ttft_p95_ms@search"]
    for name, key, limit_ms in (("chat", "tpot_p95_ms", 24.0), ("search", "ttft_p95_ms", 720.0)):
        asked = answer(load=with_limit(load, name, key, limit_ms), slo={"e2e_p99_ms": 60_000.0})
        then, now = looser[f"{key}@{name}"]["plan"], asked["recommended"]
        assert (then is None) == (now is None)
        if then is not None:
            assert then["replicas"] == now["replicas"]
            assert then["cost_per_hour"] == now["cost"]["per_hour"]
            assert then["ttft_p95_ms"] == now["latency"]["ttft_ms"]["p95"]


def test_a_batch_is_kept_small_for_a_class_and_not_without_its_slo():
    """Of a closed load, as for an SLO on all requests."""
    limits = {"tensor_parallel": (1,), "replicas": (2,)}
    found = answer(load=CLOSED, limits=limits)
    (one,) = found["candidates"]
    chat = next(each for each in one["classes"] if each["name"] == "chat")
    assert chat["tpot_ms"]["p95"] <= 20.0
    kept, unlimited = found["batch_limit"]["kept"], found["batch_limit"]["unlimited"]
    assert kept["max_num_seqs"] == one["serving"]["max_num_seqs"] < unlimited["max_num_seqs"]
    (without,) = answer(load=with_limit(CLOSED, "chat", "tpot_p95_ms", None), limits=limits)[
        "candidates"
    ]
    assert unlimited["max_num_seqs"] == without["serving"]["max_num_seqs"]
    assert unlimited["tpot_p95_ms"] == without["latency"]["tpot_ms"]["p95"]


def test_slos_given_anew_replace_those_of_classes_too():
    asked = request(load=OPEN, slo={"e2e_p95_ms": 9000.0})
    other = asked.with_slo({"ttft_p95_ms@search": 700.0})
    assert dict(other.slo) == {"ttft_p95_ms@search": 700.0}
    assert [dict(one.slo) for one in other.workload.classes] == [{}, {"ttft_p95_ms": 700.0}]


def test_surer_plans_are_surer_of_the_slos_of_classes():
    least = {"min_met_probability": 0.7}
    found = answer(load=OPEN, on="h200", limits=least)
    assert found["recommended"]["slo"]["met_probability"] >= 0.7
    free = answer(load=OPEN, on="h200")
    assert free["recommended"]["accelerators"] <= found["recommended"]["accelerators"]


def test_an_slo_of_a_class_that_there_is_not_is_refused_with_the_nearest():
    with pytest.raises(InvalidInput) as refused:
        planned(load=OPEN, slo={"ttft_p95_ms@serch": 700.0})
    (error,) = refused.value.errors
    assert (error.pointer, error.nearest) == ("/slo/ttft_p95_ms@serch", "ttft_p95_ms@search")


@pytest.mark.parametrize("routing", ["random", "least_loaded"])
def test_classes_are_answered_alike_however_requests_are_routed(routing):
    """Verified by simulation: of each class, mean TTFT and E2E within 12 %."""
    limits = {"tensor_parallel": (1,), "replicas": (3,)}
    load = classes(request_rate_per_s=15.0)
    (one,) = answer(load=load, limits=limits, serving={"routing": routing}, verify=True)[
        "candidates"
    ]
    found = one["verification"]["classes"]
    assert [each["name"] for each in found] == ["chat", "search"]
    for each in found:
        assert each["agreement"]["ttft"]["mean"] == pytest.approx(1, abs=0.12)
        assert each["agreement"]["e2e"]["mean"] == pytest.approx(1, abs=0.12)


def test_crossing_loads_and_larger_plans_are_those_of_the_mixture():
    found = answer(load=OPEN, on="h200", explain="full", objective="latency")
    assert {one["metric"] for one in found["crossing_loads"]} == {"e2e_p95_ms", "slo"}
    another = next(one for one in found["next_accelerators"] if one["kind"] == "another_replica")
    if another["plan"] is not None:
        way = {key: (another["plan"][key],) for key in ("tensor_parallel", "replicas")}
        limits = way | {"expert_parallel": (1,)}
        (asked,) = answer(load=OPEN, on="h200", limits=limits)["candidates"]
        assert another["plan"]["e2e_p95_ms"] == asked["latency"]["e2e_ms"]["p95"]
