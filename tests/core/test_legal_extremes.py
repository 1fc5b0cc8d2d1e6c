"""Requests at the edges of what is accepted: answered, in numbers that JSON has."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.architecture import Architecture, Layer
from advisor.core.errors import InvalidInput
from advisor.core.lengths import RequestClass
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.mlps import MoeMlp
from advisor.core.model import ModelProfile
from advisor.core.workload import MAX_P95_TO_MEAN, Length, Workload
from tests.core.profiles import CONFIGS, DEVICES, answer, device, model, workload
from tests.core.strategies import accelerators, examples, lengths, models

LOADS: dict[str, dict[str, Any]] = {
    "open": {"request_rate_per_s": 5.0},
    "tiny": {"request_rate_per_s": 1e-6},
    "huge": {"request_rate_per_s": 1e6},
    "peak": {"request_rate_per_s": 0.01, "peak_to_mean": 1000.0},
    "one client": {"concurrency": 1},
    "clients": {"concurrency": 37},
    "a million clients": {"concurrency": 1_000_000},
    "saturated": {"saturate": True},
}
CHANGES: list[dict[str, Any]] = [
    {},
    {"prefix_cache_hit": 1.0},
    {"arrival_cv": 0.0},
    {"arrival_cv": 100.0, "prefix_cache_hit": 0.5},
]
OBJECTIVES = ["cost", "latency", "throughput", "balanced"]
SHAPES = {
    "usual": (Length(1000), Length(250)),
    "one token": (Length(1000), Length(1)),
    "one and one": (Length(1), Length(1)),
    "short": (Length(1), Length(2)),
    "fractions": (Length(1000.5), Length(1.5)),
    "little more than one": (Length(10), Length(1.01)),
    "spread": (Length(1000, 3000), Length(250, 900)),
    "hardly spread": (Length(1000, 1000.001), Length(250, 250.001)),
    "most spread": (Length(500, 500 * MAX_P95_TO_MEAN), Length(100, 100 * MAX_P95_TO_MEAN)),
    "long": (Length(30_000), Length(2_000)),
}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("lengths_of", SHAPES)
def test_every_load_and_length_is_answered(load, lengths_of):
    inputs, outputs = SHAPES[lengths_of]
    for changes in CHANGES:
        found = answer(load=workload(inputs, outputs, **LOADS[load], **changes))
        check(found)
        check_work(found, inputs.mean * (1 - changes.get("prefix_cache_hit", 0)) + outputs.mean - 1)
        if load != "huge":
            assert found["recommended"] is not None
        elif inputs.mean + outputs.mean > 20:
            assert found["recommended"] is None
            assert {one["code"] for one in found["rejected"]} == {"overloaded"}


MIXES = {
    "one token and none": [(Length(1), Length(1), 0.0), (Length(1), Length(1), 1.0)],
    "long and short": [(Length(60_000), Length(1), 0.0), (Length(1), Length(2_000), 0.0)],
    "rare": [(Length(1000, 3000), Length(250, 900), 0.0), (Length(20_000), Length(2), 0.5)],
    "counted": [(Length.histogram([1, 30_000]), Length.histogram([1, 2, 900], [5, 1, 1]), 0.3)],
    "alike": [(Length(1000), Length(250), 0.0)] * 4,
}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("mix", MIXES)
def test_every_load_and_mix_of_classes_is_answered(load, mix):
    classes = [
        RequestClass(one[0], one[1], 1e-6 if mix == "rare" and i else 1.0, one[2], f"of-{i}")
        for i, one in enumerate(MIXES[mix])
    ]
    for variation in (1.0, 0.0, 100.0):
        found = answer(load=Workload.of_classes(classes, arrival_cv=variation, **LOADS[load]))
        check(found)
        json.dumps(found, allow_nan=False)
        for one in found["candidates"]:
            assert len(one["classes"]) == len(classes)
            for latency in one["classes"]:
                for values in (value for key, value in latency.items() if key != "name"):
                    assert (values["p50"] or 0) <= (values["p95"] or 0) <= (values["p99"] or 0)


def test_classes_that_fit_nowhere_are_an_answer():
    mix = [RequestClass(Length(n), Length(n), 1.0, 0.0, f"of-{n}") for n in (100, 900)]
    for load in LOADS.values():
        found = answer("deepseek-v3", "l40s", Workload.of_classes(mix, **load))
        assert found["candidates"] == []
        assert found["reason"]


def check_work(found, tokens):
    """No accelerator multiplies more tokens with the 7.0e9 weights of the body than its peak."""
    for one in found["candidates"]:
        flop = 2 * 6_979_321_856 * tokens * one["throughput"]["saturation_requests_per_s"]
        assert flop <= 989.4e12 * one["accelerators"]


def check(found):
    """What holds for each candidate of any answer, as far as its figures are defined."""
    for one in found["candidates"]:
        for metric, latency in one["latency"].items():
            values = [latency[name] for name in ("p50", "p95", "p99")]
            assert (None in values) == (values == [None] * 3) == (latency["mean"] is None)
            if None not in values:
                assert 0 < values[0] <= values[1] <= values[2], (metric, latency)
                assert latency["mean"] > 0, (metric, latency)
        if one["load"]["verdict"] in ("stable", "near_saturation", "closed_loop"):
            assert one["latency"]["ttft_ms"]["mean"] is not None
            assert one["latency"]["e2e_ms"]["mean"] is not None
        assert 0 <= one["slo"]["attainment"] <= 1
        assert one["load"]["concurrency_per_replica"] > 0
        assert one["throughput"]["requests_per_s"] > 0
        assert one["memory"]["max_concurrency"] >= 1


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("on", DEVICES)
def test_every_model_on_every_accelerator(name, on):
    check_somehow(name, on, "vllm")


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "gpt-oss-120b"])
@pytest.mark.parametrize("engine", ["sglang", "tensorrt_llm", "generic"])
def test_every_engine(name, engine):
    check_somehow(name, "h200", engine)
    check_somehow(name, "l40s", engine)


def check_somehow(name, on, engine):
    load = workload(3000, 400, request_rate_per_s=3.0)
    found = answer(name, on, load, serving={"engine": engine}, objective="latency")
    check(found)
    assert found["candidates"] or found["rejected"]


@pytest.mark.parametrize(
    "serving",
    [
        {"max_num_seqs": 1}, {"max_num_seqs": 65_536}, {"max_num_batched_tokens": 1},
        {"max_num_batched_tokens": 1_048_576}, {"max_num_batched_tokens": 17, "max_num_seqs": 3},
        {"memory_utilization": 0.01}, {"memory_utilization": 1.0}, {"router_efficiency": 0.01},
        {"routing": "least_loaded"}, {"routing": "least_loaded", "max_num_seqs": 1},
    ],
)  # fmt: skip
@pytest.mark.parametrize("load", ["open", "clients", "saturated"])
def test_every_setting_of_an_engine_is_answered(serving, load):
    found = answer(load=workload(1000, 250, **LOADS[load]), serving=serving, objective="latency")
    check(found)
    assert found["candidates"] or found["rejected"]


@pytest.mark.parametrize("mode", ["open", "clients", "saturated"])
def test_more_sequences_than_tokens_of_a_step_do_not_bring_a_replica_down(mode):
    """Where an engine admits it, no more of them decode than a step has tokens for."""
    load = workload(490, 14, **LOADS[mode])
    few = {"engine": "generic", "max_num_batched_tokens": 512, "max_num_seqs": 32}
    many = {"engine": "generic", "max_num_batched_tokens": 512, "max_num_seqs": 1024}
    limits = {"tensor_parallel": (1,), "replicas": (1,)}
    rates = [
        answer(load=load, serving=serving, limits=limits)["candidates"][0]["throughput"]
        ["saturation_requests_per_s"]
        for serving in (few, many)
    ]  # fmt: skip
    assert rates[1] >= 0.9 * rates[0]


def moe_of(experts, chosen):
    attention = GroupedQueryAttention(8, 8, 64)
    layer = Layer(attention, MoeMlp(experts, chosen, 1024))
    return ModelProfile("few", Architecture("any", 512, 32_000, 32_768, False, (layer,) * 4))


@pytest.mark.parametrize(("experts", "chosen"), [(1, 1), (2, 2), (8, 8), (8, 1), (128, 127)])
@pytest.mark.parametrize("mode", ["open", "clients", "saturated"])
def test_a_mixture_may_use_all_of_its_experts(experts, chosen, mode):
    found = answer(moe_of(experts, chosen), load=workload(1000, 250, **LOADS[mode]))
    check(found)
    assert found["recommended"] is not None


@examples(30)
@given(
    models(), st.lists(accelerators(), min_size=1, max_size=2), lengths(1, 20_000),
    lengths(1, 4000), st.sampled_from(sorted(LOADS)), st.sampled_from([0.0, 1.0, 20.0]),
    st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from(OBJECTIVES),
)  # fmt: skip
def test_any_legal_request_is_answered_in_json(
    of, on, inputs, outputs, load, arrival_cv, hit, objective
):
    asked = workload(inputs, outputs, arrival_cv=arrival_cv, prefix_cache_hit=hit, **LOADS[load])
    named = tuple(replace(each, name=f"any-{i}") for i, each in enumerate(on))
    slo = {"ttft_p95_ms": 500.0, "tpot_mean_ms": 50.0, "e2e_p99_ms": 60_000.0}
    limits = {"pipeline_parallel": (1, 2), "max_accelerators": 200, "tensor_parallel": (1, 2, 8)}
    if asked.longest > of.architecture.context_length:
        with pytest.raises(InvalidInput, match="/workload"):
            answer(of, named, asked, limits, slo=slo, objective=objective)
        return
    found = answer(of, named, asked, limits, slo=slo, objective=objective)
    check(found)
    assert (found["recommended"] is None) == (found["reason"] is not None)


def test_a_profile_is_answered_in_json():
    for name in CONFIGS:
        json.dumps(model(name).as_document(), allow_nan=False)


@pytest.mark.parametrize("mean", [1.0, 3.7, 1e7])
@pytest.mark.parametrize("ratio", [1 + 1e-12, 1.5, 3.868, MAX_P95_TO_MEAN])
def test_the_spread_of_a_length_gives_back_its_p95(mean, ratio):
    length = Length(mean, mean * ratio)
    sigma = length.components[0].sigma
    again = math.exp(1.6448536269514722 * sigma - sigma**2 / 2)
    assert again == pytest.approx(ratio, rel=1e-9)
    assert math.isfinite(length.squared_cv)


def test_an_accelerator_with_hardly_any_memory_fits_nothing():
    tiny = replace(device("h100"), memory_gib=0.01)
    for engine in ("vllm", "sglang", "tensorrt_llm", "generic"):
        found = answer(on=tiny, serving={"engine": engine})
        assert {one["code"] for one in found["rejected"]} == {"does_not_fit"}
