"""What the planner answers: refusals with a remedy, verdicts, costs, and the choice."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest

from advisor.core.errors import InvalidInput
from tests.core.profiles import (
    DEVICES,
    answer,
    device,
    model,
    planned,
    priced,
    request,
    unpriced,
    workload,
)


def rejections(found, code):
    return [one for one in found["rejected"] if one["code"] == code]


def refused(*args, **kwargs):
    with pytest.raises(InvalidInput) as caught:
        planned(*args, **kwargs)
    return caught.value.errors


@pytest.mark.parametrize(
    ("of", "ranks", "code", "nearest"),
    [
        ("llama-3.1-8b", 3, "num_heads_not_divisible", "tensor_parallel 2"),
        ("llama-3.1-8b", 7, "num_heads_not_divisible", "tensor_parallel 8"),
        ("llama-3.2-3b", 16, "num_heads_not_divisible", "tensor_parallel 8"),
        ("qwen2.5-72b", 6, "num_heads_not_divisible", "tensor_parallel 4"),
    ],
)
def test_a_degree_that_does_not_divide_is_rejected_with_the_nearest_that_does(
    of, ranks, code, nearest
):
    found = answer(of, "h200", limits={"tensor_parallel": (ranks,)})
    (rejection,) = found["rejected"]
    assert (rejection["code"], rejection["tensor_parallel"]) == (code, ranks)
    assert nearest in rejection["remedy"]
    assert found["recommended"] is None
    assert found["candidates"] == []
    assert code in found["reason"]


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"expert_parallel": (2,)}, "no_experts"),
        ({"tensor_parallel": (2,), "expert_parallel": (4,)}, "expert_parallel_not_divisible"),
        ({"attention_data_parallel": (3,)}, "attention_data_parallel_not_divisible"),
        ({"pipeline_parallel": (33,)}, "pipeline_too_deep"),
        ({"tensor_parallel": (8,), "max_accelerators": 4}, "over_max_accelerators"),
        ({"tensor_parallel": (4,), "max_accelerators": 7, "spare_replicas": 1},
         "over_max_accelerators"),
    ],
)  # fmt: skip
def test_a_layout_that_cannot_be_is_rejected_by_its_reason(limits, code):
    limits = {"tensor_parallel": (2,), "max_accelerators": 1024} | limits
    found = answer(limits=limits)
    assert {one["code"] for one in found["rejected"]} == {code}
    assert all(one["remedy"] for one in found["rejected"])
    assert found["recommended"] is None


def test_accelerators_beyond_the_fast_link_need_a_network():
    found = answer(on="l40s", limits={"tensor_parallel": (8, 16)})
    (rejection,) = rejections(found, "no_network")
    assert rejection["tensor_parallel"] == 16
    assert "network" in rejection["remedy"]


def test_a_model_that_is_too_large_is_rejected_with_what_would_fit():
    found = answer("llama-3.1-70b", "h100", limits={"tensor_parallel": (1,)})
    (rejection,) = found["rejected"]
    assert rejection["code"] == "does_not_fit"
    assert "apacity-bound" in rejection["detail"]
    assert "131.4 GiB of 79.2 GiB" in rejection["detail"]
    assert "fp8 with TP" in rejection["remedy"]
    assert found["recommended"] is None
    assert found["nearest"] is None
    assert found["candidates"] == []
    assert found["pareto"] == []
    assert found["replicas_vs_tensor_parallel"] == []
    assert "does_not_fit" in found["reason"]


@pytest.mark.parametrize(
    "load",
    [
        workload(1000, 250, request_rate_per_s=4.0), workload(1000, 250, concurrency=8),
        workload(1000, 250, saturate=True), workload(1000, 1, concurrency=3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("objective", ["cost", "latency", "throughput", "balanced"])
def test_nothing_that_fits_is_an_answer_under_any_load(load, objective):
    found = answer("deepseek-v3", "l40s", load, objective=objective)
    assert found["recommended"] is None
    assert {one["code"] for one in found["rejected"]} == {"does_not_fit"}
    assert all(one["remedy"] for one in found["rejected"])


def test_what_is_proposed_for_a_model_that_does_not_fit_does_fit():
    """The remedy is followed to the letter."""
    found = answer("llama-3.1-70b", "h100", limits={"tensor_parallel": (1,)})
    proposed = re.findall(r"(\w+) with TP(\d+)", found["rejected"][0]["remedy"])
    assert {weights for weights, _ in proposed} >= {"bf16", "fp8"}
    for weights, ranks in proposed:
        limits = {"tensor_parallel": (int(ranks),)}
        followed = answer("llama-3.1-70b", "h100", limits=limits, weights=(weights,))
        assert followed["candidates"]


def test_a_fixed_number_of_replicas_that_cannot_carry_the_load_is_evaluated_all_the_same():
    load = workload(1000, 250, request_rate_per_s=100.0)
    found = answer(load=load, limits={"tensor_parallel": (1,), "replicas": (2,)})
    (candidate,) = found["candidates"]
    assert candidate["load"]["verdict"] == "unstable"
    assert candidate["load"]["utilization"] > 1
    for latency in candidate["latency"].values():
        assert set(latency.values()) == {None}
    costs = candidate["cost"]
    assert costs["per_hour"] == "13.76"
    assert costs["per_million_output_tokens"] is None
    assert costs["per_million_total_tokens"] is None
    assert costs["per_request"] is None
    throughput = candidate["throughput"]
    assert throughput["requests_per_s"] == throughput["saturation_requests_per_s"] < 100
    assert candidate["load"]["mean_concurrency"] is None
    assert found["recommended"] is None
    assert found["nearest"] == candidate
    would_hold = int(re.findall(r"(\d+) replicas would hold", found["reason"])[0])
    held = answer(load=load, limits={"tensor_parallel": (1,), "replicas": (would_hold,)})
    assert held["recommended"] is not None
    short = answer(load=load, limits={"tensor_parallel": (1,), "replicas": (would_hold - 1,)})
    assert short["recommended"] is None


def test_an_unstable_plan_meets_no_latency_slo():
    load = workload(1000, 250, request_rate_per_s=100.0)
    found = answer(load=load, slo={"e2e_p95_ms": 1e9}, limits={"replicas": (1,)})
    assert not any(one["slo"]["met"] for one in found["candidates"])
    assert all(one["slo"]["attainment"] == 0 for one in found["candidates"])


@pytest.mark.parametrize("objective", ["cost", "balanced"])
def test_hardware_without_a_price_cannot_be_the_cheapest(objective):
    found = answer(on=unpriced("h100"), objective=objective)
    assert {one["code"] for one in found["rejected"]} == {"no_price"}
    assert found["recommended"] is None
    both = answer(on=(unpriced("h100"), device("h200")), objective=objective)
    assert both["recommended"]["hardware"] == "h200"


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_hardware_without_a_price_is_planned_with_null_costs_and_a_warning(objective):
    found = answer(on=unpriced("h100"), objective=objective)
    assert set(found["recommended"]["cost"].values()) == {None}
    assert "no_price" in {one["code"] for one in found["warnings"]}


def test_prices_in_two_currencies_are_refused():
    (error,) = refused(on=(device("h100"), priced("h200", "5", "EUR")))
    assert error.pointer == "/hardware"
    assert error.given == ["EUR", "USD"]


def test_a_request_longer_than_the_context_is_refused_with_the_context():
    (error,) = refused("qwen3-32b", load=workload(40_000, 961, request_rate_per_s=1.0))
    assert error.pointer == "/workload"
    assert error.given == 40_961
    assert "40960" in str(error.allowed)
    longest = answer("qwen3-32b", load=workload(40_000, 960, request_rate_per_s=1.0))
    assert longest["recommended"] is not None


def test_an_unknown_slo_or_objective_is_refused_with_the_nearest():
    errors = refused(slo={"tpto_p95_ms": 50.0}, objective="costs")
    assert [one.pointer for one in errors] == ["/slo/tpto_p95_ms", "/objective"]
    assert [one.nearest for one in errors] == ["tpot_p95_ms", "cost"]


def test_too_many_layouts_are_refused_before_any_is_computed():
    limits = {"tensor_parallel": tuple(range(1, 33)), "pipeline_parallel": tuple(range(1, 33))}
    everything = ("fp32", "bf16", "fp16", "fp8", "int8", "int4_awq", "int4_gptq")
    (error,) = refused(limits=limits, weights=everything, kv_cache=("bf16", "fp8", "int8"))
    assert error.pointer == "/limits"
    assert error.given == 32 * 32 * len(everything) * 3


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b"])
@pytest.mark.parametrize("objective", ["cost", "latency", "throughput", "balanced"])
@pytest.mark.parametrize(
    "load",
    [
        workload(1000, 250, request_rate_per_s=30.0), workload(1000, 250, concurrency=100),
        workload(1000, 250, saturate=True),
    ],
)  # fmt: skip
def test_every_candidate_adds_up(name, objective, load):
    both = (device("h100"), device("mi300x"))
    found = answer(name, both, load, {"pipeline_parallel": (1, 2)}, objective=objective)
    assert found["recommended"] is not None
    for one in [*found["candidates"], *found["pareto"], found["recommended"]]:
        ranks = one["tensor_parallel"] * one["pipeline_parallel"]
        assert one["accelerators"] == one["replicas"] * ranks <= 64
        price = {"h100": Decimal("6.88"), "mi300x": Decimal("5.99")}[one["hardware"]]
        assert Decimal(one["cost"]["per_hour"]) == one["accelerators"] * price
        assert one["memory"]["fit"] in ("fits", "uncertain")
        assert 0 < one["bottleneck"]["memory_capacity_used"] <= 1
        for phase in ("prefill", "decode"):
            shares = one["bottleneck"][phase]["shares"]
            assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
            assert max(shares, key=shares.get) == one["bottleneck"][phase]["kind"]
        tokens = one["throughput"]["output_tokens_per_s"]
        assert tokens == pytest.approx(250 * one["throughput"]["requests_per_s"], rel=1e-4)
        per_token = Decimal(one["cost"]["per_hour"]) / Decimal(tokens * 3600) * 10**6
        assert float(one["cost"]["per_million_output_tokens"]) == pytest.approx(
            float(per_token), rel=1e-4
        )
        assert float(one["cost"]["per_million_total_tokens"]) == pytest.approx(
            float(per_token) / 5, rel=1e-4
        )
        assert float(one["cost"]["per_request"]) == pytest.approx(
            float(per_token) * 250 / 1e6, rel=1e-4
        )


def test_idle_accelerators_are_paid_for():
    """The bill is accelerators times price, whatever the load."""
    busy, idle = (
        answer(load=workload(1000, 250, request_rate_per_s=rate), limits={"replicas": (2,)})
        for rate in (20.0, 0.2)
    )
    costs = [found["recommended"]["cost"] for found in (busy, idle)]
    assert costs[0]["per_hour"] == costs[1]["per_hour"] == "13.76"
    per_request = [Decimal(cost["per_request"]) for cost in costs]
    assert per_request[1] / per_request[0] == pytest.approx(Decimal(100), rel=Decimal("1e-4"))


def test_spares_are_paid_for_and_serve_nothing():
    plain = answer(limits={"tensor_parallel": (1,), "replicas": (2,)})["candidates"][0]
    spared = answer(
        limits={"tensor_parallel": (1,), "replicas": (3,), "spare_replicas": 1}
    )["candidates"][0]  # fmt: skip
    assert spared["accelerators"] == 3
    assert Decimal(spared["cost"]["per_hour"]) == Decimal("20.64")
    assert spared["latency"] == plain["latency"]
    assert spared["load"]["utilization"] == plain["load"]["utilization"]


def test_replicas_that_are_all_spares_are_refused_with_a_reason():
    found = answer(limits={"tensor_parallel": (1,), "replicas": (1,), "spare_replicas": 1})
    assert found["recommended"] is None
    assert found["candidates"] == []
    assert "spare" in found["reason"]


@pytest.mark.parametrize("rate", [3.0, 40.0])
def test_a_tighter_slo_never_costs_less(rate):
    def cost(limit):
        found = answer(
            load=workload(2000, 300, request_rate_per_s=rate), slo={"e2e_p95_ms": limit},
            on=(device("h100"), device("h200"), device("mi300x")),
        )  # fmt: skip
        best = found["recommended"]
        return Decimal("Infinity") if best is None else Decimal(best["cost"]["per_hour"])

    costs = [cost(limit) for limit in (100_000, 20_000, 8000, 5000, 4000, 3000, 2000, 1000, 500)]
    for looser, tighter in pairwise(costs):
        assert tighter >= looser * Decimal("0.995")  # plans within 0.5 % are equal
    assert costs[0] < costs[-2]


@pytest.mark.parametrize("factor", ["0.01", "3", "1000"])
@pytest.mark.parametrize("objective", ["cost", "balanced"])
def test_prices_scaled_alike_change_no_choice(factor, objective):
    load = workload(2000, 300, request_rate_per_s=12.0)
    names = ("h100", "h200", "mi300x", "l40s")
    plain = answer(load=load, on=tuple(map(device, names)), objective=objective)
    scaled = tuple(
        priced(name, str(Decimal(DEVICES[name]["price"]["amount_per_hour"]) * Decimal(factor)))
        for name in names
    )
    other = answer(load=load, on=scaled, objective=objective)
    first, second = plain["recommended"], other["recommended"]
    assert first | {"cost": None} == second | {"cost": None}
    assert Decimal(second["cost"]["per_hour"]) == Decimal(first["cost"]["per_hour"]) * Decimal(
        factor
    )


@pytest.mark.parametrize("objective", ["cost", "latency", "throughput", "balanced"])
def test_free_accelerators_can_be_planned(objective):
    found = answer(on=priced("h100", "0"), objective=objective)
    assert found["recommended"]["cost"]["per_hour"] == "0"


def test_no_plan_within_the_slos_says_by_how_much_the_nearest_misses():
    found = answer(slo={"tpot_p95_ms": 0.5})
    assert found["recommended"] is None
    assert "tpot_p95_ms" in found["reason"]
    nearest = found["nearest"]
    ratio = nearest["latency"]["tpot_ms"]["p95"] / 0.5
    assert f"{ratio:.2f} times its limit of 0.5 ms" in found["reason"]
    assert not nearest["slo"]["met"]
    best = min(one["latency"]["tpot_ms"]["p95"] for one in found["candidates"])
    assert nearest["latency"]["tpot_ms"]["p95"] <= best * 1.0001


def test_a_cost_limit_that_nothing_keeps_is_named_as_the_reason():
    found = answer(limits={"max_cost_per_hour": Decimal("1")})
    assert found["recommended"] is None
    text = str(found["reason"]) + str(found["rejected"])
    assert "cost" in text


@pytest.mark.parametrize("outputs", [1, 250])
def test_the_reason_for_no_recommendation_is_never_the_price_of_priced_hardware(outputs):
    load = workload(1000, outputs, saturate=True)
    for slo in ({}, {"ttft_p95_ms": 1000.0}, {"tpot_p95_ms": 100.0}):
        for objective in ("cost", "latency", "throughput", "balanced"):
            found = answer(load=load, slo=slo, objective=objective)
            assert "max_cost_per_hour" not in (found["reason"] or "")
            assert "inf times" not in (found["reason"] or "")


@pytest.mark.parametrize("objective", ["cost", "latency", "throughput", "balanced"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_saturated_load_without_slos_has_a_recommendation(objective, outputs):
    assert answer(load=workload(1000, outputs, saturate=True), objective=objective)["recommended"]


def test_one_output_token_has_no_gap_so_no_gap_can_miss_its_slo():
    load = workload(1000, 1, request_rate_per_s=2.0)
    found = answer(load=load, slo={"ttft_p95_ms": 2000.0, "tpot_p95_ms": 50.0})
    assert found["recommended"] is not None


def test_the_same_accelerators_are_shown_as_replicas_and_as_tensor_parallelism():
    found = answer(limits={"replicas": (8,), "tensor_parallel": (1, 2, 4, 8)})
    total = found["recommended"]["accelerators"]
    shown = found["replicas_vs_tensor_parallel"]
    assert {one["accelerators"] for one in shown} == {total}
    assert [one["tensor_parallel"] for one in shown] == sorted(
        n for n in (1, 2, 4, 8) if total % n == 0
    )
    for one in shown:
        assert one["replicas"] * one["tensor_parallel"] == total


def test_the_front_rises_in_cost_and_falls_in_latency():
    found = answer(load=workload(2000, 300, request_rate_per_s=12.0), objective="balanced")
    costs = [Decimal(one["cost"]["per_hour"]) for one in found["pareto"]]
    times = [one["latency"]["e2e_ms"]["p95"] for one in found["pareto"]]
    assert costs == sorted(costs)
    assert times == sorted(times, reverse=True)
    assert found["recommended"] in found["pareto"]


def test_hardware_that_computes_in_another_arithmetic_says_so():
    found = answer("llama-3.1-8b", "a100", weights=("fp8",))
    assert found["recommended"]["precision"]["compute"] == "bf16"
    assert "computed_in_other_arithmetic" in {one["code"] for one in found["warnings"]}
    native = answer("llama-3.1-8b", "h100", weights=("fp8",))
    assert native["recommended"]["precision"]["compute"] == "fp8"


def test_the_same_request_has_the_same_answer():
    first, second = (answer(load=workload(700, 90, request_rate_per_s=9.0)) for _ in range(2))
    assert first == second


def test_the_order_of_hardware_and_degrees_changes_nothing():
    load = workload(700, 90, request_rate_per_s=9.0)
    names, degrees = ("h100", "h200", "mi300x"), (1, 2, 4)
    found = [
        answer(load=load, on=tuple(map(device, order)), limits={"tensor_parallel": ranks})
        for order, ranks in ((names, degrees), (names[::-1], degrees[::-1]))
    ]
    assert found[0]["recommended"] == found[1]["recommended"]
    assert found[0]["pareto"] == found[1]["pareto"]


def test_a_model_of_that_name_on_two_devices_is_kept_apart():
    """Work that is kept for one profile is not used for another of the same name."""
    slower = replace(device("h100"), memory_bandwidth_gb_s=1000.0)
    fast, slow, again = (answer(on=one) for one in ("h100", slower, "h100"))
    assert fast == again
    tpot = [one["recommended"]["latency"]["tpot_ms"]["p50"] for one in (fast, slow)]
    assert tpot[1] > 2 * tpot[0]


def test_a_longer_shared_prefix_changes_the_answer():
    hits = [0.0, 0.25, 0.5, 0.9]
    times = [
        answer(load=workload(4000, 200, request_rate_per_s=3.0, prefix_cache_hit=hit))
        ["recommended"]["latency"]["ttft_ms"]["p50"]
        for hit in hits
    ]  # fmt: skip
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)


def test_the_inputs_come_back_with_every_default():
    found = answer()["inputs"]
    assert found["model"] == model("llama-3.1-8b").name
    assert found["limits"]["max_accelerators"] == 64
    assert found["workload"]["request_rate_per_s"] == request().workload.request_rate_per_s
    assert found["serving"]["engine"] == "vllm"
