"""Advice on techniques: each is the planner's own answer to a changed request, ranked by effect."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from advisor.core.plans import plan
from advisor.core.techniques.advice import advice
from advisor.core.techniques.catalogue import FAMILIES, GROUPS, catalogue, pairs
from advisor.core.techniques.evaluation import DISAGGREGATION, OFFERS
from advisor.core.techniques.subject import Given
from advisor.core.terminology.check import check
from advisor.core.workload import Length, Speculation
from tests.core.profiles import IDEAL, answer, device, model, request, unpriced, workload

ONE = {"tensor_parallel": (1,), "replicas": (1,)}


def advised(*names: str, given: Given | None = None, **fields: Any) -> dict[str, Any]:
    """Advice as it would travel."""
    found = advice(request(**fields), given or Given(), names)
    travelled: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    return travelled


def only(found: dict[str, Any], name: str, **setting: Any) -> dict[str, Any]:
    (one,) = [
        each for each in found["techniques"]
        if each["name"] == name and setting.items() <= each["setting"].items()
    ]  # fmt: skip
    return one


# The catalogue


def test_the_catalogue_has_both_families_and_every_technique_can_be_tried():
    known = catalogue().values()
    assert {each.family for each in known} == {*FAMILIES}
    assert {each.group for each in known} == {*GROUPS}
    assert {*catalogue()} == {*OFFERS, DISAGGREGATION}
    for pair in pairs():
        assert {pair.first, pair.second} <= {*OFFERS}
    for each in known:
        assert each.formulas
        assert all(url.startswith("https://") for _, url in each.sources)


def test_the_catalogue_uses_the_checkers_terms():
    for each in catalogue().values():
        for text in (each.changes, each.price, each.helps, each.hurts, each.not_computed):
            assert [found.match for found in check(text) if found.status == "needs_answer"] == []


# Effects are the planner's own


def test_a_technique_is_the_plan_of_the_changed_request():
    """The planner is asked the same question with FP8 weights, by itself."""
    fields: dict[str, Any] = {"of": "llama-3.1-70b", "slo": {"tpot_p95_ms": 50}}
    one = only(advised("weight_quantization", **fields), "weight_quantization", weights="fp8")
    expected = answer(**fields, weights=("fp8",))["recommended"]
    after = one["after"]
    assert after["cost_per_hour"] == expected["cost"]["per_hour"]
    assert after["e2e_p95_ms"] == expected["latency"]["e2e_ms"]["p95"]
    assert after["pools"][0]["kv_capacity_tokens"] == expected["memory"]["kv_capacity_tokens"]
    before = answer(**fields)["recommended"]
    assert one["before"]["cost_per_hour"] == before["cost"]["per_hour"]
    hourly = float(before["cost"]["per_hour"]), float(expected["cost"]["per_hour"])
    effect = one["effect"]
    assert (effect["value_before"], effect["value_after"]) == hourly
    assert effect["times_better"] == pytest.approx(hourly[0] / hourly[1])
    assert effect["verdict"] == one["verdict"] == "helps"
    assert f"from {hourly[0]:g} to {hourly[1]:g} USD (-50%)" in one["text"]


def test_in_place_is_the_deployment_as_it_is_with_the_technique():
    found = only(advised("kv_cache_quantization", of="llama-3.1-70b"), "kv_cache_quantization")
    now = answer(of="llama-3.1-70b")["recommended"]
    fixed = {"tensor_parallel": (now["tensor_parallel"],), "replicas": (now["replicas"],)}
    expected = answer(of="llama-3.1-70b", kv_cache=("fp8",), limits=fixed)["recommended"]
    assert found["in_place"]["tpot_p95_ms"] == expected["latency"]["tpot_ms"]["p95"]
    assert found["in_place"]["pools"][0]["max_concurrency"] == expected["memory"]["max_concurrency"]


def test_distillation_is_the_plan_of_the_smaller_model():
    given = Given(distilled_model=model("llama-3.1-8b"))
    one = only(advised("distillation", given=given, of="llama-3.1-70b"), "distillation")
    expected = answer(of="llama-3.1-8b")["recommended"]
    assert one["after"]["cost_per_hour"] == expected["cost"]["per_hour"]
    assert one["after"]["tpot_p95_ms"] == expected["latency"]["tpot_ms"]["p95"]
    assert one["after"]["model"] == "llama-3.1-8b"


def test_a_quantized_smaller_model_keeps_its_own_formats():
    given = Given(distilled_model=model("gpt-oss-120b"))
    one = only(advised("distillation", given=given, of="deepseek-v3"), "distillation")
    assert one["after"]["pools"][0]["precision"]["weights"] == "mxfp4"


def test_shared_kv_heads_shrink_the_cache_by_the_ratio_of_heads():
    """Llama 2 70B against a 70B whose 64 heads each had keys and values of their own: an eighth."""
    config = {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000,
        "max_position_embeddings": 4096, "torch_dtype": "float16",
    }  # fmt: skip
    llama2 = type(model("llama-3.1-8b")).from_mapping({"name": "llama-2-7b", "hf_config": config})
    one = only(advised("shared_kv_heads", of=llama2, limits=ONE), "shared_kv_heads")
    assert one["setting"] == {"num_kv_heads": 4}
    before, after = (one[key]["pools"][0] for key in ("before", "in_place"))
    freed = before["weights_gib"] - after["weights_gib"]
    assert freed == pytest.approx(2 * 32 * 4096 * 28 * 128 * 2 / 2**30, rel=1e-3)
    ratio = after["kv_capacity_tokens"] / before["kv_capacity_tokens"]
    assert ratio == pytest.approx(8 * after["kv_cache_gib"] / before["kv_cache_gib"], rel=1e-2)


# What cannot help is ranked as such


def test_kv_quantization_gains_nothing_where_weights_fill_the_time():
    """One stream of a 70B on short contexts reads 280 times as many bytes of weights as of KV."""
    load = workload(100, 100, concurrency=1)
    found = advised(
        "weight_quantization", "kv_cache_quantization", of="llama-3.1-70b", load=load,
        objective="latency", limits={"tensor_parallel": (4,), "replicas": (1,)},
    )  # fmt: skip
    kv_cache = only(found, "kv_cache_quantization")
    assert kv_cache["verdict"] == "no_change"
    applying = [each["name"] for each in found["techniques"] if each["applies"]]
    assert applying[0] == "weight_quantization"
    assert applying[-1] == "kv_cache_quantization"


def test_speculation_helps_one_stream_and_hurts_at_saturation():
    given = Given(speculative=Speculation(4, 0.6, 0.05))
    alone, saturated = (
        only(
            advised("speculative_decoding", given=given, load=load, objective=goal, limits=ONE),
            "speculative_decoding",
        )
        for load, goal in (
            (workload(500, 500, concurrency=1), "latency"),
            (workload(500, 500, saturate=True), "throughput"),
        )
    )
    assert alone["verdict"] == "helps"
    assert alone["effect"]["times_better"] > 1.5
    assert saturated["verdict"] == "hurts"
    assert saturated["effect"]["times_better"] < 0.97
    assert saturated["in_place"]["tpot_p95_ms"] > saturated["before"]["tpot_p95_ms"]


def test_speculation_at_saturation_is_ranked_below_what_helps_and_what_moves_nothing():
    given = Given(speculative=Speculation(4, 0.6, 0.05))
    load = workload(500, 500, saturate=True)
    found = advised(given=given, load=load, objective="throughput", limits=ONE)["techniques"]
    verdicts = [each["verdict"] for each in found if each["applies"]]
    assert verdicts == sorted(verdicts, key=["helps", "depends", "no_change", "hurts"].index)
    names = [each["name"] for each in found if each["verdict"] == "hurts"]
    assert "speculative_decoding" in names


def test_drafts_that_are_not_known_are_tried_in_a_poor_and_a_good_case():
    load = workload(500, 500, saturate=True)
    one = only(
        advised("speculative_decoding", load=load, objective="throughput", limits=ONE),
        "speculative_decoding",
    )
    assert one["setting"]["acceptance_rate"] < one["good_case"]["setting"]["acceptance_rate"]
    effects = one["effect"]["verdict"], one["good_case"]["effect"]["verdict"]
    assert one["verdict"] == (effects[0] if effects[0] == effects[1] else "depends")
    assert one["effect"]["times_better"] < one["good_case"]["effect"]["times_better"]


@pytest.mark.parametrize(("drafts", "cost"), [(3, 0.2), (5, 0.1), (1, 0.6)])
def test_drafts_pay_from_the_acceptance_at_which_a_step_gains_what_it_takes(drafts, cost):
    """Where reading weights is all, (1 - a^(g + 1)) / (1 - a) = g c + 1 (Leviathan et al. 2023)."""
    wide = replace(device("h100"), efficiency=IDEAL, dense_tflops={"bf16": 1e6})
    given = Given(speculative=Speculation(drafts, 0.9, cost))
    found = advised(
        "speculative_decoding", given=given, on=wide, load=workload(100, 200, concurrency=1),
        objective="latency", limits=ONE,
    )  # fmt: skip
    rate = only(found, "speculative_decoding")["pays_from_acceptance_rate"]
    assert sum(rate**k for k in range(drafts + 1)) == pytest.approx(drafts * cost + 1, rel=0.03)


def test_drafts_dearer_than_what_they_gain_pay_at_no_acceptance():
    given = Given(speculative=Speculation(2, 0.9, 2.0))
    load = workload(100, 200, concurrency=1)
    found = advised("speculative_decoding", given=given, load=load, objective="latency", limits=ONE)
    assert only(found, "speculative_decoding")["pays_from_acceptance_rate"] is None


def test_prefix_caching_saves_the_time_of_what_is_not_computed():
    """Prompts of 16,000 tokens alone on a device without overheads, nine tenths of them found:
    their FLOP, the attention of new tokens to cached ones in, are a little over a tenth."""
    ideal = replace(device("h100"), efficiency=IDEAL)
    load = workload(16_000, 1, request_rate_per_s=1e-4)
    found = advised(
        "prefix_caching", given=Given(prefix_cache_hit=0.9), on=ideal, load=load,
        objective="latency", limits=ONE, serving={"engine": "generic"},
    )  # fmt: skip
    one = only(found, "prefix_caching")
    linear, pairs_of = 2 * 6.979e9, 4 * 32 * 32 * 128
    whole, new = 16_000, 1_600
    flop = [
        tokens * linear + pairs_of * tokens * (cached + (tokens + 1) / 2)
        for tokens, cached in ((new, whole - new), (whole, 0))
    ]
    assert one["in_place"]["ttft_p95_ms"] / one["before"]["ttft_p95_ms"] == pytest.approx(
        flop[0] / flop[1], rel=0.05
    )


# What does not apply says why


@pytest.mark.parametrize(
    ("name", "words", "fields"),
    [
        ("weight_quantization", "no fp4 arithmetic", {"on": "h100"}),
        ("weight_quantization", "are fp8_block already", {"of": "deepseek-v3", "on": "h200"}),
        ("weight_quantization", "Already used", {"weights": ("fp8",)}),
        ("distillation", "Name a smaller model", {}),
        ("kv_cache_quantization", "Already used", {"kv_cache": ("fp8",)}),
        ("kv_cache_management", "requests at their mean length", {}),
        ("attention_kernels", "Already used", {}),
        ("shared_kv_heads", "8 KV heads for 32 query heads", {}),
        ("shared_kv_heads", "compressed vectors", {"of": "deepseek-v2-lite"}),
        (
            "speculative_decoding", "Already used",
            {"serving": {"speculative": Speculation(2, 0.5)}},
        ),
        ("continuous_batching", "Already used", {}),
        ("larger_batch", "capacity-bound", {"of": "llama-3.1-70b"}),
        ("larger_batch", "SLO on TPOT",
         {"load": workload(1000, 250, concurrency=256), "slo": {"tpot_p95_ms": 15}}),
        ("expert_parallel", "has no experts", {}),
        ("expert_parallel", "one accelerator", {"of": "qwen3-30b-a3b", "limits": ONE}),
        ("attention_data_parallel", "one accelerator", {"limits": ONE}),
        ("prefix_caching", "0.3 of the input",
         {"load": workload(1000, 250, request_rate_per_s=1.0, prefix_cache_hit=0.3)}),
        ("disaggregation", "not modelled", {"load": workload(1000, 250, concurrency=8)}),
        ("disaggregation", "max_accelerators is 1", {"limits": {"max_accelerators": 1}}),
        ("least_loaded_routing", "One replica serves", {}),
        ("tensor_parallel", "No link",
         {"on": "l40s", "limits": {"tensor_parallel": (8,), "replicas": (1,)}}),
    ],
)  # fmt: skip
def test_what_does_not_apply_says_why_and_comes_last(name, words, fields):
    found = advised(name, **fields)["techniques"]
    refused = [each for each in found if not each["applies"]]
    assert [each for each in refused if words in each["reason"]], [e["reason"] for e in refused]
    assert found[len(found) - len(refused) :] == refused
    for each in refused:
        assert each["after"] is each["effect"] is each["verdict"] is each["in_place"] is None


def test_a_device_without_any_link_cannot_split_further_nor_pass_on_a_cache():
    alone = replace(device("l40s"), interconnect=None)
    found = advised("tensor_parallel", "disaggregation", on=alone, limits=ONE)
    assert "No link" in only(found, "tensor_parallel")["reason"]
    assert "No link" in only(found, "disaggregation")["reason"]
    assert found["disaggregation"] is None


def test_a_model_that_is_no_smaller_is_no_distillation():
    given = Given(distilled_model=model("llama-3.1-70b"))
    one = only(advised("distillation", given=given), "distillation")
    assert "it is no smaller model" in one["reason"]


def test_quantization_may_give_a_plan_where_none_fits():
    """141 GB of weights on one device of 80 GB: in 4 bits they fit."""
    few = workload(1000, 250, request_rate_per_s=0.1)
    found = advised("weight_quantization", "replicas", of="llama-3.1-70b", load=few, limits=ONE)
    assert found["before"] is None
    assert "Capacity-bound" in found["reason"]
    one = only(found, "weight_quantization", weights="int4_awq")
    assert one["verdict"] == "helps"
    assert "where there is none now" in one["text"]
    assert not only(found, "replicas")["applies"]
    many = advised("weight_quantization", of="llama-3.1-70b", limits=ONE)
    one = only(many, "weight_quantization", weights="int4_awq")
    assert one["verdict"] == "no_change"
    assert "would fit, where nothing does now" in one["text"]
    assert "misses max_utilization" in one["text"]


def test_what_leaves_no_plan_within_the_limits_hurts_and_names_the_limit():
    found = advised("replicas", limits={"max_accelerators": 1, **ONE})
    one = only(found, "replicas")
    assert one["verdict"] == "hurts"
    assert one["effect"]["times_better"] is None
    assert "misses max_accelerators" in one["text"]


def test_where_no_plan_keeps_every_limit_they_are_compared_by_the_one_missed_by_most():
    found = advised("weight_quantization", slo={"tpot_p95_ms": 0.01}, limits=ONE)
    effect = only(found, "weight_quantization", weights="fp8")["effect"]
    assert effect["measure"] == "worst_limit"
    assert effect["value_before"] > effect["value_after"] > 1


def test_a_limit_that_no_plan_can_have_leaves_the_objective_to_compare_by():
    """TTFT has no value at saturation: what is served has."""
    found = advised(
        "weight_quantization", load=workload(1000, 250, saturate=True), objective="throughput",
        slo={"ttft_p95_ms": 1000}, limits=ONE,
    )  # fmt: skip
    one = only(found, "weight_quantization", weights="fp8")
    assert one["effect"]["measure"].startswith("saturation_output_tokens")
    assert one["verdict"] == "helps"


# The whole of it


def test_effects_come_in_order():
    found = advised(of="llama-3.1-70b", objective="latency", limits={"max_accelerators": 8})
    times = [
        each["effect"]["times_better"] for each in found["techniques"]
        if each["applies"] and each["effect"]["times_better"] and each["verdict"] != "no_change"
    ]  # fmt: skip
    assert len(times) > 5
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("objective", ["cost", "latency", "throughput", "balanced"])
@pytest.mark.parametrize(
    ("of", "on", "load"),
    [
        ("llama-3.1-8b", "l40s", workload(1000, Length(250, 600), request_rate_per_s=3.0)),
        ("deepseek-v3", "h200", workload(4000, 500, request_rate_per_s=2.0)),
        ("gpt-oss-120b", "h100", workload(1000, 300, concurrency=32)),
        ("qwen3-30b-a3b", "mi300x", workload(2000, 200, saturate=True)),
        ("mixtral-8x7b", "a100", workload(100, 1, request_rate_per_s=1.0)),
        ("llama-3.1-70b", "h100", workload(500, 100, concurrency=4, start="burst")),
    ],
)
def test_advice_is_plain_json_in_the_checkers_terms(of, on, load, objective):
    found = advised(of=of, on=on, load=load, objective=objective, slo={"tpot_p95_ms": 60})
    assert {each["name"] for each in found["techniques"]} == {*catalogue()}
    texts = [each["text"] for each in (*found["techniques"], *found["combinations"])]
    for text in (*texts, *found["explanation"]):
        assert [each.match for each in check(text) if each.status == "needs_answer"] == []
        assert "nan" not in text
        assert "inf " not in text
    for each in found["combinations"]:
        if each["interaction"] != "not_comparable":
            effect = each["effect"]
            moved = effect["value_after"] - effect["value_before"]
            verb = "raise" if moved > 0 else "lower" if moved < 0 else "leave"
            assert f" would {verb} " in each["text"]
            assert not re.search(r"by -\d", each["text"])
    applying = {each["name"] for each in found["techniques"] if each["applies"]}
    assert {each["technique"] for each in found["not_computable"]} == applying
    assert "quality" in " ".join(each["detail"] for each in found["not_computable"])
    codes = {each["code"] for each in found["assumptions"]}
    assert ("steady_for_burst" in codes) == (load.start == "burst")


def test_a_device_without_a_price_has_no_cost_to_compare():
    found = advised(on=unpriced("h100"))
    assert found["before"] is None
    assert "has no price" in found["reason"]
    assert advised("weight_quantization", on=unpriced("h100"), objective="latency")["before"]


# Two at once


def test_quantized_weights_make_room_for_what_a_smaller_cache_then_fills():
    """On two devices the 70B leaves little for its KV cache: both techniques together serve more
    than the sum of what each gains, as the planner asked for both at once says."""
    fields: dict[str, Any] = {
        "of": "llama-3.1-70b", "objective": "throughput",
        "load": workload(4000, 1000, saturate=True),
        "limits": {"tensor_parallel": (4,), "replicas": (1,)},
    }  # fmt: skip
    found = advised("weight_quantization", "kv_cache_quantization", **fields)
    (pair,) = found["combinations"]
    assert pair["interaction"] == "more_than_the_sum"
    assert pair["gain_together"] > sum(pair["gains"])
    now, both = (
        answer(**fields, weights=weights, kv_cache=kv)["recommended"]["throughput"]
        for weights, kv in (((), ()), ((pair["setting"]["weights"],), ("fp8",)))
    )
    key = "saturation_output_tokens_per_s"
    assert pair["gain_together"] == pytest.approx((both[key] - now[key]) / 4, rel=1e-4)
    assert "better than the sum" in pair["text"]


def test_a_larger_batch_takes_what_drafts_would_have_had_for_nothing():
    fields: dict[str, Any] = {
        "objective": "throughput", "load": workload(200, 400, saturate=True), "limits": ONE,
        "serving": {"max_num_seqs": 8},
    }  # fmt: skip
    given = Given(speculative=Speculation(3, 0.8, 0.02))
    found = advised("larger_batch", "speculative_decoding", given=given, **fields)
    (pair,) = found["combinations"]
    assert pair["techniques"] == ["larger_batch", "speculative_decoding"]
    alone = [plan(request(**fields))]
    assert alone[0].recommended is not None
    assert all(gain > 0 for gain in pair["gains"])


def test_batching_is_compared_on_the_same_accelerators_under_the_same_load():
    load = workload(500, Length(200, 600), request_rate_per_s=2.0)
    kinds = advised("continuous_batching", load=load, limits=ONE)["batching"]
    assert [each["batching"] for each in kinds] == ["none", "static", "continuous"]
    served = [each["saturation_output_tokens_per_s"] for each in kinds]
    assert served == sorted(served)
    assert served[2] > 2 * served[1] > 4 * served[0]
    assert kinds[0]["slots"] == 1
    assert kinds[0]["verdict"] == "unstable"
    assert kinds[1]["ttft_p95_ms"] > kinds[2]["ttft_p95_ms"]


def test_one_request_at_a_time_serves_the_inverse_of_its_time_alone():
    """At saturation of one slot, 1 / (prefill + 199 steps), as one client sees it."""
    kinds = advised("continuous_batching", load=workload(500, 200, saturate=True), limits=ONE)
    alone = answer(load=workload(500, 200, concurrency=1), limits=ONE)["recommended"]
    served = kinds["batching"][0]["saturation_output_tokens_per_s"]
    assert served == pytest.approx(alone["throughput"]["output_tokens_per_s"], rel=0.05)
